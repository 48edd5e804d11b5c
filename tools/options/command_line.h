// SPDX-License-Identifier: MIT
// Reads command lines with CLI11, for tools/program/program.cpp and tools/options/options.cpp.
#pragma once
#include <string>

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace masquerade {

// Adds a check of their values to all options of a program and its commands. It runs before the other checks of an
// option, and refuses words that CLI11 would read in a surprising way.
void check_values(CLI::App& app);
// Throws BadInput if an output of the command line that was parsed is also one of its inputs.
void guard_files();
// Returns CLI11's message about a wrong command line. Messages that show internal type names are replaced.
std::string reason_of_refusal(const CLI::ParseError& error);

}  // namespace masquerade
