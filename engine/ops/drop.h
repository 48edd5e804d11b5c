// SPDX-License-Identifier: MIT
// Dropout inside ops that compute a tensor row by row. A Drop contains the dropout rule, and the document and position
// of each row (RowNames), in a form that kernels can read. The random numbers of a row depend on its document and
// position.
#pragma once
#include "engine/math/point.h"
#include "engine/ops/check.h"
#include "engine/ops/launch.h"

namespace masquerade::DEVICE {

template <class A>
struct Drop {
    const int *document, *position;
    KeyedStream stream;
    std::uint32_t threshold;
    A scale;

    // Calls f(lane, begin, count, drop) for parts of row n, which has C columns. drop(k, v) returns v / (1 - rate) if
    // dropout keeps column begin + k of this row, else 0; k < count. If the rate is 0, no random numbers are drawn.
    template <class Lanes, class F>
    HD void each_part(Lanes lanes, std::int64_t n, int C, F f) const {
        if (threshold == 0) return f(lanes, 0, C, [](auto, A v) { return v; });
        // `least` and `kept` are local copies of members. The compiler must assume that a store can change a member,
        // and would load the member again after each store.
        const std::uint32_t least = threshold;
        const A kept = scale;
        each_draw(lanes, stream, document[n], position[n], C,
                  [&](auto lane, int begin, int count, const std::uint32_t* words) {
                      f(lane, begin, count, [&](auto k, A v) { return dropout(v, words[k], least, kept); });
                  });
    }

    // Sets to[i] = f(i, drop, A(x[i]) ...) for each of the C columns i of row n or, if `add` is true, adds f(...) to
    // to[i]. `to` and each x are of type Row. drop(v) returns v / (1 - rate) if dropout keeps column i, else 0.
    template <class Lanes, class To, class F, class... X>
    HD void store_row(Lanes lanes, std::int64_t n, int C, To to, bool add, F f, X... x) const {
        each_part(lanes, n, C, [&](auto lane, int begin, int count, auto drop) {
            store(lane, count, to + begin, add, [&](auto k) {
                return f(
                    begin + k, [&](A v) { return drop(k, v); }, A(x[begin + k])...);
            });
        });
    }
};

// Returns the Drop of a rule. Throws Error if the rate is outside [0, 1). If the rate is not 0, also throws Error if
// `rows` does not have a document and a position for each row of x.
template <class A>
Drop<A> checked_drop(const char* op, const View& x, const RowNames& rows, const DropoutRule& rule) {
    if (!(rule.rate >= 0 && rule.rate < 1))
        throw Error(op, " ", x.path, ": rate is ", rule.rate, ", expected in [0, 1)");
    if (rule.rate > 0) {
        expect_count(op, "documents", rows.document, x.rows());
        expect_count(op, "positions", rows.position, x.rows());
    }
    return {rows.document.data, rows.position.data, rule.stream, std::uint32_t(double(rule.rate) * 4294967296.0),
            A(1 / (1 - rule.rate))};
}

}  // namespace masquerade::DEVICE
