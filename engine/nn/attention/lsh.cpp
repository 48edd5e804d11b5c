// SPDX-License-Identifier: MIT
// Attention by buckets (Reformer; Kitaev et al. 2020, section 2): queries are keys, k = q / |q|, and a row looks at the
// rows of its own bucket in its chunk of the sorted rows and the one before, at itself only where there are none.
// Softmax is exact over the union of what all rounds have found. The rotations stay as the seed drew them; what is
// turned is hashed turned.
#include "engine/nn/attention/kinds.h"

namespace masquerade {
namespace {

class LshAttention : public Attention {
  public:
    LshAttention(Parameters& p, const std::string& layer, const std::string& name, const AttentionShape& s)
        : name_(name), shape_(s) {
        const AttentionOptions& o = s.options;
        if (o.buckets % 2) throw BadUsage(text("attention lsh: buckets=", o.buckets, ", expected an even number"));
        const std::string path = layer + "." + name;
        const auto part = [&](const char* what) { return Linear(p, path + "." + what, s.width, s.width, s.deviation); };
        query_ = part("query"), value_ = part("value"), output_ = part("output");
        random_ = p.add_state(path + ".rotations", {o.rounds * o.buckets / 2, s.width},
                              {Init::made, 0, [s, path](std::uint64_t seed, std::uint32_t) {
                                   FeatureDraw independent;
                                   independent.orthogonal = false;
                                   return random_features(s.options.rounds * s.options.buckets / 2, s.heads,
                                                          s.width / s.heads, independent, seed, path + ".rotations");
                               }});
    }
    Tensor* operator()(Tape& tape, Queries& queries, const Keys& keys, const Site& site) const override {
        if (site.cache)
            throw BadUsage(
                "attention lsh cannot write token by token: which keys a row sees depends on the rows behind it");
        const AttentionOptions& o = shape_.options;
        Tensor* q = query_.rotated(tape, keys.x, keys.positions, site.turns, shape_.width, name_ + ".query");  // (N,C)
        Tensor* k = normalise(tape, q, name_ + ".key", shape_.heads);
        Tensor* v = value_.rotated(tape, keys.x, keys.positions, shape_.rotary_value ? site.turns : nullptr,
                                   shape_.width, name_ + ".value");
        Tensor* rotations = convert(tape, random_, arithmetic_of(tape.dtype), name_ + ".random");
        if (queries.chosen.data) queries.x = gather_rows(tape, queries.x, queries.chosen, "chosen");
        const LshRule rule{{shape_.heads, site.dropout, {}, site.rows}, o.rounds, o.buckets, o.chunk};
        Tensor* y = lsh_attention(tape, q, k, v, rotations, *site.graph, queries.x->rows(), rule, name_);  // (Nq,C)
        return output_(tape, y, name_ + ".output");
    }
    int kept_columns() const override { return shape_.width; }
    Tensor* kept(Tape&, Tensor*, Ints, Tensor*, const char*) const override {
        throw Error("attention lsh: a cache keeps nothing, for it does not write");
    }

  private:
    std::string name_;
    AttentionShape shape_;
    Linear query_, value_, output_;
    Tensor* random_;  // (rounds * buckets / 2,C)
};

}  // namespace

const MakeAttention make_lsh = made_as<LshAttention>;

}  // namespace masquerade
