// SPDX-License-Identifier: MIT
// Attention as one part of a layer: queries look at keys under a mask. Each kind is one file and one row of
// attention_kinds(); layers, models and programs know this interface alone.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "engine/nn/layers.h"

namespace masquerade {

// The rows that look. Where some of them are chosen, these alone go on: the call leaves them in x, (Nq,C).
struct Queries {
    Tensor* x = nullptr;  // (N,C)
    Ints chosen = {};     // null data: all
};

// The rows that a call looks at: another stream, or the queries' own.
struct Keys {
    Tensor* x = nullptr;       // (Nk,C)
    Ints positions = {};       // of these rows, for the rotation
    Tensor* memory = nullptr;  // (B,C) rows at position 0, which come before x as source 0 of the mask; null: none
};

// Writing token by token: keys and values that earlier steps left.
struct KeyCache {
    Tensor* memory = nullptr;  // (M,2C) source 0 of the mask; null: none
    Tensor* own = nullptr;     // (slots * longest, 2C) next source: the call first stores its own at `rows`; null: it has none
    Ints rows = {};
};

// The place of an attention in a pass.
struct Site {
    RowNames rows;                        // of the queries
    const SegmentGraph* graph = nullptr;  // from the queries to the sources of keys
    Tensor* turns = nullptr;              // rotary table (P,D); null: nothing is rotated
    float dropout = 0;                    // of attention probabilities
    const KeyCache* cache = nullptr;      // null: all keys are those of the call
};

struct AttentionShape {
    int width = 0, heads = 0;  // C, H
    double deviation = 0.02;   // of the first weights
    bool rotary_value = false;  // the rotary table turns values as it turns keys
};

class Attention {
  public:
    virtual ~Attention() = default;
    // (Nq,C)
    virtual Tensor* operator()(Tape& tape, Queries& queries, const Keys& keys, const Site& site) const = 0;
    // The tensor that a cache keeps of the rows x(Nk,C): (Nk,2C). `name` ends the path of the tensor.
    virtual Tensor* kept(Tape& tape, Tensor* x, Ints positions, Tensor* turns, const char* name) const = 0;
};

struct AttentionKind {
    const char *name, *what;
    // The reason why this kind cannot honour a mask, for the user; empty: it can.
    std::string (*refuses)(const SegmentGraph& graph);
    // The parameters lie at layer.name.*, where `name` is "attention" or "cross".
    std::unique_ptr<const Attention> (*make)(Parameters& parameters, const std::string& layer, const std::string& name,
                                             const AttentionShape& shape);
};
const std::vector<AttentionKind>& attention_kinds();
const AttentionKind& find_attention(const std::string& name);  // BadUsage, with the names there are

}  // namespace masquerade
