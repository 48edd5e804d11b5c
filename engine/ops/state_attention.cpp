// SPDX-License-Identifier: MIT
// The forward of state_attention. A group consists of query segments of one document that share a list of keys. A chain
// is one head of a group: its keys and queries (state_chains.h). The keys of a chain are added to a state one by one,
// and the queries of the chain read this state.
#include "engine/ops/launch.h"
#include "engine/ops/state_chains.h"

namespace masquerade::DEVICE {
namespace {

template <class S, class X, class A>
struct Forward {
    Chains<S, X, A> chains;
    S* y;
    A* after;
    HD void operator()(Lanes lanes, std::int64_t i) const {
        const StateShape& n = chains.n;
        const StatePlan& plan = chains.plan;
        const int p = int(i / chains.heads), head = int(i % chains.heads), g = plan.group[p];
        A* work = chains.scratch(i);
        const State<A> state = chains.state(p + g, head);
        chains.forth(lanes, state, p, head, work, false, [&](int q) {
            read_state(lanes, n, state, chains.query(q, head), work, work + n.slots);
            read_values(lanes, n, state, work, work + 2 * n.slots,
                        y + std::int64_t(plan.query_row[q]) * chains.width() + head * n.columns);
        });
        meet(lanes);
        const std::int64_t to = (std::int64_t(plan.document[g]) * chains.heads + head) * n.numbers();
        if (after && p + 1 == plan.first_piece[g + 1])
            each(lanes, n.numbers(), [&](int k) { after[to + k] = state.begin()[k]; });
    }
};

}  // namespace

void state_attention_forward(View x, Views pack, Views kv, Views gate, const SegmentGraph& graph, StateRule rule,
                             View before, View y, View after) {
    const char* op = "state_attention";
    check_call(op, x, pack, kv, gate, rule, y);
    const std::vector<int> numbers = state_plan_numbers(op, graph, kv, rule.piece, true);
    const StatePlan on_host = state_plan(numbers, numbers.data());
    for (const View* v : {&before, &after})
        if (v->data)
            expect_shape(op, v == &before ? "before" : "after", *v,
                         {on_host.groups, std::int64_t(rule.heads) * shape_of(y, rule).numbers()},
                         arithmetic_of(y.dtype));
    if ((before || after) && on_host.waves > 1)
        throw Error(op, ": rows of a document that see keys of ", on_host.waves, " kinds have no one state");
    for_types(y.dtype, rule, [&]<class S, class X, class A>(S, X, A) {
        clear<S>({y});
        const auto chains = chains_of<S, X, A>(x, pack, kv, gate, rule, y, numbers);
        start_pieces(chains, before.as<A>());
        for_each_long_row(std::int64_t(chains.plan.pieces) * rule.heads,
                          Forward<S, X, A>{chains, y.as<S>(), after.as<A>()});
    });
}

}  // namespace masquerade::DEVICE
