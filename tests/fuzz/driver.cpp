// SPDX-License-Identifier: MIT
// fuzz [--minutes M] [--each] [--seed S] [--out FILE] [TARGET | tokenizer | readers | runs] [FILE...]
// Runs the given files or, without files, makes inputs itself (without libFuzzer): for one target, for all targets of a
// group, or for all targets of the program. The targets share the minutes; with --each, each target gets all of them.
// Inputs that once failed are run first. If an input fails, the driver shortens it and writes it to --out. Exit status:
// 1 after a failure, 2 for wrong usage.
#include <csignal>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <iterator>
#include <unistd.h>
#include <vector>

#include "tests/fuzz/target.h"

using namespace masquerade::fuzz;

// Makes sanitizers end with SIGABRT. The handler of this signal writes the input to a file.
extern "C" const char* __asan_default_options() {
    return "abort_on_error=1:allocator_may_return_null=1:max_allocation_size_mb=512";
}
extern "C" const char* __ubsan_default_options() { return "abort_on_error=1:print_stacktrace=1"; }
extern "C" const char* __tsan_default_options() { return "halt_on_error=1:abort_on_error=1"; }

namespace {

constexpr unsigned seconds_allowed = 30;  // the limit for one input; long enough for slow builds

const Target* target;
std::string current;
const char* out = "fuzz-failure";

std::string broken(const std::string& input) {
    current = input;
    alarm(seconds_allowed);
    return target->broken(input);
}

// Uses only functions that a signal handler may call.
void write_current() {
    int file = open(out, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (file < 0 || write(file, current.data(), current.size()) != ssize_t(current.size())) _exit(1);
    close(file);
}

void stop(int signal) {
    const char* why = signal == SIGALRM ? "broken: it ends in time (SIGALRM)\n" : "broken: it does not crash\n";
    if (write(2, why, std::strlen(why)) < 0) _exit(1);
    write_current();
    const char* where[] = {"the input is in ", out, "\n"};
    for (const char* part : where)
        if (write(2, part, std::strlen(part)) < 0) break;
    _exit(1);
}

// Returns the name of a property, without the details that were found.
std::string name_of(const std::string& property) { return property.substr(0, property.find_first_of(";:")); }

// Removes parts of the input, first large ones, then smaller ones, as long as the same property stays broken.
std::string smaller(std::string input, const std::string& property) {
    for (std::size_t part = input.size() / 2; part > 0; part /= 2)
        for (std::size_t at = target->header; at + part <= input.size();) {
            std::string shorter = input;
            shorter.erase(at, part);
            if (name_of(broken(shorter)) == name_of(property))
                input = shorter;
            else
                at += part;
        }
    return input;
}

int report(const std::string& input) {
    std::string property = broken(input), least = property.empty() ? input : smaller(input, property);
    if (property.empty()) property = "the same input gives the same result, twice in one process";
    if (std::string found = broken(least); !found.empty()) property = found;
    write_current();
    std::printf("%s: broken: %s\nthe input is in %s:", target->name, property.c_str(), out);
    for (unsigned char byte : least.substr(0, 300)) std::printf(" %02x", byte);
    std::printf("\n");
    return 1;
}

int run_files(const std::vector<const char*>& files) {
    for (const char* path : files) {
        std::ifstream file(path, std::ios::binary);
        if (!file) {
            std::fprintf(stderr, "error: cannot read %s\n", path);
            return 1;
        }
        std::string input(std::istreambuf_iterator<char>(file), {});
        if (!broken(input).empty()) return report(input);
    }
    std::printf("%zu inputs, no property broken\n", files.size());
    return 0;
}

int run_random(double minutes, std::uint64_t seed) {
    using Clock = std::chrono::steady_clock;
    for (const std::string& input : target->known())
        if (!broken(input).empty()) return report(input);
    Grammar grammar(seed);
    std::size_t inputs = 0, bytes = 0;
    auto begin = Clock::now();
    double shown = 0;
    for (double seconds = 0; seconds < 60 * minutes; inputs++) {
        std::string input = target->make(grammar);
        bytes += input.size();
        if (!broken(input).empty()) return report(input);
        seconds = std::chrono::duration<double>(Clock::now() - begin).count();
        if (seconds - shown > 15 || seconds >= 60 * minutes) {
            shown = seconds;
            std::printf("%s: %zu inputs, %zu bytes, %.0f seconds; %s\n", target->name, inputs + 1, bytes, seconds,
                        target->told().c_str());
            std::fflush(stdout);
        }
    }
    alarm(0);
    std::printf("%s: seed %llu: no property broken\n", target->name, (unsigned long long)seed);
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    double minutes = 1;
    std::uint64_t seed = 1;
    bool each = false;
    std::vector<const char*> files;
    std::vector<const Target*> chosen;
    const auto choose = [&](const std::string& name) {
        const std::size_t before = chosen.size();
        for (const Target& t : targets())
            if (name == t.name || name == t.group || name.empty()) chosen.push_back(&t);
        return chosen.size() > before;
    };
    for (int i = 1; i < argc; i++) {
        bool valued = i + 1 < argc;
        if (valued && std::strcmp(argv[i], "--minutes") == 0) {
            minutes = std::atof(argv[++i]);
        } else if (valued && std::strcmp(argv[i], "--seed") == 0) {
            seed = std::strtoull(argv[++i], nullptr, 10);
        } else if (valued && std::strcmp(argv[i], "--out") == 0) {
            out = argv[++i];
        } else if (std::strcmp(argv[i], "--each") == 0) {
            each = true;
        } else if (argv[i][0] == '-') {
            std::fprintf(
                stderr,
                "usage: fuzz [--minutes M] [--each] [--seed S] [--out FILE] [TARGET | tokenizer | readers | runs] [FILE...]\n");
            return 2;
        } else if (!choose(argv[i])) {
            files.push_back(argv[i]);
        }
    }
    for (int signal : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGALRM}) std::signal(signal, stop);
    if (chosen.empty()) choose("");
    for (const Target* t : chosen) {
        target = t;
        if (t->quiet)
            stderr = std::fopen("/dev/null",
                                "w");  // hides warnings; signal handlers and sanitizers write to descriptor 2 itself
        const int status =
            files.empty() ? run_random(each ? minutes : minutes / double(chosen.size()), seed) : run_files(files);
        if (status != 0) return status;
    }
    return 0;
}
