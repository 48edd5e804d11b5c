// SPDX-License-Identifier: MIT
// A part of the test ladder: the check of the record that an op leaves on a tape.
#pragma once
#include "engine/tape/tape.h"
#include "engine/check/ladder.h"

namespace masquerade::ladder {

// Runs the record of one row of the op table on a tape of its own. The tensors use the memory of the Call `memory`.
class OnTape : Observer {
  public:
    OnTape(const Case& of, DType type);

    // Called by Case::record, the function of the op table:
    Tensor* operator()(const std::string& name) const;
    Ints ints(const std::string& name) const { return memory.ints(name); }
    RowNames rows() const { return memory.rows(); }
    Tape& tape;

    void forward() { memory.op.record(*this); }
    void backward();  // starts from the cotangents of the outputs
    // False if the op left no record. A conversion between equal types leaves none.
    bool recorded() const { return !tape.records().empty(); }
    const Record& record() const { return tape.records().back(); }
    bool asked(std::size_t operand) const { return asked_.count(&tensors[operand]) > 0; }

    Call memory;
    mutable std::vector<Tensor> tensors;  // one for each operand of the case

  private:
    void before(const Record& record, bool backward) override;
    Arena arena_{Device::cpu, Blocks::loose};
    Tape tape_;
    mutable std::set<const Tensor*> asked_;  // tensors that Case::record used
};

// Statistics over the records of several rows of the op table.
struct Records {
    std::set<std::string> ops;  // names of the ops that have left a record: "linear"
    // Names such as "linear x". kept: tensors that a record keeps for its backward. read: kept tensors that change a
    // gradient when they are overwritten, so the backward really reads them.
    std::set<std::string> kept, read;
};

// Checks that the outputs and gradients of the record have the bits of direct calls of the op. Gradients are stored
// over NaN, added, and partly absent; before the backward, all tensors that the record does not keep are set to NaN.
// Also checks that the record lists every input.
void check_record(const Op& op, Findings& findings, Records& records);

}  // namespace masquerade::ladder
