// SPDX-License-Identifier: MIT
// Standard input to standard output, one line out for one line in, on every thread. What has come is answered at
// once, so that a program at the other end of a pipe gets its answers.
#pragma once
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/error.h"
#include "engine/ops/cpu/parallel.h"
#include "tools/program.h"

namespace masquerade {

// Calls use(line, number from 1) for each line of the text.
template <class Use>
void each_line(std::string_view text, long number, Use use) {
    while (!text.empty()) {
        std::size_t end = text.find('\n');
        use(text.substr(0, end), number++);
        if (end == text.npos) return;
        text.remove_prefix(end + 1);
    }
}

// Reads what standard input has to give into buffer[end, size): waits for the first, not for more. The new end, the old
// one where there is no more. BadInput where it cannot be read, and after Ctrl-C.
inline std::size_t read_some(char* buffer, std::size_t end, std::size_t size) {
    const std::size_t first = end;
    while (end < size) {
        pollfd input{STDIN_FILENO, POLLIN, 0};
        int ready = poll(&input, 1, end > first ? 0 : -1);
        if (ready < 0 && stop_requested()) throw BadInput("stopped");
        if (ready == 0) break;
        ssize_t got = read(STDIN_FILENO, buffer + end, size - end);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) throw BadInput(text("standard input cannot be read: ", std::strerror(errno)));
        if (got == 0) break;
        end += std::size_t(got);
    }
    return end;
}

// Calls use(block, number of its first line) with all that has come of standard input, whole lines; a last line
// without a line feed counts. Blocks hold 4 MB, or one line that is longer.
template <class Use>
void each_block(Use use) {
    std::vector<char> buffer(4 << 20);
    std::size_t held = 0;  // bytes that no line feed has followed yet
    long number = 1;
    while (true) {
        if (2 * held > buffer.size()) buffer.resize(2 * buffer.size());
        std::size_t end = read_some(buffer.data(), held, buffer.size());
        std::size_t last = std::string_view(buffer.data() + held, end - held).rfind('\n');
        bool more = end > held;
        std::size_t whole = !more ? end : last == std::string_view::npos ? 0 : held + last + 1;
        held = end;
        if (whole > 0) {
            std::string_view block(buffer.data(), whole);
            use(block, number);
            number += std::count(block.begin(), block.end(), '\n');
            std::copy(buffer.begin() + std::ptrdiff_t(whole), buffer.begin() + std::ptrdiff_t(end),
                      buffer.begin());
            held -= whole;
        }
        if (!more) return;
    }
}

// Output that cannot be written is an error at once: a disk may be full.
inline void write_out(std::string_view bytes) {
    if (std::fwrite(bytes.data(), 1, bytes.size(), stdout) != bytes.size()) flush_out();
}

// work(line, number, out) appends what the line becomes, without its line feed; lines are worked on side by side. When
// it throws, the lines before are written first.
template <class Work>
void filter_lines(Work work) {
    constexpr std::size_t piece = 64 << 10;
    struct Part {
        std::string_view in;
        long number;
        std::string out = {};
        std::exception_ptr thrown = nullptr;
    };
    each_block([&](std::string_view block, long number) {
        std::vector<Part> pieces;
        while (!block.empty()) {
            std::size_t end = block.size() <= piece ? block.npos : block.find('\n', piece);
            end = end == block.npos ? block.size() : end + 1;
            pieces.push_back({block.substr(0, end), number});
            number += std::count(block.begin(), block.begin() + std::ptrdiff_t(end), '\n');
            block.remove_prefix(end);
        }
        parallel_each(std::int64_t(pieces.size()), [&](std::int64_t i) {
            Part& p = pieces[std::size_t(i)];
            try {
                each_line(p.in, p.number, [&](std::string_view line, long n) {
                    work(line, n, p.out);
                    p.out += '\n';
                });
            } catch (...) {
                p.thrown = std::current_exception();
            }
        });
        for (const Part& p : pieces) {
            write_out(p.out);
            if (p.thrown) std::rethrow_exception(p.thrown);
        }
        flush_out();
    });
}

}  // namespace masquerade
