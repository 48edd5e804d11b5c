// SPDX-License-Identifier: MIT
// Attention that sorts rows by what they hold, as calls on the tape.
#include "engine/nn/functions.h"
#include "engine/ops/whole.h"

namespace masquerade {
namespace {
template <class Rule>
struct SortedAttributes {
    const SegmentGraph* graph;
    Rule rule;
};
using LshOf = SortedAttributes<LshRule>;
using BlocksOf = SortedAttributes<SinkhornRule>;
}  // namespace

namespace record {

void lsh_attention_forward(const Record& r) {
    masquerade::lsh_attention_forward(r.x(0), r.x(1), r.x(2), r.x(3), *r.as<LshOf>().graph, r.as<LshOf>().rule, r.y(0), r.y(1));
}
void lsh_attention_backward(const Record& r) {
    const Grad dq = r.dx(0), dk = r.dx(1), dv = r.dx(2);
    masquerade::lsh_attention_backward(r.dy(), r.x(0), r.x(1), r.x(2), r.x(3), r.y(0), r.y(1), *r.as<LshOf>().graph,
                                       r.as<LshOf>().rule, dq, dk, dv);
}

void sinkhorn_forward(const Record& r) {
    masquerade::sinkhorn_forward(r.x(0), r.x(1), *r.as<BlocksOf>().graph, r.as<BlocksOf>().rule, r.y());
}
void sinkhorn_backward(const Record& r) {
    const Grad dq = r.dx(0), dkv = r.dx(1);
    masquerade::sinkhorn_backward(r.dy(), r.x(0), r.x(1), *r.as<BlocksOf>().graph, r.as<BlocksOf>().rule, dq, dkv);
}

}  // namespace record

Tensor* lsh_attention(Tape& t, Tensor* q, Tensor* k, Tensor* v, Tensor* rotations, const SegmentGraph& graph, std::int64_t rows,
                      const LshRule& rule, const std::string& name) {
    Tensor *y = t.declare(name, {rows, q->columns()}, q->dtype),
           *lse = t.declare(name + ".lse", {rows, rule.attention.heads}, arithmetic_of(q->dtype));
    LshOf a{&graph, rule};
    if (!t.training()) a.rule.attention.dropout = 0;
    a.rule.attention.stream = t.stream(name);
    return t.run(Record("lsh_attention").reads({q, k, v, rotations}).makes({y, lse}).keeps({q, k, v, rotations, y, lse})
              .by(record::lsh_attention_forward, record::lsh_attention_backward, a));
}

Tensor* sinkhorn(Tape& t, Tensor* q, Tensor* kv, const SegmentGraph& graph, const SinkhornRule& rule, const std::string& name) {
    const Shape shape{whole_blocks(graph, q->rows(), rule.block) * rule.block, kv->columns()};
    return t.run(Record("sinkhorn").reads({q, kv}).makes({t.declare(name, shape, q->dtype)}).keeps({q, kv})
              .by(record::sinkhorn_forward, record::sinkhorn_backward, BlocksOf{&graph, rule}));
}

}  // namespace masquerade
