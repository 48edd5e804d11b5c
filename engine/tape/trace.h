// SPDX-License-Identifier: MIT
// Observers for debugging and timing, which work with every op.
#pragma once
#include <map>
#include <string>

#include "engine/tape/tape.h"
#include "engine/tensor/numbers.h"

namespace masquerade {

// Throws Error at the first value or gradient that is not finite. The message names the tensor, the row and column, and
// the op that wrote the number. Minus infinity is allowed in all outputs of an op except the first. For example, if an
// attention row sees no key, the output lse is minus infinity, the log of an empty sum.
struct NanTrace : Observer {
    void after(const Record& record, bool backward) override;
};

// Writes a tensor to a file of NumPy's format .npy, in double.
void write_npy(const std::string& file, const View& view);

// Writes every value to FOLDER/<path>.npy and every gradient to FOLDER/<path>.grad.npy, where <path> is the path of
// the tensor. write_program() writes Tape::program() to FOLDER/program.txt.
class Dump : public Observer {
  public:
    explicit Dump(const std::string& folder);
    void after(const Record& record, bool backward) override;
    void write_program(const Tape& tape) const;

  private:
    std::string folder_;
};

// Adds up the seconds that all calls of an op, such as "linear", take in forward and backward. For exact times, the
// clock waits for the device before and after every op.
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
    double start_ = 0;
    std::map<std::string, Share> shares_;
};

}  // namespace masquerade
