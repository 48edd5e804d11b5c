// SPDX-License-Identifier: MIT
// Functions on the tape for attention other than softmax over all visible keys: attention through a bounded state, the
// local positional lambda (engine/math/local_lambda.h), and attention that sorts rows by content (LSH and Sinkhorn).
#include "engine/nn/functions.h"
#include "engine/ops/block_plan.h"
#include "engine/tape/op_record.h"

namespace masquerade {
namespace {
// The inputs of a state_attention record are the arguments of state_attention() in this order: x, all pack[s], all
// kv[s], all gate[s], and `before` unless it is null.
struct StateAttributes {
    const SegmentGraph* graph;
    StateRule rule;
    int sources, gates;
    int before() const { return 1 + 2 * sources + gates; }  // index of the input `before` in Record::in
};
void state_attention_record_forward(const Record& r) {
    const auto& a = r.as<StateAttributes>();
    const int S = a.sources;
    const View before = int(r.in.size()) > a.before() ? r.x(a.before()) : View{},
               after = r.out.size() > 1 ? r.y(1) : View{};
    state_attention_forward(r.x(0), inputs_of(r, 1, S), inputs_of(r, 1 + S, S), inputs_of(r, 1 + 2 * S, a.gates),
                            *a.graph, a.rule, before, r.y(0), after);
}
void state_attention_record_backward(const Record& r) {
    const auto& a = r.as<StateAttributes>();
    const int S = a.sources;
    if (int(r.in.size()) > a.before())
        throw Error("state_attention ", r.path, ": a state that was given has no gradient");
    const Grad dx = r.dx(0);
    const Grads dpack = gradients_of(r, 1, S), dkv = gradients_of(r, 1 + S, S),
                dgate = gradients_of(r, 1 + 2 * S, a.gates);
    state_attention_backward(r.dy(), r.x(0), inputs_of(r, 1, S), inputs_of(r, 1 + S, S),
                             inputs_of(r, 1 + 2 * S, a.gates), *a.graph, a.rule, dx, dpack, dkv, dgate);
}

}  // namespace

std::int64_t state_numbers(int width, const StateRule& rule) {
    const std::int64_t R = rule.slots, D = width / rule.heads, tables = rule.read == StateRead::attend ? 2 : 1;
    return rule.heads * (1 + 2 * R + R * D * tables);
}

Tensor* state_attention(Tape& t, Tensor* x, const std::vector<Tensor*>& pack, const std::vector<Tensor*>& kv, int width,
                        const SegmentGraph& graph, const StateRule& rule, const std::string& name, Tensor* before,
                        Tensor** after, const std::vector<Tensor*>& gate) {
    Record r = Record("state_attention")
                   .reads({x})
                   .makes({t.declare(name, {x->rows(), width}, t.dtype)})
                   .by(state_attention_record_forward, state_attention_record_backward,
                       StateAttributes{&graph, rule, int(kv.size()), int(gate.size())});
    r.in.insert(r.in.end(), pack.begin(), pack.end());
    r.in.insert(r.in.end(), kv.begin(), kv.end());
    r.in.insert(r.in.end(), gate.begin(), gate.end());
    r.keep = r.in;
    if (before) r.in.push_back(before);
    if (after)
        r.out.push_back(*after = t.declare(name + ".state", {graph.documents, state_numbers(width, rule)},
                                           arithmetic_of(t.dtype)));
    return t.run(std::move(r));
}

Tensor* local_lambda(Tape& t, Tensor* q, Tensor* e, const std::vector<Tensor*>& v, const SegmentGraph& graph, int heads,
                     const std::string& name) {
    Tensor* y = t.declare(name, q->shape, t.dtype);
    return t.run(Record("local_lambda")
                     .reads({q, e}, v)
                     .makes({y})
                     .by(local_lambda_forward, local_lambda_backward, &graph, heads));
}

Tensor* lsh_attention(Tape& t, Tensor* q, Tensor* k, Tensor* v, Tensor* rotations, const SegmentGraph& graph,
                      std::int64_t rows, const LshRule& rule, const std::string& name) {
    Tensor *y = t.declare(name, {rows, q->columns()}, q->dtype),
           *lse = t.declare(name + ".lse", {rows, rule.attention.heads}, arithmetic_of(q->dtype));
    LshRule own = rule;
    if (!t.training()) own.attention.dropout = 0;
    own.attention.stream = t.stream(name);
    return t.run(Record("lsh_attention")
                     .reads({q, k, v, rotations})
                     .makes({y, lse})
                     .by(lsh_attention_forward, lsh_attention_backward, &graph, own));
}

Tensor* sinkhorn(Tape& t, Tensor* q, Tensor* kv, const SegmentGraph& graph, const SinkhornRule& rule,
                 const std::string& name) {
    const Shape shape{most_blocks(graph, q->rows(), rule.block) * rule.block, kv->columns()};
    Tensor* y = t.declare(name, shape, q->dtype);
    return t.run(Record("sinkhorn").reads({q, kv}).makes({y}).by(sinkhorn_forward, sinkhorn_backward, &graph, rule));
}

}  // namespace masquerade
