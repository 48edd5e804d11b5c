// SPDX-License-Identifier: MIT
// Starts a process that is not trusted in Linux namespaces: it sees no process, no network and no host name of the
// machine, and only the files that this process puts into its root folder. If root starts the process, it also becomes
// the user and group 65534 (nobody), who own no file. Otherwise, it remains the user who starts it, but without a file
// of this user in sight.
#pragma once
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <string>

namespace apart {

constexpr unsigned nobody = 65534;

// Replaces the user by nobody, if root calls it and this machine has a user nobody; if not, the user remains. The calls
// change nothing if the user is nobody already.
inline bool become_nobody() {
    if (geteuid() != 0 && geteuid() != nobody) return true;
    if (setgroups(0, nullptr) != 0 && errno != EPERM) return false;
    const bool is = setresgid(nobody, nobody, nobody) == 0 && setresuid(nobody, nobody, nobody) == 0;
    return is || errno == EINVAL;  // EINVAL: the namespace in which root runs has no user 65534
}
// Whether become_nobody() makes this user nobody.
inline bool can_become_nobody() {
    const pid_t child = fork();
    if (child == 0) _exit(become_nobody() && geteuid() == nobody ? 0 : 1);
    int status = 1;
    waitpid(child, &status, 0);
    return status == 0;
}

inline bool write_file(const char* folder, pid_t process, const char* file, const char* text) {
    char path[64];
    std::snprintf(path, sizeof path, "%s/%d/%s", folder, int(process), file);
    const int to = open(path, O_WRONLY | O_CLOEXEC);
    if (to < 0) return false;
    const bool all = write(to, text, std::strlen(text)) == ssize_t(std::strlen(text));
    close(to);
    return all;
}

// Like fork(), but the child is in namespaces of its own, in which it has all capabilities until it starts a program.
// Returns -1 if the machine does not permit namespaces; `errno` then says why. No memory is allocated between the call
// and the child's return, because another thread may be allocating memory.
inline pid_t start() {
    int ready[2];
    if (pipe2(ready, O_CLOEXEC) != 0) return -1;
    const uid_t user = geteuid();
    const gid_t group = getegid();
    const long flags = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS;
    const auto child = pid_t(syscall(SYS_clone, flags | SIGCHLD, 0, 0, 0, 0));
    char mapped = 0;
    if (child == 0) {
        close(ready[1]);
        if (read(ready[0], &mapped, 1) != 1) _exit(126);
        close(ready[0]);
        return 0;
    }
    close(ready[0]);
    int why = errno;
    bool is_ready = child > 0;
    if (is_ready) {
        // Root needs both users in the namespaces: root makes the new root folder, then becomes nobody. Any other user,
        // and a root whose own namespace has no user 65534, is called nobody there.
        const char both[] = "0 0 1\n65534 65534 1\n";
        is_ready =
            user == 0 && write_file("/proc", child, "uid_map", both) && write_file("/proc", child, "gid_map", both);
        if (!is_ready) {
            char users[64], groups[64];
            std::snprintf(users, sizeof users, "%u %u 1\n", nobody, user);
            std::snprintf(groups, sizeof groups, "%u %u 1\n", nobody, group);
            is_ready = write_file("/proc", child, "setgroups", "deny") &&
                       write_file("/proc", child, "uid_map", users) && write_file("/proc", child, "gid_map", groups);
        }
        why = errno;
        is_ready = is_ready && write(ready[1], "!", 1) == 1;
    }
    close(ready[1]);
    if (is_ready) return child;
    if (child > 0) kill(child, SIGKILL), waitpid(child, nullptr, 0);
    errno = why;
    return -1;
}

// Makes an empty folder in memory the root folder. The old root folder is then in /old, until leave_old_root().
inline bool enter_new_root() {
    return mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
           mount("tmpfs", "/tmp", "tmpfs", MS_NOSUID | MS_NODEV, "mode=755,size=1m") == 0 &&
           mkdir("/tmp/old", 0700) == 0 && syscall(SYS_pivot_root, "/tmp", "/tmp/old") == 0 && chdir("/") == 0;
}
inline bool leave_old_root() {
    return umount2("/old", MNT_DETACH) == 0 && rmdir("/old") == 0 &&
           mount(nullptr, "/", nullptr, MS_REMOUNT | MS_RDONLY | MS_NOSUID | MS_NODEV, "mode=755,size=1m") == 0;
}

inline void make_folders_of(const std::string& path) {
    for (std::size_t at = path.find('/', 1); at != path.npos; at = path.find('/', at + 1))
        mkdir(path.substr(0, at).c_str(), 0755);
}
// Shows a file or folder of the old root folder at the same path in the new one. Returns true if there is no such file.
inline bool show(const std::string& path, bool writable) {
    const std::string old = "/old" + path;
    struct stat is {};
    if (lstat(old.c_str(), &is) != 0) return true;
    make_folders_of(path);
    if (S_ISLNK(is.st_mode)) {  // such as /lib, a link to usr/lib
        char to[PATH_MAX];
        const ssize_t n = readlink(old.c_str(), to, sizeof to - 1);
        return n > 0 && symlink(std::string(to, std::size_t(n)).c_str(), path.c_str()) == 0;
    }
    if (S_ISDIR(is.st_mode))
        mkdir(path.c_str(), 0755);
    else if (const int file = open(path.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0644); file >= 0)
        close(file);
    if (mount(old.c_str(), path.c_str(), nullptr, MS_BIND | MS_REC, nullptr) != 0) return false;
    struct statvfs has {};
    if (writable || statvfs(path.c_str(), &has) != 0) return writable;
    // The kernel refuses a change that would remove one of these flags.
    unsigned long flags = MS_REMOUNT | MS_BIND | MS_RDONLY;
    for (const auto& [flag, mounted] : {std::pair<unsigned long, unsigned long>{ST_NOSUID, MS_NOSUID},
                                        {ST_NODEV, MS_NODEV},
                                        {ST_NOEXEC, MS_NOEXEC},
                                        {ST_NOATIME, MS_NOATIME},
                                        {ST_NODIRATIME, MS_NODIRATIME},
                                        {ST_RELATIME, MS_RELATIME}})
        if (has.f_flag & flag) flags |= mounted;
    return mount(nullptr, path.c_str(), nullptr, flags, nullptr) == 0;
}

// Returns "" if this machine permits all of this, else the reason.
inline std::string refused() {
    const pid_t child = start();
    if (child < 0) return std::string("no new namespaces: ") + std::strerror(errno);
    if (child == 0) {
        if (!enter_new_root() || !show("/usr", false) || !show("/dev/null", true) || !leave_old_root()) _exit(1);
        _exit(become_nobody() ? 0 : 2);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return status == 0                ? ""
           : WEXITSTATUS(status) == 1 ? "no mounts in new namespaces"
                                      : "no change of the user in new namespaces";
}

}  // namespace apart
