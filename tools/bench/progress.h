// SPDX-License-Identifier: MIT
// One line on a terminal, which the next one overwrites; nothing elsewhere.
#pragma once
#include <fmt/format.h>

#include <string>

#include "tools/program.h"

namespace masquerade {

inline void show_progress(const std::string& line) {
    const std::size_t width = std::size_t(terminal_width() - 1);
    if (is_terminal(stderr)) fmt::print(stderr, "\r{:<{}}\r{}", "", width, line.substr(0, width));
}

}  // namespace masquerade
