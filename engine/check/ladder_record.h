// SPDX-License-Identifier: MIT
// The rung for the record that an op leaves on a tape.
#pragma once
#include "engine/tape/tape.h"
#include "engine/check/ladder.h"

namespace masquerade::ladder {

// The record of a row, alone on a tape. Operands are tensors in the memory of a call.
class OnTape : Observer {
  public:
    OnTape(const Case& of, DType type);

    // For the rows of the table.
    Tensor* operator()(const std::string& name) const;
    Ints ints(const std::string& name) const { return memory.ints(name); }
    RowNames rows() const { return memory.rows(); }
    Tape& tape;

    void forward() { memory.op.record(*this); }
    void backward();  // from the cotangents of the outputs
    // False where nothing is to be done, such as a convert between equal types.
    bool recorded() const { return !tape.records().empty(); }
    const Record& record() const { return tape.records().back(); }
    bool asked(std::size_t operand) const { return asked_.count(&tensors[operand]) > 0; }

    Call memory;
    mutable std::vector<Tensor> tensors;  // by operand

  private:
    void before(const Record& record, bool backward) override;
    Arena arena_{Device::cpu, Blocks::loose};
    Tape tape_;
    mutable std::set<const Tensor*> asked_;  // what the row took
};

// The records of several rows: their ops, the tensors they keep, and the kept tensors that their backward needs.
struct Records {
    std::set<std::string> ops;         // "linear"
    std::set<std::string> kept, read;  // "linear x": what a record keeps; without which a backward was another one
};

// Values and gradients are those of the row's calls, bit by bit: where gradients are stored over NaN, added, or not all
// wanted, and with NaN in all that the record does not keep. And it holds every tensor that it was given.
void check_record(const Op& op, Findings& findings, Records& records);

}  // namespace masquerade::ladder
