// SPDX-License-Identifier: MIT
// Tools that live in the tape's loop, written once for every op: the NaN trace, the dump, the clock.
#pragma once
#include <chrono>
#include <map>
#include <string>

#include "engine/tape/tape.h"
#include "engine/tensor/numbers.h"

namespace masquerade {

// The first number that is not finite ends the run and names the tensor, the place and the op that wrote it. The log of
// an empty sum (attention rows that see nothing) is minus infinity by definition and passes.
struct NanTrace : Observer {
    void after(const Record& record, bool backward) override;
};

// Every value and gradient as FOLDER/<path>.npy and FOLDER/<path>.grad.npy, and the program as FOLDER/program.txt.
class Dump : public Observer {
  public:
    explicit Dump(const std::string& folder);
    void after(const Record& record, bool backward) override;
    void write_program(const Tape& tape) const;

  private:
    std::string folder_;
};

// Seconds by op, forward and backward; it waits for every op.
class Clock : public Observer {
  public:
    void before(const Record& record, bool backward) override;
    void after(const Record& record, bool backward) override;
    struct Share {
        double forward = 0, backward = 0;
        long calls = 0;
    };
    const std::map<std::string, Share>& shares() const { return shares_; }
    void clear() { shares_.clear(); }

  private:
    std::chrono::steady_clock::time_point start_;
    std::map<std::string, Share> shares_;
};

}  // namespace masquerade
