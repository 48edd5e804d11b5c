// SPDX-License-Identifier: MIT
// Attention with sorted blocks (Sinkhorn Transformer; Tay et al. 2020, section 3). The rows of a segment are cut into
// blocks. A row of block u attends to the rows of block u and to the rows of sorted block u, which is a weighted sum
// of all blocks v: its row t has the key sum_v S_uv K_v[t] and the value sum_v S_uv V_v[t]. S is computed from the
// scores between the mean query of block u and the mean key of block v, and normalised by Sinkhorn iterations,
// without noise. A segment that consists of one block has no sorted block.
#include "engine/nn/attention/softmax.h"
#include "engine/ops/whole.h"

namespace masquerade {
namespace {

// Returns the mask in which the rows of block u see block u (source 0) and sorted block u (source 1).
SegmentGraph blocks_of(const SegmentGraph& graph, std::int64_t rows, std::int64_t queries, int block) {
    const std::vector<int> numbers = whole_plan_numbers("sinkhorn", graph, rows, queries, block);
    const WholePlan plan = whole_plan(numbers, numbers.data());
    SegmentGraph blocks;
    blocks.documents = graph.documents;
    for (const QuerySegment& whole : graph.queries)
        for (int i = whole.begin, end; i < whole.end; i = end) {
            const int s = plan.segment[plan.row[i]], u = plan.first_block[s] + (plan.row[i] - plan.begin[s]) / block;
            end = std::min(whole.end, i + plan.first_row(u) + plan.rows_of(u) - plan.row[i]);
            QuerySegment q;
            q.begin = i, q.end = end, q.document = whole.document, q.sees_begin = int(blocks.sees.size());
            const auto see = [&](int source, int begin, int count) {
                blocks.sees.push_back(int(blocks.keys.size()));
                blocks.keys.push_back({source, begin, begin + count, 0});
            };
            see(0, plan.first_row(u), plan.rows_of(u));
            if (plan.blocks_of(s) > 1) see(1, u * block, block);
            q.sees_end = int(blocks.sees.size());
            blocks.queries.push_back(q);
        }
    return blocks;
}

struct SinkhornOptions {
    int chunk = 32, iterations = 7;
    double temperature = 0.75;
    void declare(AttentionSettings& s) {
        s.add("chunk", &chunk, "size of a block", 1, 16384);
        s.add("iterations", &iterations, "number of normalisations of the matrix", 1, 1000);
        s.add("temperature", &temperature, "temperature of the scores", 0.01, 100);
    }
};

class SinkhornAttention : public SoftmaxAttention {
  public:
    SinkhornAttention(Parameters& p, const std::string& layer, const std::string& name, const AttentionShape& s,
                      const SinkhornOptions& o)
        : SoftmaxAttention(p, layer, name, s), rule_{s.heads, o.chunk, o.iterations, o.temperature} {}
    Tensor* operator()(Tape& tape, Queries& queries, const Keys& keys, const AttentionContext& context) const override {
        Tensor* q = query_.rotated(tape, keys.x, keys.positions, context.rotary_table, shape_.width,
                                   name_ + ".query");                                                   // (N,C)
        Tensor* kv = keys_and_values(tape, keys.x, keys.positions, context.rotary_table, "key_value");  // (N,2C)
        Tensor* sorted = sinkhorn(tape, q, kv, *context.graph, rule_, name_ + ".sorted");
        if (queries.chosen.data) {
            queries.x = gather_rows(tape, queries.x, queries.chosen, "chosen");
            q = gather_rows(tape, q, queries.chosen, name_ + ".chosen");
        }
        const SegmentGraph& blocks = tape.hold(blocks_of(*context.graph, keys.x->rows(), q->rows(), rule_.block));
        return output_(tape,
                       attention(tape, q, {kv, sorted}, blocks, shape_.heads, context.dropout, context.rows, name_),
                       name_ + ".output");
    }
    std::unique_ptr<AttentionState> state(const Slots&) const override { cannot_write(sinkhorn_kind); }

  private:
    SinkhornRule rule_;
};

}  // namespace

const AttentionKind sinkhorn_kind =
    kind_of<SinkhornAttention, SinkhornOptions>("sinkhorn", "softmax over a block and the block that is sorted to it",
                                                true, true, whole_refuses);

}  // namespace masquerade
