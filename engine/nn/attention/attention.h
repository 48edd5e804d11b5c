// SPDX-License-Identifier: MIT
// Attention as a part of a layer: queries attend to keys under a mask. The other files of this folder define the kinds
// of attention, with their settings and decoding states; attention_kinds() lists all kinds. Layers, models and programs
// use only the interface in this file.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "engine/nn/attention/settings.h"
#include "engine/nn/layers.h"

namespace masquerade {

// The query rows. If `chosen` lists some rows of x, only these Nq rows are queries, and Attention::operator() calls
// choose(), which sets x to these rows (Nq,C).
struct Queries {
    Tensor* x = nullptr;  // (N,C): N rows of width C
    Ints chosen = {};     // indices of rows of x; if chosen.data is null, all rows are queries
    void choose(Tape& tape) {
        if (chosen.data) x = gather_rows(tape, x, chosen, "chosen");
    }
};

// The rows that queries attend to: in self-attention the rows of the queries' own stack, in cross-attention the rows of
// the encoder.
struct Keys {
    Tensor* x = nullptr;  // (Nk,C): Nk key rows of width C
    Ints positions = {};  // positions of the rows of x, for the rotary embedding
    // (B,C): one more key row for each of B documents, at position 0, such as the latent of a VAE; or null. If `memory`
    // is given, its rows are key source 0 in the mask (KeySegment::source), and the rows of x are source 1. If `memory`
    // is null, the rows of x are source 0.
    Tensor* memory = nullptr;
    bool any() const { return x || memory; }
};

// Texts that are generated in parallel, one token per step. Each text has a slot: `longest` rows of the KV cache, one
// per token.
struct Slots {
    int count = 0, longest = 0;
    bool backward = false;  // generate from right to left: each new token precedes the earlier tokens in the text
    // Returns the row of a token. Tokens are counted in the order of generation, but the rows of a slot are in the
    // order of the text.
    int row(int slot, int token) const { return slot * longest + (backward ? longest - 1 - token : token); }
};

// A decoding step. Row i of the queries is the newest token of the text in slot slots[i]. The keys and values of this
// token are stored in row rows[i] of the KV cache (see Slots::row()).
struct Step {
    Ints slots, rows;
    int written = 0;  // number of tokens that each text had before this step
};

// Tells a decoding state what to copy, so that several slots can continue the same text (beam search). Slot
// from_slots[i] is copied to slot to_slots[i]; in the KV cache, row from_rows[i] is copied to row to_rows[i].
struct Branches {
    Ints from_slots, to_slots, from_rows, to_rows;
};

// The decoding state of one Attention, such as a KV cache. It stores what later steps need to know of two kinds of
// rows: the memory, that is, the rows that were read before the first step (a source text, Keys::memory, or the
// encoder's rows), and the tokens generated so far. The kinds of attention derive classes from this one.
class AttentionState {
  public:
    virtual ~AttentionState() = default;
    virtual bool has_memory() = 0;
    virtual void branch(Tape&, const Branches&) {}
    // Forgets all rows, but keeps their memory for texts that are generated next in the same slots. Returns false if
    // the state cannot be used again.
    virtual bool forget() { return false; }
};

// A second stream of rows, which passes from layer to layer beside x. Only Luna has one: a few rows that summarise the
// keys. A model with Luna has one Companion, which declares the parameters of the stream. For each pass through the
// layers, start() returns a new Companion, which holds the rows of this pass.
class Companion {
  public:
    virtual ~Companion() = default;
    virtual std::shared_ptr<Companion> start() const = 0;  // returns a new Companion, for one pass through the layers
    // In a pre-norm encoder, the rows of the second stream are normalised after the last layer, as the rows of x are.
    // declare_norm() declares the parameters of this norm, and norm() applies it.
    virtual void declare_norm(Parameters& parameters, const std::string& path) = 0;
    virtual void norm(Tape& tape, const std::string& name) = 0;
};

// The arguments of an attention call besides queries and keys, such as mask, rotary table, dropout and decoding state.
struct AttentionContext {
    RowNames rows;                                // document and position of each query row
    const SegmentGraph* graph = nullptr;          // mask: which keys each query row sees
    Tensor* rotary_table = nullptr;               // (P,D) for P positions, heads of width D; null: nothing is rotated
    float dropout = 0;                            // dropout rate of attention probabilities
    float hidden_dropout = 0;                     // dropout rate of the rows of the second stream
    Companion* companion = nullptr;               // second stream of rows, which the call reads and changes; or null
    const std::vector<int>* documents = nullptr;  // numbers that identify documents, for dropout in the second stream
    // `state` and `step` are only for decoding. If both are given, the call adds the new tokens' keys to the state. If
    // only `state` is given, the call stores its keys as the memory of the state, which later steps read.
    AttentionState* state = nullptr;
    const Step* step = nullptr;
};

struct AttentionShape {
    int width = 0, heads = 0;   // C, the width of a row; H, the number of query heads
    double deviation = 0.02;    // standard deviation of the initial weights
    bool rotary_value = false;  // the rotary table also rotates values
    int positions = 0;          // P, the number of positions, which are 0 to P - 1
    AttentionOptions options = {};
    bool pre_norm = false;
    double eps = 1e-12;          // epsilon of norms
    std::string norm = "layer";  // the name of an entry of norm_kinds()
    bool bias = true;            // linear layers have a bias
    int kv_heads = 0;            // G, the number of key/value heads; 0: as many as query heads
    // Returns G D, the width of the keys in a row; D = C / H is the width of a head.
    int key_width() const { return (kv_heads > 0 ? kv_heads : heads) * (width / heads); }
};

class Attention {
  public:
    virtual ~Attention() = default;
    // Returns a row for each query row (Nq,C). If queries.x is null, only stores the keys in the decoding state, and
    // returns null.
    virtual Tensor* operator()(Tape& tape, Queries& queries, const Keys& keys,
                               const AttentionContext& context) const = 0;
    // Returns an empty decoding state for the texts in these slots. A kind that cannot generate token by token throws
    // BadUsage, here or in the first decoding step.
    virtual std::unique_ptr<AttentionState> state(const Slots& slots) const = 0;
    // Whether the decoding state stores keys row by row. A step may then have several rows of a text, for any rows of
    // its slot, and may replace the keys of earlier steps.
    virtual bool keeps_rows() const { return false; }
};

struct AttentionKind {
    const char *name, *what;
    bool rotates;  // supports rotary position embeddings
    bool drops;    // has attention probabilities, to which the setting attention_dropout applies
    // Returns an empty string if this kind can honour the mask, else the reason why not, for the user.
    std::string (*refuses)(const SegmentGraph& graph);
    // Makes the attention. Declares its parameters, whose paths begin with `layer`.`name`. `name` is "attention" or
    // "target_attention" for self-attention, and "cross" for cross-attention.
    std::unique_ptr<const Attention> (*make)(Parameters& parameters, const std::string& layer, const std::string& name,
                                             const AttentionShape& shape);
    std::vector<AttentionSetting> (*settings)();
    bool groups_heads = false;         // keys and values may have fewer heads than queries
    const char* in_decoder = nullptr;  // the kind that replaces this one in a decoder's self-attention; null: none
    const char* in_cross = nullptr;    // the kind that replaces this one in cross-attention; null: none
    // Makes the companion, with its parameters at `path`. Null if the kind has no companion (second stream of rows).
    std::shared_ptr<Companion> (*companion)(Parameters& parameters, const std::string& path,
                                            const AttentionShape& shape) = nullptr;
    // A model can start with weights that were trained with another kind of attention. Parameters with the same role
    // have the same meaning in both kinds. role() returns the role of the parameter whose path ends with `name`, such
    // as "query". For a parameter "key_value", role() is called with two names, "key" and "value". If `role` is null,
    // the role is the name.
    std::string (*role)(const std::string& name) = nullptr;
};
const std::vector<AttentionKind>& attention_kinds();
// Throws BadUsage if no kind has this name; the message lists all names.
const AttentionKind& find_attention(const std::string& name);
// Returns the kind with this name. If `decoder` is true and the kind has a replacement in decoders (in_decoder),
// returns the replacement.
const AttentionKind& self_attention(const std::string& name, bool decoder);
// Returns the kind with this name. If the kind has a replacement in cross-attention (in_cross), returns the
// replacement.
const AttentionKind& cross_attention(const std::string& name);

}  // namespace masquerade
