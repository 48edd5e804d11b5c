// SPDX-License-Identifier: MIT
// A filter of system calls for a program that is not trusted. The program may ask for memory, time and random numbers,
// end itself, and read and write files that are already open. All other system calls fail with EPERM, such as those
// that open files or sockets or start threads or processes. The filter is set before the program is started, so none of
// the program's code runs without the filter. The program must be linked statically.
#pragma once
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstddef>

#include "docs/labs/remote/apart.h"

namespace cage {

constexpr int program = 5;  // file descriptor of the program to start; closed when the program starts

inline void limit(int what, rlim_t most) {
    const rlimit both{most, most};
    setrlimit(__rlimit_resource(what), &both);
}

inline bool set_filter() {
    const long allowed[] = {SYS_read,
                            SYS_write,
                            SYS_writev,
                            SYS_brk,
                            SYS_mmap,
                            SYS_munmap,
                            SYS_mprotect,
                            SYS_mremap,
                            SYS_madvise,
                            SYS_futex,
                            SYS_getrandom,
                            SYS_clock_gettime,
                            SYS_sched_getaffinity,
                            SYS_sched_yield,
                            SYS_set_tid_address,
                            SYS_set_robust_list,
                            SYS_rseq,
                            SYS_rt_sigaction,
                            SYS_rt_sigprocmask,
                            SYS_rt_sigreturn,
                            SYS_sigaltstack,
#ifdef SYS_arch_prctl
                            SYS_arch_prctl,
#endif
                            SYS_exit,
                            SYS_exit_group};
#if defined(__x86_64__)
    constexpr unsigned here = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
    constexpr unsigned here = AUDIT_ARCH_AARCH64;
#else
    constexpr unsigned here = 0;
    return false;
#endif
    const auto load = [](std::size_t at) { return sock_filter BPF_STMT(BPF_LD | BPF_W | BPF_ABS, unsigned(at)); };
    const auto unless = [](unsigned value, int skip) {
        return sock_filter BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, __u8(skip));
    };
    const auto end = [](unsigned how) { return sock_filter BPF_STMT(BPF_RET | BPF_K, how); };
    sock_filter f[11 + 2 * sizeof allowed / sizeof allowed[0]];  // no std::vector, see apart::start()
    unsigned short size = 0;
    const auto add = [&](sock_filter each) { f[size++] = each; };
    add(load(offsetof(seccomp_data, arch)));
    add(sock_filter BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, here, 1, 0));
    add(end(SECCOMP_RET_KILL_PROCESS));
    add(load(offsetof(seccomp_data, nr)));
    for (long each : allowed) add(unless(unsigned(each), 1)), add(end(SECCOMP_RET_ALLOW));
    add(unless(SYS_execveat, 5));
    add(load(offsetof(seccomp_data, args)));
    add(unless(unsigned(program), 3));
    add(load(offsetof(seccomp_data, args) + 4 * sizeof(seccomp_data::args[0])));
    add(unless(AT_EMPTY_PATH, 1));
    add(end(SECCOMP_RET_ALLOW));
    add(end(SECCOMP_RET_ERRNO | EPERM));
    const sock_fprog all{size, f};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &all) == 0;
}

// Replaces this process, a child of apart::start() or fork(), by the program, which has only the file descriptors 0 to
// program - 1. With namespaces, its root folder is empty. If this fails, ends the process with status 126.
[[noreturn]] inline void start(bool namespaces, std::size_t memory, unsigned seconds) {
    if (namespaces && !(apart::enter_new_root() && apart::leave_old_root())) _exit(126);
    if (!apart::become_nobody()) _exit(126);
    limit(RLIMIT_AS, memory), limit(RLIMIT_CPU, seconds), limit(RLIMIT_CORE, 0), limit(RLIMIT_FSIZE, 0),
        limit(RLIMIT_NPROC, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    char* const arguments[] = {const_cast<char*>("student"), nullptr};
    char* const environment[] = {nullptr};
    if (chdir("/") == 0 && set_filter()) syscall(SYS_execveat, program, "", arguments, environment, AT_EMPTY_PATH);
    _exit(126);
}

}  // namespace cage
