// SPDX-License-Identifier: MIT
// The check of the record that an op leaves on a tape.
#pragma once
#include "engine/tape/tape.h"
#include "engine/check/ladder.h"

namespace masquerade::ladder {

// Runs the record of one row of the table on a tape of its own. The tensors use the memory of a Call.
class OnTape : Observer {
  public:
    OnTape(const Case& of, DType type);

    // Called by the rows of the table:
    Tensor* operator()(const std::string& name) const;
    Ints ints(const std::string& name) const { return memory.ints(name); }
    RowNames rows() const { return memory.rows(); }
    Tape& tape;

    void forward() { memory.op.record(*this); }
    void backward();  // starts from the cotangents of the outputs
    // False if there was nothing to do, as for a conversion between equal types.
    bool recorded() const { return !tape.records().empty(); }
    const Record& record() const { return tape.records().back(); }
    bool asked(std::size_t operand) const { return asked_.count(&tensors[operand]) > 0; }

    Call memory;
    mutable std::vector<Tensor> tensors;  // by operand

  private:
    void before(const Record& record, bool backward) override;
    Arena arena_{Device::cpu, Blocks::loose};
    Tape tape_;
    mutable std::set<const Tensor*> asked_;  // tensors that the row asked for
};

// Statistics over the records of several rows.
struct Records {
    std::set<std::string> ops;         // "linear"
    std::set<std::string> kept, read;  // "linear x": tensors kept; kept tensors that the backward reads
};

// Checks that the record's values and gradients are bit-identical to direct calls: when gradients are stored over NaN,
// added, or partly absent, and when everything the record does not keep is NaN. Also checks that the record holds every
// tensor it was given.
void check_record(const Op& op, Findings& findings, Records& records);

}  // namespace masquerade::ladder
