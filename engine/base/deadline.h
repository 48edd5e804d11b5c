// SPDX-License-Identifier: MIT
#pragma once
#include <unistd.h>

#include <algorithm>
#include <csignal>

#include "engine/base/clock.h"

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
        const double now = steady_seconds();
        seconds_ += std::min(0.1, now - before_);
        before_ = now;
        return seconds_;
    }

  private:
    double before_ = steady_seconds(), seconds_ = 0;
};

}  // namespace masquerade
