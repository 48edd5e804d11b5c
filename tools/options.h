// SPDX-License-Identifier: MIT
// Declares the options of a program. The classes are thin wrappers around CLI11. Only tools/options/ and tools/program/
// include the headers of CLI11, because they are slow to compile.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <type_traits>
#include <vector>

#include "engine/tensor/dtype.h"
#include "input/lists.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace masquerade {

// A handle on an option. CLI11 owns the option, and the handle is valid until run_program() returns.
class Option {
  public:
    Option(CLI::Option* option = nullptr) : option_(option) {}

    Option between(std::int64_t least, std::int64_t most) const;
    Option between(double least, double most) const;
    Option one_of(const Strings& words) const;
    Option list() const;           // the value is a list, separated by commas
    Option one_at_a_time() const;  // may be repeated, with one value each time; [ and ] are ordinary characters
    Option required() const;
    Option needs(Option other) const;
    Option excludes(Option other) const;

    bool given() const;
    std::string name() const;     // as in --help, for example "--beam" or, for a positional option, "words"
    std::string heading() const;  // the heading above the option in --help

  private:
    CLI::Option* option_;
};

// The options of a program, of one of its commands, or of a group of options.
class Options {
  public:
    Options(CLI::App* app = nullptr) : app_(app) {}

    Option flag(const std::string& name, bool& value, const std::string& what);
    // Declares an option. --help shows its value as `shown`, such as "NAME", and explains it by `what`. T is
    // std::string, int, int64_t, uint64_t, double, optional<double>, or a vector of std::string or int. If the value
    // names files or folders, use input() or output().
    template <class T>
    Option value(const std::string& name, T& value, const std::string& shown, const std::string& what);
    // input() declares an option that names files or folders to read. output() declares an option that names a file or
    // folder to write. tools/outputs.h checks that the program does not overwrite what it reads.
    Option input(const std::string& name, std::string& path, const std::string& shown, const std::string& what);
    Option input(const std::string& name, Strings& paths, const std::string& shown, const std::string& what);
    Option output(const std::string& name, std::string& path, const std::string& shown, const std::string& what);
    // Says that the program reads this file or folder, although no option names it, so that no output overwrites it.
    void reads(const std::string& path);
    // Declares an option whose value is a number from `least` to `most`. --help shows the value as `unit`.
    template <class T, class Number>
    Option number(const std::string& name, T& number, Number least, Number most, const std::string& what,
                  const std::string& unit = "N") {
        using Wide = std::conditional_t<std::is_integral_v<Number>, std::int64_t, double>;
        return value(name, number, unit, what).between(Wide(least), Wide(most));
    }
    Option choice(const std::string& name, std::string& word, const Strings& words, const std::string& what,
                  const std::string& unit = "NAME") {
        return value(name, word, unit, what).one_of(words);
    }

    void heading(const std::string& title);  // in --help, the heading above the options declared after this call
    // help() returns the text of --help, or its lines under one heading. on_help() replaces the text: --help prints the
    // result of help(false), and --help-all that of help(true). When `help` is called, the options have their values.
    // `all` describes --help-all.
    std::string help() const;
    std::string help(const std::string& heading, int column) const;  // column: as in help_list (tools/help.h)
    void on_help(std::function<std::string(bool all)> help, const char* all);
    Options group(const std::string& title);  // returns a new group with its own heading, "Options " + title
    void hide();                              // leaves this group out of --help
    Options command(const std::string& name, const std::string& what);
    void expect_commands(int least);    // `least`: 1 if a command is required, else 0; at most one command is allowed
    bool chosen() const;                // whether the user gave this command
    std::vector<Option> given() const;  // the options that the user gave
    std::string title() const;          // title of this group, as passed to group()

  private:
    CLI::App* app_;
};

// Returns the type that an option --precision names, "f32" or "bf16".
inline DType storage_of(const std::string& precision) { return precision == "bf16" ? DType::bf16 : DType::f32; }

// Declares options by setup(), reads `words` as a program would read its command line, and calls body(). Throws
// BadUsage if the words do not fit the options.
void with_options(const std::string& name, const Strings& words, const std::function<void(Options&)>& setup,
                  const std::function<void()>& body);
// Returns the message for the exception that is being handled. Exceptions of libraries get messages of this program,
// because the libraries' own messages are written for programmers.
std::string reason_of_failure();

// Call this if `model`, the model of the run folder `run`, does not support the options of `group`. Throws BadUsage if
// the user gave one of these options. The message continues with the title of the group, which names the models that
// support the options. The title must therefore have the form "of A and B".
void refuse_options(const Options& group, const std::string& run, const std::string& model);

}  // namespace masquerade
