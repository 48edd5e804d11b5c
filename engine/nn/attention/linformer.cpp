// SPDX-License-Identifier: MIT
// Linformer (Wang et al. 2020), computed as a state of R slots that absorb the keys (engine/math/state.h). Position j
// has a learned weight E[j,r] for each slot r. The key of slot r is the sum of the visible keys, weighted by E[j,r].
// The value of slot r is the sum of the visible values, weighted by F[j,r]. Both sums are divided by the number of
// keys. A query attends to the slots. Apart from this division, a full mask gives the paper's
// softmax(Q (E K)^T / sqrt(D)) (F V). Under a causal mask, a query reads slots that contain only the keys that the
// query sees. A latent takes the place of [CLS], so a latent has the weights of position 0. Positions beyond the table
// are an error, as with learned position embeddings.
//
// The settings `sharing` and `value_weights` choose the number of tables (section 4 of the paper). The default is one
// table for each head of each layer, with F = E.
//
//     headwise sharing     sharing=headwise value_weights=true     E and F of each layer
//     key-value sharing    sharing=headwise                        E = F of each layer
//     layerwise sharing    sharing=layerwise                       one E = F for all layers
#include "engine/nn/attention/state.h"

namespace masquerade {
namespace {

struct LinformerOptions {
    int slots = 16;
    bool value_weights = false;
    std::string sharing = "none";
    void declare(AttentionSettings& s) {
        s.add("slots", &slots, help_of_slots, 1, 65536);
        s.add("value_weights", &value_weights, "pack values with weights of their own; false: with those of the keys");
        s.add("sharing", &sharing,
              "tables of the weights with which keys and values are packed: one for each head of each layer (none), "
              "for all heads of a layer (headwise), or for all heads of all layers (layerwise)",
              {"none", "headwise", "layerwise"});
    }
    // Number of tables: E for the keys and F for the values, or only E for both.
    int tables() const { return value_weights ? 2 : 1; }
};

class LinformerAttention : public StateAttention {
  public:
    LinformerAttention(const AttentionPlace& at, const LinformerOptions& o)
        : StateAttention(at, {at.shape.heads, o.slots, o.value_weights ? StatePack::pair : StatePack::sum,
                              StateRead::attend, 1, 0}),
          of_all_heads_(o.sharing != "none"),
          weights_(table(at, o)) {
        query_ = at.linear("query");
        key_value_ = at.linear("key_value", 2 * shape_.width);
    }

  private:
    // Returns the table of weights of a layer. at.path is, for example, "encoder.layer.0.attention". If all layers of a
    // stack share one table, the first layer declares it. The last part of the table's path depends on the settings, so
    // that a table saved with other settings is not loaded by mistake.
    static Tensor* table(const AttentionPlace& at, const LinformerOptions& o) {
        std::string path = at.path;
        const std::size_t begin = path.rfind("layer");
        if (o.sharing == "layerwise") path.replace(begin, path.rfind('.') - begin, "linformer");
        path += text(".", o.sharing == "none" ? "" : "shared_", o.value_weights ? "key_value_" : "", "positions");
        const Parameters::Shared shared(at.parameters, o.sharing == "layerwise");
        const int heads = o.sharing == "none" ? at.shape.heads : 1;
        return at.parameters.add(path, {at.shape.positions, heads * o.tables() * o.slots}, {Init::normal, 1});
    }
    Taken take(Tape& tape, Tensor* x, Ints positions, Tensor* rotary_table, const std::string& name) const override {
        if (!positions.data) positions = tape.ints(std::vector<int>(x->rows(), 0));
        Tensor* weights = convert(tape, embedding(tape, positions, weights_, name + ".weights"),
                                  arithmetic_of(tape.dtype), name + ".pack");
        if (of_all_heads_) weights = for_each_head(tape, weights, name);
        return {weights, keys_and_values(tape, key_value_, x, positions, rotary_table, name)};
    }
    // Repeats the K numbers of every row for each of the H heads: (N,K) becomes (N,H K).
    Tensor* for_each_head(Tape& tape, Tensor* x, const std::string& name) const {
        std::vector<int> rows;
        for (int row = 0; row < int(x->rows()); row++) rows.insert(rows.end(), shape_.heads, row);
        Tensor* all = embedding(tape, tape.ints(std::move(rows)), x, name + ".weights.repeated");
        return reshape(tape, all, {x->rows(), shape_.heads * x->columns()}, name + ".weights.heads");
    }
    bool of_all_heads_;
    // E (P,H R): the weights of each of P positions for R slots in each of H heads. With value_weights, E and F of each
    // head are side by side: (P,H 2R). If all heads share one table, H is 1 in these shapes.
    Tensor* weights_;
    Linear key_value_;
};

}  // namespace

const AttentionKind linformer_kind =
    kind_of<LinformerAttention, LinformerOptions>("linformer", "keys are packed by learned weights of their positions",
                                                  true, false, state_refuses);

}  // namespace masquerade
