// SPDX-License-Identifier: MIT
#include "tools/program.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <cerrno>
#include <climits>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <cstring>
#include <new>
#include <thread>

#include "engine/base/log.h"
#include "engine/base/named.h"
#include "engine/base/printable.h"
#include "engine/base/processes.h"
#include "engine/base/version.h"
#include "engine/base/wrap.h"
#include "engine/nccl/nccl.h"
#include "engine/ops/cpu/parallel.h"
#include "input/number.h"
#include "tools/options/command_line.h"

namespace masquerade {

namespace {
std::atomic<int> stops{0};
std::atomic<bool> hung_up{false}, closing{false};
std::atomic<std::int64_t> first_stop{0};  // time of the first SIGINT or SIGTERM, in milliseconds; 0: none yet
std::atomic<const char*> last_words{nullptr};
static_assert(std::atomic<std::int64_t>::is_always_lock_free && std::atomic<const char*>::is_always_lock_free);

// Handles SIGINT and SIGTERM as described at stop_requested(). A second signal within half a second of the first never
// ends the program, not even after stop_at_once(), because a hurried user presses Ctrl-C twice.
void stop_signal(int number) {
    constexpr std::int64_t one_press = 500;  // milliseconds; two signals within this time count as one press
    const int error = errno;
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    const std::int64_t at = std::int64_t(now.tv_sec) * 1000 + now.tv_nsec / 1000000;
    std::int64_t none = 0;
    first_stop.compare_exchange_strong(none, at);  // set before stops++, because another signal may arrive in between
    const int before = stops++;
    const bool late = at - first_stop > one_press;
    if (before > 1 || (before == 1 && late) || (closing && (before == 0 || late))) _exit(128 + number);
    if (const char* words = last_words; words && before == 0) (void)!write(STDERR_FILENO, words, std::strlen(words));
    errno = error;
}

bool stopped() { return stops > 0 || hung_up; }

}  // namespace

void stop_at_once() { closing = true; }

bool wait_for_input() {
    pollfd input{STDIN_FILENO, POLLIN, 0};
    while (!stopped())
        if (const int ready = poll(&input, 1, 200); ready > 0 || (ready < 0 && errno != EINTR))
            return true;  // poll() has a timeout, because a signal just before the call does not interrupt it
    return false;
}

bool stop_requested() {
    static const bool listening = [] {
        for (int signal : {SIGINT, SIGTERM}) std::signal(signal, stop_signal);
        if (std::signal(SIGHUP, [](int) { hung_up = true; }) == SIG_IGN) std::signal(SIGHUP, SIG_IGN);
        return true;
    }();
    return listening && stopped();
}

void say_when_stopped(const char* words) { last_words = words; }

void flush_out() {
    errno = 0;
    if (std::cout.flush() && std::fflush(stdout) == 0 && !std::ferror(stdout)) return;
    throw BadInput("standard output cannot be written: ",
                   errno ? std::strerror(errno) : "was it closed, is the disk full?");
}

void write_out(std::string_view bytes) {
    if (std::fwrite(bytes.data(), 1, bytes.size(), stdout) != bytes.size()) flush_out();
}

namespace {

// A reserve of memory for the error message and for destructors that need memory, such as those of JSON values. When
// an allocation fails, operator new calls give_reserve_back(), which frees the reserve; then the allocation is tried
// again.
std::atomic<void*> reserve{nullptr};
void give_reserve_back() {
    void* const memory = reserve.exchange(nullptr);
    if (!memory) throw std::bad_alloc();
    std::free(memory);
}
const bool has_reserve = (reserve = std::malloc(1 << 20), std::set_new_handler(give_reserve_back), true);

// Opens /dev/null for each standard stream that is closed. Otherwise, a file that is opened later could get the file
// descriptor of a standard stream and receive the program's output. Standard input is opened only for writing and the
// other streams only for reading, so that using them fails, as if they were closed.
void reserve_standard_streams() {
    for (int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
        if (fcntl(stream, F_GETFD) < 0) open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

// Returns the number of CPU threads of this process if the user names none: as many as it may use, but at most an equal
// share of the machine if there are several processes on it.
int own_threads() {
    const int all = threads(), machine = int(std::thread::hardware_concurrency());
    return std::min(all, std::max(1, machine / launched().local_count));
}

// Writes a line of log_line() to the terminal, wrapped between words, because the terminal would break it inside words.
void write_wrapped(const char* line) {
    const std::string lines = wrapped(line, terminal_width(stderr, INT_MAX));
    std::fwrite(lines.data(), 1, lines.size(), stderr);
}

// Logs the error and returns the exit status. If there are several processes, ends all of them. Often all of them fail
// for the same reason, so each process waits longer than the one before it, and only one of them speaks. If they could
// not be joined, the first process of each machine speaks.
int fail(const std::string& reason, int status) {
    if (alone()) {
        if (!quiet_log || launched().local_rank == 0) log_line("error: ", reason);
        return status;
    }
    std::this_thread::sleep_for(
        std::chrono::duration<double>(std::min<double>(processes().rank(), processes().patience / 2)));
    log_line("error: ", first_process() ? "" : text("process ", processes().rank(), ": "), reason);
    processes().abort(status);
    return status;
}

}  // namespace

void expect_equal(const std::string& mine) {
    for (const std::string& other : gather_messages(mine))
        if (other != mine) throw BadUsage("the processes differ: one has ", mine, ", another ", other);
}

int run_program(int argc, char** argv, const std::string& name, const std::string& description,
                const std::function<void(Options&)>& setup, const std::function<void(const Common&)>& body, Work work,
                Together together) {
    std::signal(SIGPIPE, SIG_DFL);  // a closed pipe ends the program quietly, even if its parent ignores SIGPIPE
    std::signal(SIGXFSZ, SIG_IGN);  // beyond the file size limit, write() fails, and the error names the file
    reserve_standard_streams();
    if (is_terminal(stderr)) log_sink = write_wrapped;
    try {
        if (together == Together::yes) join_processes();
        Common common;
        std::string device = "auto";
        CLI::App app(description, name);
        try {
            Options options(&app);
            options.heading(common_heading);
            app.set_help_flag("-h,--help", "print this help");
            app.set_help_all_flag("--help-all", "the same as --help");
            app.set_version_flag("--version", std::string("masquerade ") + version, "print the version");
            options.choice("--device", device, {"auto", "cpu", "cuda"}, "auto, cpu or cuda (default: auto)");
            options.number("--threads", common.threads, 1, 1024, "CPU threads (default: all this process may use)");
            const Option seed = options.value("--seed", common.seed, "N", "seed of all random numbers (default: 1)");
            if (together == Together::yes)
                options.number(
                    "--patience", processes().patience, 1.0, 1e6,
                    "if several processes share the work (docs/distributed.md): end all of them if one does not "
                    "answer for S seconds (default: 600)",
                    "S");
            options.heading("Options");
            setup(options);
            app.parse(argc, argv);
            refuse_empty_parts(app, {argv + 1, argv + argc});
            for (int i = 0; i < argc; i++) common.command += (i > 0 ? " " : "") + shell_quoted(argv[i]);
            const std::string command = text("version ", version, " and the command ", common.command);
            expect_equal(command);
            guard_files(true);
            common.seed_given = seed.given();
            common.device = choose_device(device, name, work);
            if (together == Together::yes) {
                meet_by_nccl(common.device);
                expect_equal(command);  // processes of torchrun meet only now
            }
            set_threads(common.threads > 0 ? common.threads : own_threads());
            body(common);
        } catch (const CLI::Success& asked) {
            const bool all = asked.get_name() == "CallForAllHelp";
            if (all || asked.get_name() == "CallForHelp")
                write_out(help_asked_for(app, all));
            else
                write_out(text(asked.what(), "\n"));
        } catch (const CLI::ParseError& e) {
            throw BadUsage(why_refused(app, e), " (./", name, " --help lists the options)");
        } catch (const std::system_error&) {
            // If standard output has failed, fmt has thrown an error that does not name it; flush_out() then throws an
            // error that does. Otherwise flush_out() returns, and the caught error is thrown again.
            flush_out();
            throw;
        }
        flush_out();
        processes().leave();
        return 0;
    } catch (const BadUsage& e) {
        return fail(e.what(), 2);
    } catch (...) {
        return fail(reason_of_failure(), 1);
    }
}

}  // namespace masquerade
