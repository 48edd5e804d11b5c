// SPDX-License-Identifier: MIT
// Attention alone, on a packed batch of documents of one length, with numbers that another program can make, too.
#pragma once
#include "engine/ops/ops.h"
#include "engine/tensor/buffer.h"
#include "tools/bench/bench.h"

namespace masquerade {

struct AttentionSizes {
    // of each document: full, causal, or prefix: its first half bidirectional, the second causal
    std::string mask = "full";
    int documents = 1, length = 1;  // tokens of a document
    int heads = 12, size = 64;      // of a head
    DType type = DType::f32;

    int rows() const { return documents * length; }
    int width() const { return heads * size; }
};

class AttentionWork {
  public:
    AttentionWork(const AttentionSizes& sizes, Device device);
    AttentionWork(const AttentionWork&) = delete;

    void forward();
    void backward();  // after forward: the gradients of queries, keys and values
    // Multiply-adds of one of the two products over what the mask lets be seen; two are forward, four backward.
    double product_work() const { return pairs_ * sizes_.width(); }
    // Means of absolute values, by which another program's are compared.
    double mean_output() const { return mean_of(y_); }
    double mean_gradient() const { return mean_of(dq_); }

  private:
    struct Block {
        Buffer memory;
        View view;
    };
    Block block(std::int64_t columns, DType type) const;
    // Number i of a tensor of rows of `width` numbers: ((37 i + 11 salt) mod 97) / 48 - 1.
    void fill(const Block& block, const std::vector<int>& salts) const;
    static double mean_of(const Block& block);

    AttentionSizes sizes_;
    Device device_;
    SegmentGraph graph_;
    double pairs_;
    AttentionRule rule_;
    Block q_, kv_, y_, lse_, dy_, dq_, dkv_;
};

// Every kind of attention, or some, on one document of each length.
struct KindsOptions {
    std::vector<std::string> kinds;  // of attention_kinds(), or "all"; none: not asked for
    std::vector<int> lengths = {256, 1024, 4096, 16384, 65536};
    std::string mask = "bert", plot;
    int width = 256, heads = 4;
    DType type = DType::f32;
    double limit = 60;  // seconds that a call may be expected to take
};
void measure_kinds(Bench& bench, const KindsOptions& options);

// Pairs of a row and a row that it sees.
std::int64_t visible_pairs(const SegmentGraph& graph);

}  // namespace masquerade
