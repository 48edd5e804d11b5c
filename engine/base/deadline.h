// SPDX-License-Identifier: MIT
#pragma once
#include <unistd.h>

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

}  // namespace masquerade
