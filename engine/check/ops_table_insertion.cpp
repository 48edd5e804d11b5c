// SPDX-License-Identifier: MIT
// The rows of the op table for the ops that insertion decoders use: tanh, max_rows, reshape, side_by_side,
// chosen_logits and slot_loss.
#include "engine/check/ops_table.h"

#include <algorithm>
#include <cmath>

namespace masquerade::ladder {
namespace {

Case tanh_case(Sizes n) {
    Case c = stated("NC", n, tanh_forward, tanh_backward, tanh);
    c["x"].from_rounded().drawn(uniform(-6, 6)).at_least(1);
    return c;
}

// Cuts a list into `parts` parts with 0 to `most` elements each. Returns the index of the first element of each part,
// then the number of elements of the list.
std::vector<int> parts_of(int parts, int most) {
    std::vector<int> first{0};
    for (int g = 0; g < parts; g++) first.push_back(first.back() + (7 * g + most) % (most + 1));
    return first;
}

// The numbers of x are multiples of 1/4, so that the maximum often occurs in several rows.
Case max_rows_case(Sizes n) {
    const std::vector<int> first = parts_of(n.rows, n.other);
    Case c = stated("CBN", {n.columns, n.rows, first.back()}, max_rows_forward, max_rows_backward, max_rows);
    c["x"].with_any_rows().drawn(each([](Sequence& random) { return (double(random.below(9)) - 4) / 4; }));
    c.ints("first", first, false);
    return c;
}

Case reshape_case(Sizes n) {
    const int N = n.rows, C = n.columns;
    Case c;
    c.input("x", {N, 2 * C}).with_any_rows();
    c.output("y", {2 * N, C}).with_any_shape();
    const auto as_x = [=](const View& y) { return part_of(y, 0, {N, 2 * C}); };
    c.forward = [=](const Call& a) { convert_forward(a("x"), as_x(a("y"))); };
    c.backward = [=](const Call& a) { convert_backward(as_x(a.d("y")), a.grad("x")); };
    c.record = [=](const OnTape& a) { reshape(a.tape, a("x"), {2 * N, C}, "y"); };
    return c;
}

// Each row of y is two rows of x side by side: a row r, and row (r + 1) mod N or, if `themselves`, row r again.
Case side_by_side_case(Sizes n, bool themselves) {
    const int M = n.rows, N = M + (themselves ? 0 : n.other);
    std::vector<int> both, first, second, one = different_below(M, N), other = one;
    if (themselves)
        std::sort(one.begin(), one.end()), other = one;
    else
        for (int& row : other) row = (row + 1) % N;
    for (std::size_t m = 0; m < one.size(); m++) {
        both.insert(both.end(), {one[m], other[m]});
        first.insert(first.end(), {one[m], -1}), second.insert(second.end(), {-1, other[m]});
    }
    const auto halves = [](const View& y) { return part_of(y, 0, {2 * y.rows(), y.columns() / 2}); };
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
        themselves ? twice(a.tape, a("x"), "y") : side_by_side(a.tape, a("x"), one, other, "y");
    };
    return c;
}

// Row n of y is row n of `b` if n is a multiple of 3, else row n of `a`.
Case rows_of_parts_case(Sizes n) {
    std::vector<char> parts;
    std::vector<int> of_a, of_b;
    for (int row = 0; row < n.rows; row++) {
        parts.push_back(row % 3 == 0);
        of_a.push_back(row % 3 ? row : -1), of_b.push_back(row % 3 ? -1 : row);
    }
    Case c;
    for (const char* name : {"a", "b"}) c.input(name, {n.rows, n.columns}).with_any_rows();
    c.output("y", {n.rows, n.columns}).with_any_shape();
    c.ints("of_a", of_a, false);
    c.ints("of_b", of_b, false);
    c.forward = [](const Call& a) { replace_rows_forward(a("a"), a.ints("of_b"), a("b"), a("y")); };
    c.backward = [](const Call& a) {
        replace_rows_backward(a.d("y"), a.ints("of_b"), a.grad("a"), Grad{});
        replace_rows_backward(a.d("y"), a.ints("of_a"), a.grad("b"), Grad{});
    };
    c.record = [=](const OnTape& a) { rows_of_parts(a.tape, a("a"), a("b"), parts, "y"); };
    return c;
}

// There are M = `rows` slots (places at which a token may be inserted). Each slot has K vectors of h. V is `other`.
// About 1.5 pairs (slot, token) are chosen per slot. Some pairs are equal; their gradients then add up in one logit, or
// cancel. The cotangent of every third lse is 0.
Case chosen_logits_case(Sizes n, bool biases, int K) {
    const int M = n.rows, E = n.columns, V = n.other, J = M > 0 ? M + M / 2 + 1 : 0, G = M / 3 + 2;
    std::vector<int> groups = some_below(biases ? M : 0, G, 1), slots = some_below(J, M, 2);
    std::sort(groups.begin(), groups.end()), std::sort(slots.begin(), slots.end());
    Case c = stated("EVMKJB", {E, V, M, K, J, G}, chosen_logits_forward, chosen_logits_backward, chosen_logits);
    for (Operand& o : c.operands) o.sums(E + K * (M + J)).at_least(1);
    for (const char* name : {"w", "b", "bias"}) c[name].drawn(scaled(1));
    c["h"].from_rounded().drawn(scaled(1 / std::sqrt(E))).sums(E + V);
    c["w"].from_rounded().at_least(3).any_rows = !biases;
    c["bias"].with_any_rows();
    if (!biases) c.remove("b"), c.remove("bias");
    c["z"].sums(E);
    c["lse"].sums(E + V).drawn(with_zeros(-0.6, 1.4));
    c.ints("groups", groups, false);
    c.ints("slots", slots, false);
    c.ints("tokens", some_below(J, V < 3 ? V : V / 2, 3), false);
    return c;
}

// Returns the op slot_loss for `rows` documents. A document has up to `columns` slots (places at which tokens may be
// inserted), and a slot up to three target tokens. If `mixed` is true, the probabilities are a mixture of `other`
// softmaxes.
Op slot_loss_op(const char* use, bool joint, bool mixed, bool placed) {
    Op op{text("slot_loss", use), [=](Sizes n) {
              const std::vector<int> first = parts_of(n.rows, n.columns), begin = parts_of(first.back(), 3);
              const int B = n.rows, M = first.back(), J = begin.back(), K = mixed ? n.other : 1, mixes = joint ? B : M;
              const int sum = 3 * n.columns + K;
              Case c = stated("KJMRB", {K, J, M, mixes, B}, OpNumber::slot_loss_forward);
              for (Operand& o : c.operands)
                  o.sums(sum, o.role == Role::statistic ? 4 : 6).at_least(o.written() ? 3 : 1);
              c["shares"].drawn(uniform(0, 1));
              if (!mixed) c.remove("mix");
              if (!placed) c.remove("place");
              c.ints("first", first, false);
              c.ints("begin", begin, false);
              c.forward = by_names(slot_loss_forward, joint);
              c.backward = by_names(slot_loss_backward, joint);
              c.record = [=](const OnTape& a) {
                  slot_loss(a.tape, {a("z"), a("lse")}, mixed ? a("mix") : nullptr, placed ? a("place") : nullptr,
                            {a.ints("first"), a.ints("begin"), a("shares")}, joint, "ladder");
              };
              return c;
          }};
    op.small = {{3, 4, 3}, {2, 3, 2}, {1, 1, 1}};
    op.middle = {{17, 9, 3}};
    op.all = {{1, 1, 1}, {2, 33, 2}, {31, 5, 3}, {65, 3, 15}, {3, 129, 2}, {400, 2, 1}};
    // Rows of the op table with mixtures run at three far sizes. Rows without mixtures run the same loops, so they need
    // only one far size. K is at most 259, because softmax(mix) takes K^2 steps for each row of mix.
    op.far = {{3, 1291, 1}};
    if (mixed) op.far = {{1291, 3, 2}, {3, 1291, 2}, {3, 3, 259}};
    return op;
}

}  // namespace

std::vector<Op> insertion_ops() {
    return {
        {"tanh", tanh_case},
        {"max_rows", max_rows_case},
        {"convert, reshape", reshape_case},
        {"gather_rows, side by side", with(side_by_side_case, false)},
        {"gather_rows, twice", with(side_by_side_case, true)},
        {"replace_rows, rows of parts", rows_of_parts_case},
        {"chosen_logits", with(chosen_logits_case, true, 1)},
        {"chosen_logits, no bias", with(chosen_logits_case, false, 1)},
        {"chosen_logits, mixture", with(chosen_logits_case, true, 3)},
        slot_loss_op("", false, false, true),
        slot_loss_op(", no place", false, false, false),
        slot_loss_op(", mixture", false, true, true),
        slot_loss_op(", joint", true, false, false),
        slot_loss_op(", joint mixture", true, true, false),
    };
}

}  // namespace masquerade::ladder
