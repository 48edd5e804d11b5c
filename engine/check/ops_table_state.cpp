// SPDX-License-Identifier: MIT
// The rows of the op table for state_attention and local_lambda. They cover every StatePack (how keys are written to a
// state), every StateRead (how queries read the state), and the mask rules that a state supports. The sizes {rows,
// columns, other} are the number of query rows, the width of a head, and the number of heads.
#include "engine/check/ops_table.h"

namespace masquerade::ladder {
namespace {

Op state_op(const std::string& use, StatePack pack, StateRead read, const Build& build, double floor = 0,
            bool tied = false, int piece = 256) {
    const auto make = [=](Sizes n) {
        const int N = n.rows, D = n.columns, H = n.other, C = H * D, R = D % 3 + 2;
        const bool attends = read == StateRead::attend, kernel = read == StateRead::kernel;
        const bool gated = pack == StatePack::gated, positive = (gated || pack == StatePack::sum) && kernel;
        const auto layout = std::make_shared<Layout>(build(N));
        Case c;
        c.usual.sums(D + 2 * longest(N), 4).at_least(1);
        Operand& x = c.input("x", {N, attends ? C : H * R}, attends ? Kind::storage : arithmetic);
        if (positive && floor == 0) x.drawn(uniform(0.2, 1.2));
        for (int s = 0; s < layout->sources(); s++) {
            const int keys = layout->keys[s];
            Operand& w = c.input(s ? "pack1" : "pack", {keys, H * (pack == StatePack::pair ? 2 * R : R)}, arithmetic);
            if (positive) w.drawn(uniform(0.2, 1.2));
            c.input(s ? "kv1" : "kv", {keys, attends && !tied ? 2 * C : C}).from_rounded();
            if (gated) c.input(s ? "gate1" : "gate", {keys, H}, arithmetic);
        }
        c.output("y", {N, C});
        const StateRule rule{H, R, pack, read, 0.7, floor, piece};
        c.forward = by_names(state_attention_forward, layout, rule);
        c.backward = by_names(state_attention_backward, layout, rule);
        c.record = [=](const OnTape& a) {
            state_attention(a.tape, a("x"), all_of(a, "pack"), all_of(a, "kv"), C, layout->graph, rule, "ladder",
                            nullptr, nullptr, all_of(a, "gate"));
        };
        return c;
    };
    Op op = costly_op("state_attention, " + use, make,
                      {{1, 1, 1}, {2, 4, 2}, {31, 8, 1}, {33, 32, 2}, {129, 8, 1}, {9, 64, 3}, {40, 65, 1}},
                      {{1291, 3, 1}});
    // If keys and values are tied, that is, if each row of kv is both key and value, the size {3, 259, 2} is left out.
    // dkv is then rounded to bf16 twice: as the gradient of the keys and as the gradient of the values.
    if (!tied) op.far.push_back({3, 259, 2});
    if (piece < 256 || pack == StatePack::gated) op.all = {{1, 1, 1}, {31, 8, 1}, {33, 4, 2}, {9, 33, 1}};
    return op;
}

// Each document is causal, and is preceded by one key row of a second key source. Distances between a query and a key
// count this row as the first row of the document.
Layout goes_on(int rows) {
    Layout all = with_latent(rows);
    for (QuerySegment& q : all.graph.queries) q.along = true, all.graph.keys[q.self].place = 1;
    return all;
}

Op local_op(const std::string& use, const Build& build) {
    const auto make = [=](Sizes n) {
        const int N = n.rows, D = n.columns, H = n.other, C = H * D, W = 2 * (D % 3) + 3;
        const auto layout = std::make_shared<Layout>(build(N));
        Case c = stated("CNW", {C, N, W}, local_lambda_forward, local_lambda_backward, local_lambda, layout, H);
        for (int s = 0; s < layout->sources(); s++) c.input(s ? "v1" : "v", {layout->keys[s], C}).with_any_rows();
        for (Operand& o : c.operands) o.sums(D + W, 4).at_least(1);
        c["e"].sums(D + N, 4);
        return c;
    };
    return costly_op("local_lambda, " + use, make,
                     {{1, 1, 1}, {2, 4, 2}, {31, 8, 1}, {65, 33, 2}, {129, 8, 2}, {50, 65, 1}},
                     {{1291, 3, 1}, {3, 259, 2}});
}

}  // namespace

std::vector<Op> state_ops() {
    constexpr auto sum = StatePack::sum, gated = StatePack::gated, exponential = StatePack::exponential,
                   pair = StatePack::pair;
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
        state_op("pair", pair, attend, prefix),
        state_op("pair, in pieces", pair, attend, with_latent, 0, false, 5),
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
