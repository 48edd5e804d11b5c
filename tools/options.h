// SPDX-License-Identifier: MIT
// The options of a program. CLI11 reads them, in tools/program/program.cpp alone: its headers are slow to compile.
#pragma once
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace masquerade {

// One option. It lives as long as the program's main.
class Option {
  public:
    explicit Option(CLI::Option* option = nullptr) : option_(option) {}

    Option between(std::int64_t least, std::int64_t most) const;
    Option between(double least, double most) const;
    Option one_of(const std::vector<std::string>& words) const;
    Option list() const;           // values with commas between
    Option one_at_a_time() const;  // one value each time it is given, brackets a part of it
    Option required() const;
    Option needs(Option other) const;
    Option excludes(Option other) const;

    bool given() const;
    std::string name() const;     // --beam, or words
    std::string heading() const;  // of --help, under which it stands

  private:
    CLI::Option* option_;
};

// The options of a program, of a command of it, or a group of them.
class Options {
  public:
    explicit Options(CLI::App* app = nullptr) : app_(app) {}

    Option flag(const std::string& name, bool& value, const std::string& what);
    // An option whose value --help shows as `shown`. T is defined for text, whole numbers, real ones, those that may be
    // missing, and lists of text and of int.
    template <class T>
    Option value(const std::string& name, T& value, const std::string& shown, const std::string& what);
    // An option that names a file or a folder, or several: one that is read, or one that is written (tools/outputs.h).
    Option input(const std::string& name, std::string& path, const std::string& shown, const std::string& what);
    Option input(const std::string& name, std::vector<std::string>& paths, const std::string& shown,
                 const std::string& what);
    Option output(const std::string& name, std::string& path, const std::string& shown, const std::string& what);
    // A number from `least` to `most`, called `unit` in --help.
    template <class T, class Number>
    Option number(const std::string& name, T& number, Number least, Number most, const std::string& what,
                  const std::string& unit = "N") {
        using Wide = std::conditional_t<std::is_integral_v<Number>, std::int64_t, double>;
        return value(name, number, unit, what).between(Wide(least), Wide(most));
    }
    Option choice(const std::string& name, std::string& word, const std::vector<std::string>& words,
                  const std::string& what, const std::string& unit = "NAME") {
        return value(name, word, unit, what).one_of(words);
    }

    void heading(const std::string& title);  // of what comes, in --help
    void footer(const std::string& text);
    Options group(const std::string& title);  // a heading of its own
    Options command(const std::string& name, const std::string& what);
    void expect_commands(int least);    // so many at least, one at most
    bool chosen() const;                // the command
    std::vector<Option> given() const;  // on the command line
    std::string title() const;          // of a group

  private:
    CLI::App* app_;
};

// Refuses the options of a group "of A and B" that are not of the run's model.
void refuse_options(const Options& group, const std::string& run, const std::string& model);

}  // namespace masquerade
