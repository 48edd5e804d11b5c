// SPDX-License-Identifier: MIT
// The rows of the op table for state_attention and local_lambda: every StatePack, every StateRead, and the rules that a
// state supports. Sizes are query rows, head size, heads.
#include "engine/check/ops_table.h"

#include <algorithm>

namespace masquerade::ladder {
namespace {

Op state_op(const std::string& use, StatePack pack, StateRead read, const Build& build, double floor = 0,
            bool tied = false, int piece = 256) {
    Op op{"state_attention, " + use, [=](Sizes n) {
              const int N = n.rows, D = n.columns, H = n.other, C = H * D, R = D % 3 + 2;
              const bool attends = read == StateRead::attend, kernel = read == StateRead::kernel;
              const bool gated = pack == StatePack::gated, positive = (gated || pack == StatePack::sum) && kernel;
              auto layout = std::make_shared<Layout>(build(N));
              const int sources = layout->keys[1] > 0 ? 2 : 1, longest = (N > 1000 ? N : std::min(N, 140)) + 1;
              Case c;
              auto& x = c.input("x", {N, attends ? C : H * R}, attends ? Kind::storage : Kind::arithmetic)
                            .sums(D + 2 * longest, 4)
                            .at_least(1);
              if (positive && floor == 0) x.drawn(uniform(0.2, 1.2));
              for (int s = 0; s < sources; s++) {
                  auto& w = c.input(s ? "pack1" : "pack", {layout->keys[s], H * R}, Kind::arithmetic)
                                .sums(D + 2 * longest, 4)
                                .at_least(1);
                  if (positive) w.drawn(uniform(0.2, 1.2));
                  c.input(s ? "kv1" : "kv", {layout->keys[s], attends && !tied ? 2 * C : C})
                      .from_rounded()
                      .sums(D + 2 * longest, 4)
                      .at_least(1);
                  if (gated)
                      c.input(s ? "gate1" : "gate", {layout->keys[s], H}, Kind::arithmetic)
                          .sums(D + 2 * longest, 4)
                          .at_least(1);
              }
              c.output("y", {N, C}).sums(D + 2 * longest, 4).at_least(1);
              const StateRule rule{H, R, pack, read, 0.7, floor, piece};
              const auto packs = [=](const Call& a) {
                  return sources > 1 ? Views{a("pack"), a("pack1")} : Views{a("pack")};
              };
              const auto kvs = [=](const Call& a) { return sources > 1 ? Views{a("kv"), a("kv1")} : Views{a("kv")}; };
              const auto gates = [=](const Call& a) {
                  return !gated ? Views{} : sources > 1 ? Views{a("gate"), a("gate1")} : Views{a("gate")};
              };
              c.forward = [=](const Call& a) {
                  state_attention_forward(a("x"), packs(a), kvs(a), gates(a), layout->graph, rule, View{}, a("y"),
                                          View{});
              };
              c.backward = [=](const Call& a) {
                  const Grads dpack = sources > 1 ? Grads{a.grad("pack"), a.grad("pack1")} : Grads{a.grad("pack")};
                  const Grads dkv = sources > 1 ? Grads{a.grad("kv"), a.grad("kv1")} : Grads{a.grad("kv")};
                  const Grads dgate = !gated        ? Grads{}
                                      : sources > 1 ? Grads{a.grad("gate"), a.grad("gate1")}
                                                    : Grads{a.grad("gate")};
                  state_attention_backward(a.d("y"), a("x"), packs(a), kvs(a), gates(a), layout->graph, rule,
                                           a.grad("x"), dpack, dkv, dgate);
              };
              c.record = [=](const OnTape& a) {
                  std::vector<Tensor*> p{a("pack")}, kv{a("kv")}, gate;
                  if (gated) gate.push_back(a("gate"));
                  if (sources > 1) p.push_back(a("pack1")), kv.push_back(a("kv1"));
                  if (sources > 1 && gated) gate.push_back(a("gate1"));
                  state_attention(a.tape, a("x"), p, kv, C, layout->graph, rule, "ladder", nullptr, nullptr, gate);
              };
              return c;
          }};
    op.costly = true;
    op.small = {{6, 2, 2}, {4, 3, 1}, {17, 1, 1}};
    op.middle = {{70, 8, 3}};
    op.all = {{1, 1, 1}, {2, 4, 2}, {31, 8, 1}, {33, 32, 2}, {129, 8, 1}, {9, 64, 3}, {40, 65, 1}};
    op.far = {{1291, 3, 1}};
    if (!tied) op.far.push_back({3, 259, 2});  // if tied, dkv is rounded twice: as gradient of key and of value
    if (piece < 256 || pack == StatePack::gated) op.all = {{1, 1, 1}, {31, 8, 1}, {33, 4, 2}, {9, 33, 1}};
    return op;
}

// Each document is causal, and one row of a second source precedes it. Distances count this row and the document as one
// text.
Layout goes_on(int rows) {
    Layout all = with_latent(rows);
    for (QuerySegment& q : all.graph.queries) q.along = true, all.graph.keys[std::size_t(q.self)].place = 1;
    return all;
}

Op local_op(const std::string& use, const Build& build) {
    Op op{"local_lambda, " + use, [=](Sizes n) {
              const int N = n.rows, D = n.columns, H = n.other, C = H * D, W = 2 * (D % 3) + 3;
              auto layout = std::make_shared<Layout>(build(N));
              const int sources = layout->keys[1] > 0 ? 2 : 1;
              Case c;
              c.input("q", {N, C}, Kind::arithmetic).sums(D + W, 4).at_least(1);
              c.input("e", {W, C}).as_weight().sums(D + N, 4).at_least(1);
              for (int s = 0; s < sources; s++)
                  c.input(s ? "v1" : "v", {layout->keys[s], C}).with_any_rows().sums(D + W, 4).at_least(1);
              c.output("y", {N, C}).sums(D + W, 4).at_least(1);
              const auto vs = [=](const Call& a) { return sources > 1 ? Views{a("v"), a("v1")} : Views{a("v")}; };
              c.forward = [=](const Call& a) { local_lambda_forward(a("q"), a("e"), vs(a), layout->graph, H, a("y")); };
              c.backward = [=](const Call& a) {
                  const Grads dv = sources > 1 ? Grads{a.grad("v"), a.grad("v1")} : Grads{a.grad("v")};
                  local_lambda_backward(a.d("y"), a("q"), a("e"), vs(a), layout->graph, H, a.grad("q"), a.grad("e"),
                                        dv);
              };
              c.record = [=](const OnTape& a) {
                  std::vector<Tensor*> v{a("v")};
                  if (sources > 1) v.push_back(a("v1"));
                  local_lambda(a.tape, a("q"), a("e"), v, layout->graph, H, "ladder");
              };
              return c;
          }};
    op.costly = true;
    op.small = {{6, 2, 2}, {4, 3, 1}, {17, 1, 1}};
    op.middle = {{70, 8, 3}};
    op.all = {{1, 1, 1}, {2, 4, 2}, {31, 8, 1}, {65, 33, 2}, {129, 8, 2}, {50, 65, 1}};
    op.far = {{1291, 3, 1}, {3, 259, 2}};
    return op;
}

}  // namespace

std::vector<Op> state_ops() {
    constexpr auto sum = StatePack::sum, gated = StatePack::gated, exponential = StatePack::exponential;
    constexpr auto linear = StateRead::linear, kernel = StateRead::kernel, attend = StateRead::attend;
    return {
        state_op("sum, attend", sum, attend, by_rule(Rule::causal)),
        state_op("exponential, attend", exponential, attend, prefix),
        state_op("exponential, kernel", exponential, kernel, by_rule(Rule::causal)),
        state_op("sum, kernel", sum, kernel, prefix),
        state_op("sum, kernel, held", sum, kernel, by_rule(Rule::full), 100),
        state_op("exponential, linear", exponential, linear, by_rule(Rule::full)),
        state_op("sum, linear", sum, linear, by_rule(Rule::strict_causal)),
        state_op("anticausal", exponential, attend, by_rule(Rule::anticausal)),
        state_op("rank", exponential, kernel, by_rule(Rule::rank)),
        state_op("strict rank", sum, attend, by_rule(Rule::strict_rank)),
        state_op("latent key", exponential, attend, with_latent),
        state_op("tied", sum, attend, prefix, 0, true),
        state_op("none", exponential, attend, by_rule(Rule::none)),
        state_op("gated", gated, kernel, prefix),
        state_op("gated, held", gated, kernel, by_rule(Rule::causal), 100),
        state_op("gated, in pieces", gated, kernel, with_latent, 0, false, 3),
        state_op("sum, in pieces", sum, attend, prefix, 0, false, 5),
        state_op("exponential, in pieces", exponential, attend, by_rule(Rule::causal), 0, false, 2),
        state_op("exponential kernel, in pieces", exponential, kernel, prefix, 0, false, 7),
        local_op("full", by_rule(Rule::full)),
        local_op("causal", by_rule(Rule::causal)),
        local_op("anticausal", by_rule(Rule::anticausal)),
        local_op("strict rank", by_rule(Rule::strict_rank)),
        local_op("bits", by_rule(Rule::bits)),
        local_op("prefix", prefix),
        local_op("going on", goes_on),
    };
}

}  // namespace masquerade::ladder
