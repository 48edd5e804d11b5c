// SPDX-License-Identifier: MIT
// Functions for programs that turn each line of standard input into one line of standard output. each_block() collects
// all complete lines that have arrived. write_lines() processes them in parallel, and writes the results when all of
// them are done, without waiting for further input. Therefore, another program can write a line and wait for the
// answer.
#pragma once
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/error.h"
#include "engine/ops/cpu/parallel.h"
#include "tools/program.h"

namespace masquerade {

// Splits a text into lines, and removes the line feeds.
inline std::vector<std::string_view> lines_of(std::string_view text) {
    std::vector<std::string_view> lines;
    while (!text.empty()) {
        lines.push_back(text.substr(0, text.find('\n')));
        text.remove_prefix(std::min(lines.back().size() + 1, text.size()));
    }
    return lines;
}

// Waits until standard input has bytes or has ended, and reads the available bytes into buffer[end, size). Returns the
// new end of the bytes in the buffer. If the input has ended, returns the argument `end`. Throws BadInput if reading
// fails.
inline std::size_t read_some(char* buffer, std::size_t end, std::size_t size) {
    const std::size_t first = end;
    while (end < size) {
        pollfd input{STDIN_FILENO, POLLIN, 0};
        if (end > first && poll(&input, 1, 0) == 0) break;
        ssize_t got = read(STDIN_FILENO, buffer + end, size - end);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) throw BadInput("standard input cannot be read: ", std::strerror(errno));
        if (got == 0) break;
        end += got;
    }
    return end;
}

// Reads standard input in blocks of whole lines, and calls use(block, number of its first line) for each block. Lines
// are counted from 1. The last line of the input may lack its line feed. The buffer has 4 MiB at first, and is doubled
// when an unfinished line fills more than half of it.
// Calls ready() before each read, which waits until there is something to read.
template <class Use>
void each_block(
    Use use, void (*ready)() = [] {}) {
    std::vector<char> buffer(4 << 20);
    std::size_t held = 0;  // bytes at the start of the buffer that belong to an unfinished line
    long number = 1;
    while (true) {
        if (2 * held > buffer.size()) buffer.resize(2 * buffer.size());
        ready();
        std::size_t end = read_some(buffer.data(), held, buffer.size());
        std::size_t last = std::string_view(buffer.data() + held, end - held).rfind('\n');
        bool more = end > held;
        std::size_t whole = !more ? end : last == std::string_view::npos ? 0 : held + last + 1;
        held = end;
        if (whole > 0) {
            std::string_view block(buffer.data(), whole);
            use(block, number);
            number += std::count(block.begin(), block.end(), '\n');
            std::copy(buffer.begin() + whole, buffer.begin() + end, buffer.begin());
            held -= whole;
        }
        if (!more) return;
    }
}

// Writes `count` lines to standard output. work(i, out) appends line i, counted from 0 and without its line feed, to
// `out`. The lines are divided into groups of 1,000, which are computed in parallel. If work(i) throws, the lines
// before line i are written, and then the exception is rethrown.
template <class Work>
void write_lines(std::size_t count, Work work) {
    constexpr std::size_t together = 1000;
    struct Part {
        std::string out;
        std::exception_ptr thrown;
    };
    std::vector<Part> parts((count + together - 1) / together);
    parallel_each(parts.size(), [&](std::int64_t p) {
        Part& part = parts[p];
        std::size_t whole = 0;  // bytes of part.out that belong to finished lines
        try {
            for (std::size_t i = std::size_t(p) * together; i < std::min(count, (std::size_t(p) + 1) * together); i++) {
                work(i, part.out);
                part.out += '\n';
                whole = part.out.size();
            }
        } catch (...) {
            part.out.resize(whole);
            part.thrown = std::current_exception();
        }
    });
    for (const Part& part : parts) {
        write_out(part.out);
        if (part.thrown) std::rethrow_exception(part.thrown);
    }
    flush_out();
}

}  // namespace masquerade
