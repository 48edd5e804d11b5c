// SPDX-License-Identifier: MIT
// The report of a lab's check: which parts hold, which do not, what was seen, and the points; never how to do it.
// The grader runs a check in a process of its own, and the student's functions in another one (docs/labs/remote).
#pragma once
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

using Numbers = std::vector<double>;
constexpr double stood_before = 7.5;  // what stands in the memory of results beforehand

// Numbers on both sides of each array that the check reads after a call, too.
struct Beside {
    std::size_t before = 0, behind = 0;
};
inline Beside beside;

// Where the student's functions run in another process: the seconds that they took there beyond those that this process
// took to call them, and what measures their memory.
inline double elsewhere = 0;
inline std::size_t (*memory_elsewhere)(const std::function<void()>&) = nullptr;

inline std::string number(double x) {
    char s[32];
    std::snprintf(s, sizeof s, "%.4g", x);
    return s;
}

// a = factor b + plus, to nine digits
inline bool alike(const Numbers& a, const Numbers& b, double factor = 1, double plus = 0) {
    for (std::size_t i = 0; i < a.size(); i++)
        if (!(std::fabs(a[i] - factor * b[i] - plus) <= 1e-9 * (1 + std::fabs(factor * b[i])))) return false;
    return true;
}

// One result, in any case or in a special one that leaves something without effect.
struct Result {
    std::string where;
    Numbers found, right;
    double factor() const {  // of what should be, where it is one
        for (std::size_t i = 0; i < right.size(); i++)
            if (std::fabs(right[i]) > 1e-12) return found[i] / right[i];
        return 0;
    }
};

// A wrong result is described by the cases in which it is right; a right one gives nothing.
inline std::string wrong(const std::string& name, const Result& any, const std::vector<Result>& cases) {
    const Numbers &found = any.found, &right = any.right;
    if (alike(found, right)) return "";
    if (alike(found, Numbers(found.size(), stood_before))) return name + " is not written\n";
    std::string s;
    for (std::size_t i = 0; i < found.size() && s.empty(); i++)
        if (!(std::fabs(found[i] - right[i]) <= 1e-9))
            s = name + "[" + std::to_string(i) + "] is " + number(found[i]) + "; the complex step says " +
                number(right[i]) + "\n";
    if (alike(found, right, 1, stood_before)) return s + "what stood in memory before is still in it\n";
    if (const double f = any.factor(); f != 0 && alike(found, right, f))
        return s + "everywhere " + number(f) + " times what it should be\n";
    bool anywhere = false;
    for (const Result& c : cases) {
        const double f = c.factor();
        if (alike(c.found, c.right))
            s += "right where " + c.where + "\n", anywhere = true;
        else if (f != 0 && alike(c.found, c.right, f))
            s += number(f) + " times what it should be where " + c.where + "\n", anywhere = true;
    }
    return anywhere ? s : s + "wrong in all special cases that were tried\n";
}

// Runs f in a process of its own, so that other parts still run if that one ends by a fault. Gives what f says.
inline std::string alone(unsigned seconds, const std::function<std::string()>& f) {
    int ends[2];
    if (pipe(ends) != 0) return "no pipe";
    std::fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        alarm(seconds);
        const std::string said = f() + "\n";  // the last line end tells that f has ended
        _exit(write(ends[1], said.data(), said.size()) == ssize_t(said.size()) ? 0 : 1);
    }
    close(ends[1]);
    std::string said;
    char some_of_it[4096];
    for (ssize_t n; (n = read(ends[0], some_of_it, sizeof some_of_it)) > 0;) said.append(some_of_it, std::size_t(n));
    close(ends[0]);
    int status = 0;
    waitpid(child, &status, 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0 && !said.empty()) return said.substr(0, said.size() - 1);
    if (!WIFSIGNALED(status)) return "the program ends there";
    if (WTERMSIG(status) == SIGALRM) return "it takes more than " + std::to_string(seconds) + " seconds";
    return std::string("the program ends there (") + strsignal(WTERMSIG(status)) + "): an index past the end, perhaps";
}

class Lab {
  public:
    explicit Lab(const char* title) { std::printf("%s\n", title); }

    // `seen` gives what is wrong, in lines, or nothing where the part holds.
    void part(int points, const char* name, const std::function<std::string()>& seen) {
        const std::string wrong = seen();
        all_ += points;
        if (wrong.empty()) got_ += points;
        std::printf("%-9s%-8s%d of %d points\n", wrong.empty() ? "holds" : "not yet", name, wrong.empty() ? points : 0,
                    points);
        std::string line;
        for (char c : wrong + "\n") {
            if (c != '\n')
                line += c;
            else if (!line.empty())
                std::printf("         %s\n", line.c_str()), line.clear();
        }
    }

    // To be returned by main: 0 where all parts hold.
    int status() const {
        std::printf("%d of %d points\n", got_, all_);
        return got_ == all_ ? 0 : 1;
    }

  private:
    int got_ = 0, all_ = 0;
};
