// SPDX-License-Identifier: MIT
// Attention as one part of a layer: queries attend to keys under a mask. Each kind has one file, with its settings and
// its decoding state, and an entry in attention_kinds(); layers, models and programs use only this interface.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "engine/nn/attention/settings.h"
#include "engine/nn/layers.h"

namespace masquerade {

// The query rows. If `chosen` lists some rows of x, only these are queries, and the call replaces x by them, (Nq,C).
struct Queries {
    Tensor* x = nullptr;  // (N,C)
    Ints chosen = {};     // numbers of rows of x; null data: all rows
};

// The rows that queries attend to: another stream, or the queries' own stream.
struct Keys {
    Tensor* x = nullptr;       // (Nk,C)
    Ints positions = {};       // positions of the rows of x, for the rotary embedding
    Tensor* memory = nullptr;  // (B,C) further rows, at position 0: source 0 of the mask, before x; null: none
    bool any() const { return x || memory; }
};

// Texts that are generated side by side, one token per step. Each text has a slot of `longest` rows, one per token.
struct Slots {
    int count = 0, longest = 0;
    bool backward = false;  // right to left: each token is placed before the earlier ones
    // Tokens are counted in the order of generation; the rows of a slot are in reading order.
    int row(int slot, int token) const { return slot * longest + (backward ? longest - 1 - token : token); }
};

// A decoding step. Row i of the call is the next token of the text in slot slots[i]. Its keys and values are stored in
// row rows[i], see Slots::row().
struct Step {
    Ints slots, rows;
    int written = 0;  // number of tokens that each text already has
};

// Copies of a text in other slots, so that several texts can continue it: slot from_slots[i] is copied to to_slots[i],
// row from_rows[i] to to_rows[i].
struct Branches {
    Ints from_slots, to_slots, from_rows, to_rows;
};

// The decoding state of one attention: what it stores of the memory (source 0 of the mask) and of the tokens generated
// so far. Each kind has its own class.
class AttentionState {
  public:
    virtual ~AttentionState() = default;
    virtual bool has_memory() = 0;
    virtual void branch(Tape&, const Branches&) {}
};

// A second stream, which passes from layer to layer beside x; only some kinds have one. A model has one Companion,
// which declares its parameters and makes a Companion for each pass.
class Companion {
  public:
    virtual ~Companion() = default;
    virtual std::shared_ptr<Companion> start() const = 0;  // returns the Companion of a new pass
    // An encoder of pre-LN layers ends with a norm of the companion, too: declare_norm() declares its parameters, and
    // norm() applies it after the last layer.
    virtual void declare_norm(Parameters& parameters, const std::string& path) = 0;
    virtual void norm(Tape& tape, const std::string& name) = 0;
};

// The context of one attention call in a pass.
struct AttentionContext {
    RowNames rows;                                // names of the queries
    const SegmentGraph* graph = nullptr;          // mask from the queries to the sources of keys
    Tensor* rotary_table = nullptr;               // (P,D); null: nothing is rotated
    float dropout = 0;                            // rate for attention probabilities
    float hidden_dropout = 0;                     // rate for the rows of the companion
    Companion* companion = nullptr;               // the second stream of this pass, which the call reads and changes
    const std::vector<int>* documents = nullptr;  // names of the documents, for the dropout of the companion
    // For decoding. If `step` is set, the keys are added to the state; else they become the memory of the state.
    AttentionState* state = nullptr;
    const Step* step = nullptr;
};

struct AttentionShape {
    int width = 0, heads = 0;   // C, H
    double deviation = 0.02;    // standard deviation of the initial weights
    bool rotary_value = false;  // the rotary table also rotates values
    int positions = 0;          // P: positions are 0 .. P-1
    AttentionOptions options = {};
    bool pre_norm = false;
    double eps = 1e-12;          // epsilon of norms
    std::string norm = "layer";  // a name of norm_kinds()
    bool bias = true;            // linear layers have a bias
    int kv_heads = 0;            // G, heads of keys and values; 0: H
    int key_width() const { return (kv_heads > 0 ? kv_heads : heads) * (width / heads); }  // G D
};

class Attention {
  public:
    virtual ~Attention() = default;
    // Returns (Nq,C). If queries.x is null, the keys are only added to the state, and null is returned.
    virtual Tensor* operator()(Tape& tape, Queries& queries, const Keys& keys,
                               const AttentionContext& context) const = 0;
    // Returns an empty decoding state for these slots. Throws BadUsage if the kind cannot generate token by token.
    virtual std::unique_ptr<AttentionState> state(const Slots& slots) const = 0;
};

struct AttentionKind {
    const char *name, *what;
    bool rotates;  // works with rotary positions
    bool drops;    // has probabilities, to which attention_dropout applies
    // Returns the reason, for the user, why this kind cannot honour a mask, or an empty string. See refusal().
    std::string (*refuses)(const SegmentGraph& graph);
    // Declares parameters at layer.name.*, where `name` is "attention" or "cross".
    std::unique_ptr<const Attention> (*make)(Parameters& parameters, const std::string& layer, const std::string& name,
                                             const AttentionShape& shape);
    std::vector<AttentionSetting> (*settings)();
    const char* weights;               // kinds with equal `weights` have parameters of the same names and meaning
    bool needs_positions = false;      // every key must have a position; latents have none
    bool groups_heads = false;         // keys and values may have fewer heads than queries
    const char* in_decoder = nullptr;  // the kind for self-attention in a decoder; null: this kind
    // Makes the companion, with its parameters at `path`. Null: the kind has no second stream.
    std::shared_ptr<Companion> (*companion)(Parameters& parameters, const std::string& path,
                                            const AttentionShape& shape) = nullptr;

    // As refuses(). `latents` says that the first source of keys consists of latents, which have no position.
    std::string refusal(const SegmentGraph& graph, bool latents) const {
        return latents && needs_positions ? "it knows keys by their positions, and a latent has none" : refuses(graph);
    }
};
const std::vector<AttentionKind>& attention_kinds();
const AttentionKind& find_attention(const std::string& name);  // throws BadUsage, which lists the names
// Returns the kind `name` or, in a decoder, its in_decoder.
const AttentionKind& self_attention(const std::string& name, bool decoder);

}  // namespace masquerade
