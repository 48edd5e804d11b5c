// SPDX-License-Identifier: MIT
// Tests that a tape drops numbers if and only if it trains.
#include <doctest/doctest.h>

#include <cstring>

#include "engine/nn/functions.h"
#include "engine/nn/parameters.h"
#include "engine/tensor/numbers.h"

using namespace masquerade;

TEST_CASE("dropout of layers: none where a tape does not train") {
    const std::vector<int> document = {0, 0, 0}, position = {0, 1, 2};
    Parameters p;
    Tensor *w = p.add("w", {4}, {Init::ones}), *b = p.add("b", {4}, {Init::zeros});
    p.allocate(1);
    std::vector<double> numbers;
    for (int i = 0; i < 24; i++) numbers.push_back(0.1 * ((7 * i) % 11) - 0.5);
    SegmentGraph graph;  // one segment, in which all rows see all rows
    graph.keys.push_back({0, 0, 3, 0});
    QuerySegment query;
    query.end = 3, query.self = 0, query.sees_end = 1;
    graph.queries.push_back(query);
    graph.sees = {0};
    graph.documents = 1;
    auto results = [&](bool training, float rate) {
        Arena arena;
        Tape tape(arena, DType::f32);
        tape.begin("step", 1, 2, training);
        const RowNames rows{tape.ints(document), tape.ints(position)};
        Tensor* x = tape.constant("x", {3, 4}, DType::f32, numbers.data());
        Tensor* kv = tape.constant("kv", {3, 8}, DType::f32, numbers.data());
        std::vector<std::vector<double>> all;
        for (Tensor* y : {dropout(tape, x, rows, rate, "dropout"),
                          residual_norm(tape, x, x, rows, rate, w, b, 1e-5, {"drop", "sum", "norm"}),
                          attention(tape, x, {kv}, graph, 2, rate, rows, "attention")}) {
            const OnHost here(y->view());
            all.emplace_back();
            for (std::int64_t i = 0; i < 12; i++) all.back().push_back(here[i]);
        }
        tape.end();
        return all;
    };
    const auto plain = results(true, 0);
    CHECK(results(false, 0.5f) == plain);
    const auto dropped = results(true, 0.5f);
    for (std::size_t i = 0; i < 3; i++) CHECK(dropped[i] != plain[i]);
}
