// SPDX-License-Identifier: MIT
// The check of the record that an op leaves on a tape, which is part of the test ladder.
#pragma once
#include "engine/tape/tape.h"
#include "engine/check/ladder.h"

namespace masquerade::ladder {

// Runs the record of one row of the op table on its own tape. The tensors use the memory of a Call.
class OnTape : Observer {
  public:
    OnTape(const Case& of, DType type);

    // Called by Case::record, the function of the op table:
    Tensor* operator()(const std::string& name) const;
    Ints ints(const std::string& name) const { return memory.ints(name); }
    RowNames rows() const { return memory.rows(); }
    Tape& tape;

    void forward() { memory.op.record(*this); }
    void backward();  // starts with the cotangents of the outputs
    // False if the op left no record, as a conversion between equal types does.
    bool recorded() const { return !tape.records().empty(); }
    const Record& record() const { return tape.records().back(); }
    bool asked(std::size_t operand) const { return asked_.count(&tensors[operand]) > 0; }

    Call memory;
    mutable std::vector<Tensor> tensors;  // one for each operand

  private:
    void before(const Record& record, bool backward) override;
    Arena arena_{Device::cpu, Blocks::loose};
    Tape tape_;
    mutable std::set<const Tensor*> asked_;  // tensors that Case::record used
};

// Statistics over the records of several rows of the op table.
struct Records {
    std::set<std::string> ops;  // names of the ops that have left a record: "linear"
    // "linear x": tensors that a record keeps for the backward, and kept tensors that the backward really reads
    std::set<std::string> kept, read;
};

// Checks that the values and gradients of the record have the bits of direct calls: if gradients are stored over NaN,
// added, or partly absent, and if all tensors that the record does not keep are NaN. Also checks that the record
// contains every input.
void check_record(const Op& op, Findings& findings, Records& records);

}  // namespace masquerade::ladder
