// SPDX-License-Identifier: MIT
// Starts the student's program (environment variable LAB_STUDENT) in its cage (cage.h), and in namespaces (apart.h)
// unless the environment variable LAB_NAMESPACES is "no".
#include "docs/labs/remote/judge.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>

#include <algorithm>
#include <cstdlib>

#include "docs/labs/remote/cage.h"

namespace remote {
namespace {

constexpr std::size_t memory = std::size_t(2) << 30;
// Returns the limit of the student's processor time, in seconds: that of alone() or, outside of it, LAB_SECONDS
// (default 60).
unsigned most_seconds() { return seconds_alone > 0 ? seconds_alone : seconds_of_run(60); }

struct Process {
    pid_t judge = 0, id = 0;
    int socket = -1;
    clockid_t clock = 0;
} process;

[[noreturn]] void impossible(const char* what) {
    std::perror(what);
    _exit(126);
}
void start() {
    int ends[2];
    const char* path = std::getenv("LAB_STUDENT");
    const int program = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (program < 0) impossible("LAB_STUDENT");
    const int shared = memfd_create("arena", MFD_CLOEXEC);
    if (shared < 0 || ftruncate(shared, arena_bytes) != 0 ||
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        impossible("socketpair");
    if (arena) munmap(arena, arena_bytes);
    arena = static_cast<char*>(mmap(nullptr, arena_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, shared, 0));
    if (arena == MAP_FAILED) impossible("mmap");
    std::fflush(stdout);
    const char* const wanted = std::getenv("LAB_NAMESPACES");
    const bool namespaces = !wanted || std::strcmp(wanted, "no") != 0;
    const unsigned most = most_seconds();
    const pid_t child = namespaces ? apart::start() : fork();
    if (child < 0) impossible(namespaces ? "namespaces" : "fork");
    if (child == 0) {
        const int from[] = {open("/dev/null", O_RDWR), -1, -1, ends[1], shared, program};
        int moved[6];
        for (int i = 0; i < 6; i++) moved[i] = fcntl(i == 1 || i == 2 ? from[0] : from[i], F_DUPFD, 64);
        for (int i = 0; i < 6; i++) dup2(moved[i], i);
        for (int i = 6; i < 1024; i++) close(i);
        fcntl(cage::program, F_SETFD, FD_CLOEXEC);
        cage::start(namespaces, memory, most);
    }
    close(program), close(shared), close(ends[1]);
    process = {getpid(), child, ends[0], 0};
    if (clock_getcpuclockid(child, &process.clock) != 0) impossible("clock_getcpuclockid");
    signal(SIGPIPE, SIG_IGN);
}
void stop() {
    if (process.judge != getpid()) return;
    close(process.socket);
    kill(process.id, SIGKILL), waitpid(process.id, nullptr, 0);
    process = {};
}
double seconds(clockid_t clock) {
    timespec t{};
    clock_gettime(clock, &t);
    return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
}

// Returns the peak size of the address space of the student's process, in bytes, as counted by the kernel.
std::size_t peak() {
    std::size_t kilobytes = 0;
    const std::string path = "/proc/" + std::to_string(process.id) + "/status";
    std::FILE* file = std::fopen(path.c_str(), "r");
    if (!file) return 0;
    for (char line[256]; std::fgets(line, sizeof line, file);)
        if (std::sscanf(line, "VmPeak: %zu", &kilobytes) == 1) break;
    std::fclose(file);
    return kilobytes << 10;
}
std::size_t memory_of_student(const std::function<void()>& f) {
    stop();
    call<void>("");  // after this empty call, the new process has finished its start
    const std::size_t before = peak();
    f();
    return peak() - before;
}
const bool is_asked = (memory_elsewhere = memory_of_student, true);

}  // namespace

int student() {
    if (process.judge != getpid()) {
        if (process.judge != 0) close(process.socket);
        start();
    }
    return process.socket;
}
double seconds_of_student() { return seconds(process.clock); }
double seconds_here() { return seconds(CLOCK_PROCESS_CPUTIME_ID); }

void end_as_student() {
    int status = 0;
    waitpid(process.id, &status, 0);
    const int by = WIFSIGNALED(status) ? WTERMSIG(status) : SIGABRT;
    signal(by, SIG_DFL);
    raise(by);
    std::abort();
}

}  // namespace remote
