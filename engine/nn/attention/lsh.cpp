// SPDX-License-Identifier: MIT
// Attention within hash buckets (Reformer; Kitaev et al. 2020, section 2). Keys are normalised queries, k = q / |q|.
// In each of several rounds, the rows are hashed into buckets, sorted by bucket, and cut into chunks. A row attends
// to the other rows of its bucket that are in its own chunk or in the chunk before it, in any round. If there are no
// such rows, the row attends to itself. The random rotations for hashing are drawn once, from the seed. Queries are
// hashed after rotary positions have been applied to them.
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
                                   name_ + ".query");  // (N,C): all rows, because the queries also give the keys
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
    Tensor* random_;  // the random rotations, (rounds * buckets / 2, C)
};

}  // namespace

const AttentionKind lsh_kind =
    kind_of<LshAttention, LshOptions>("lsh", "softmax over the rows of the same bucket, in rounds of random rotations",
                                      true, true, whole_refuses);

}  // namespace masquerade
