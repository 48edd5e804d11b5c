// SPDX-License-Identifier: MIT
// The report of a lab's check. It says which parts of the lab are right, what is wrong in the other parts, and how many
// points the student has. It never says how to solve the lab.
// The grader runs the check in one process and the student's functions in another process (docs/labs/remote).
#pragma once
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
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

inline std::string number(double x, int digits = 4) {
    char s[32];
    std::snprintf(s, sizeof s, "%.*g", digits, x);
    return s;
}
// Returns the first number with as many digits as show that it is not the second one, but at least four.
inline std::string number_unlike(double x, double other) {
    for (int digits = 4;; digits++)
        if (const std::string s = number(x, digits); s != number(other, digits) || digits == 17) return s;
}

// Returns whether a = factor b + plus, to about nine digits.
constexpr double nine_digits = 1e-9, twelve_digits = 1e-12;
inline bool alike(const Numbers& a, const Numbers& b, double factor = 1, double plus = 0, double error = nine_digits) {
    for (std::size_t i = 0; i < a.size(); i++)
        if (!(std::fabs(a[i] - factor * b[i] - plus) <= error * (1 + std::fabs(factor * b[i])))) return false;
    return true;
}
// Returns the index of the first number of a that is not the number of b, to about this error; a.size() if there is
// none.
inline std::size_t first_unlike(const Numbers& a, const Numbers& b, double error) {
    std::size_t i = 0;
    while (i < a.size() && std::fabs(a[i] - b[i]) <= error * (1 + std::fabs(b[i]))) i++;
    return i;
}
// Returns a message if a gradient that is right to nine digits is not right to twelve. Derivatives by the difference of
// two values lose that many digits.
inline std::string inexact(const std::string& name, const Numbers& found, const Numbers& right) {
    const std::size_t i = first_unlike(found, right, twelve_digits);
    if (i == found.size()) return "";
    return name + "[" + std::to_string(i) + "] is " + number(found[i], 14) + "; the complex step says " +
           number(right[i], 14) + ": twelve digits are asked, which the difference of two values does not have\n";
}

// A class may give each student a number of their own. Then the environment variable LAB_NAME has the student's name,
// and a number of the lab is drawn from the name, with two digits: from `least` to `most`, but not near `usual`. Without
// a name, the number is `usual`.
struct Drawn {
    const char* name;
    double value;
};
inline std::vector<Drawn>& all_drawn() {
    static std::vector<Drawn> all;
    return all;
}
inline double drawn(const char* name, double usual, double least, double most) {
    const char* const student = std::getenv("LAB_NAME");
    if (!student || !*student) return usual;
    std::uint64_t hash = 14695981039346656037u;  // FNV-1a
    for (const std::string& s : {std::string(student), std::string(name)})
        for (std::size_t i = 0; i <= s.size(); i++) hash = (hash ^ std::uint8_t(s.c_str()[i])) * 1099511628211u;
    hash ^= hash >> 32;
    const auto steps = std::uint64_t(std::lround((most - least) * 100)) + 1;
    double x = std::round(100 * least + double(hash % steps)) / 100;
    if (std::fabs(x - usual) < 0.05) x = usual + 0.1;
    all_drawn().push_back({name, x});
    return x;
}

// A result of the student, and the correct result. `where` names the case. In a special case, a part of the formula has
// no effect, so a mistake in this part does not show; the general case has an empty name.
struct Result {
    std::string where;
    Numbers found, right;
    std::vector<std::string> places = {};  // says what each number is; empty: a message gives the index of the number
    // Returns the ratio found / right of the first number that should not be 0; 0 if all numbers should be 0.
    double factor() const {
        for (std::size_t i = 0; i < right.size(); i++)
            if (std::fabs(right[i]) > 1e-12) return found[i] / right[i];
        return 0;
    }
};

// Returns a description of what is wrong in `any`, the result in the general case; "" if it is right. The description
// includes the special cases in which the student's result is right, or wrong by a factor. `truth` says where the right
// numbers come from.
inline std::string wrong(const std::string& name, const Result& any, const std::vector<Result>& cases,
                         const std::string& truth = "the complex step says") {
    const Numbers &found = any.found, &right = any.right;
    if (alike(found, right)) return "";
    if (alike(found, Numbers(found.size(), garbage))) return name + " is not written\n";
    std::string s;
    const std::size_t i = first_unlike(found, right, nine_digits);
    s = name + (any.places.empty() ? "[" + std::to_string(i) + "]" : any.places[i]) + " is " +
        number_unlike(found[i], right[i]) + "; " + truth + " " + number_unlike(right[i], found[i]) + "\n";
    if (alike(found, right, 1, garbage)) return s + "what stood in memory before is still in it\n";
    if (const double f = any.factor(); f != 0 && alike(found, right, f))
        return s + "everywhere " + number_unlike(f, 1) + " times what it should be\n";
    bool anywhere = false;
    for (const Result& c : cases) {
        const double f = c.factor();
        if (alike(c.found, c.right))
            s += "right where " + c.where + "\n", anywhere = true;
        else if (f != 0 && alike(c.found, c.right, f))
            s += number_unlike(f, 1) + " times what it should be where " + c.where + "\n", anywhere = true;
    }
    return anywhere || cases.empty() ? s : s + "wrong in all special cases that were tried\n";
}

// Returns the result of f or, if f throws an exception, a message with the exception's text.
inline std::string caught(const std::function<std::string()>& f) {
    try {
        return f();
    } catch (const std::exception& error) {
        return std::string("an error is thrown: ") + error.what();
    } catch (...) {
        return "an error is thrown: it is no std::exception";
    }
}

// In the child process of alone(): its limit of processor time, in seconds, which then also limits the process of the
// student's functions. 0: no such limit.
inline unsigned seconds_alone = 0;

// Returns LAB_SECONDS, the limit of processor time of a whole run, or `otherwise` if it is not set.
inline unsigned seconds_of_run(unsigned otherwise) {
    const char* const given = std::getenv("LAB_SECONDS");
    return given ? std::max(1u, unsigned(std::strtoul(given, nullptr, 10))) : otherwise;
}

// Runs f in a child process, so that other parts of the check still run if f crashes. Returns the result of f, or a
// message if f throws an exception, if the child process crashes, or if it takes more than `seconds` seconds of
// processor time or three times as long by the clock. The limit of a whole run limits f, too.
inline std::string alone(unsigned seconds, const std::function<std::string()>& f) {
    seconds = std::min(seconds, seconds_of_run(seconds));
    int ends[2];
    if (pipe(ends) != 0) return "no pipe";
    std::fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        const rlimit time{seconds, seconds + 1};
        setrlimit(RLIMIT_CPU, &time);
        seconds_alone = seconds;
        alarm(3 * seconds);                         // the student's functions may also wait instead of computing
        const std::string said = caught(f) + "\n";  // the final line feed shows that f has returned
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
    const int by = WTERMSIG(status);
    if (by == SIGALRM) return "it takes more than " + std::to_string(3 * seconds) + " seconds by the clock";
    if (by == SIGXCPU || by == SIGKILL)
        return "it takes more than " + std::to_string(seconds) + " seconds of processor time";
    return std::string("the program ends there (") + strsignal(by) + "): an index past the end, perhaps";
}

class Lab {
  public:
    explicit Lab(const char* title) {
        std::printf("%s\n", title);
        for (const Drawn& d : all_drawn())
            std::printf("the number of this student: %s = %s\n", d.name, number(d.value).c_str());
    }

    // Runs one part of the check and prints its points. seen() returns lines that say what is wrong, or "" if the part
    // is right. If the student's code throws an exception, the part counts 0, and the other parts still run.
    void part(int points, const char* name, const std::function<std::string()>& seen) {
        const std::string wrong = caught(seen);
        beside = {};
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
