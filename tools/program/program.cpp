// SPDX-License-Identifier: MIT
#include "tools/program.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <cstring>
#include <filesystem>
#include <new>
#include <optional>
#include <thread>

#include "engine/base/log.h"
#include "engine/base/printable.h"
#include "engine/base/processes.h"
#include "engine/base/version.h"
#include "engine/nccl/nccl.h"
#include "engine/ops/cpu/parallel.h"
#include "input/input.h"
#include "input/number.h"
#include "tools/outputs.h"

namespace masquerade {

Option Option::between(std::int64_t least, std::int64_t most) const {
    return Option(option_->check(CLI::Range(least, most)));
}
Option Option::between(double least, double most) const { return Option(option_->check(CLI::Range(least, most))); }
Option Option::one_of(const std::vector<std::string>& words) const {
    return Option(option_->check(CLI::IsMember(words)));
}
// The option gets one value each time, because CLI11 would otherwise read a positional word as another element.
Option Option::list() const { return Option(option_->delimiter(',')->allow_extra_args(false)); }
Option Option::required() const { return Option(option_->required()); }
Option Option::needs(Option other) const { return Option(option_->needs(other.option_)); }
Option Option::excludes(Option other) const { return Option(option_->excludes(other.option_)); }
bool Option::given() const { return option_->count() > 0; }
std::string Option::name() const { return option_->get_name(); }
std::string Option::heading() const { return option_->get_group(); }
// The option gets one value each time, because CLI11 would otherwise read [UNK] as a list with the element UNK.
Option Option::one_at_a_time() const { return Option(option_->expected(1)->take_all()->allow_extra_args(false)); }

Option Options::flag(const std::string& name, bool& value, const std::string& what) {
    return Option(app_->add_flag(name, value, what));
}
namespace {

// An option that names files or folders. paths() returns the paths that the user gave, or the default path.
struct FileOption {
    CLI::App* app;
    std::string name;
    std::function<std::vector<std::string>()> paths;
    bool written;

    // Whether the option, which may be in a group, belongs to the program itself or to the command that the user gave.
    bool counts() const {
        CLI::App* of = app;
        while (of->get_name().empty() && of->get_parent()) of = of->get_parent();
        return !of->get_parent() || of->parsed();
    }
};
std::vector<FileOption> file_options;

void guard_files() {
    std::vector<OutputFile> outputs;
    std::vector<std::string> inputs;
    for (const FileOption& o : file_options) {
        if (!o.counts()) continue;
        for (const std::string& path : o.paths())
            if (o.written && !path.empty())
                outputs.push_back({o.name, path});
            else if (!path.empty())
                inputs.push_back(path);
    }
    refuse_to_read(outputs, inputs);
}

}  // namespace

template <class T>
Option Options::value(const std::string& name, T& value, const std::string& shown, const std::string& what) {
    return Option(app_->add_option(name, value, what)->option_text(shown));
}
Option Options::input(const std::string& name, std::string& path, const std::string& shown, const std::string& what) {
    file_options.push_back({app_, name, [&] { return std::vector{path}; }, false});
    return value(name, path, shown, what);
}
Option Options::input(const std::string& name, std::vector<std::string>& paths, const std::string& shown,
                      const std::string& what) {
    file_options.push_back({app_, name, [&] { return paths; }, false});
    return value(name, paths, shown, what);
}
Option Options::output(const std::string& name, std::string& path, const std::string& shown, const std::string& what) {
    file_options.push_back({app_, name, [&] { return std::vector{path}; }, true});
    return value(name, path, shown, what);
}
#define OPTION_OF(T) template Option Options::value(const std::string&, T&, const std::string&, const std::string&);
OPTION_OF(std::string)
OPTION_OF(std::vector<std::string>)
OPTION_OF(int)
OPTION_OF(std::vector<int>)
OPTION_OF(std::int64_t)
OPTION_OF(std::uint64_t)
OPTION_OF(double)
OPTION_OF(std::optional<double>)
#undef OPTION_OF

void Options::heading(const std::string& title) { app_->option_defaults()->group(title); }
void Options::footer(const std::string& text) { app_->footer(text); }
Options Options::group(const std::string& title) { return Options(app_->add_option_group(title)); }
Options Options::command(const std::string& name, const std::string& what) {
    return Options(app_->add_subcommand(name, what));
}
void Options::expect_commands(int least) { app_->require_subcommand(least, 1)->fallthrough(); }
bool Options::chosen() const { return app_->parsed(); }
std::string Options::title() const { return app_->get_group(); }
std::vector<Option> Options::given() const {
    std::vector<Option> some;
    for (CLI::Option* option : app_->get_options())
        if (option->count() > 0) some.emplace_back(option);
    return some;
}

void refuse_options(const Options& group, const std::string& run, const std::string& model) {
    for (const Option& option : group.given())
        throw BadUsage(text(option.name(), " is an option ", group.title(), ", but ", run, " is a run of ", model));
}

bool is_terminal(FILE* file) { return isatty(fileno(file)); }

int terminal_width(FILE* file) {
    winsize size{};
    bool known = ioctl(fileno(file), TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
    return known ? std::min<int>(size.ws_col, 80) : 80;
}

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
    throw BadInput(
        text("standard output cannot be written: ", errno ? std::strerror(errno) : "was it closed, is the disk full?"));
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

// Returns false if the word is not a number of type T. Rewrites an integer in the form that CLI11 reads correctly.
template <class T>
bool rewrite(std::string& word) {
    T number{};
    if (!read_number(word, number)) return false;
    if (std::is_integral_v<T>) word = std::to_string(number);
    return true;
}

// Returns the reason why a word cannot be the value of an option of this type, or "" if it can. CLI11 alone would read
// 010 as 8, -1 as the largest unsigned number and an empty word as 0, and it would accept NaN in every range.
std::string why_no_value(const std::string& type, std::string& word) {
    if (word.empty() && !type.empty()) return "a value is expected, found an empty one";
    if (type.rfind("UINT", 0) == 0 && !rewrite<std::uint64_t>(word))
        return text("a whole number from 0 to ", UINT64_MAX, " is expected, found ", clipped(word));
    if (type.rfind("INT", 0) == 0 && !rewrite<std::int64_t>(word))
        return text("a whole number is expected, found ", clipped(word));
    if (type.rfind("FLOAT", 0) == 0 && !rewrite<double>(word))
        return text("a finite number is expected, found ", clipped(word));
    return "";
}

// Adds the check why_no_value() to all options of the program and its commands. This check runs before the other
// checks of an option.
void check_values(CLI::App& app) {
    for (CLI::Option* option : app.get_options())
        option->transform(CLI::Validator(
            [type = option->get_type_name()](std::string& word) { return why_no_value(type, word); }, ""));
    for (CLI::App* part : app.get_subcommands([](CLI::App*) { return true; })) check_values(*part);
}

// Returns CLI11's message about a wrong command line. Messages that show internal type names are replaced.
std::string reason_of_refusal(const CLI::ParseError& error) {
    const std::string said = error.what(), name = said.substr(0, said.find(':'));
    if (error.get_name() != "ArgumentMismatch") return said;
    return said.find("At Most") != said.npos ? name + " is given more than once"
                                             : name + ": a value is expected, but none follows";
}

// Returns the message for the exception that is being handled. Exceptions of libraries get messages of this program,
// because the libraries' own messages are written for programmers.
std::string reason_of_failure() {
    try {
        throw;
    } catch (const std::filesystem::filesystem_error& e) {
        return text("cannot read or write ", e.path1().string(), ": ", e.code().message());
    } catch (const std::bad_alloc&) {
        return "out of memory: a smaller file, batch_tokens, width or vocabulary needs less";
    } catch (const std::runtime_error& e) {
        return e.what();
    } catch (...) {  // thrown by a container or by JSON, if the data is not what earlier checks assumed
        return "a file or a setting holds a value of an unexpected kind or size; is the run folder as "
               "./train wrote it?";
    }
}

// Returns the number of CPU threads of this process if the user names none: as many as it may use, but at most an equal
// share of the machine if there are several processes on it.
int own_threads() {
    const int all = threads(), machine = int(std::thread::hardware_concurrency());
    return std::min(all, std::max(1, machine / launched().local_count));
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
        if (other != mine) throw BadUsage(text("the processes differ: one has ", mine, ", another ", other));
}

int run_program(int argc, char** argv, const std::string& name, const std::string& description,
                const std::function<void(Options&)>& setup, const std::function<void(const Common&)>& body, Work work,
                Together together) {
    std::signal(SIGPIPE, SIG_DFL);  // a closed pipe ends the program quietly, even if its parent ignores SIGPIPE
    std::signal(SIGXFSZ, SIG_IGN);  // beyond the file size limit, write() fails, and the error names the file
    reserve_standard_streams();
    try {
        if (together == Together::yes) join_processes();
        Common common;
        std::string device = "auto";
        CLI::App app(description, name);
        try {
            Options options(&app);
            app.set_version_flag("--version", std::string("masquerade ") + version);
            options.choice("--device", device, {"auto", "cpu", "cuda"}, "auto, cpu or cuda (default: auto)");
            options.number("--threads", common.threads, 1, 1024, "CPU threads (default: all this process may use)");
            const Option seed = options.value("--seed", common.seed, "N", "seed of all random numbers (default: 1)");
            if (together == Together::yes)
                options.number("--patience", processes().patience, 1.0, 1e6,
                               "with several processes: end all processes if one does not answer for S seconds "
                               "(default: 600)",
                               "S");
            setup(options);
            check_values(app);
            app.parse(argc, argv);
            std::string command = text("version ", version, " and the command");
            for (int i = 0; i < argc; i++) command += ' ' + shell_quoted(argv[i]);
            expect_equal(command);
            guard_files();
            common.seed_given = seed.given();
            common.device = choose_device(device, name, work);
            if (together == Together::yes) {
                meet_by_nccl(common.device);
                expect_equal(command);  // processes of torchrun meet only now
            }
            set_threads(common.threads > 0 ? common.threads : own_threads());
            body(common);
        } catch (const CLI::Success& help) {
            app.exit(help);
        } catch (const std::system_error&) {
            // If standard output has failed, fmt has thrown an error that does not name it; flush_out() then throws an
            // error that does. Otherwise flush_out() returns, and the caught error is thrown again.
            flush_out();
            throw;
        }
        flush_out();
        processes().leave();
        return 0;
    } catch (const CLI::ParseError& e) {
        return fail(text(reason_of_refusal(e), " (", name, " --help lists the options)"), 2);
    } catch (const BadUsage& e) {
        return fail(e.what(), 2);
    } catch (...) {
        return fail(reason_of_failure(), 1);
    }
}

}  // namespace masquerade
