// SPDX-License-Identifier: MIT
// Attention that is no softmax over all keys, as calls on the tape: through a bounded state, with the local lambda
// beside it;
// or of rows that are sorted by what they hold.
#include "engine/nn/functions.h"
#include "engine/ops/whole.h"

namespace masquerade {
namespace {
struct StateAttributes {
    const SegmentGraph* graph;
    StateRule rule;
    int sources, gates;
    int before() const { return 1 + 2 * sources + gates; }  // place of the state before
};
struct LocalAttributes {
    const SegmentGraph* graph;
    int heads;
};
template <class Rule>
struct SortedAttributes {
    const SegmentGraph* graph;
    Rule rule;
};
using LshOf = SortedAttributes<LshRule>;
using BlocksOf = SortedAttributes<SinkhornRule>;
// The tensors of a record: x, the packs, the key/value tensors, the gates, the state before.
Views views(const Record& r, int from, int count) {
    Views all;
    for (int i = 0; i < count; i++) all.v[all.count++] = r.x(from + i);
    return all;
}
Grads grads(const Record& r, int from, int count) {
    Grads all;
    for (int i = 0; i < count; i++) all.g[all.count++] = r.dx(from + i);
    return all;
}
}  // namespace

namespace record {

void state_attention_forward(const Record& r) {
    const auto& a = r.as<StateAttributes>();
    const int S = a.sources;
    const View before = int(r.in.size()) > a.before() ? r.x(a.before()) : View{},
               after = r.out.size() > 1 ? r.y(1) : View{};
    masquerade::state_attention_forward(r.x(0), views(r, 1, S), views(r, 1 + S, S), views(r, 1 + 2 * S, a.gates),
                                        *a.graph, a.rule, before, r.y(0), after);
}
void state_attention_backward(const Record& r) {
    const auto& a = r.as<StateAttributes>();
    const int S = a.sources;
    if (int(r.in.size()) > a.before())
        throw Error(text("state_attention ", r.path, ": a state that was given has no gradient"));
    const Grad dx = r.dx(0);
    const Grads dpack = grads(r, 1, S), dkv = grads(r, 1 + S, S), dgate = grads(r, 1 + 2 * S, a.gates);
    masquerade::state_attention_backward(r.dy(), r.x(0), views(r, 1, S), views(r, 1 + S, S),
                                         views(r, 1 + 2 * S, a.gates), *a.graph, a.rule, dx, dpack, dkv, dgate);
}

void local_lambda_forward(const Record& r) {
    const auto& a = r.as<LocalAttributes>();
    masquerade::local_lambda_forward(r.x(0), r.x(1), views(r, 2, int(r.in.size()) - 2), *a.graph, a.heads, r.y());
}
void local_lambda_backward(const Record& r) {
    const auto& a = r.as<LocalAttributes>();
    const int S = int(r.in.size()) - 2;
    const Grad dq = r.dx(0), de = r.dx(1);
    const Grads dv = grads(r, 2, S);
    masquerade::local_lambda_backward(r.dy(), r.x(0), r.x(1), views(r, 2, S), *a.graph, a.heads, dq, de, dv);
}

void lsh_attention_forward(const Record& r) {
    masquerade::lsh_attention_forward(r.x(0), r.x(1), r.x(2), r.x(3), *r.as<LshOf>().graph, r.as<LshOf>().rule, r.y(0),
                                      r.y(1));
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

int state_numbers(int width, const StateRule& rule) {
    const int D = width / rule.heads, tables = rule.read == StateRead::attend ? 2 : 1;
    return rule.heads * (1 + 2 * rule.slots + rule.slots * D * tables);
}

Tensor* state_attention(Tape& t, Tensor* x, const std::vector<Tensor*>& pack, const std::vector<Tensor*>& kv, int width,
                        const SegmentGraph& graph, const StateRule& rule, const std::string& name, Tensor* before,
                        Tensor** after, const std::vector<Tensor*>& gate) {
    Record r = Record("state_attention")
                   .reads({x})
                   .makes({t.declare(name, {x->rows(), width}, t.dtype)})
                   .by(record::state_attention_forward, record::state_attention_backward,
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
    Record r = Record("local_lambda")
                   .reads({q, e})
                   .makes({t.declare(name, q->shape, t.dtype)})
                   .by(record::local_lambda_forward, record::local_lambda_backward, LocalAttributes{&graph, heads});
    r.in.insert(r.in.end(), v.begin(), v.end());
    r.keep = r.in;
    return t.run(std::move(r));
}

Tensor* lsh_attention(Tape& t, Tensor* q, Tensor* k, Tensor* v, Tensor* rotations, const SegmentGraph& graph,
                      std::int64_t rows, const LshRule& rule, const std::string& name) {
    Tensor *y = t.declare(name, {rows, q->columns()}, q->dtype),
           *lse = t.declare(name + ".lse", {rows, rule.attention.heads}, arithmetic_of(q->dtype));
    LshOf a{&graph, rule};
    if (!t.training()) a.rule.attention.dropout = 0;
    a.rule.attention.stream = t.stream(name);
    return t.run(Record("lsh_attention")
                     .reads({q, k, v, rotations})
                     .makes({y, lse})
                     .keeps({q, k, v, rotations, y, lse})
                     .by(record::lsh_attention_forward, record::lsh_attention_backward, a));
}

Tensor* sinkhorn(Tape& t, Tensor* q, Tensor* kv, const SegmentGraph& graph, const SinkhornRule& rule,
                 const std::string& name) {
    const Shape shape{whole_blocks(graph, q->rows(), rule.block) * rule.block, kv->columns()};
    return t.run(Record("sinkhorn")
                     .reads({q, kv})
                     .makes({t.declare(name, shape, q->dtype)})
                     .keeps({q, kv})
                     .by(record::sinkhorn_forward, record::sinkhorn_backward, BlocksOf{&graph, rule}));
}

}  // namespace masquerade
