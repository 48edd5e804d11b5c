// SPDX-License-Identifier: MIT
// One line on standard error, written whole: `note: ...` for what is good to know, `warning: ...` for what is not.
#pragma once
#include <cstdint>
#include <cstdio>
#include <string>

#include "engine/base/error.h"

namespace masquerade {

// A line as a terminal may show it: control characters, among them line feeds and the begin of escape sequences, become
// question marks; of a very long line the middle is left out.
inline std::string printable(std::string line) {
    constexpr std::size_t most = 4000;
    if (line.size() > most) line = line.substr(0, most / 2) + " ... " + line.substr(line.size() - most / 2);
    for (std::size_t i = 0; i < line.size(); i++) {
        const bool control = (line[i] >= 0 && line[i] < ' ') || line[i] == 0x7F;
        const bool wide = i > 0 && line[i - 1] == '\xC2' && std::uint8_t(line[i]) >= 0x80 &&
                          std::uint8_t(line[i]) < 0xA0;  // U+0080 to U+009F
        if (control || wide) line[i] = '?';
        if (wide) line[i - 1] = '?';
    }
    return line;
}

// log_line("warning: ", path, ": ", count, " lines were truncated"); from any thread, lines never mix.
template <class... Parts>
void log_line(const Parts&... parts) {
    const std::string line = printable(text(parts...)) + '\n';
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
