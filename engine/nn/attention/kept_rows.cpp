// SPDX-License-Identifier: MIT
#include "engine/nn/attention/kept_rows.h"

#include <numeric>

namespace masquerade {
namespace {

// Returns the rows of u followed by the rows of x.
Tensor* stacked(Tape& tape, Tensor* u, Tensor* x, const std::string& name) {
    std::vector<int> upper(u->rows() + x->rows(), -1), lower = upper;
    std::iota(upper.begin(), upper.begin() + u->rows(), 0), std::iota(lower.begin() + u->rows(), lower.end(), 0);
    const std::vector<double> zeros(upper.size() * x->columns(), 0.0);
    Tensor* y = tape.constant(name + ".rows", {std::int64_t(upper.size()), x->columns()}, x->dtype, zeros.data());
    y = replace_rows(tape, y, tape.ints(std::move(lower)), x, name + ".lower");
    return replace_rows(tape, y, tape.ints(std::move(upper)), u, name);
}

// Returns the graph changed so that all keys are rows of one tensor (source 0). The rows of the old key source s begin
// at row first[s] of this tensor.
SegmentGraph in_one_source(SegmentGraph graph, const std::vector<int>& first) {
    for (KeySegment& key : graph.keys) {
        key.begin += first.at(key.source), key.end += first[key.source];
        key.source = 0;
    }
    return graph;
}

// The decoding state. In each tensor, the first `own` rows are for generated tokens. The rows that were read before the
// first step, such as those of Keys::memory, follow.
struct KeptRows : AttentionState {
    std::vector<Kept> tensors;
    int own = 0;
    bool memory = false;
    bool has_memory() override { return memory; }
    void branch(Tape& tape, const Branches& b) override {
        for (Kept& each : tensors) each.copy(tape, b.from_rows, b.to_rows);
    }
    void store(Tape& tape, Ints rows, const std::vector<Tensor*>& x) {
        for (std::size_t i = 0; i < x.size(); i++) tensors[i].store(tape, rows, x[i]);
    }
    void take_memory(Tape& tape, const std::vector<Tensor*>& x) {
        std::vector<int> rows(x[0]->rows());
        std::iota(rows.begin(), rows.end(), own);
        for (std::size_t i = 0; i < x.size(); i++)
            tensors[i].allocate({own + x[i]->rows(), x[i]->columns()}, x[i]->dtype, x[i]->device);
        store(tape, tape.ints(std::move(rows)), x);
        memory = true;
    }
};

}  // namespace

std::unique_ptr<AttentionState> kept_rows(const Slots& slots, const Tensor& like, const std::vector<int>& columns) {
    auto state = std::make_unique<KeptRows>();
    state->own = slots.count * slots.longest;
    for (int each : columns) state->tensors.emplace_back().allocate({state->own, each}, like.dtype, like.device);
    return state;
}

KeyRows key_rows(Tape& tape, const std::vector<Tensor*>& memory, const std::vector<Tensor*>& own,
                 const AttentionContext& context, const std::string& name) {
    auto* state = static_cast<KeptRows*>(context.state);
    KeyRows all{own.empty() ? memory : own, context.graph};
    if (!own.empty() && !memory.empty()) {
        for (std::size_t i = 0; i < own.size(); i++)
            all.tensors[i] = stacked(tape, memory[i], own[i], text(name, ".keys.", i));
        all.graph = &tape.hold(in_one_source(*context.graph, {0, int(memory[0]->rows())}));
    }
    if (!state || all.tensors.empty()) return all;
    if (!context.step) return state->take_memory(tape, all.tensors), all;
    state->store(tape, context.step->rows, all.tensors);
    for (std::size_t i = 0; i < all.tensors.size(); i++) all.tensors[i] = state->tensors[i].tensor();
    all.graph = &tape.hold(in_one_source(*context.graph, state->memory ? std::vector{state->own, 0} : std::vector{0}));
    return all;
}

}  // namespace masquerade
