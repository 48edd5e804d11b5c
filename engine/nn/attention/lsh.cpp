// SPDX-License-Identifier: MIT
// Attention within hash buckets (Reformer; Kitaev et al. 2020, section 2). Keys are normalised queries, k = q / |q|. In
// each of several rounds, the rows are hashed into buckets, sorted by bucket, and cut into chunks. Row i attends to
// another row j if the mask allows it and if at least one round meets two conditions: both rows are in the same bucket,
// and j is in the chunk of i or in the chunk before it. If there is no such row j, row i attends to itself. The random
// rotations for hashing are drawn once, from the seed. Queries are hashed after rotary positions have been applied to
// them.
//
// If all rows see the same keys, the sorted rows are cut into chunks across buckets, as in the paper. Under any other
// mask, such as a causal one, chunks across buckets would depend on later rows, so later rows would change what a row
// sees. Therefore, each bucket is then cut into chunks by itself, so that the chunk of a row depends only on earlier
// rows (engine/ops/list_plan.h). In generation token by token, a row then sees the same keys as in one pass over the
// whole text. The keys of a memory, such as latents, are hashed, sorted and cut like all other keys.
#include "engine/nn/attention/kept_rows.h"
#include "engine/nn/attention/kinds.h"
#include "engine/ops/list_plan.h"

namespace masquerade {
namespace {

struct LshOptions {
    int rounds = 4, buckets = 16, chunk = 32;
    void declare(AttentionSettings& s) {
        s.add("rounds", &rounds, "number of rounds of hashing", 1, 256);
        s.add("buckets", &buckets, "number of buckets, even", 2, 65536);
        s.add("chunk", &chunk, "rows are sorted by their hash and cut into chunks of this many rows", 1, 16384);
    }
};

class LshAttention : public ProjectedAttention {
  public:
    LshAttention(const AttentionPlace& at, const LshOptions& o)
        : ProjectedAttention(at),
          options_(o),
          query_(at.linear("query")),
          value_(at.linear("value")),
          output_(at.linear("output")) {
        if (o.buckets % 2) throw BadUsage("attention lsh: buckets=", o.buckets, ", expected an even number");
        const std::string path = at.path + ".rotations";
        random_ = at.parameters.add_state(path, {o.rounds * o.buckets / 2, shape_.width},
                                          {Init::made, 0, [s = shape_, o, path](std::uint64_t seed, std::uint32_t) {
                                               FeatureDraw independent;
                                               independent.orthogonal = false;
                                               return random_features(o.rounds * o.buckets / 2, s.heads,
                                                                      s.width / s.heads, independent, seed, path);
                                           }});
    }
    Tensor* operator()(Tape& tape, Queries& queries, const Keys& keys, const AttentionContext& context) const override {
        // The rows of the memory have position 0, so they are not rotated.
        std::vector<Tensor*> own, memory;
        if (keys.x) own = hashed(tape, keys.x, keys.positions, context.rotary_table, name_);
        if (keys.memory) memory = hashed(tape, keys.memory, {}, nullptr, name_ + ".memory");
        const KeyRows all = key_rows(tape, memory, own, context, name_);
        if (!queries.x) return nullptr;
        Tensor *q = all.tensors[0], *k = all.tensors[1], *v = all.tensors[2];
        Tensor* rotations = convert(tape, random_, arithmetic_of(tape.dtype), name_ + ".random");
        queries.choose(tape);
        const LshRule rule{
            {shape_.heads, context.dropout, {}, context.rows}, options_.rounds, options_.buckets, options_.chunk};
        // (Nq,C): a row per query row.
        Tensor* y = lsh_attention(tape, q, k, v, rotations, *all.graph, queries.x->rows(), rule, name_);
        return output_(tape, y, name_ + ".output");
    }
    bool keeps_rows() const override { return true; }
    std::unique_ptr<AttentionState> state(const Slots& slots) const override {
        return kept_rows(slots, *query_.weight, {shape_.width, shape_.width, shape_.width});
    }

  private:
    // Returns the queries, keys and values (N,C each) of all N key rows x. A key row needs a query, too, because the
    // key is the normalised query.
    std::vector<Tensor*> hashed(Tape& tape, Tensor* x, Ints positions, Tensor* rotary_table,
                                const std::string& name) const {
        Tensor* q = query_.rotated(tape, x, positions, rotary_table, shape_.width, name + ".query");
        Tensor* k = normalise(tape, q, name + ".key", shape_.heads);
        return {q, k,
                value_.rotated(tape, x, positions, shape_.rotary_value ? rotary_table : nullptr, shape_.width,
                               name + ".value")};
    }

    LshOptions options_;
    Linear query_, value_, output_;
    Tensor* random_;  // the random rotations, (rounds * buckets / 2, C)
};

}  // namespace

const AttentionKind lsh_kind = with_softmax_cross(kind_of<LshAttention, LshOptions>(
    "lsh", "softmax over the rows of the same bucket, in rounds of random rotations", true, true, list_refuses));

}  // namespace masquerade
