// SPDX-License-Identifier: MIT
// Writes lines to standard error. Most lines begin with "note: " (information), "warning: " (a problem that does not
// stop the program) or "error: " (a problem that stops it).
#pragma once
#include <cstdio>
#include <string>

#include "engine/base/error.h"
#include "engine/base/printable.h"

namespace masquerade {

// If this pointer is not null, log_line() calls the function before it writes. The trainer sets a function that clears
// the progress bar, because the message would otherwise follow the bar on the same line.
inline void (*before_log_line)() = nullptr;

// If this pointer is not null, log_line() calls the function with the line, which ends with a line feed, instead of
// writing to standard error.
inline void (*log_sink)(const char* line) = nullptr;

// If true, log_line() writes only lines that begin with "error: ". Set in all processes but the first of a run that
// several processes train (engine/base/processes.h).
inline bool quiet_log = false;

// Writes one line: log_line("warning: ", path, ": ", count, " lines were truncated"). Control characters in the parts
// are escaped. Safe to call from any thread: lines never mix.
template <class... Parts>
void log_line(const Parts&... parts) {
    const std::string line = printable(text(parts...)) + '\n';
    if (quiet_log && line.rfind("error: ", 0) != 0) return;
    if (before_log_line) before_log_line();
    if (log_sink)
        log_sink(line.c_str());
    else
        std::fwrite(line.data(), 1, line.size(), stderr);
}

// Returns a progress bar such as "=====>    ", `width` columns wide. `share` is the fraction that is done, 0 to 1.
inline std::string bar_of(double share, int width) {
    int full = int(share * width);
    std::string bar(full, '=');
    if (full < width) bar += '>';
    bar.resize(width, ' ');
    return bar;
}

}  // namespace masquerade
