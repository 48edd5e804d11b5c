// SPDX-License-Identifier: MIT
// confine [--without-namespaces] SECONDS MEGABYTES FOLDER READABLE... -- COMMAND...: runs a command that reads a source
// file of a stranger, such as a compiler, in namespaces (apart.h). The command may write only in FOLDER and to
// /dev/null. It may read only there, in the folders of the system (such as /usr) and in READABLE. All paths are
// absolute. Its processor time, its memory, its number of processes and the size of its files are limited. If root
// calls, nobody becomes the owner of FOLDER.
// confine --check: prints what this machine permits. Status 0: everything; 1: no filter of system calls (cage.h), so no
// submission may run; 3: no namespaces, which only --without-namespaces accepts.
#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "docs/labs/remote/cage.h"

#if __has_include(<linux/landlock.h>)
#include <linux/landlock.h>
#endif

namespace {

#if __has_include(<linux/landlock.h>) && defined(SYS_landlock_create_ruleset)
constexpr __u64 reading = LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;
constexpr __u64 all = (LANDLOCK_ACCESS_FS_MAKE_SYM << 1) - 1;  // all access rights of the first version of Landlock
constexpr __u64 of_files = LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE;

int ruleset() {
    landlock_ruleset_attr attributes{};
    attributes.handled_access_fs = all;
    return int(syscall(SYS_landlock_create_ruleset, &attributes, sizeof attributes.handled_access_fs, 0));
}
void allow(int rules, const char* path, __u64 access) {
    const int file = open(path, O_PATH | O_CLOEXEC);
    if (file < 0) return;
    landlock_path_beneath_attr rule{access, file};
    if (syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) != 0) {
        rule.allowed_access &= of_files;  // the path is a file, which permits only rights for files
        syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
    }
    close(file);
}
bool restrict_to(int rules) { return syscall(SYS_landlock_restrict_self, rules, 0) == 0; }
#else  // headers older than Linux 5.13: files are not limited, and --check says so
constexpr __u64 reading = 0, all = 0, of_files = 0;
int ruleset() { return -1; }
void allow(int, const char*, __u64) {}
bool restrict_to(int) { return false; }
#endif

int check() {
    const pid_t child = fork();
    if (child == 0) _exit(cage::set_filter() ? 0 : 1);
    int status = 1;
    waitpid(child, &status, 0);
    if (status != 0)
        return std::fputs(
                   "error: this kernel does not filter system calls, so what students send cannot be run safely\n",
                   stderr),
               1;
    const std::string refused = apart::refused();
    const bool root = apart::can_become_nobody(), landlock = ruleset() >= 0;
    std::printf("system calls: filtered\n");
    std::printf("namespaces: %s\n", refused.empty() ? "yes" : refused.c_str());
    std::printf("user: %s\n", root ? "nobody" : refused.empty() ? "yours, without your files" : "yours");
    std::printf("files that #include can read: %s\n", refused.empty() || landlock ? "the system's, the engine's"
                                                      : root                      ? "all that nobody can read"
                                                                                  : "all that you can read");
    return refused.empty() ? 0 : 3;
}

// Runs in the child: everything that must be set before the command starts.
[[noreturn]] void start(bool namespaces, char** words, char** readable, char** command) {
    const rlim_t megabyte = 1 << 20;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    umask(022);  // the folders above a path must be open to nobody
    const char* const of_system[] = {"/usr", "/lib", "/lib64", "/bin", "/etc/alternatives", "/etc/ld.so.cache"};
    const auto refuse = [](const char* what) { std::perror(what), _exit(126); };
    if (namespaces) {
        if (!apart::enter_new_root()) refuse("a new root folder");
        for (const char* path : of_system)
            if (!apart::show(path, false)) refuse(path);
        for (char** each = readable; each < command - 1; each++)
            if (!apart::show(*each, false)) refuse(*each);
        if (!apart::show("/dev/null", true)) refuse("/dev/null");
        if (!apart::show(words[2], true)) refuse(words[2]);
        if (!apart::leave_old_root()) refuse("leaving the old root folder");
    }
    const bool counted =
        namespaces || apart::can_become_nobody();  // only then the processes of other programs do not count
    if (!apart::become_nobody()) refuse("nobody");
    prctl(PR_SET_PDEATHSIG, SIGKILL);  // a change of the user removes it
    cage::limit(RLIMIT_CPU, rlim_t(std::atoi(words[0])));
    cage::limit(RLIMIT_AS, rlim_t(std::atoi(words[1])) * megabyte);
    cage::limit(RLIMIT_FSIZE, 256 * megabyte), cage::limit(RLIMIT_CORE, 0);
    if (counted) cage::limit(RLIMIT_NPROC, 64);
    const int rules = ruleset();
    for (const char* path : of_system) allow(rules, path, reading);
    allow(rules, "/dev/null", of_files);
    allow(rules, words[2], all);
    for (char** each = readable; each < command - 1; each++) allow(rules, *each, reading);
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (rules >= 0 && !restrict_to(rules)) refuse("landlock");
    setenv("TMPDIR", words[2], 1);
    if (chdir(words[2]) != 0) refuse(words[2]);
    execvp(command[0], command);
    std::perror(command[0]);
    _exit(127);
}

}  // namespace

int main(int count, char** words) {
    if (count == 2 && std::strcmp(words[1], "--check") == 0) return check();
    const bool namespaces = count < 2 || std::strcmp(words[1], "--without-namespaces") != 0;
    words += namespaces ? 1 : 2, count -= namespaces ? 1 : 2;
    int at = 3;
    while (at < count && std::strcmp(words[at], "--") != 0) at++;
    if (at + 1 >= count)
        return std::fputs("usage: confine [--without-namespaces] SECONDS MEGABYTES FOLDER READABLE... -- COMMAND...\n",
                          stderr),
               2;
    if (apart::can_become_nobody() && chown(words[2], apart::nobody, apart::nobody) != 0)
        return std::perror(words[2]), 126;
    const pid_t child = namespaces ? apart::start() : fork();
    if (child < 0) return std::perror("namespaces"), 126;
    if (child == 0) start(namespaces, words, words + 3, words + at + 1);
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
