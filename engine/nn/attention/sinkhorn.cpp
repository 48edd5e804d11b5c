// SPDX-License-Identifier: MIT
// Attention with sorted blocks (Sinkhorn Transformer; Tay et al. 2020, section 3). The rows of a segment are cut into
// blocks. A row of block u attends to the rows of block u and to the rows of sorted block u. Sorted block u is a
// weighted mean of all blocks v. Its row t has the key sum_v S_uv K_v[t] and the value sum_v S_uv V_v[t], both divided
// by sum_v S_uv; here v runs over the blocks that have a row t. S_uv is computed from the score between the mean query
// of block u and the mean key of block v. S is normalised by Sinkhorn iterations, without the Gumbel noise of the
// paper. A segment that consists of one block has no sorted block.
//
// If the rows of a segment see different keys, as under a causal mask, sorted block u is a sum of only those blocks
// that precede block u, and S_uv depends only on rows up to the first row of block u. The paper masks S, but normalises
// the columns of S over all rows, so later blocks change what earlier rows see. Here, later blocks change nothing for
// earlier rows (engine/ops/sinkhorn.cpp).
#include "engine/nn/attention/kept_rows.h"
#include "engine/nn/attention/softmax.h"
#include "engine/ops/block_plan.h"

namespace masquerade {
namespace {

// Returns a mask with two key sources. A row of block u sees sorted block u (key source 1), and those keys of block u
// (key source 0) that `graph` lets the row see.
SegmentGraph blocks_of(const SegmentGraph& graph, std::int64_t rows, std::int64_t queries, int block) {
    const std::vector<int> numbers = block_plan_numbers("sinkhorn", graph, rows, queries, block);
    const BlockPlan plan = block_plan(numbers, numbers.data());
    SegmentGraph blocks;
    blocks.documents = graph.documents;
    for (const QuerySegment& all : graph.queries)
        for (int i = all.begin, end; i < all.end; i = end) {
            const int g = plan.group[plan.own[i]], first = plan.first_key[g], v = (plan.own[i] - first) / block,
                      from = first + v * block, to = std::min(from + block, plan.first_key[g + 1]);
            const bool reversed = all.rule == Rule::anticausal;
            // low and high: the first and the last row of the block that belong to the query's own segment
            const KeySegment& self = graph.keys[all.self];
            const int others = plan.first_key[g + 1] - (self.end - self.begin), own = std::max(from, others),
                      low = std::min(plan.row[own], plan.row[to - 1]), high = std::max(plan.row[own], plan.row[to - 1]);
            for (end = i; end < all.end && plan.own[end] >= from && plan.own[end] < to;) end++;
            QuerySegment q;
            q.begin = i, q.end = end, q.document = all.document;
            q.rule = all.rule, q.offset = self.begin + all.offset + i - all.begin - low;
            const auto see_own = [&] {
                q.self = int(blocks.keys.size());
                blocks.see({0, low, high + 1, 0});
            };
            // Adds those rows of the block that belong to other key segments than all.self. Each run of consecutive
            // rows becomes a new key segment. The new key segments are in the order of the text: rows of other segments
            // stand before the rows of all.self or, if `reversed` is true, after them.
            if (reversed) see_own();
            for (int k = from, step; k < own; k += step) {
                const auto key = [&](int n) { return plan.row[reversed ? own - 1 - (n - from) : n]; };
                for (step = 1; k + step < own && key(k + step) == key(k) + step;) step++;
                blocks.see({0, key(k), key(k) + step, 0});
            }
            if (!reversed) see_own();
            if (const int u = plan.first_block[g] + v; plan.blocks_of(g) > 0 && plan.mixed(u, 0) > 0)
                blocks.see({1, u * block, (u + 1) * block, 0});
            blocks.add(q);
        }
    return blocks;
}

struct SinkhornOptions {
    int chunk = 32, iterations = 7;
    double temperature = 0.75;
    void declare(AttentionSettings& s) {
        s.add("chunk", &chunk, "size of a block", 1, 16384);
        s.add("iterations", &iterations, "number of normalisations of the matrix that sorts the blocks", 1, 1000);
        s.add("temperature", &temperature, "temperature of the scores that sort the blocks", 0.01, 100);
    }
};

class SinkhornAttention : public SoftmaxAttention {
  public:
    SinkhornAttention(const AttentionPlace& at, const SinkhornOptions& o)
        : SoftmaxAttention(at), rule_{shape_.heads, o.chunk, o.iterations, o.temperature} {}
    Tensor* operator()(Tape& tape, Queries& queries, const Keys& keys, const AttentionContext& context) const override {
        // `own` and `memory` each list two tensors: queries (N,C), then keys and values (N,2C).
        std::vector<Tensor*> own, memory;
        if (keys.x)
            own = {query_.rotated(tape, keys.x, keys.positions, context.rotary_table, shape_.width, name_ + ".query"),
                   keys_and_values(tape, keys.x, keys.positions, context.rotary_table, "key_value")};
        if (keys.memory)
            memory = {query_(tape, keys.memory, name_ + ".memory.query"),
                      keys_and_values(tape, keys.memory, {}, nullptr, "memory")};
        const KeyRows all = key_rows(tape, memory, own, context, name_);
        if (!queries.x) return nullptr;
        Tensor *q = all.tensors[0], *kv = all.tensors[1];
        SinkhornRule rule = rule_;
        rule.block = int(std::min<std::int64_t>(rule.block, kv->rows()));  // no list has more keys
        Tensor* sorted = sinkhorn(tape, q, kv, *all.graph, rule, name_ + ".sorted");
        queries.choose(tape);
        q = queries.chosen.data ? gather_rows(tape, own[0], queries.chosen, name_ + ".chosen") : own[0];
        const SegmentGraph& blocks = tape.hold(blocks_of(*all.graph, kv->rows(), q->rows(), rule.block));
        return output_(tape,
                       attention(tape, q, {kv, sorted}, blocks, shape_.heads, context.dropout, context.rows, name_),
                       name_ + ".output");
    }
    std::unique_ptr<AttentionState> state(const Slots& slots) const override {
        return kept_rows(slots, *query_.weight, {shape_.width, 2 * shape_.width});
    }

  private:
    SinkhornRule rule_;
};

}  // namespace

const AttentionKind sinkhorn_kind = with_softmax_cross(kind_of<SinkhornAttention, SinkhornOptions>(
    "sinkhorn", "softmax over a block and the block that is sorted to it", true, true, block_refuses));

}  // namespace masquerade
