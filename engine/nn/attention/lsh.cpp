// SPDX-License-Identifier: MIT
// Attention within buckets (Reformer; Kitaev et al. 2020, section 2): keys are normalised queries, k = q / |q|. A row
// attends to the other rows of its bucket in its own chunk of the sorted rows and in the chunk before; if there are
// none, it attends to itself. The softmax runs over the union of the rows found in all rounds. The random rotations for
// hashing are drawn once, from the seed; queries are hashed after their rotary embedding.
#include "engine/nn/attention/kinds.h"
#include "engine/ops/whole.h"

namespace masquerade {
namespace {

struct LshOptions {
    int rounds = 4, buckets = 16, chunk = 32;
    void declare(AttentionSettings& s) {
        s.add("rounds", &rounds, "number of rounds of hashing", 1, 256);
        s.add("buckets", &buckets, "number of buckets, even", 2, 65536);
        s.add("chunk", &chunk, "rows per chunk of the sorted rows", 1, 16384);
    }
};

class LshAttention : public ProjectedAttention {
  public:
    LshAttention(Parameters& p, const std::string& layer, const std::string& name, const AttentionShape& s,
                 const LshOptions& o)
        : ProjectedAttention(name, s),
          options_(o),
          query_(part(p, layer, "query", s.width)),
          value_(part(p, layer, "value", s.width)),
          output_(part(p, layer, "output", s.width)) {
        if (o.buckets % 2) throw BadUsage(text("attention lsh: buckets=", o.buckets, ", expected an even number"));
        const std::string path = layer + "." + name + ".rotations";
        random_ = p.add_state(path, {o.rounds * o.buckets / 2, s.width},
                              {Init::made, 0, [s, o, path](std::uint64_t seed, std::uint32_t) {
                                   FeatureDraw independent;
                                   independent.orthogonal = false;
                                   return random_features(o.rounds * o.buckets / 2, s.heads, s.width / s.heads,
                                                          independent, seed, path);
                               }});
    }
    Tensor* operator()(Tape& tape, Queries& queries, const Keys& keys, const AttentionContext& context) const override {
        Tensor* q = query_.rotated(tape, keys.x, keys.positions, context.rotary_table, shape_.width,
                                   name_ + ".query");  // (N,C)
        Tensor* k = normalise(tape, q, name_ + ".key", shape_.heads);
        Tensor* v = value_.rotated(tape, keys.x, keys.positions, shape_.rotary_value ? context.rotary_table : nullptr,
                                   shape_.width, name_ + ".value");
        Tensor* rotations = convert(tape, random_, arithmetic_of(tape.dtype), name_ + ".random");
        if (queries.chosen.data) queries.x = gather_rows(tape, queries.x, queries.chosen, "chosen");
        const LshRule rule{
            {shape_.heads, context.dropout, {}, context.rows}, options_.rounds, options_.buckets, options_.chunk};
        Tensor* y = lsh_attention(tape, q, k, v, rotations, *context.graph, queries.x->rows(), rule, name_);  // (Nq,C)
        return output_(tape, y, name_ + ".output");
    }
    std::unique_ptr<AttentionState> state(const Slots&) const override { cannot_write(lsh_kind); }

  private:
    LshOptions options_;
    Linear query_, value_, output_;
    Tensor* random_;  // (rounds * buckets / 2,C)
};

}  // namespace

const AttentionKind lsh_kind =
    kind_of<LshAttention, LshOptions>("lsh", "softmax over the rows of the same bucket, in rounds of random rotations",
                                      true, true, whole_refuses);

}  // namespace masquerade
