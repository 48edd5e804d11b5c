// SPDX-License-Identifier: MIT
// Tests attention through a bounded state: against its formula for every pair that a mask permits, continued from a
// state, with packs of any size, and refusals.
#include <algorithm>

#include "engine/ops/state_plan.h"
#include "tests/ops/attention_calls.h"

using namespace masquerade;
using namespace masquerade::attention_calls;

namespace {

constexpr StateRule rules[] = {{2, 4, StatePack::sum, StateRead::attend, 1.5, 0},
                               {2, 4, StatePack::exponential, StateRead::attend, 1.5, 0},
                               {2, 4, StatePack::exponential, StateRead::kernel, 1.5, 0},
                               {2, 4, StatePack::sum, StateRead::kernel, 1.5, 0.01},
                               {2, 4, StatePack::exponential, StateRead::linear, 1.5, 0},
                               {2, 4, StatePack::sum, StateRead::linear, 1.5, 0},
                               {2, 4, StatePack::gated, StateRead::kernel, 1.5, 0.001},
                               {2, 4, StatePack::pair, StateRead::attend, 1.5, 0}};

template <class T>
struct StateCall {
    StateRule rule;
    Layout layout;
    Array<T> x, pack[2], kv[2], gate[2], y;
    bool attends() const { return rule.read == StateRead::attend; }
    Views packs() const { return {pack[0].view(), pack[1].view()}; }
    Views kvs() const { return {kv[0].view(), kv[1].view()}; }
    Views gates() const { return rule.pack == StatePack::gated ? Views{gate[0].view(), gate[1].view()} : Views{}; }
    void run() {
        cpu::state_attention_forward(x.view(), packs(), kvs(), gates(), layout.graph, rule, {}, y.view(), {});
    }
};

constexpr int D = 3, C = 2 * D;

StateCall<double> random_state_call(Sequence& random, const StateRule& rule, const Layout& layout,
                                    double deviation = 1) {
    StateCall<double> c{rule, layout, {}, {}, {}, {}, {}};
    const auto numbers = [&](int rows, int columns, bool positive) {
        Array<double> a({rows, columns}, "numbers", 0);
        for (std::int64_t i = 0; i < a.count(); i++)
            a.data()[i] = positive ? 0.1 + random.uniform() : deviation * 3.4 * (random.uniform() - 0.5);
        return a;
    };
    const bool positive = rule.pack != StatePack::exponential && rule.read == StateRead::kernel;
    const int R = rule.heads * rule.slots;
    c.x = numbers(layout.queries, c.attends() ? C : R, positive);
    for (int s = 0; s < 2; s++) {
        c.pack[s] = numbers(layout.keys[s], rule.pack == StatePack::pair ? 2 * R : R, positive);
        c.kv[s] = numbers(layout.keys[s], c.attends() ? 2 * C : C, false);
        c.gate[s] = numbers(layout.keys[s], rule.heads, false);
    }
    c.y = Array<double>({layout.queries, C}, "y", 7);
    return c;
}

// Returns the keys that a row sees, in the order in which a state reads them. Its own segment comes last; within it,
// the order is backwards for an anticausal rule, and by rank for rank rules.
std::vector<Seen> in_order(const SegmentGraph& graph, const QuerySegment& q, int row) {
    std::vector<Seen> seen = seen_by(graph, q, row);
    const auto own = std::stable_partition(seen.begin(), seen.end(), [&](const Seen& k) { return k.key != q.self; });
    if (q.rule == Rule::anticausal) std::reverse(own, seen.end());
    if (q.rule == Rule::rank || q.rule == Rule::strict_rank)
        std::stable_sort(own, seen.end(), [&](const Seen& a, const Seen& b) {
            return graph.key_rank[std::size_t(a.row)] < graph.key_rank[std::size_t(b.row)];
        });
    return seen;
}

// Returns the result of the formula in engine/math/state.h for one head, computed over the keys that a row sees.
std::vector<double> formula(const StateCall<double>& c, const QuerySegment& segment, int row, int head) {
    const int R = c.rule.slots;
    const bool exponential = c.rule.pack == StatePack::exponential, kernel = c.rule.read == StateRead::kernel;
    std::vector<double> y(D, 0), p(std::size_t(R), 0), n(std::size_t(R), 0), K(std::size_t(R * D), 0),
        V(std::size_t(R * D), 0);
    const std::vector<Seen> seen = in_order(c.layout.graph, segment, row);
    std::vector<double> shares(seen.size(), 1);
    double open = 1;  // product of the gates behind a key
    for (std::size_t k = seen.size(); k-- > 0 && c.rule.pack == StatePack::gated;) {
        const double g =
            1 / (1 + std::exp(-c.gate[c.layout.graph.keys[std::size_t(seen[k].key)].source](seen[k].row, head)));
        shares[k] = (1 - g) * open;
        open *= g;
    }
    for (std::size_t k = 0; k < seen.size(); k++)
        for (int r = 0; r < R; r++) {
            const Seen& key = seen[k];
            const int source = c.layout.graph.keys[std::size_t(key.key)].source;
            const bool pair = c.rule.pack == StatePack::pair;
            const double s = c.rule.scale * c.pack[source](key.row, head * (pair ? 2 * R : R) + r),
                         w = exponential ? std::exp(s) : s * shares[k],
                         f = pair ? c.rule.scale * c.pack[source](key.row, head * 2 * R + R + r) : w;
            n[std::size_t(r)] += exponential || kernel ? w : 1;
            for (int d = 0; d < D; d++) {
                K[std::size_t(r * D + d)] += w * c.kv[source](key.row, head * D + d);
                V[std::size_t(r * D + d)] += f * c.kv[source](key.row, (c.attends() ? C : 0) + head * D + d);
            }
        }
    if (seen.empty()) return y;
    double total = 0;
    for (int r = 0; r < R; r++) {
        double& q = p[std::size_t(r)];
        if (c.attends()) {
            for (int d = 0; d < D; d++) q += c.x(row, head * D + d) * K[std::size_t(r * D + d)] / n[std::size_t(r)];
            q = std::exp(q / std::sqrt(double(D)));
        } else {
            q = kernel && exponential ? std::exp(c.x(row, head * R + r)) : c.x(row, head * R + r);
            if (kernel) q *= n[std::size_t(r)];
        }
        total += q;
    }
    for (int r = 0; r < R; r++)
        for (int d = 0; d < D; d++)
            y[std::size_t(d)] += p[std::size_t(r)] / (c.rule.read == StateRead::linear ? 1 : total) *
                                 V[std::size_t(r * D + d)] / n[std::size_t(r)];
    return y;
}

Layout honoured_layout(Sequence& random, int documents, int biggest) {
    Layout layout = random_layout(random, documents, biggest);
    for (QuerySegment& q : layout.graph.queries) {
        q.window = -1;
        q.block = 0;
        if (q.rule == Rule::bits) q.rule = Rule::causal;
    }
    return layout;
}

}  // namespace

TEST_CASE("state_attention: equals its formula under random masks, whole and in pieces") {
    Sequence random(3, "state");
    for (int round = 0; round < 60; round++)
        for (const StateRule& rule : rules) {
            StateCall<double> c = random_state_call(random, rule, honoured_layout(random, 3, 9));
            if (round % 2) c.rule.piece = 1 + int(random.below(6));
            c.run();
            CHECK(c.y.guarded());
            std::vector<char> covered(std::size_t(c.layout.queries), 0);
            for (const QuerySegment& q : c.layout.graph.queries)
                for (int row = q.begin; row < q.end; row++)
                    for (int head = 0; head < 2; head++) {
                        covered[std::size_t(row)] = 1;
                        const std::vector<double> y = formula(c, q, row, head);
                        for (int d = 0; d < D; d++)
                            CHECK(std::abs(c.y(row, head * D + d) - y[std::size_t(d)]) <=
                                  1e-12 * (1 + std::abs(y[std::size_t(d)])));
                    }
            for (int row = 0; row < c.layout.queries; row++)
                for (int d = 0; d < C; d++) CHECK((covered[std::size_t(row)] || c.y(row, d) == 0));
        }
}

TEST_CASE("state_attention: packs of any size neither overflow nor vanish") {
    Sequence random(4, "large");
    for (const StateRule& rule : rules) {
        if (rule.pack != StatePack::exponential) continue;
        StateCall<double> c = random_state_call(random, rule, honoured_layout(random, 6, 40), 60);
        if (rule.read != StateRead::kernel)
            for (std::int64_t i = 0; i < c.x.count(); i++) c.x.data()[i] /= 60;
        c.run();
        StateCall<float> f{rule, c.layout, {}, {}, {}, {}, {}};
        fill(f.x, c.x), fill(f.y, c.y);
        for (int s = 0; s < 2; s++) fill(f.pack[s], c.pack[s]), fill(f.kv[s], c.kv[s]);
        f.run();
        double largest = 0, error = 0;
        for (std::int64_t i = 0; i < c.y.count(); i++) {
            largest = std::max(largest, std::abs(c.y.data()[i]));
            error = std::max(error, std::abs(double(f.y.data()[i]) - c.y.data()[i]));
        }
        CHECK(largest > 1);
        CHECK(error < 1e-4 * largest);
    }
}

TEST_CASE("state_attention: a state that was left goes on as if all rows had come at once, by bits") {
    Sequence random(5, "steps");
    for (const StateRule& rule : rules) {
        Layout all;
        all.queries = all.keys[0] = 12;
        all.graph.documents = 2;
        for (int d = 0; d < 2; d++) {
            QuerySegment q;
            q.begin = 6 * d, q.end = 6 * d + 6, q.document = q.self = d;
            q.sees_begin = d, q.sees_end = d + 1, q.rule = Rule::causal;
            all.graph.sees.push_back(d);
            all.graph.keys.push_back({0, 6 * d, 6 * d + 6, 0});
            all.graph.queries.push_back(q);
        }
        StateCall<double> whole = random_state_call(random, rule, all);
        whole.run();
        const int numbers = rule.heads * (1 + 2 * rule.slots + rule.slots * D * (whole.attends() ? 2 : 1));
        Array<double> before, after({2, numbers}, "state", 0);
        for (int t = 0; t < 6; t++) {
            StateCall<double> step = whole;
            step.layout.queries = step.layout.keys[0] = 2;
            for (int d = 0; d < 2; d++) {
                QuerySegment& q = step.layout.graph.queries[std::size_t(d)];
                q.begin = d, q.end = d + 1;
                step.layout.graph.keys[std::size_t(d)] = {0, d, d + 1, 0};
            }
            const auto rows = [&](const Array<double>& of) {
                Array<double> some({2, int(of.shape.columns())}, "rows", 0);
                for (int d = 0; d < 2; d++)
                    for (int i = 0; i < int(of.shape.columns()); i++) some(d, i) = of(6 * d + t, i);
                return some;
            };
            step.x = rows(whole.x), step.pack[0] = rows(whole.pack[0]), step.kv[0] = rows(whole.kv[0]);
            step.gate[0] = rows(whole.gate[0]);
            step.y = Array<double>({2, C}, "y", 0);
            before = after;
            cpu::state_attention_forward(step.x.view(), step.packs(), step.kvs(), step.gates(), step.layout.graph, rule,
                                         t > 0 ? before.view() : View{}, step.y.view(), after.view());
            CHECK(step.y == rows(whole.y));
        }
    }
}

TEST_CASE("state_attention: a state whose size does not fit into an int is refused") {
    Sequence random(6, "large");
    StateCall<double> c = random_state_call(random, rules[0], honoured_layout(random, 1, 5));
    c.rule.slots = (1 << 30) / D;
    CHECK_THROWS_WITH(c.run(),
                      "state_attention: the state of a head with 357913941 slots of 3 columns has 2863311529 "
                      "numbers, expected fewer than 2^31: choose fewer slots or more heads");
    CHECK(state_numbers(C, c.rule) == 2 * std::int64_t(2863311529));
}

TEST_CASE("state_attention: masks that no growing state can honour are refused with the reason") {
    Sequence random(6, "refused");
    Layout layout = honoured_layout(random, 1, 5);
    CHECK(state_refuses(layout.graph) == "");
    layout.graph.queries[0].window = 2;
    CHECK(state_refuses(layout.graph) == "the mask has a window or a pattern, and a growing state cannot forget keys");
    StateCall<double> c = random_state_call(random, rules[0], layout);
    CHECK_THROWS_WITH(c.run(),
                      "state_attention: the mask has a window or a pattern, and a growing state cannot forget keys");
    layout.graph.queries[0].window = -1;
    layout.graph.queries[0].rule = Rule::bits;
    CHECK(state_refuses(layout.graph) == "its rows do not see keys in one common order, which a growing state needs");
}
