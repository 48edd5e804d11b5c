// SPDX-License-Identifier: MIT
// Observers for debugging that work with every op: the NaN trace, the dump and the clock.
#pragma once
#include <chrono>
#include <map>
#include <string>

#include "engine/tape/tape.h"
#include "engine/tensor/numbers.h"

namespace masquerade {

// Throws Error at the first number that is not finite, and names the tensor, the position and the op that wrote it. The
// statistics of an op may be minus infinity: the log of an empty sum, for attention rows that see no key.
struct NanTrace : Observer {
    void after(const Record& record, bool backward) override;
};

// Writes every value and gradient to FOLDER/<path>.npy and FOLDER/<path>.grad.npy; write_program() writes
// FOLDER/program.txt.
class Dump : public Observer {
  public:
    explicit Dump(const std::string& folder);
    void after(const Record& record, bool backward) override;
    void write_program(const Tape& tape) const;

  private:
    std::string folder_;
};

// Measures the seconds per op, forward and backward. It waits for the device before and after every op.
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
