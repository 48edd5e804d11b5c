// SPDX-License-Identifier: MIT
// A library for LD_PRELOAD. From the start of main() on, it counts a program's calls of one kind, and makes the n-th of
// them fail.
//   FAULT_CALLS   files: calls on names and files under FAULT_UNDER; memory: allocations and anonymous mappings
//   FAULT_AT      n, the number of the call, counted from 1; 0: no call fails
//   FAULT_HOW     kill: the call kills the program. A number: the call fails with this errno (a write fails halfway).
//                 A number with "-" before it: the same, and then all later calls fail that need room: on the disk, or
//                 more memory than the program had when the n-th call failed
//   FAULT_COUNT   a file that receives the number of calls, and the name of the failed call
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <malloc.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

bool of_files, of_memory, kills, lasting;
long at, why;
char under[PATH_MAX];
std::atomic<long> calls{0};
std::atomic<bool> begun{false}, failing{false};
const char* failed = "none";
bool followed[1024];  // whether calls on this file descriptor count

template <class F>
F real(const char* name) {
    return reinterpret_cast<F>(dlsym(RTLD_NEXT, name));
}
#define REAL(name) static const auto next = real<decltype(&::name)>(#name)

std::atomic<long> live{0};  // bytes that are allocated or mapped
long most = 0;              // limit of `live` after the n-th call has failed: the value of `live` at this call

// Counts a call. Returns whether it must fail.
bool fails(const char* name, bool needs_room = true) {
    if (!begun.load(std::memory_order_relaxed)) return false;
    const long number = ++calls;
    if (number == at) {
        failed = name, failing = lasting;
        if (kills) kill(getpid(), SIGKILL);
    }
    if (number == at) most = live;
    if (number != at && !(failing && needs_room)) return false;
    errno = int(why);
    return true;
}
bool counts(const char* path) {
    if (!of_files || !begun || !path) return false;
    return path[0] != '/' || std::strncmp(path, under, std::strlen(under)) == 0;
}
bool counts(int file) { return of_files && file >= 0 && file < 1024 && followed[file]; }
bool counts_at(int folder, const char* path) {
    return path && path[0] != '/' && folder != AT_FDCWD ? counts(folder) : counts(path);
}
int follow(int file, bool yes) {
    if (file >= 0 && file < 1024) followed[file] = yes;
    return file;
}

bool no_memory(const char* name, size_t bytes) { return of_memory && fails(name, live + long(bytes) > most); }
void* taken(void* p) {
    live += long(p ? malloc_usable_size(p) : 0);
    return p;
}

void report() {
    const char* path = std::getenv("FAULT_COUNT");
    if (!path) return;
    char line[256];
    const int n = std::snprintf(line, sizeof line, "%ld %s\n", calls.load(), failed);
    const int file = int(syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC, 0666));
    syscall(SYS_write, file, line, n);
    syscall(SYS_close, file);
}

int (*real_main)(int, char**, char**);
int counted_main(int count, char** words, char** environment) {
    const auto text = [](const char* name) { return std::getenv(name) ? std::getenv(name) : ""; };
    of_files = std::strcmp(text("FAULT_CALLS"), "files") == 0,
    of_memory = std::strcmp(text("FAULT_CALLS"), "memory") == 0;
    kills = std::strcmp(text("FAULT_HOW"), "kill") == 0, lasting = text("FAULT_HOW")[0] == '-';
    at = std::atol(text("FAULT_AT")), why = std::labs(std::atol(text("FAULT_HOW")));
    std::strncpy(under, text("FAULT_UNDER"), sizeof under - 1);
    std::atexit(report);
    begun = true;
    return real_main(count, words, environment);
}

}  // namespace

extern "C" {

int __libc_start_main(int (*main)(int, char**, char**), int count, char** words, void (*init)(), void (*fini)(),
                      void (*end)(), void* stack) {
    using Start = int (*)(int (*)(int, char**, char**), int, char**, void (*)(), void (*)(), void (*)(), void*);
    real_main = main;
    return real<Start>("__libc_start_main")(counted_main, count, words, init, fini, end, stack);
}

// ---- files

#define MODE                                   \
    mode_t mode = 0;                           \
    if (flags & O_CREAT) {                     \
        va_list more;                          \
        va_start(more, flags);                 \
        mode = mode_t(va_arg(more, unsigned)); \
        va_end(more);                          \
    }
#define OPEN(name)                                                                  \
    int name(const char* path, int flags, ...) {                                    \
        MODE const bool ours = counts(path);                                        \
        if (ours && fails("open", (flags & O_CREAT) != 0)) return -1;               \
        return follow(int(syscall(SYS_openat, AT_FDCWD, path, flags, mode)), ours); \
    }
#define OPENAT(name)                                                              \
    int name(int folder, const char* path, int flags, ...) {                      \
        MODE const bool ours = counts_at(folder, path);                           \
        if (ours && fails("openat", (flags & O_CREAT) != 0)) return -1;           \
        return follow(int(syscall(SYS_openat, folder, path, flags, mode)), ours); \
    }
OPEN(open)
OPEN(open64)
OPENAT(openat)
OPENAT(openat64)
#define FOPEN(name)                                                \
    std::FILE* name(const char* path, const char* how) {           \
        const bool ours = counts(path);                            \
        if (ours && fails("fopen", how[0] != 'r')) return nullptr; \
        REAL(name);                                                \
        std::FILE* file = next(path, how);                         \
        if (file) follow(fileno(file), ours);                      \
        return file;                                               \
    }
FOPEN(fopen)
FOPEN(fopen64)
int close(int file) {
    const bool ours = counts(file);
    follow(file, false);
    const int done = int(syscall(SYS_close, file));
    return ours && fails("close", false) ? -1 : done;
}
ssize_t read(int file, void* to, size_t bytes) {
    if (counts(file) && fails("read", false)) return -1;
    return syscall(SYS_read, file, to, bytes);
}
#define PREAD(name)                                                \
    ssize_t name(int file, void* to, size_t bytes, off_t offset) { \
        if (counts(file) && fails("pread", false)) return -1;      \
        return syscall(SYS_pread64, file, to, bytes, offset);      \
    }
PREAD(pread)
PREAD(pread64)
ssize_t write(int file, const void* from, size_t bytes) {
    static bool half[1024];
    if (counts(file)) {
        if (half[file]) {
            half[file] = false, errno = int(why);
            return -1;
        }
        if (fails("write")) {
            if (failing || bytes < 2) return -1;
            half[file] = true;  // the next call fails, and sets errno
            return syscall(SYS_write, file, from, bytes / 2);
        }
    }
    return syscall(SYS_write, file, from, bytes);
}
ssize_t writev(int file, const struct iovec* parts, int count) {
    if (counts(file) && fails("writev")) return -1;
    return syscall(SYS_writev, file, parts, count);
}
int fsync(int file) { return counts(file) && fails("fsync") ? -1 : int(syscall(SYS_fsync, file)); }
int fdatasync(int file) { return counts(file) && fails("fdatasync") ? -1 : int(syscall(SYS_fdatasync, file)); }
#define LENGTH(name)                                                                                      \
    int name(int file, off64_t bytes) {                                                                   \
        return counts(file) && fails("ftruncate", false) ? -1 : int(syscall(SYS_ftruncate, file, bytes)); \
    }
LENGTH(ftruncate)
LENGTH(ftruncate64)
#define SEEK(name)                                                                                  \
    off64_t name(int file, off64_t offset, int from) noexcept {                                     \
        return counts(file) && fails("lseek", false) ? -1 : syscall(SYS_lseek, file, offset, from); \
    }
SEEK(lseek)
SEEK(lseek64)
int rename(const char* from, const char* to) {
    return counts(from) && fails("rename") ? -1 : int(syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0));
}
int renameat2(int a, const char* from, int b, const char* to, unsigned flags) noexcept {
    return counts_at(a, from) && fails("renameat2") ? -1 : int(syscall(SYS_renameat2, a, from, b, to, flags));
}
int unlink(const char* path) noexcept {
    return counts(path) && fails("unlink", false) ? -1 : int(syscall(SYS_unlinkat, AT_FDCWD, path, 0));
}
int unlinkat(int folder, const char* path, int flags) noexcept {
    return counts_at(folder, path) && fails("unlinkat", false) ? -1 : int(syscall(SYS_unlinkat, folder, path, flags));
}
int rmdir(const char* path) noexcept {
    return counts(path) && fails("rmdir", false) ? -1 : int(syscall(SYS_unlinkat, AT_FDCWD, path, AT_REMOVEDIR));
}
int remove(const char* path) noexcept {
    if (counts(path) && fails("remove", false)) return -1;
    REAL(remove);
    return next(path);
}
int mkdir(const char* path, mode_t mode) noexcept {
    return counts(path) && fails("mkdir") ? -1 : int(syscall(SYS_mkdirat, AT_FDCWD, path, mode));
}
int mkdirat(int folder, const char* path, mode_t mode) noexcept {
    return counts_at(folder, path) && fails("mkdirat") ? -1 : int(syscall(SYS_mkdirat, folder, path, mode));
}
int symlink(const char* target, const char* path) noexcept {
    return counts(path) && fails("symlink") ? -1 : int(syscall(SYS_symlinkat, target, AT_FDCWD, path));
}
int link(const char* from, const char* to) noexcept {
    return counts(to) && fails("link") ? -1 : int(syscall(SYS_linkat, AT_FDCWD, from, AT_FDCWD, to, 0));
}
int linkat(int a, const char* from, int b, const char* to, int flags) noexcept {
    return counts_at(b, to) && fails("linkat") ? -1 : int(syscall(SYS_linkat, a, from, b, to, flags));
}
int chmod(const char* path, mode_t mode) noexcept {
    return counts(path) && fails("chmod", false) ? -1 : int(syscall(SYS_fchmodat, AT_FDCWD, path, mode));
}
int fchmod(int file, mode_t mode) noexcept {
    return counts(file) && fails("fchmod", false) ? -1 : int(syscall(SYS_fchmod, file, mode));
}
ssize_t readlink(const char* path, char* to, size_t bytes) noexcept {
    return counts(path) && fails("readlink", false) ? -1 : syscall(SYS_readlinkat, AT_FDCWD, path, to, bytes);
}
DIR* opendir(const char* path) {
    if (counts(path) && fails("opendir", false)) return nullptr;
    REAL(opendir);
    return next(path);
}

// ---- memory

void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);
void __libc_free(void*);
void* malloc(size_t bytes) { return no_memory("malloc", bytes) ? nullptr : taken(__libc_malloc(bytes)); }
void* calloc(size_t n, size_t bytes) {
    return no_memory("calloc", n * bytes) ? nullptr : taken(__libc_calloc(n, bytes));
}
void* aligned_alloc(size_t to, size_t bytes) {
    return no_memory("aligned_alloc", bytes) ? nullptr : taken(__libc_memalign(to, bytes));
}
void* realloc(void* old, size_t bytes) {
    if (no_memory("realloc", bytes)) return nullptr;
    live -= long(old ? malloc_usable_size(old) : 0);
    return taken(__libc_realloc(old, bytes));
}
int posix_memalign(void** place, size_t to, size_t bytes) {
    if (no_memory("posix_memalign", bytes)) return ENOMEM;
    *place = taken(__libc_memalign(to, bytes));
    return *place ? 0 : ENOMEM;
}
void free(void* old) {
    const int reason = errno;
    live -= long(old ? malloc_usable_size(old) : 0);
    __libc_free(old);
    errno = reason;
}
int munmap(void* where, size_t bytes) noexcept {
    live -= long(bytes);
    return int(syscall(SYS_munmap, where, bytes));
}
#define MMAP(name)                                                                                                  \
    void* name(void* where, size_t bytes, int protection, int flags, int file, off64_t offset) noexcept {           \
        if (of_memory ? (flags & MAP_ANONYMOUS) && no_memory("mmap", bytes) : counts(file) && fails("mmap", false)) \
            return MAP_FAILED;                                                                                      \
        live += long(bytes);                                                                                        \
        return reinterpret_cast<void*>(syscall(SYS_mmap, where, bytes, protection, flags, file, offset));           \
    }
MMAP(mmap)
MMAP(mmap64)

}  // extern "C"
