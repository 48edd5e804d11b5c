// SPDX-License-Identifier: MIT
// The layout of help texts: paragraphs, and lists of two columns, as wide as the terminal.
#pragma once
#include <string>
#include <vector>

namespace masquerade {

// A row of a list: the name of an option, a setting or a command, and what it is.
struct HelpRow {
    std::string name, what;
};

// Returns a paragraph, with lines that are at most as wide as the terminal, at most 100 columns; 80 columns if standard
// output is not a terminal.
std::string paragraph(const std::string& words);
constexpr int help_column = 26;  // where explanations begin in most lists
// Returns a heading and the rows below it, wrapped like a paragraph; "" if there are no rows. A name is indented by two
// columns, and its explanation begins in this column.
std::string help_list(const std::string& heading, const std::vector<HelpRow>& rows, int column = help_column);

}  // namespace masquerade
