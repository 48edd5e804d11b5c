// SPDX-License-Identifier: MIT
// The rows of the ops that an insertion decoder needs: tanh, max_rows, side_by_side, chosen_logits, slot_loss.
#include "engine/check/ops_table.h"

#include <algorithm>
#include <cmath>

namespace masquerade::ladder {
namespace {

constexpr Kind arithmetic = Kind::arithmetic;

Case tanh_case(Sizes n) {
    Case c;
    c.input("x", {n.rows, n.columns}).by_row().from_rounded().drawn(uniform(-6, 6)).at_least(1);
    c.output("y", {n.rows, n.columns}).by_row();
    c.forward = [](const Call& a) { tanh_forward(a("x"), a("y")); };
    c.backward = [](const Call& a) { tanh_backward(a.d("y"), a("y"), a.grad("x")); };
    c.record = [](const OnTape& a) { tanh(a.tape, a("x"), "y"); };
    return c;
}

// 0, then where each of some parts ends: from 0 to `most` things in each.
std::vector<int> parts_of(int parts, int most) {
    std::vector<int> first{0};
    for (int g = 0; g < parts; g++) first.push_back(first.back() + (7 * g + most) % (most + 1));
    return first;
}

// Quarters: several rows have the maximum.
Case max_rows_case(Sizes n) {
    const std::vector<int> first = parts_of(n.rows, n.other);
    Case c;
    c.input("x", {first.back(), n.columns}).drawn([](std::vector<double>& numbers, Sequence& random) {
        for (double& x : numbers) x = (double(random.below(9)) - 4) / 4;
    });
    c.output("y", {n.rows, n.columns});
    c.ints("first", first, false);
    c.forward = [](const Call& a) { max_rows_forward(a("x"), a.ints("first"), a("y")); };
    c.backward = [](const Call& a) { max_rows_backward(a.d("y"), a("x"), a.ints("first"), a.grad("x")); };
    c.record = [](const OnTape& a) { max_rows(a.tape, a("x"), a.ints("first"), "y"); };
    return c;
}

// Rows of x in two orders; or, all of them, each beside itself.
Case side_by_side_case(Sizes n, bool twice_all) {
    const int M = n.rows, N = M + (twice_all ? 0 : n.other);
    std::vector<int> both, first, second, one = different_below(M, N), other = one;
    for (int& row : other) row = twice_all ? row : (row + 1) % N;
    if (twice_all) std::sort(one.begin(), one.end()), other = one;
    for (std::size_t m = 0; m < one.size(); m++)
        both.insert(both.end(), {one[m], other[m]}), first.insert(first.end(), {one[m], -1}), second.insert(second.end(), {-1, other[m]});
    const auto halves = [](View y) {
        y.shape = {2 * y.rows(), y.columns() / 2};
        return y;
    };
    Case c;
    c.input("x", {N, n.columns}).with_any_rows().sums(2);
    c.output("y", {M, 2 * n.columns}).with_any_shape();
    c.ints("both", both, false);
    c.ints("first", first, false);
    c.ints("second", second, false);
    c.forward = [=](const Call& a) { gather_rows_forward(a("x"), a.ints("both"), halves(a("y"))); };
    c.backward = [=](const Call& a) {
        const Grad dx = a.grad("x");
        if (!dx) return;
        if (!dx.add) gather_rows_backward(rows_of(halves(a.d("y")), 0, 0), Ints{}, dx);
        for (const char* half : {"first", "second"})
            replace_rows_backward(halves(a.d("y")), a.ints(half), Grad{}, Grad{dx.view, true});
    };
    c.record = [=](const OnTape& a) {
        twice_all ? twice(a.tape, a("x"), "y") : side_by_side(a.tape, a("x"), one, other, "y");
    };
    return c;
}

// `rows` of h, each K rows of `columns`, and `other` words. Two pairs in three rows, some of them alike; every third row has lse
// without a gradient.
Case chosen_logits_case(Sizes n, bool b, bool bias, int K) {
    const int M = n.rows, R = M * K, E = n.columns, V = n.other, J = R > 0 ? R + R / 2 + 1 : 0, G = M / 3 + 2;
    std::vector<int> groups = some_below(R, G, 1), rows = some_below(J, R, 2);
    std::sort(groups.begin(), groups.end()), std::sort(rows.begin(), rows.end());
    Case c;
    c.input("h", {M, K * E}).from_rounded().drawn(scaled(1 / std::sqrt(E))).sums(E + V).at_least(1).any_shape = K > 1;
    c.input("w", {V, E}).as_weight().from_rounded().drawn(scaled(1)).sums(E + R + J).at_least(1).any_rows = !b && !bias;
    if (b) c.input("b", {V}, arithmetic).drawn(scaled(1)).sums(E + R + J).at_least(1);
    if (bias) c.input("bias", {G, V}, arithmetic).with_any_rows().drawn(scaled(1)).sums(E + R + J).at_least(1);
    c.output("z", {J}, arithmetic).sums(E).at_least(1);
    Operand& lse = c.output("lse", K > 1 ? Shape{M, K} : Shape{M}, arithmetic).sums(E + V).at_least(1);
    lse.any_shape = K > 1;
    lse.drawn([](std::vector<double>& numbers, Sequence& random) {
        for (std::size_t i = 0; i < numbers.size(); i++) numbers[i] = i % 3 == 1 ? 0 : 2 * random.uniform_double() - 0.6;
    });
    if (bias) c.ints("groups", groups, false);
    c.ints("rows", rows, false);
    c.ints("tokens", some_below(J, V < 3 ? V : V / 2, 3), false);
    const auto at_most = [](const Call& a, const char* name) { return a.has(name) ? a(name) : View{}; };
    const auto wide = [=](View v) {
        if (K > 1) v.shape = {R, E};
        return v;
    };
    const auto flat = [=](View v) {
        if (K > 1) v.shape = {R};
        return v;
    };
    c.forward = [=](const Call& a) {
        chosen_logits_forward(wide(a("h")), a("w"), at_most(a, "b"), at_most(a, "bias"), bias ? a.ints("groups") : Ints{},
                              a.ints("rows"), a.ints("tokens"), a("z"), flat(a("lse")));
    };
    c.backward = [=](const Call& a) {
        const Grad dh = a.grad("h");
        chosen_logits_backward(a.d("z"), flat(a.d("lse")), wide(a("h")), a("w"), at_most(a, "b"), at_most(a, "bias"), flat(a("lse")),
                               bias ? a.ints("groups") : Ints{}, a.ints("rows"), a.ints("tokens"),
                               dh ? Grad{wide(dh.view), dh.add} : dh, a.grad("w"), b ? a.grad("b") : Grad{},
                               bias ? a.grad("bias") : Grad{});
    };
    c.record = [=](const OnTape& a) {
        chosen_logits(a.tape, a("h"), a("w"), b ? a("b") : nullptr, bias ? a("bias") : nullptr, bias ? a.ints("groups") : Ints{},
                      a.ints("rows"), a.ints("tokens"), "z");
    };
    return c;
}

// `rows` documents of up to `columns` slots, `other` softmaxes, up to three choices a slot.
Op slot_loss_op(const std::string& use, bool joint, bool mixed, bool placed) {
    Op op{"slot_loss" + use, [=](Sizes n) {
        const std::vector<int> first = parts_of(n.rows, n.columns), begin = parts_of(first.back(), 3);
        const int B = n.rows, M = first.back(), J = begin.back(), K = mixed ? n.other : 1, long_sum = 3 * n.columns + K;
        Case c;
        const auto input = [&](const char* name, const Shape& shape) {
            c.input(name, shape, arithmetic).sums(long_sum, 6).at_least(1);
        };
        input("z", {J, K}), input("lse", {M, K});
        if (mixed) input("mix", {joint ? B : M, K});
        if (placed) input("place", {M});
        c.constant("shares", {J}, arithmetic).drawn(uniform(0, 1));
        c.output("loss", {B}, arithmetic).sums(long_sum, 6).at_least(3);
        c.statistic("base", {joint ? B : M, K}).sums(long_sum, 4).at_least(3);
        c.statistic("inner", {J}).sums(long_sum, 4).at_least(3);
        c.ints("first", first, false);
        c.ints("begin", begin, false);
        const auto at_most = [](const Call& a, const char* name) { return a.has(name) ? a(name) : View{}; };
        c.forward = [=](const Call& a) {
            slot_loss_forward(a("z"), a("lse"), at_most(a, "mix"), at_most(a, "place"), a.ints("first"), a.ints("begin"), a("shares"),
                              joint, a("loss"), a("base"), a("inner"));
        };
        c.backward = [=](const Call& a) {
            slot_loss_backward(a.d("loss"), a("z"), a("lse"), at_most(a, "mix"), at_most(a, "place"), a.ints("first"), a.ints("begin"),
                               a("shares"), joint, a("base"), a("inner"), a.grad("z"), a.grad("lse"),
                               mixed ? a.grad("mix") : Grad{}, placed ? a.grad("place") : Grad{});
        };
        c.record = [=](const OnTape& a) {
            slot_loss(a.tape, {a("z"), a("lse")}, mixed ? a("mix") : nullptr, placed ? a("place") : nullptr,
                      {a.ints("first"), a.ints("begin"), a("shares")}, joint, "ladder");
        };
        return c;
    }};
    op.small = {{3, 4, 3}, {2, 3, 2}, {1, 1, 1}};
    op.middle = {{17, 9, 3}};
    op.all = {{1, 1, 1}, {2, 33, 2}, {31, 5, 3}, {65, 3, 15}, {3, 129, 2}, {400, 2, 1}};
    return op;
}

}  // namespace

std::vector<Op> insertion_ops() {
    const auto chosen = [](const char* use, bool b, bool bias, int K) {
        return Op{text("chosen_logits", use), [=](Sizes n) { return chosen_logits_case(n, b, bias, K); }};
    };
    return {
        {"tanh", tanh_case},
        {"max_rows", max_rows_case},
        {"gather_rows, side by side", [](Sizes n) { return side_by_side_case(n, false); }},
        {"gather_rows, twice", [](Sizes n) { return side_by_side_case(n, true); }},
        chosen("", true, true, 1),
        chosen(", no bias", false, false, 1),
        chosen(", mixture", true, false, 2),
        slot_loss_op("", false, false, true),
        slot_loss_op(", no place", false, false, false),
        slot_loss_op(", mixture", false, true, true),
        slot_loss_op(", joint", true, false, false),
        slot_loss_op(", joint mixture", true, true, false),
    };
}

}  // namespace masquerade::ladder
