// SPDX-License-Identifier: MIT
// The report of a lab's check. It says which parts of the lab are right, what is wrong in the other parts, and how many
// points the student has. It never says how to solve the lab.
// The grader runs the check in one process and the student's functions in another process (docs/labs/remote).
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
constexpr double garbage = 7.5;  // before a call, the memory of results is filled with this number

// The check also reads some numbers next to an array after a call: `before` numbers in front of the array and `behind`
// numbers after its end. These numbers must not have changed.
struct Beside {
    std::size_t before = 0, behind = 0;
};
inline Beside beside;

// Used only if the student's functions run in another process. `elsewhere` is the processor time, in seconds, that
// these functions took there minus the time that this process took to call them. memory_elsewhere(f) returns the
// memory, in bytes, that the other process takes for f; null if there is no other process.
inline double elsewhere = 0;
inline std::size_t (*memory_elsewhere)(const std::function<void()>&) = nullptr;

inline std::string number(double x) {
    char s[32];
    std::snprintf(s, sizeof s, "%.4g", x);
    return s;
}

// Returns whether a = factor b + plus, to about nine digits.
inline bool alike(const Numbers& a, const Numbers& b, double factor = 1, double plus = 0) {
    for (std::size_t i = 0; i < a.size(); i++)
        if (!(std::fabs(a[i] - factor * b[i] - plus) <= 1e-9 * (1 + std::fabs(factor * b[i])))) return false;
    return true;
}

// A result of the student, and the correct result. `where` names the case. In a special case, a part of the formula has
// no effect, so a mistake in this part does not show; the general case has an empty name.
struct Result {
    std::string where;
    Numbers found, right;
    // Returns the ratio found / right of the first number that should not be 0; 0 if all numbers should be 0.
    double factor() const {
        for (std::size_t i = 0; i < right.size(); i++)
            if (std::fabs(right[i]) > 1e-12) return found[i] / right[i];
        return 0;
    }
};

// Returns a description of what is wrong in `any`, the result in the general case; "" if it is right. The description
// includes the special cases in which the student's result is right, or wrong by a factor.
inline std::string wrong(const std::string& name, const Result& any, const std::vector<Result>& cases) {
    const Numbers &found = any.found, &right = any.right;
    if (alike(found, right)) return "";
    if (alike(found, Numbers(found.size(), garbage))) return name + " is not written\n";
    std::string s;
    for (std::size_t i = 0; i < found.size() && s.empty(); i++)
        if (!(std::fabs(found[i] - right[i]) <= 1e-9))
            s = name + "[" + std::to_string(i) + "] is " + number(found[i]) + "; the complex step says " +
                number(right[i]) + "\n";
    if (alike(found, right, 1, garbage)) return s + "what stood in memory before is still in it\n";
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

// Runs f in a child process, so that other parts of the check still run if f crashes. Returns the result of f or, if
// the child process has crashed or taken more than `seconds` seconds, a message that says so.
inline std::string alone(unsigned seconds, const std::function<std::string()>& f) {
    int ends[2];
    if (pipe(ends) != 0) return "no pipe";
    std::fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        alarm(seconds);
        const std::string said = f() + "\n";  // the final line feed shows that f has returned
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

    // Runs one part of the check and prints its points. seen() returns lines that say what is wrong, or "" if the part
    // is right.
    void part(int points, const char* name, const std::function<std::string()>& seen) {
        const std::string wrong = seen();
        all_ += points;
        if (wrong.empty()) got_ += points;
        std::printf("%-9s%-8s%d of %d points\n", wrong.empty() ? "holds" : "not yet", name, wrong.empty() ? points : 0,
                    points);
        // The text of an exception comes from the student's program and may be of any length.
        std::string line;
        int lines = 0;
        for (char c : wrong.substr(0, 20000) + "\n") {
            if (c != '\n')
                line += c >= ' ' && c != 127 ? c : '?';
            else if (!line.empty() && lines++ < 100)
                std::printf("         %.1000s\n", line.c_str()), line.clear();
        }
    }

    // Prints the sum of the points. Returns the exit status for main(): 0 if all parts are right, 1 otherwise.
    int status() const {
        std::printf("%d of %d points\n", got_, all_);
        return got_ == all_ ? 0 : 1;
    }

  private:
    int got_ = 0, all_ = 0;
};
