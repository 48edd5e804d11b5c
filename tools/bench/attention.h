// SPDX-License-Identifier: MIT
// The work of ./bench attention: attention without linear projections, on a packed batch of documents of equal length.
// The inputs follow a formula, so that another program can compute the same inputs.
#pragma once
#include "engine/ops/ops.h"
#include "engine/tape/inputs.h"
#include "tools/bench/bench.h"

namespace masquerade {

struct AttentionSizes {
    // "full", "causal", or "prefix" (the first half of each document is bidirectional, the second half causal)
    std::string mask = "full";
    int documents = 1, length = 1;  // length: tokens per document
    int heads = 12, size = 64;      // size: dimension of a head
    DType type = DType::f32;
    float dropout = 0;
};

struct AttentionWork {
    AttentionWork(const AttentionSizes& sizes, Device device);
    void forward() const;
    void backward() const;  // computes the gradients of queries, keys and values; call after forward()

    SegmentGraph graph;
    AttentionRule rule;
    std::vector<int> document, position;  // of each row; dropout draws by them
    Inputs names;                         // document and position, where the ops read them
    // Multiply-adds of one matrix product, such as q k^T, over the visible pairs of a query and a key. The forward has
    // two such products, the backward four.
    double product_work;
    // The inputs are q, keys and values (side by side in kv), and dy. Number i of an input, counted row by row from 0,
    // is ((37 i + 11 salt) mod 97) / 48 - 1. The salt is 0 for q, 1 for the keys, 2 for the values and 3 for dy.
    OwnedTensor q, kv, y, lse, dy, dq, dkv;
};
// Returns the mean absolute value of the numbers. This mean shows whether another program computes the same results.
double mean_size(const OwnedTensor& tensor);

// Returns the number of pairs (query row, key row) in which the query sees the key.
std::int64_t visible_pairs(const SegmentGraph& graph);

// The options of ./bench attention. 0 and an empty list stand for the default.
struct AttentionCase {
    std::vector<int> lengths;
    int tokens = 0, heads = 0, size = 64;  // tokens: of all documents together; size: numbers per head
    std::string precision, mask;
    double dropout = 0;
    // The following members are only for --kinds, which compares kinds of attention.
    Strings kinds;     // names of attention_kinds(), or "all"
    std::string plot;  // path of a picture of the curves; empty: none
    // true: measure the only kind at the only length, and print only this. false: start a process with `alone` for
    // each kind and length.
    bool alone = false;
    // In seconds. If one forward and backward at some length is predicted to take longer, this length and all later
    // ones are skipped.
    double limit = 60;
};
// Measures time and memory of softmax and of the chosen kinds of attention, for one document of each length.
void measure_kinds(Bench& bench, const AttentionCase& options);

}  // namespace masquerade
