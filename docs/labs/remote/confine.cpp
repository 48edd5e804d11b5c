// SPDX-License-Identifier: MIT
// confine SECONDS MEGABYTES FOLDER READABLE... -- COMMAND...: runs a command that reads a source file of a stranger,
// such as a compiler. The command may write only in FOLDER and to /dev/null. It may read only there, in the folders of
// the system (such as /usr) and in READABLE. Its processor time, its memory and the size of its files are limited.
// confine --check: status 0 if this kernel can filter system calls (cage.h); prints a note if it cannot limit files.
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
    if (ruleset() < 0)
        std::fputs(
            "note: this kernel has no Landlock: an #include of a submission can read every file that you can read\n",
            stderr);
    return 0;
}

}  // namespace

int main(int count, char** words) {
    if (count == 2 && std::strcmp(words[1], "--check") == 0) return check();
    if (count < 6) return std::fputs("usage: confine SECONDS MEGABYTES FOLDER READABLE... -- COMMAND...\n", stderr), 2;
    const rlim_t megabyte = 1 << 20;
    cage::limit(RLIMIT_CPU, rlim_t(std::atoi(words[1]))),
        cage::limit(RLIMIT_AS, rlim_t(std::atoi(words[2])) * megabyte);
    cage::limit(RLIMIT_FSIZE, 256 * megabyte), cage::limit(RLIMIT_CORE, 0);
    const int rules = ruleset();
    for (const char* path : {"/usr", "/lib", "/lib64", "/bin", "/etc/alternatives", "/etc/ld.so.cache"})
        allow(rules, path, reading);
    allow(rules, "/dev/null", of_files);
    allow(rules, words[3], all);
    int at = 4;
    for (; at < count && std::strcmp(words[at], "--") != 0; at++) allow(rules, words[at], reading);
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (rules >= 0 && !restrict_to(rules)) return std::perror("landlock"), 126;
    setenv("TMPDIR", words[3], 1);
    if (at + 1 >= count) return 2;
    execvp(words[at + 1], words + at + 1);
    std::perror(words[at + 1]);
    return 127;
}
