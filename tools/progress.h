// SPDX-License-Identifier: MIT
// A progress bar on standard error: redrawn in place on a terminal, nothing in a pipe.
#pragma once
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>

#include "tools/program.h"

namespace masquerade {

class ProgressBar {
  public:
    ~ProgressBar() { clear(); }

    // done: from 0 to 1, or below 0 where the end is not known. Called often: it draws ten times a second.
    void show(const std::string& what, double done, const std::string& detail = {}) {
        Clock::time_point now = Clock::now();
        if (!terminal_ || (drawn_ && now - last_ < std::chrono::milliseconds(100))) return;
        last_ = now;
        drawn_ = true;
        std::string head = what, tail = detail;
        if (done >= 0) {
            double share = std::min(done, 1.0);
            head = fmt::format("[{}] {:3.0f} % {}", bar_of(share, 24), 100 * share, what);
        }
        std::string line = head + (tail.empty() ? "" : " " + tail);
        fmt::print(stderr, "\r\x1b[K{}", line.substr(0, std::size_t(terminal_width() - 1)));
        std::fflush(stderr);
    }

    void clear() {
        if (drawn_) fmt::print(stderr, "\r\x1b[K");
        drawn_ = false;
    }

  private:
    using Clock = std::chrono::steady_clock;

    bool terminal_ = is_terminal(stderr), drawn_ = false;
    Clock::time_point last_{};
};

}  // namespace masquerade
