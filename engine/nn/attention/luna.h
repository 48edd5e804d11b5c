// SPDX-License-Identifier: MIT
// Luna (Ma et al. 2021, section 3): l packed rows P stand between queries and keys; time is linear in both.
//
//     Y_P = Attention(P W_pq, X W_pc)          pack: P looks at the keys X; no output projection
//     Y   = Attention(X W_q, Y_P W_c) W_o      unpack: queries look at the slots Y_P
//     P'  = LN(P + dropout(Y_P))               contextual: what the next layer packs by; else P stays
//
// W_pc and W_c make keys and values, tied: one matrix for both. Rows that see the same keys share l slots, which take up these
// keys and nothing else; of fewer than l keys they read as many slots. So no P holds what its rows do not see.
#pragma once
#include "engine/nn/attention/attention.h"

namespace masquerade {

// Why slots cannot honour the mask; empty: they can.
std::string luna_refuses(const SegmentGraph& graph);

class LunaAttention : public Attention {
  public:
    LunaAttention(Parameters& parameters, const std::string& layer, const std::string& name, const AttentionShape& shape);
    Tensor* operator()(Tape& tape, Queries& queries, const Keys& keys, const Site& site) const override;
    int kept_columns() const override { return 2 * shape_.width; }
    Tensor* kept(Tape&, Tensor*, Ints, Tensor*, const char*) const override;
    // Slots are all that a cache keeps of a source.
    int kept_rows(int, int sources) const override { return sources * shape_.options.slots; }
    Tensor* kept_encoder(Tape& tape, const Keys& keys, const Site& site) const override;

  private:
    struct Slots;
    static Slots slots_of(const SegmentGraph& graph);
    Tensor* pack_queries(Tape& tape, const Slots& slots, const Site& site, const RowNames& names) const;
    Tensor* pack(Tape& tape, const Keys& keys, const Site& site, const Slots& slots) const;
    Tensor* key_values(Tape& tape, const Linear& project, Tensor* x, const std::string& name) const;

    std::string name_;
    AttentionShape shape_;
    Linear pack_query_, pack_key_value_, query_, key_value_, output_;
    LayerNorm norm_;  // of P, contextual
};

}  // namespace masquerade
