// SPDX-License-Identifier: MIT
// Reads command lines with CLI11, and replaces its help texts and its messages about a wrong command line.
#pragma once
#include <string>

#include "input/lists.h"

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace masquerade {

// The heading above the options that every program has.
constexpr const char* common_heading = "General options";

// Throws BadInput if an output of the command line that was parsed is also one of its inputs. If `standard` is true,
// standard input and standard output count, too.
void guard_files(bool standard);
// Returns the help text of a program, or of the command that the user gave. help_asked_for() returns the text that
// replaces it (Options::on_help), if there is one.
std::string help_of(const CLI::App& program);
std::string help_asked_for(const CLI::App& program, bool all);
// Returns the lines of a help text that list the options under one heading. `column` as in help_list (tools/help.h).
std::string help_under(const CLI::App& app, const std::string& heading, int column);
// Throws BadUsage if an option of `words`, the command line that was parsed, has a list with an empty part, such as 5,
// or 5,,6: CLI11 leaves empty parts out.
void refuse_empty_parts(const CLI::App& program, const Strings& words);
// Returns a message that says what is wrong with the command line.
std::string why_refused(const CLI::App& program, const CLI::ParseError& error);

}  // namespace masquerade
