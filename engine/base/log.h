// SPDX-License-Identifier: MIT
// One line on standard error, written whole: `note: ...` for what is good to know, `warning: ...` for what is not.
#pragma once
#include <cstdio>
#include <string>

#include "engine/base/error.h"
#include "engine/base/printable.h"

namespace masquerade {

// Called before each line where it is set: it clears a line that is rewritten in place, such as a progress bar.
inline void (*before_log_line)() = nullptr;

// log_line("warning: ", path, ": ", count, " lines were truncated"); from any thread, lines never mix. Whatever the
// parts hold, it is one line.
template <class... Parts>
void log_line(const Parts&... parts) {
    const std::string line = printable(text(parts...)) + '\n';
    if (before_log_line) before_log_line();
    std::fwrite(line.data(), 1, line.size(), stderr);
}

// "=====>    ", width columns of it: how much of something is done, 0 to 1.
inline std::string bar_of(double share, int width) {
    int full = int(share * width);
    std::string bar(std::size_t(full), '=');
    if (full < width) bar += '>';
    bar.resize(std::size_t(width), ' ');
    return bar;
}

}  // namespace masquerade
