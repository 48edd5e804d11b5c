// SPDX-License-Identifier: MIT
// The work of ./bench attention: attention without linear projections, on a packed batch of documents of equal length.
// The inputs follow a formula, so that another program can compute the same inputs.
#pragma once
#include "engine/ops/ops.h"
#include "engine/tensor/buffer.h"
#include "tools/bench/bench.h"

namespace masquerade {

struct AttentionSizes {
    // "full", "causal", or "prefix" (the first half of each document is bidirectional, the second half causal)
    std::string mask = "full";
    int documents = 1, length = 1;  // length: tokens per document
    int heads = 12, size = 64;      // size: numbers per head
    DType type = DType::f32;

    int rows() const { return documents * length; }
    int width() const { return heads * size; }
};

class AttentionWork {
  public:
    AttentionWork(const AttentionSizes& sizes, Device device);
    AttentionWork(const AttentionWork&) = delete;

    void forward();
    void backward();  // computes the gradients of queries, keys and values; call after forward()
    // Returns the multiply-adds of one matrix product, such as q k^T, over the visible pairs of a query and a key. The
    // forward has two such products, the backward four.
    double product_work() const { return pairs_ * sizes_.width(); }
    // The mean absolute value of the output, and that of the gradient of the queries. They show whether another
    // program computes the same results.
    double mean_output() const { return mean_of(y_); }
    double mean_gradient() const { return mean_of(dq_); }

  private:
    struct Block {
        Buffer memory;
        View view;
    };
    // Allocates a block with `columns` numbers per token. The block has one part of C = width() columns per salt.
    // Number i of a part, counted row by row, is ((37 i + 11 salt) mod 97) / 48 - 1. Without salts, the numbers are
    // not initialised.
    Block block(std::int64_t columns, DType type, const std::vector<int>& salts = {}) const;
    static double mean_of(const Block& block);

    AttentionSizes sizes_;
    Device device_;
    SegmentGraph graph_;
    double pairs_;
    AttentionRule rule_;
    Block q_, kv_, y_, lse_, dy_, dq_, dkv_;
};

// Which kinds of attention to measure, and how. Each kind is measured on one document of each length.
struct KindsOptions {
    std::vector<std::string> kinds;  // names of attention_kinds(), or "all"; empty: none are measured
    std::vector<int> lengths = {256, 1024, 4096, 16384, 65536};
    std::string mask = "bert", plot;
    int width = 256, heads = 4;
    DType type = DType::f32;
    double limit = 60;  // seconds; if a call is predicted to take longer, its length and all later ones are skipped
};
void measure_kinds(Bench& bench, const KindsOptions& options);

// Returns the number of pairs (query row, key row) in which the query sees the key.
std::int64_t visible_pairs(const SegmentGraph& graph);

}  // namespace masquerade
