// SPDX-License-Identifier: MIT
// Attention within hash buckets (Reformer; Kitaev et al. 2020, section 2). Keys are normalised queries, k = q / |q|.
// In each of several rounds, the rows are hashed into buckets, sorted by bucket, and cut into chunks. A row attends
// to the other rows of its bucket that are in its own chunk or in the chunk before it, in any round, if the mask lets it
// see them. If there are no such rows, the row attends to itself. The random rotations for hashing are drawn once, from
// the seed. Queries are hashed after rotary positions have been applied to them.
//
// Under a causal mask, the paper cuts chunks from the sorted rows of the whole text. Later rows then decide in which
// chunk a row is, so they change what the row sees. Here, chunks are counted within each bucket, and depend on earlier
// rows only (engine/ops/lsh_plan.h). A text that is generated token by token therefore has the bits of a pass over the
// whole text. A latent is a key like any other: a row sees it if both are in one bucket.
#include <numeric>

#include "engine/nn/attention/kept.h"
#include "engine/nn/attention/kinds.h"
#include "engine/ops/lsh_plan.h"

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

// Queries, keys and values, (N,C) each.
struct Hashed {
    Tensor *q = nullptr, *k = nullptr, *v = nullptr;
};

// Returns the rows of u followed by the rows of x. If one of them is null, returns the other.
Tensor* stacked(Tape& tape, Tensor* u, Tensor* x, const std::string& name) {
    if (!u || !x) return u ? u : x;
    std::vector<int> upper(std::size_t(u->rows() + x->rows()), -1), lower = upper;
    std::iota(upper.begin(), upper.begin() + u->rows(), 0), std::iota(lower.begin() + u->rows(), lower.end(), 0);
    const std::vector<double> zeros(upper.size() * std::size_t(x->columns()), 0.0);
    Tensor* y = tape.constant(name + ".rows", {std::int64_t(upper.size()), x->columns()}, x->dtype, zeros.data());
    y = replace_rows(tape, y, tape.ints(tape.hold(std::move(lower))), x, name + ".lower");
    return replace_rows(tape, y, tape.ints(tape.hold(std::move(upper))), u, name);
}

// Returns the graph in which all keys are rows of one tensor. Source s begins at row first[s] of this tensor.
SegmentGraph in_one_source(SegmentGraph graph, const std::vector<int>& first) {
    for (KeySegment& key : graph.keys) {
        key.begin += first.at(std::size_t(key.source)), key.end += first[std::size_t(key.source)];
        key.source = 0;
    }
    return graph;
}

// The decoding state: queries, keys and values of the generated tokens, which are rows 0 to `own` - 1, and of the
// memory, which follow.
struct KeptHashed : AttentionState {
    Kept q, k, v;
    int own = 0;
    bool memory = false;
    bool has_memory() override { return memory; }
    void branch(Tape& tape, const Branches& b) override {
        for (Kept* each : {&q, &k, &v}) each->copy(tape, b.from_rows, b.to_rows);
    }
    void store(Ints rows, const Hashed& x) { q.store(rows, x.q), k.store(rows, x.k), v.store(rows, x.v); }
    void allocate(std::int64_t rows, std::int64_t columns, DType type, Device device) {
        for (Kept* each : {&q, &k, &v}) each->allocate({own + rows, columns}, type, device);
    }
    void take_memory(Tape& tape, const Hashed& x) {
        allocate(x.q->rows(), x.q->columns(), x.q->dtype, x.q->device);
        std::vector<int> rows(std::size_t(x.q->rows()));
        std::iota(rows.begin(), rows.end(), own);
        store(tape.ints(tape.hold(std::move(rows))), x);
        memory = true;
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
        auto* state = static_cast<KeptHashed*>(context.state);
        Hashed rows = hashed(tape, keys, context.rotary_table);
        if (state && !context.step && keys.any()) state->take_memory(tape, rows);
        if (!queries.x) return nullptr;
        const SegmentGraph* graph = context.graph;
        if (context.step) {
            state->store(context.step->rows, rows);
            rows = {state->q.tensor(), state->k.tensor(), state->v.tensor()};
            graph = &tape.hold(in_one_source(*graph, state->memory ? std::vector{state->own, 0} : std::vector{0}));
        } else if (keys.memory) {
            graph = &tape.hold(in_one_source(*graph, {0, int(keys.memory->rows())}));
        }
        Tensor* rotations = convert(tape, random_, arithmetic_of(tape.dtype), name_ + ".random");
        if (queries.chosen.data) queries.x = gather_rows(tape, queries.x, queries.chosen, "chosen");
        const LshRule rule{
            {shape_.heads, context.dropout, {}, context.rows}, options_.rounds, options_.buckets, options_.chunk};
        Tensor* y = lsh_attention(tape, rows.q, rows.k, rows.v, rotations, *graph, queries.x->rows(), rule,
                                  name_);  // (Nq,C)
        return output_(tape, y, name_ + ".output");
    }
    std::unique_ptr<AttentionState> state(const Slots& slots) const override {
        auto state = std::make_unique<KeptHashed>();
        const Tensor& w = *query_.weight;
        state->own = slots.count * slots.longest;
        state->allocate(0, shape_.width, w.dtype, w.device);
        return state;
    }

  private:
    // Returns queries, keys and values of all key rows, because keys are queries: the rows of keys.memory, which are not
    // rotated, because their position is 0, and then those of keys.x.
    Hashed hashed(Tape& tape, const Keys& keys, Tensor* rotary_table) const {
        Tensor *q = nullptr, *v = nullptr;
        if (keys.x) {
            q = query_.rotated(tape, keys.x, keys.positions, rotary_table, shape_.width, name_ + ".query");
            v = value_.rotated(tape, keys.x, keys.positions, shape_.rotary_value ? rotary_table : nullptr, shape_.width,
                               name_ + ".value");
        }
        if (keys.memory) {
            q = stacked(tape, query_(tape, keys.memory, name_ + ".memory.query"), q, name_ + ".queries");
            v = stacked(tape, value_(tape, keys.memory, name_ + ".memory.value"), v, name_ + ".values");
        }
        return {q, normalise(tape, q, name_ + ".key", shape_.heads), v};
    }

    LshOptions options_;
    Linear query_, value_, output_;
    Tensor* random_;  // the random rotations, (rounds * buckets / 2, C)
};

}  // namespace

const AttentionKind lsh_kind = with_softmax_cross(kind_of<LshAttention, LshOptions>(
    "lsh", "softmax over the rows of the same bucket, in rounds of random rotations", true, true, lsh_refuses));

}  // namespace masquerade
