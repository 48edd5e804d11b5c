// SPDX-License-Identifier: MIT
#include "tools/options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <optional>

#include "engine/base/named.h"
#include "engine/base/printable.h"
#include "input/input.h"
#include "input/number.h"
#include "tools/options/command_line.h"
#include "tools/outputs.h"

namespace masquerade {

namespace {

// The type as which a word of the command line is checked: that of the element of a list, and the widest of integers
// with a sign.
template <class T>
struct Checked {
    using type = std::conditional_t<std::is_integral_v<T> && std::is_signed_v<T>, std::int64_t, T>;
};
template <class T>
struct Checked<std::vector<T>> : Checked<T> {};
template <class T>
struct Checked<std::optional<T>> : Checked<T> {};

// Returns the reason why a word cannot be the value of an option of type T, or "" if it can. Rewrites an integer in the
// form that CLI11 reads correctly. CLI11 alone would read 010 as 8, -1 as the largest unsigned number and an empty word
// as 0, and it would accept NaN in every range.
template <class T>
std::string why_no_value(std::string& word) {
    if (word.empty()) return "a value is expected, found an empty one";
    if constexpr (!std::is_same_v<T, std::string>) {
        T number{};
        const std::string kind = std::is_unsigned_v<T>   ? text("a whole number from 0 to ", UINT64_MAX)
                                 : std::is_integral_v<T> ? "a whole number"
                                                         : "a finite number";
        if (!read_number(word, number)) return text(kind, " is expected, found ", clipped(word));
        if (std::is_integral_v<T>) word = std::to_string(number);
    }
    return "";
}

// Returns a check that a word is a number from `least` to `most`.
template <class Number>
CLI::Validator range(Number least, Number most) {
    const char* kind = std::is_integral_v<Number> ? "a whole number from " : "a number from ";
    const auto check = [=](const std::string& word) {
        Number x{};
        const bool inside = read_number(word, x) && x >= least && x <= most;
        return inside ? "" : text(kind, least, " to ", most, " is expected, found ", clipped(word));
    };
    return CLI::Validator(check, "", "");
}

}  // namespace

Option Option::between(std::int64_t least, std::int64_t most) const { return option_->check(range(least, most)); }
Option Option::between(double least, double most) const { return option_->check(range(least, most)); }
Option Option::one_of(const Strings& words) const {
    const auto check = [=](const std::string& word) {
        return contains(words, word)
                   ? ""
                   : text("expected ", words.size() > 1 ? "one of " : "", joined(words), ", found ", clipped(word));
    };
    return option_->check(CLI::Validator(check, "", ""));
}
// The option gets one value each time, because CLI11 would otherwise read a positional word as another element.
Option Option::list() const { return option_->delimiter(',')->allow_extra_args(false); }
Option Option::required() const { return option_->required(); }
Option Option::needs(Option other) const { return option_->needs(other.option_); }
Option Option::excludes(Option other) const { return option_->excludes(other.option_); }
bool Option::given() const { return option_->count() > 0; }
std::string Option::name() const { return option_->get_name(); }
std::string Option::heading() const { return option_->get_group(); }
// The option gets one value each time, because CLI11 would otherwise read [UNK] as a list with the element UNK.
Option Option::one_at_a_time() const { return option_->expected(1)->take_all()->allow_extra_args(false); }

Option Options::flag(const std::string& name, bool& value, const std::string& what) {
    return app_->add_flag(name, value, what)->disable_flag_override();
}
namespace {

// An option that names files or folders. paths() returns the paths that the user gave, or the default path.
struct FileOption {
    CLI::App* app;
    std::string name;
    std::function<Strings()> paths;
    bool written;

    // Whether the option, which may be in a group, belongs to the program itself or to the command that the user gave.
    bool counts() const {
        CLI::App* of = app;
        while (of->get_name().empty() && of->get_parent()) of = of->get_parent();
        return !of->get_parent() || of->parsed();
    }
};
std::vector<FileOption> file_options;
std::function<std::string(bool all)> own_help;  // given to on_help(); else null

}  // namespace

void guard_files(bool standard) {
    std::vector<OutputFile> outputs;
    Strings inputs;
    for (const FileOption& o : file_options) {
        if (!o.counts()) continue;
        for (const std::string& path : o.paths())
            if (o.written && !path.empty())
                outputs.push_back({o.name, path});
            else if (!path.empty())
                inputs.push_back(path);
    }
    refuse_to_read(outputs, inputs, standard);
}

std::string help_asked_for(const CLI::App& program, bool all) { return own_help ? own_help(all) : help_of(program); }

template <class T>
Option Options::value(const std::string& name, T& value, const std::string& shown, const std::string& what) {
    using Word = typename Checked<T>::type;
    CLI::Option* option = nullptr;
    if constexpr (std::is_same_v<Word, double>) {  // CLI11 would read the decimal point of the locale
        const auto store = [&value](const std::string& word) {
            double number = 0;
            read_number(word, number);
            value = number;
        };
        option = app_->add_option_function<std::string>(name, store, what);
    } else {
        option = app_->add_option(name, value, what);
    }
    return option->option_text(shown)->transform(
        CLI::Validator(why_no_value<Word>, ""));  // runs before the other checks of the option
}
Option Options::input(const std::string& name, std::string& path, const std::string& shown, const std::string& what) {
    file_options.push_back({app_, name, [&] { return std::vector{path}; }, false});
    return value(name, path, shown, what);
}
Option Options::input(const std::string& name, Strings& paths, const std::string& shown, const std::string& what) {
    file_options.push_back({app_, name, [&] { return paths; }, false});
    return value(name, paths, shown, what);
}
Option Options::output(const std::string& name, std::string& path, const std::string& shown, const std::string& what) {
    file_options.push_back({app_, name, [&] { return std::vector{path}; }, true});
    return value(name, path, shown, what);
}
void Options::reads(const std::string& path) {
    file_options.push_back({app_, "", [path] { return std::vector{path}; }, false});
}
#define OPTION_OF(T) template Option Options::value(const std::string&, T&, const std::string&, const std::string&);
OPTION_OF(std::string)
OPTION_OF(Strings)
OPTION_OF(int)
OPTION_OF(std::vector<int>)
OPTION_OF(std::int64_t)
OPTION_OF(std::uint64_t)
OPTION_OF(double)
OPTION_OF(std::optional<double>)
#undef OPTION_OF

void Options::heading(const std::string& title) { app_->option_defaults()->group(title); }
void Options::on_help(std::function<std::string(bool all)> help, const char* all) {
    own_help = std::move(help);
    app_->set_help_all_flag("--help-all", all);
}
std::string Options::help() const { return help_of(*app_); }
std::string Options::help(const std::string& heading, int column) const { return help_under(*app_, heading, column); }
void Options::hide() { app_->disabled(); }
Options Options::group(const std::string& title) { return app_->add_option_group(title); }
Options Options::command(const std::string& name, const std::string& what) { return app_->add_subcommand(name, what); }
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
        throw BadUsage(option.name(), " is an option ", group.title(), ", but ", run, " is a run of ", model);
}

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

void with_options(const std::string& name, const Strings& words, const std::function<void(Options&)>& setup,
                  const std::function<void()>& body) {
    CLI::App app("", name);
    app.set_help_flag();
    // The files and the help of a program that calls the library itself come back at the end.
    struct Others {
        std::vector<FileOption> files = std::exchange(file_options, {});
        std::function<std::string(bool)> help = own_help;
        ~Others() { file_options = std::move(files), own_help = std::move(help); }
    } others;
    try {
        Options options(&app);
        setup(options);
        Strings left(words.rbegin(), words.rend());  // CLI11 takes the words from the end
        for (std::string& word : left) {
            const std::size_t equals = word.find('=');
            const CLI::Option* option = equals == word.npos ? nullptr : app.get_option_no_throw(word.substr(0, equals));
            if (!option || option->get_expected_max() > 0) continue;
            const std::string value = word.substr(equals + 1);  // of a flag
            if (value != "true" && value != "false")
                throw BadUsage(word.substr(0, equals), ": true or false is expected, found ", clipped(value));
            word = value == "true" ? word.substr(0, equals) : "";
        }
        left.erase(std::remove(left.begin(), left.end(), ""), left.end());
        app.parse(left);
        guard_files(false);  // the host of the library decides what its standard files are
        body();
    } catch (const CLI::ParseError& e) {
        throw BadUsage(why_refused(app, e));
    }
}

}  // namespace masquerade
