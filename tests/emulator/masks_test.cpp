// SPDX-License-Identifier: MIT
// Ops keep data that they have computed from a mask for the next call. Tests that this data is not used for a mask that
// differs in a single number, and that a captured step sends all data that it needs.
#include <doctest/doctest.h>

#include "engine/check/ops_table.h"
#include "tests/emulator/emulator.h"
#include "tests/emulator/planted.h"

using namespace masquerade;
using namespace masquerade::ladder;

namespace {

constexpr int rows = 60, size = 3, heads = 2;

// Returns an op for attention under `graph`, which a test may change between two calls.
Op under(const SegmentGraph& graph, const char* use) {
    return {use, [&graph](Sizes) {
                Case c;
                c.input("q", {rows, size * heads});
                c.input("kv", {rows, 2 * size * heads});
                c.output("y", {rows, size * heads});
                c.statistic("lse", {rows, heads});
                const AttentionRule rule{heads, 0, {}, {}};
                c.forward = [&graph, rule](const Call& a) {
                    attention_forward(a("q"), Views{a("kv")}, graph, rule, a("y"), a("lse"));
                };
                c.backward = [&graph, rule](const Call& a) {
                    attention_backward(a.d("y"), a("q"), Views{a("kv")}, a("y"), a("lse"), graph, rule, a.grad("q"),
                                       Grads{a.grad("kv")});
                };
                return c;
            }};
}

std::string all_bits(const Call& call) {
    call.forward(), call.backward();
    std::string all;
    for (const Guarded& value : call.values) all += value.bytes();
    for (const auto& gradient : call.gradients)
        if (gradient) all += gradient->bytes();
    return all;
}

struct Change {
    const char* what;
    Rule rule;
    void (*change)(SegmentGraph&);
};
const std::vector<Change> changes = {
    {"bits", Rule::bits,
     [](SegmentGraph& g) {
         for (auto& word : g.bits) word = ~word;
     }},
    {"query_rank", Rule::rank,
     [](SegmentGraph& g) {
         for (int& rank : g.query_rank) rank = 2 - rank;
     }},
    {"key_rank", Rule::rank,
     [](SegmentGraph& g) {
         for (int& rank : g.key_rank) rank = 2 - rank;
     }},
    {"rule", Rule::causal,
     [](SegmentGraph& g) {
         for (auto& q : g.queries) q.rule = Rule::anticausal;
     }},
    {"window", Rule::full,
     [](SegmentGraph& g) {
         for (auto& q : g.queries) q.window = 1;
     }},
    {"block", Rule::full,
     [](SegmentGraph& g) {
         for (auto& q : g.queries) q.block = 2;
     }},
    {"sees", Rule::full, [](SegmentGraph& g) { std::rotate(g.sees.begin(), g.sees.begin() + 1, g.sees.end()); }},
    {"keys", Rule::full,
     [](SegmentGraph& g) {
         for (auto& k : g.keys) k.begin += k.end - k.begin > 1;
     }},
};

}  // namespace

TEST_CASE("masks: two that differ in one part alone, one after the other, on the CPU and as kernels") {
    for (const Change& c : changes) {
        INFO(std::string(c.what));
        SegmentGraph graph = by_rule(c.rule)(rows).graph;
        const Op op = under(graph, c.what);
        for (Device device : {Device::cpu, Device::cuda}) {
            graph = by_rule(c.rule)(rows).graph;
            emulator::AsCuda emulated;
            const Case fresh = prepared(op, {rows, size, heads});
            const std::string first = all_bits(Call(fresh, DType::f32, DType::f32, device));
            c.change(graph);
            const Call found(fresh, DType::f32, DType::f32, device), exact(fresh, DType::f64, DType::f32);
            CHECK(all_bits(found) != first);
            exact.forward(), exact.backward();
            for (std::size_t i = 0; i < fresh.operands.size(); i++) {
                if (fresh.operands[i].written())
                    CHECK(error_of(found.values[i].view(), exact.values[i].view(), 1) < 1e-5);
                else
                    CHECK(error_of(found.gradients[i]->view(), exact.gradients[i]->view(), 1) < 1e-5);
            }
            graph = by_rule(c.rule)(rows).graph;
            CHECK(all_bits(Call(fresh, DType::f32, DType::f32, device)) == first);
        }
    }
}

TEST_CASE("masks: a step that is captured counts on nothing that an earlier one has sent") {
    for (const Op& op : ops_table()) {
        if (op.name.find("attention") == std::string::npos && op.name.find("lambda") == std::string::npos &&
            op.name.find("sinkhorn") == std::string::npos)
            continue;
        INFO(op.name);
        const Case c = prepared(op, op.small.front());
        emulator::AsCuda emulated;
        const auto bits = [&] { return all_bits(Call(c, DType::f32, DType::f32, Device::cuda)); };
        try {
            const std::string first = bits();
            fibers::begin_capture();
            CHECK(bits() == first);
            CHECK(bits() == first);
        } catch (const Error& e) {
            CHECK(std::string(e.what()).find("has no kernel") != std::string::npos);
        }
    }
}
