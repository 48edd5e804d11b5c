// SPDX-License-Identifier: MIT
// Attention as one part of a layer: queries look at keys under a mask. Each kind is one file and one row of
// attention_kinds(); layers, models and programs know this interface alone.
#pragma once
#include <array>
#include <memory>
#include <string>
#include <vector>

#include "engine/math/features.h"
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

// Writing token by token: what earlier steps left of keys, as rows of kept() or as states of fixed size.
struct KeyCache {
    Tensor* memory = nullptr;  // (M,kept_columns) source 0 of the mask; null: none
    // (slots * longest, kept_columns) next source: the call first stores its own at `rows`; null: it has none
    Tensor* own = nullptr;
    Ints rows = {};            // of `own`, or of `states`
    Ints positions = {};       // of the rows of memory, where they are kept before they are turned
    Tensor* states = nullptr;  // (slots, state_numbers) of the rows of the call, one a document; null: no states
    bool fresh = false;        // these states have taken up nothing yet
    Tensor* near = nullptr;  // (slots * near_rows, kept_columns) what the attention keeps beside a state; null: nothing
    Ints near_rows = {};     // of `near`, those of each row of the call
    explicit operator bool() const { return memory || own || states; }
};

// Query segments of a document that see the same keys share slots. A key segment is (source, begin, end).
struct SlotGroup {
    int document = 0;
    std::vector<std::array<int, 3>> keys;
    bool operator==(const SlotGroup& o) const { return document == o.document && keys == o.keys; }
};

// Luna's second stream, beside x: l rows of P for every group, which a call reads and changes.
struct PackedRows {
    Tensor* learned = nullptr;  // (l,C), of which every group has a copy at first
    Tensor* x = nullptr;        // (groups * l, C); null: no layer was yet
    std::vector<SlotGroup> groups;
    std::vector<int> names;  // of documents, for dropout
};

// The place of an attention in a pass.
struct Site {
    RowNames rows;                        // of the queries
    const SegmentGraph* graph = nullptr;  // from the queries to the sources of keys
    Tensor* turns = nullptr;              // rotary table (P,D); null: nothing is rotated
    float dropout = 0;                    // of attention probabilities
    const KeyCache* cache = nullptr;      // null: all keys are those of the call
    PackedRows* packed = nullptr;         // of a kind that has them
    float hidden_dropout = 0;             // of these rows
};

// Options of some kinds.
enum class LunaPack : int { softplus, elu, softmax };
struct AttentionOptions {
    int slots = 16;          // l of Luna and Linformer
    bool contextual = true;  // luna: a layer packs by what the layer before has packed
    LunaPack pack = LunaPack::softplus;
    bool tied = false;                                // Luna's keys are its values
    int features = 64;                                // random ones of a head
    FeatureKind feature_map = FeatureKind::positive;  // of Performer
    int redraw = 0;     // steps of training until random features are drawn anew; 0: never
    int reach = 0;      // of lambda: places to either side that are read by their distance; 0: none
    bool gate = false;  // rfa: each key fades those before it
    int window = 16, dilation = 1, globals = 1;  // of patterns (patterns.h)
    int stride = 0;                              // of patterns; 0: the root of the positions
    int rounds = 4, buckets = 16;                // of lsh
    int chunk = 32;                              // of lsh and sinkhorn: rows
    int iterations = 7;                          // of sinkhorn, ...
    double temperature = 0.75;                   // ... and of its scores
};

struct AttentionShape {
    int width = 0, heads = 0;   // C, H
    double deviation = 0.02;    // of the first weights
    bool rotary_value = false;  // the rotary table turns values as it turns keys
    int positions = 0;          // P: positions 0 .. P-1 may occur
    AttentionOptions options = {};
    bool pre_norm = false;
    double eps = 1e-12;  // of norms
};

class Attention {
  public:
    virtual ~Attention() = default;
    // (Nq,C)
    virtual Tensor* operator()(Tape& tape, Queries& queries, const Keys& keys, const Site& site) const = 0;
    // The tensor that a cache keeps of the rows x(Nk,C): (Nk,kept_columns). `name` ends the path of the tensor.
    virtual int kept_columns() const = 0;
    // of the state that stands for all that was written; 0: rows are kept
    virtual int state_numbers() const { return 0; }
    virtual int near_rows() const { return 0; }  // that are kept beside the state
    virtual Tensor* kept(Tape& tape, Tensor* x, Ints positions, Tensor* turns, const char* name) const = 0;
    // The rows that a cache of cross-attention keeps of an encoder.
    virtual int kept_rows(int rows, int /*sources*/) const { return rows; }
    virtual Tensor* kept_encoder(Tape& tape, const Keys& keys, const Site& site) const {
        return kept(tape, keys.x, keys.positions, site.turns, "key_value");
    }
};

struct AttentionKind {
    const char *name, *what;
    bool rotates;          // rotary positions have a place in it
    bool needs_positions;  // of every key: a latent has none
    // The reason why this kind cannot honour a mask, for the user; empty: it can. See refusal().
    std::string (*refuses)(const SegmentGraph& graph);
    // The parameters lie at layer.name.*, where `name` is "attention" or "cross".
    std::unique_ptr<const Attention> (*make)(Parameters& parameters, const std::string& layer, const std::string& name,
                                             const AttentionShape& shape);
    const char* in_decoder = nullptr;  // the kind by which a decoder's rows see each other; null: this one
    bool packs = false;                // has packed rows
    const char* weights = name;        // kinds of equal `weights` have parameters of the same names and meaning

    // The same, also where the first source of keys are latents, which stand at no position.
    std::string refusal(const SegmentGraph& graph, bool latents) const {
        return latents && needs_positions ? "it knows keys by their positions, and a latent has none" : refuses(graph);
    }
};
const std::vector<AttentionKind>& attention_kinds();
const AttentionKind& find_attention(const std::string& name);  // BadUsage, with the names there are
const AttentionKind& self_attention(const std::string& name, bool decoder);

}  // namespace masquerade
