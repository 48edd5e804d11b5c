// SPDX-License-Identifier: MIT
#pragma once
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>

namespace masquerade {

// Ends the process with an error line if it takes more than ten minutes until the object is destroyed. For a call that
// waits until all processes have started: if one of them dies while it starts, the others would wait for ever.
class StartDeadline {
  public:
    StartDeadline() {
        std::signal(SIGALRM, [](int) {
            constexpr char why[] =
                "error: the processes have not met within 600 s: has one of them died? Start them again\n";
            if (write(STDERR_FILENO, why, sizeof why - 1)) {
            }
            _exit(1);
        });
        alarm(600);
    }
    StartDeadline(const StartDeadline&) = delete;
    ~StartDeadline() { alarm(0); }
};

// The seconds since the object was made, during which other processes have let this one wait. If this process itself
// was stopped for a while, that is no fault of the others: the time between two calls of seconds() counts as 0.1 s at
// most.
class Waited {
  public:
    double seconds() {
        const auto now = std::chrono::steady_clock::now();
        seconds_ += std::min(0.1, std::chrono::duration<double>(now - before_).count());
        before_ = now;
        return seconds_;
    }

  private:
    std::chrono::steady_clock::time_point before_ = std::chrono::steady_clock::now();
    double seconds_ = 0;
};

}  // namespace masquerade
