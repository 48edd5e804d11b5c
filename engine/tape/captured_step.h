// SPDX-License-Identifier: MIT
// A step of training on a device as one graph. What ops and copies ask for while this lives is written down; run() has it
// done at once, so that the device never waits for the host between two kernels. The bits are those of op by op.
#pragma once
#include <string>

#include "engine/tape/tape.h"

namespace masquerade {

class CapturedStep {
  public:
    // After tape.begin(). Nothing is captured, and ops run as they are called, on the CPU, where nobody wants it, where an
    // observer looks at every op, and where memory is not planned yet.
    CapturedStep(const Tape& tape, bool wanted);
    ~CapturedStep();  // a step that threw is forgotten
    CapturedStep(const CapturedStep&) = delete;
    // Launches it; from here on results can be read.
    void run(const std::string& bucket);

  private:
    bool capturing_;
};

}  // namespace masquerade
