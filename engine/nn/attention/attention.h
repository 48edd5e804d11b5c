// SPDX-License-Identifier: MIT
// Attention as one part of a layer: queries look at keys under a mask. Each kind is one file, with its settings and what
// it keeps while text is written, and a name in attention_kinds(); layers, models and programs know this interface alone.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "engine/nn/attention/settings.h"
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
    bool any() const { return x || memory; }
};

// Texts that are written side by side, one token a step. Each has a slot of `longest` rows, one for each token.
struct Slots {
    int count = 0, longest = 0;
    bool backward = false;  // each token stands before those that were written earlier
    // Tokens are counted as they are written; the rows of a slot are in reading order.
    int row(int slot, int token) const { return slot * longest + (backward ? longest - 1 - token : token); }
};

// A step of writing: row i of the call is the next token of the text in slots[i], which is row rows[i] of all slots.
struct Step {
    Ints slots, rows;
    int written = 0;  // tokens that each text has already
};

// Texts of which several continue one: its slot, and the rows of its tokens, are copied.
struct Branches {
    Ints from_slots, to_slots, from_rows, to_rows;
};

// The decoding state of one attention: what it keeps of the source (the memory, source 0 of the mask) and of the tokens
// that were generated. Each kind has its own class.
class AttentionState {
  public:
    virtual ~AttentionState() = default;
    virtual bool has_memory() = 0;
    virtual void branch(Tape&, const Branches&) {}
};

// A stream that passes from layer to layer beside x; only some kinds have one. The companion of a model owns the
// parameters.
class Companion {
  public:
    virtual ~Companion() = default;
    virtual std::shared_ptr<Companion> start() const = 0;  // the stream of one pass
    // The last norm of an encoder of pre-LN layers: its parameters, and the call after the last layer.
    virtual void declare_norm(Parameters& parameters, const std::string& path) = 0;
    virtual void norm(Tape& tape, const std::string& name) = 0;
};

// The place of an attention in a pass.
struct Site {
    RowNames rows;                                // of the queries
    const SegmentGraph* graph = nullptr;          // from the queries to the sources of keys
    Tensor* turns = nullptr;                      // rotary table (P,D); null: nothing is rotated
    float dropout = 0;                            // of attention probabilities
    float hidden_dropout = 0;                     // of these rows
    Companion* companion = nullptr;               // of a kind that has one, which reads and changes it
    const std::vector<int>* documents = nullptr;  // their names, for the dropout of the companion
    // Writing: the keys of a step are stored in the state. Without a step they are read, and become its memory.
    AttentionState* state = nullptr;
    const Step* step = nullptr;
};

struct AttentionShape {
    int width = 0, heads = 0;   // C, H
    double deviation = 0.02;    // of the first weights
    bool rotary_value = false;  // the rotary table turns values as it turns keys
    int positions = 0;          // P: positions 0 .. P-1 may occur
    AttentionOptions options = {};
    bool pre_norm = false;
    double eps = 1e-12;          // of norms
    std::string norm = "layer";  // a name of norm_kinds()
    bool bias = true;            // of linear layers
    int kv_heads = 0;            // G, heads of keys and values; 0: H
    int key_width() const { return (kv_heads > 0 ? kv_heads : heads) * (width / heads); }  // G D
};

class Attention {
  public:
    virtual ~Attention() = default;
    // (Nq,C). Without queries: null, and a state reads the keys.
    virtual Tensor* operator()(Tape& tape, Queries& queries, const Keys& keys, const Site& site) const = 0;
    // An empty state, with room for what is written; BadUsage of a kind that cannot write.
    virtual std::unique_ptr<AttentionState> state(const Slots& slots) const = 0;
};

struct AttentionKind {
    const char *name, *what;
    bool rotates;  // rotary positions have a place in it
    bool drops;    // it has probabilities, which attention_dropout drops
    // The reason why this kind cannot honour a mask, for the user; empty: it can. See refusal().
    std::string (*refuses)(const SegmentGraph& graph);
    // The parameters lie at layer.name.*, where `name` is "attention" or "cross".
    std::unique_ptr<const Attention> (*make)(Parameters& parameters, const std::string& layer, const std::string& name,
                                             const AttentionShape& shape);
    std::vector<AttentionSetting> (*settings)();
    const char* weights;               // kinds of equal `weights` have parameters of the same names and meaning
    bool needs_positions = false;      // of every key: a latent has none
    bool groups_heads = false;         // keys and values may have fewer heads than queries
    const char* in_decoder = nullptr;  // the kind by which a decoder's rows see each other; null: this one
    // Null: nothing goes beside x. The parameters lie at `path`.
    std::shared_ptr<Companion> (*companion)(Parameters& parameters, const std::string& path,
                                            const AttentionShape& shape) = nullptr;

    // The same, also where the first source of keys are latents, which stand at no position.
    std::string refusal(const SegmentGraph& graph, bool latents) const {
        return latents && needs_positions ? "it knows keys by their positions, and a latent has none" : refuses(graph);
    }
};
const std::vector<AttentionKind>& attention_kinds();
const AttentionKind& find_attention(const std::string& name);  // BadUsage, with the names there are
const AttentionKind& self_attention(const std::string& name, bool decoder);

}  // namespace masquerade
