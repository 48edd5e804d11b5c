// SPDX-License-Identifier: MIT
// The parts that all programs share: the common options, one `error: ...` line and the exit status (0 success, 1 failure,
// 2 usage), Ctrl-C, and the size of the terminal.
#pragma once
#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <new>
#include <string>

#include "engine/base/error.h"
#include "engine/base/version.h"
#include "engine/ops/cpu/parallel.h"
#include "tools/device.h"

namespace masquerade {

// The options every program has. `seed` keeps the program's own default when --seed is not given.
struct Common {
    Device device = Device::cpu;
    int threads = 0;  // 0: what affinity and cgroup quota allow
    std::uint64_t seed = 1;
    bool seed_given = false;
};

inline bool is_terminal(FILE* file) { return isatty(fileno(file)); }

// Columns for a progress line: those of the terminal, but at most 80.
inline int terminal_width() {
    winsize size{};
    bool known = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
    return known ? std::min<int>(size.ws_col, 80) : 80;
}

// True once Ctrl-C, a termination signal or the end of the terminal has come; a second one ends the program at once. A
// program that never asks is ended by the first. A terminal says its end more than once, and before a termination
// signal: this never counts as the first. Where nohup started the program, it does not count at all.
inline bool stop_requested() {
    static std::atomic<bool> stop{false}, hung_up{false};
    static_assert(std::atomic<bool>::is_always_lock_free);
    static const bool listening = [] {
        for (int signal : {SIGINT, SIGTERM})
            std::signal(signal, [](int number) {
                if (stop.exchange(true)) _exit(128 + number);
            });
        if (std::signal(SIGHUP, [](int) { hung_up = true; }) == SIG_IGN) std::signal(SIGHUP, SIG_IGN);
        return true;
    }();
    return listening && (stop || hung_up);
}

// Throws BadInput where what was printed cannot be written: the disk may be full, or standard output closed.
inline void flush_out() {
    errno = 0;
    if (std::cout.flush() && std::fflush(stdout) == 0 && !std::ferror(stdout)) return;
    throw BadInput(text("standard output cannot be written: ",
                        errno ? std::strerror(errno) : "was it closed, is the disk full?"));
}

// A closed standard stream stays closed: no file that is opened later takes its number and gets what is printed.
inline void reserve_standard_streams() {
    for (int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
        if (fcntl(stream, F_GETFD) < 0) open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

// An option whose value --help shows as `shown`.
template <class T>
CLI::Option* add_option(CLI::App& app, const std::string& name, T& value, const std::string& shown, const std::string& help) {
    return app.add_option(name, value, help)->option_text(shown);
}

// An option that is a number from `least` to `most`, called `unit` in --help.
template <class Value, class Number>
CLI::Option* number_option(CLI::App& app, const std::string& name, Value& value, Number least, Number most,
                           const std::string& what, const std::string& unit = "N") {
    return app.add_option(name, value, what)->check(CLI::Range(least, most))->option_text(unit);
}

// An option that is one of these words, called `unit` in --help.
inline CLI::Option* choice_option(CLI::App& app, const std::string& name, std::string& value,
                                  const std::vector<std::string>& words, const std::string& what,
                                  const std::string& unit = "NAME") {
    return app.add_option(name, value, what)->check(CLI::IsMember(words))->option_text(unit);
}

// Refuses the options of a group "of A and B" that are not of the run's model.
inline void refuse_options(const CLI::App* group, const std::string& run, const std::string& model) {
    for (const CLI::Option* option : group->get_options())
        if (option->count() > 0)
            throw BadUsage(
                text(option->get_name(), " is an option ", group->get_group(), ", and ", run, " is a run of ", model));
}

// The reason why a word is no value of any option of this type; empty where it may be one. CLI11 reads -1 as the
// largest number without a sign, nothing as 0, and takes NaN for a number inside every range.
inline std::string why_no_value(const std::string& type, const std::string& word) {
    if (word.empty() && !type.empty()) return "a value is expected, found an empty one";
    errno = 0;
    std::strtoull(word.c_str(), nullptr, 0);
    if (type.rfind("UINT", 0) == 0 && (errno == ERANGE || word.find('-') != word.npos))
        return text("a whole number from 0 to ", UINT64_MAX, " is expected, found ", word);
    if (type.rfind("FLOAT", 0) == 0 && !std::isfinite(std::strtod(word.c_str(), nullptr)))
        return text("a finite number is expected, found ", word);
    return "";
}

// Adds this check to every option of a program, and of its subcommands.
inline void check_values(CLI::App& app) {
    for (CLI::Option* option : app.get_options())
        option->check(
            [type = option->get_type_name()](const std::string& word) { return why_no_value(type, word); });
    for (CLI::App* part : app.get_subcommands([](CLI::App*) { return true; })) check_values(*part);
}

// The exception that is being handled, in our words: those of libraries tell nothing about files and settings.
inline std::string reason_of_failure() {
    try {
        throw;
    } catch (const std::filesystem::filesystem_error& e) {
        return text("cannot read or write ", e.path1().string(), ": ", e.code().message());
    } catch (const std::bad_alloc&) {
        return "out of memory: a smaller file, batch_tokens, width or vocabulary needs less";
    } catch (const std::runtime_error& e) {
        return e.what();
    } catch (...) {  // of a container or of JSON: what was read is not what every check before took it for
        return "a file or a setting holds a value of another kind or size than is expected; is the run "
               "folder as ./train wrote it?";
    }
}

// The whole of a program's main. setup(app) adds options, body(common) does the work and throws what goes wrong.
template <class Setup, class Body>
int run_program(int argc, char** argv, const std::string& name, const std::string& description, Setup setup,
                Body body, Work work = Work::none) {
    std::signal(SIGPIPE, SIG_DFL);  // who started us may ignore it; a closed pipe ends the program quietly
    std::signal(SIGXFSZ, SIG_IGN);  // a file above the limit is an error of its writer, which knows its name
    reserve_standard_streams();
    Common common;
    std::string device = "auto";
    CLI::App app(description, name);
    app.set_version_flag("--version", std::string("masquerade ") + version);
    choice_option(app, "--device", device, {"auto", "cpu", "cuda"}, "auto, cpu or cuda (default: auto)");
    number_option(app, "--threads", common.threads, 1, 1024, "CPU threads (default: all this process may use)");
    CLI::Option* seed = add_option(app, "--seed", common.seed, "N", "of every random number (default: 1)");
    try {
        try {
            setup(app);
            check_values(app);
            app.parse(argc, argv);
            common.seed_given = seed->count() > 0;
            common.device = choose_device(device, name, work);
            set_threads(common.threads);
            body(static_cast<const Common&>(common));
        } catch (const CLI::Success& help) {
            app.exit(help);
        } catch (const std::system_error&) {
            flush_out();  // what fmt says of standard output does not name it
            throw;
        }
        flush_out();
        return 0;
    } catch (const CLI::ParseError& e) {
        log_line("error: ", e.what(), " (", name, " --help lists the options)");
        return 2;
    } catch (const BadUsage& e) {
        log_line("error: ", e.what());
        return 2;
    } catch (...) {
        log_line("error: ", reason_of_failure());
        return 1;
    }
}

}  // namespace masquerade
