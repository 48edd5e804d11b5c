// SPDX-License-Identifier: MIT
// Writes one line to standard error: `note: ...` for information, `warning: ...` for a problem.
#pragma once
#include <cstdio>
#include <string>

#include "engine/base/error.h"
#include "engine/base/printable.h"

namespace masquerade {

// If set, called before each line, to clear a progress bar that is redrawn in place.
inline void (*before_log_line)() = nullptr;

// log_line("warning: ", path, ": ", count, " lines were truncated"). Safe to call from any thread: lines never mix.
// Control characters in the parts are escaped, so that the output is a single line.
template <class... Parts>
void log_line(const Parts&... parts) {
    const std::string line = printable(text(parts...)) + '\n';
    if (before_log_line) before_log_line();
    std::fwrite(line.data(), 1, line.size(), stderr);
}

// A progress bar such as "=====>    ", `width` columns wide; `share` is the part that is done, 0 to 1.
inline std::string bar_of(double share, int width) {
    int full = int(share * width);
    std::string bar(std::size_t(full), '=');
    if (full < width) bar += '>';
    bar.resize(std::size_t(width), ' ');
    return bar;
}

}  // namespace masquerade
