// SPDX-License-Identifier: MIT
// The op table of the test ladder (engine/check/ladder.h). Each op of ops.h has one row for each way of using it:
// sizes, operands, the forward and backward calls, and the call that records the op on a tape. Further rows are in the
// files ops_table_*.cpp.
#include "engine/check/ops_table.h"
#include "engine/base/shuffle.h"
#include "engine/math/features.h"

#include <algorithm>
#include <cmath>

namespace masquerade::ladder {

std::vector<int> some_below(int count, int bound, std::uint32_t salt) {
    Sequence random(salt, "indices");
    std::vector<int> all(static_cast<std::size_t>(count));
    for (int& x : all) x = int(random.below(std::uint32_t(bound)));
    return all;
}

std::vector<int> different_below(int count, int bound) {
    Sequence random(std::uint64_t(bound), "order");
    std::vector<int> all(static_cast<std::size_t>(bound));
    for (int i = 0; i < bound; i++) all[std::size_t(i)] = i;
    shuffle(all, random);
    all.resize(std::size_t(count));
    return all;
}

Draw scaled(double deviation) {
    return [deviation](std::vector<double>& numbers, Sequence& random) {
        for (double& x : numbers) x = deviation * normal(random);
    };
}

namespace {

constexpr Kind arithmetic = Kind::arithmetic;

// x may have no columns (I = 0). Every sum is then 0, and y is the bias.
Case linear_case(Sizes n, bool bias, Kind of_y) {
    const int M = n.rows, I = n.columns, O = n.other;
    Case c;
    c.input("x", {M, I}).by_row().sums(O);
    c.input("w", {O, I}).as_weight().sums(M);
    if (bias) c.input("b", {O}, arithmetic).sums(M);
    c.output("y", {M, O}, of_y).by_row().sums(I).at_least(1);
    c.forward = by_names(linear_forward);
    c.backward = by_names(linear_backward);
    c.record = [bias, of_y](const OnTape& a) {
        (of_y == arithmetic ? linear_unrounded : linear)(a.tape, a("x"), a("w"), bias ? a("b") : nullptr, "y");
    };
    return c;
}

Case layernorm_case(Sizes n) {
    const int N = n.rows, C = n.columns;
    Case c;
    // With two columns dx nearly cancels: it is the difference of terms as large as rstd.
    c.input("x", {N, C}).by_row().sums(C).at_least(3);
    c.input("w", {C}, arithmetic).sums(N);
    c.input("b", {C}, arithmetic).sums(N);
    c.output("y", {N, C}).by_row().sums(C);
    c.statistic("mean", {N}).by_row().sums(C).at_least(1);
    c.statistic("rstd", {N}).by_row().sums(C);
    c.forward = by_names(layernorm_forward, 1e-5);
    c.backward = by_names(layernorm_backward);
    c.record = [](const OnTape& a) { layernorm(a.tape, a("x"), a("w"), a("b"), 1e-5, "y"); };
    return c;
}

Case gelu_case(Sizes n, GeluKind kind) {
    Case c;
    c.input("x", {n.rows, n.columns}).by_row().drawn(uniform(-6, 6)).sums(1, 4).at_least(1);
    c.output("y", {n.rows, n.columns}).by_row().at_least(1);
    c.forward = by_names(gelu_forward, kind);
    c.backward = by_names(gelu_backward, kind);
    c.record = [kind](const OnTape& a) { gelu(a.tape, a("x"), kind, "y"); };
    return c;
}

Case rms_norm_case(Sizes n) {
    const int N = n.rows, C = n.columns;
    Case c;
    // With one column, dx is a small difference of two terms as large as inverse.
    c.input("x", {N, C}).by_row().sums(C).at_least(4);
    c.input("w", {C}, arithmetic).sums(N);
    c.output("y", {N, C}).by_row().sums(C);
    c.statistic("inverse", {N}).by_row().sums(C);
    c.forward = by_names(rms_norm_forward, 1e-5);
    c.backward = by_names(rms_norm_backward);
    c.record = [](const OnTape& a) { rms_norm(a.tape, a("x"), a("w"), 1e-5, "y"); };
    return c;
}

template <class Forward, class Backward>
Case activation_case(Sizes n, Forward forward, Backward backward,
                     Tensor* (*record)(Tape&, Tensor*, const std::string&)) {
    Case c;
    c.input("x", {n.rows, n.columns}).by_row().drawn(uniform(-6, 6)).sums(1, 4).at_least(1);
    c.output("y", {n.rows, n.columns}).by_row().at_least(1);
    c.forward = by_names(forward);
    c.backward = by_names(backward);
    c.record = [record](const OnTape& a) { record(a.tape, a("x"), "y"); };
    return c;
}
Case silu_case(Sizes n) { return activation_case(n, silu_forward, silu_backward, silu); }
Case squared_relu_case(Sizes n) {
    return activation_case(n, squared_relu_forward, squared_relu_backward, squared_relu);
}

Case glu_case(Sizes n, GateKind kind) {
    Case c;
    c.input("x", {n.rows, 2 * n.columns}).by_row().drawn(uniform(-6, 6)).sums(1, 4).at_least(1);
    c.output("y", {n.rows, n.columns}).by_row().at_least(1);
    c.forward = by_names(glu_forward, kind);
    c.backward = by_names(glu_backward, kind);
    c.record = [kind](const OnTape& a) { glu(a.tape, a("x"), kind, "y"); };
    return c;
}

// u = x w^T + b, a = gelu(u). a has no gradient; it is an input of gelu_linear.
Case linear_gelu_case(Sizes n, GeluKind kind, bool bias) {
    const int M = n.rows, I = n.columns, O = n.other;
    Case c;
    c.input("x", {M, I}).by_row().sums(O);
    c.input("w", {O, I}).as_weight().sums(M);
    if (bias) c.input("b", {O}, arithmetic).sums(M);
    c.output("u", {M, O}).by_row().sums(I).at_least(1);
    c.statistic("a", {M, O}, Kind::storage).by_row().from_rounded().sums(I).at_least(1);
    c.forward = by_names(linear_gelu_forward, kind);
    c.backward = [bias](const Call& a) {
        linear_backward(a.d("u"), a("x"), a("w"), a.grad("x"), a.grad("w"), bias ? a.grad("b") : Grad{});
    };
    c.record = [kind, bias](const OnTape& a) {
        linear_gelu(a.tape, a("x"), a("w"), bias ? a("b") : nullptr, kind, "u", "a");
    };
    return c;
}

// y = gelu(u) w^T + b. The backward covers both the product and the gelu.
Case gelu_linear_case(Sizes n, GeluKind kind, bool bias) {
    const int M = n.rows, I = n.columns, O = n.other;
    Case c;
    c.input("u", {M, I}).by_row().from_rounded().sums(O).at_least(1);
    c.input("w", {O, I}).as_weight().from_rounded().sums(M);
    if (bias) c.input("b", {O}, arithmetic).sums(M);
    c.output("y", {M, O}).by_row().from_rounded().sums(I).at_least(1);
    c.statistic("a", {M, I}, Kind::storage).by_row().at_least(1);
    c.forward = [kind, bias](const Call& a) {
        gelu_forward(a("u"), kind, a("a"));
        linear_forward(a("a"), a("w"), bias ? a("b") : View{}, a("y"));
    };
    c.backward = by_names(gelu_linear_backward, kind);
    c.record = [kind, bias](const OnTape& a) {
        gelu_forward(a("u")->view(), kind, a("a")->view());
        gelu_linear(a.tape, {a("u"), a("a"), kind}, a("w"), bias ? a("b") : nullptr, "y");
    };
    return c;
}

// Converts from storage type to arithmetic type or the reverse. Between equal types, the op is a copy.
Case convert_case(Sizes n, Kind from, Kind to) {
    Case c;
    c.input("x", {n.rows, n.columns}, from).by_row();
    c.output("y", {n.rows, n.columns}, to).by_row();
    c.forward = by_names(convert_forward);
    c.backward = by_names(convert_backward);
    c.record = [to](const OnTape& a) {
        convert(a.tape, a("x"), to == arithmetic ? arithmetic_of(a.tape.dtype) : a.tape.dtype, "y");
    };
    return c;
}

Case add_case(Sizes n) {
    Case c;
    c.input("a", {n.rows, n.columns}).by_row();
    c.input("b", {n.rows, n.columns}).by_row();
    c.output("y", {n.rows, n.columns}).by_row();
    c.forward = by_names(add_forward);
    c.backward = by_names(add_backward);
    c.record = [](const OnTape& a) { add(a.tape, a("a"), a("b"), "y"); };
    return c;
}

void name_rows(Case& c, int rows) {
    c.ints("document", some_below(rows, 1 << 20, 1));
    c.ints("position", some_below(rows, 512, 2));
}

Case dropout_case(Sizes n) {
    Case c;
    c.input("x", {n.rows, n.columns}).by_row();
    c.output("y", {n.rows, n.columns}).by_row();
    name_rows(c, n.rows);
    DropoutRule rule{0.3f, make_stream(5, "ladder", 2)};
    c.forward = by_names(dropout_forward, rule);
    c.backward = by_names(dropout_backward, rule);
    c.record = [](const OnTape& a) { dropout(a.tape, a("x"), a.rows(), 0.3f, "ladder"); };
    return c;
}

// Draws multiples of 1/16. With a dropout rate of 1/2 or 0, s = x + dropout(f) is then exact in bf16, so that mean and
// rstd are computed from the same s in every type.
void sixteenths(std::vector<double>& numbers, Sequence& random) {
    for (double& x : numbers) x = (double(random.below(65)) - 32) / 16;
}

Case residual_norm_case(Sizes n, float rate) {
    const int N = n.rows, C = n.columns;
    Case c;
    c.input("x", {N, C}).by_row().drawn(sixteenths).sums(C).at_least(3);
    c.input("f", {N, C}).by_row().drawn(sixteenths).sums(C).at_least(3);
    c.input("w", {C}, arithmetic).sums(N);
    c.input("b", {C}, arithmetic).sums(N);
    c.output("y", {N, C}).by_row().sums(C);
    c.statistic("s", {N, C}, Kind::storage).by_row();
    c.statistic("mean", {N}).by_row().sums(C).at_least(1);
    c.statistic("rstd", {N}).by_row().sums(C);
    if (rate > 0) name_rows(c, N);
    DropoutRule rule{rate, make_stream(5, "ladder", 2)};
    c.forward = by_names(residual_norm_forward, rule, 1e-5);
    c.backward = by_names(residual_norm_backward, rule);
    c.record = [rate](const OnTape& a) {
        residual_norm(a.tape, a("x"), a("f"), a.rows(), rate, a("w"), a("b"), 1e-5, {"ladder", "s", "y"});
    };
    return c;
}

// The table w has `other` rows. If it is small, many rows of y read the same row of w.
Case embedding_case(Sizes n) {
    Case c;
    c.input("w", {n.other, n.columns}).as_weight().with_any_rows().sums(n.rows);
    c.output("y", {n.rows, n.columns}).by_row();
    c.ints("ids", some_below(n.rows, n.other, 3));
    c.forward = by_names(embedding_forward);
    c.backward = by_names(embedding_backward);
    c.record = [](const OnTape& a) { embedding(a.tape, a.ints("ids"), a("w"), "y"); };
    return c;
}

// Two heads of 2 * `other` columns each are rotated; the remaining `columns` columns are copied.
Case rotary_case(Sizes n) {
    const int D = 2 * n.other, P = 50;
    Case c;
    c.input("x", {n.rows, 2 * D + n.columns}).by_row();
    c.constant("rotary_table", {P, D}, arithmetic).with_any_rows();
    c.output("y", {n.rows, 2 * D + n.columns}).by_row();
    c.ints("positions", some_below(n.rows, P, 4));
    c.forward = by_names(rotary_forward, 2 * D);
    // The table need not contain cosines and sines: the backward is the gradient for any numbers.
    c.backward = by_names(rotary_backward, 2 * D);
    c.record = [D](const OnTape& a) { rotary(a.tape, a("x"), a.ints("positions"), a("rotary_table"), 2 * D, "y"); };
    return c;
}

// y has two heads of 2 * `other` columns each, which are rotated, and three more columns; x has `columns` columns.
Case linear_rotary_case(Sizes n) {
    const int M = n.rows, I = n.columns, D = 2 * n.other, O = 2 * D + 3, P = 50;
    Case c;
    c.input("x", {M, I}).by_row().from_rounded().sums(O).at_least(1);
    c.input("w", {O, I}).as_weight().from_rounded().sums(M).at_least(1);
    c.input("b", {O}, arithmetic).from_rounded().sums(M).at_least(1);
    c.constant("rotary_table", {P, D}, arithmetic).with_any_rows().drawn(uniform(-0.7, 0.7));
    c.output("y", {M, O}).by_row().from_rounded().sums(I).at_least(1);
    c.ints("positions", some_below(M, P, 4));
    c.forward = by_names(linear_rotary_forward, 2 * D);
    c.backward = by_names(linear_rotary_backward, 2 * D);
    c.record = [D](const OnTape& a) {
        linear_rotary(a.tape, a("x"), a("w"), a("b"), a.ints("positions"), a("rotary_table"), 2 * D, "y");
    };
    return c;
}

Case gather_rows_case(Sizes n, bool none) {
    const int M = none ? 0 : n.rows, N = n.rows + n.other;
    Case c;
    c.input("x", {N, n.columns}).with_any_rows();
    c.output("y", {M, n.columns}).of_row = !none;
    c.ints("rows", different_below(M, N), !none);
    c.forward = by_names(gather_rows_forward);
    c.backward = by_names(gather_rows_backward);
    c.record = [](const OnTape& a) { gather_rows(a.tape, a("x"), a.ints("rows"), "y"); };
    return c;
}

// Rows 0, 3, 6 ... of x are replaced by the rows of u, in random order.
Case replace_rows_case(Sizes n) {
    const int B = (n.rows + 2) / 3;
    std::vector<int> order = different_below(B, B), which(static_cast<std::size_t>(n.rows), -1);
    for (int b = 0; b < B; b++) which[std::size_t(3 * b)] = order[std::size_t(b)];
    Case c;
    c.input("x", {n.rows, n.columns}).by_row();
    c.input("u", {B, n.columns}).with_any_rows();
    c.output("y", {n.rows, n.columns}).by_row();
    c.ints("which", which);
    c.forward = by_names(replace_rows_forward);
    c.backward = by_names(replace_rows_backward);
    c.record = [](const OnTape& a) { replace_rows(a.tape, a("x"), a.ints("which"), a("u"), "y"); };
    return c;
}

Case store_rows_case(Sizes n) {
    Case c;
    c.constant("x", {n.rows, n.columns}).by_row();
    c.updated("y", {n.rows + n.other, n.columns}, Kind::storage).with_any_rows();
    c.ints("rows", different_below(n.rows, n.rows + n.other));
    c.forward = by_names(store_rows);
    c.definition = [C = n.columns](const Call& a) {
        for (std::int64_t i = 0; i < a("x").count(); i++)
            a("y").as<double>()[a.ints("rows")[i / C] * C + i % C] = a("x").as<double>()[i];
    };
    return c;
}

Case normalise_case(Sizes n, int heads, Kind kind) {
    const int B = n.rows, Z = n.columns;
    Case c;
    c.input("x", {B, heads * Z}, kind).by_row().from_rounded().sums(Z).at_least(heads > 1 ? 3 : 1);
    c.output("y", {B, heads * Z}, kind).by_row().sums(Z);
    c.statistic("inverse", {B, heads}).by_row().sums(Z);
    c.forward = by_names(normalise_forward, heads);
    c.backward = by_names(normalise_backward, heads);
    c.record = [heads](const OnTape& a) { normalise(a.tape, a("x"), "y", heads); };
    return c;
}

// All norms are below the lower bound 1e-6, so that y = 1e6 x.
Case normalise_clamped_case(Sizes n) {
    Case c = normalise_case(n, 1, arithmetic);
    c.operands[0].drawn(uniform(-1e-8, 1e-8)).at_least(1e6);
    return c;
}

Case scale_columns_case(Sizes n) {
    Case c;
    c.input("x", {n.rows, n.columns}).by_row();
    c.input("w", {n.columns}, arithmetic).sums(n.rows);
    c.output("y", {n.rows, n.columns}).by_row();
    c.forward = by_names(scale_columns_forward);
    c.backward = by_names(scale_columns_backward);
    c.record = [](const OnTape& a) { scale_columns(a.tape, a("x"), a("w"), "y"); };
    return c;
}

// Two heads of `columns` numbers each, and `other` rows of p. p is a weight or an activation.
Case head_scores_case(Sizes n, bool weight) {
    const int C = 2 * n.columns;
    Case c;
    c.input("x", {n.rows, C}).by_row().sums(n.other).at_least(1);
    Operand& p = c.input("p", {n.other, C}).sums(n.rows).at_least(1);
    p.weight = weight;
    c.output("y", {n.rows, 2 * n.other}, arithmetic).by_row().sums(n.columns).at_least(1);
    c.forward = by_names(head_scores_forward, 2, 0.7);
    c.backward = by_names(head_scores_backward, 2, 0.7);
    c.record = [](const OnTape& a) { head_scores(a.tape, a("x"), a("p"), 2, 0.7, "y"); };
    return c;
}

// Two heads of `columns` numbers and `other` projections each. x may be absent if the features do not depend on it.
Case feature_map_case(Sizes n, FeatureKind kind, bool has_x) {
    const int D = n.columns, R = n.other, F = features_of(kind, R);
    const double scale = std::pow(D, -0.25);
    Case c;
    c.input("t", {n.rows, 2 * R}, arithmetic).by_row().drawn(uniform(-4, 4)).sums(D).at_least(1);
    if (has_x) c.input("x", {n.rows, 2 * D}).by_row().sums(D + F).at_least(3);
    c.output("y", {n.rows, 2 * F}, arithmetic).by_row().sums(D).at_least(1);
    c.forward = by_names(feature_map_forward, 2, scale, kind);
    c.backward = by_names(feature_map_backward, 2, scale, kind);
    c.record = [=](const OnTape& a) { feature_map(a.tape, a("t"), has_x ? a("x") : nullptr, 2, scale, kind, "y"); };
    return c;
}

// Z is at least 2: in one dimension, no direction is orthogonal to the unit vector mu. w keeps away from -1 and 1,
// where the gradient diverges.
Case vmf_sample_case(Sizes n) {
    const int B = n.rows, Z = n.columns + 1;
    auto unit_rows = [Z](std::vector<double>& numbers, Sequence& random) {
        for (std::size_t row = 0; row < numbers.size(); row += std::size_t(Z)) {
            double square = 0;
            for (std::size_t i = row; i < row + std::size_t(Z); i++) {
                numbers[i] = normal(random);
                square += numbers[i] * numbers[i];
            }
            for (std::size_t i = row; i < row + std::size_t(Z); i++) numbers[i] /= std::sqrt(square);
        }
    };
    Case c;
    c.input("mu", {B, Z}, arithmetic).by_row().drawn(unit_rows).sums(Z, 4);
    c.input("w", {B}, arithmetic).by_row().drawn(uniform(-0.95, 0.95)).sums(Z, 16);
    c.constant("e", {B, Z}, arithmetic).by_row().drawn(scaled(1));
    c.output("z", {B, Z}, arithmetic).by_row().sums(Z, 4);
    c.forward = by_names(vmf_sample_forward);
    c.backward = by_names(vmf_sample_backward);
    c.record = [](const OnTape& a) { vmf_sample(a.tape, a("mu"), a("w"), a("e"), "z"); };
    return c;
}

// Draws rows of means, then log variances. All numbers are well inside or well outside [-8, 8], the range that log
// variances are clamped to.
void gaussian_rows(std::vector<double>& numbers, Sequence& random) {
    for (double& x : numbers) {
        double u = random.uniform_double();
        x = u < 0.8 ? 3 * random.uniform_double() - 1.5 : u < 0.9 ? 9 : -9;
    }
}

Case gaussian_sample_case(Sizes n) {
    const int B = n.rows, Z = n.columns;
    Case c;
    c.input("x", {B, 2 * Z}, arithmetic).by_row().drawn(gaussian_rows);
    c.constant("e", {B, Z}, arithmetic).by_row().drawn(scaled(1));
    c.output("z", {B, Z}, arithmetic).by_row();
    c.forward = by_names(gaussian_sample_forward);
    c.backward = by_names(gaussian_sample_backward);
    c.record = [](const OnTape& a) { gaussian_sample(a.tape, a("x"), a("e"), "z"); };
    return c;
}

Case gaussian_kl_case(Sizes n, bool prior, bool apart = false) {
    const int B = n.rows, Z = n.columns;
    Case c;
    c.input("x", {B, 2 * Z}, arithmetic).by_row().drawn(gaussian_rows).sums(1, prior ? 8 : 2);
    if (prior) c.input("prior", {B, 2 * Z}, arithmetic).by_row().drawn(gaussian_rows).sums(1, 8);
    c.output("kl", apart ? Shape{B, Z} : Shape{B}, arithmetic).by_row().sums(Z, apart ? 8 : 1);
    c.forward = by_names(gaussian_kl_forward);
    c.backward = by_names(gaussian_kl_backward);
    c.record = [=](const OnTape& a) { gaussian_kl(a.tape, a("x"), prior ? a("prior") : nullptr, "kl", apart); };
    return c;
}

// The numbers are well above or well below `least`, because the gradient jumps there.
Case at_least_case(Sizes n) {
    static constexpr double least = 0.25;
    Case c;
    c.input("x", {n.rows, n.columns}, arithmetic).drawn([](std::vector<double>& numbers, Sequence& random) {
        for (double& x : numbers)
            x = least + (random.uniform_double() < 0.5 ? -1 : 1) * (0.1 + random.uniform_double());
    });
    c.output("y", {n.rows, n.columns}, arithmetic);
    c.forward = by_names(at_least_forward, least);
    c.backward = by_names(at_least_backward, least);
    c.record = [](const OnTape& a) { at_least(a.tape, a("x"), least, "y"); };
    return c;
}

// V is `other`. The logits have a standard deviation of about 1.5. Every third row has weight 0; the other weights are
// in (-1, 1).
Case cross_entropy_case(Sizes n, bool bias, double smoothing = 0) {
    // Gradients have the factor p - q, softmax minus label distribution. If a row is nearly certain of its target, the
    // factor is small but has the rounding errors of numbers of size 1.
    const double least = smoothing > 0 ? 1 : 0.1;
    const int N = n.rows, C = n.columns, V = n.other;
    auto some_zero = [](std::vector<double>& numbers, Sequence& random) {
        for (std::size_t i = 0; i < numbers.size(); i++) numbers[i] = i % 3 == 1 ? 0 : 2 * random.uniform_double() - 1;
    };
    Case c;
    Operand& h = c.input("h", {N, C}).by_row().from_rounded().sums(C + V).at_least(1);
    h.drawn(scaled(1 / std::sqrt(C)));
    c.input("w", {V, C}).as_weight().from_rounded().drawn(scaled(1)).sums(C + N).at_least(least);
    if (bias) c.input("b", {V}, arithmetic).drawn(scaled(1)).sums(C + N).at_least(least);
    c.constant("weights", {N}, arithmetic).by_row().drawn(some_zero);
    c.output("total", {1}, arithmetic).sums(C + V + N, 4).at_least(4);
    c.statistic("loss", {N}).by_row().sums(C + V).at_least(1);
    c.statistic("lse", {N}).by_row().sums(C + V).at_least(1);
    c.statistic("h1", {N, C}, Kind::storage).by_row().from_rounded().sums(C + V).at_least(0.5);
    c.statistic("w1", {V, C}).from_rounded().sums(C + N).at_least(least);
    if (bias) c.statistic("b1", {V}).sums(C + N).at_least(least);
    c.ints("targets", some_below(N, V, 5));
    c.forward = by_names(cross_entropy_forward, smoothing);
    c.backward = by_names(cross_entropy_backward);
    c.record = [bias, smoothing](const OnTape& a) {
        cross_entropy(a.tape, a("h"), a("w"), bias ? a("b") : nullptr, a.ints("targets"), a("weights"), "total",
                      nullptr, smoothing);
    };
    return c;
}

// cross_entropy_forward() without weights and gradients: only the losses of the rows.
Case token_losses_case(Sizes n) {
    const int N = n.rows, C = n.columns, V = n.other;
    Case c;
    c.constant("h", {N, C}).by_row().drawn(scaled(1 / std::sqrt(C)));
    c.constant("w", {V, C}).drawn(scaled(1));
    c.constant("b", {V}, arithmetic).drawn(scaled(1));
    c.statistic("loss", {N}).by_row().sums(C + V).at_least(1);
    c.statistic("lse", {N}).by_row().sums(C + V).at_least(1);
    c.ints("targets", some_below(N, V, 5));
    c.forward = by_names(cross_entropy_forward, 0.0);
    c.record = [](const OnTape& a) { token_losses(a.tape, a("h"), a("w"), a("b"), a.ints("targets"), "loss"); };
    c.definition = [N, C, V](const Call& a) {
        const double *h = a("h").as<double>(), *w = a("w").as<double>(), *b = a("b").as<double>();
        for (int row = 0; row < N; row++) {
            double sum = 0, wanted = 0;
            for (int v = 0; v < V; v++) {
                double logit = b[v];
                for (int i = 0; i < C; i++) logit += h[row * C + i] * w[v * C + i];
                sum += std::exp(logit);
                if (v == a.ints("targets")[row]) wanted = logit;
            }
            a("lse").as<double>()[row] = std::log(sum);
            a("loss").as<double>()[row] = std::log(sum) - wanted;
        }
    };
    return c;
}

Case weighted_sum_case(Sizes n) {
    Case c;
    c.input("x", {n.rows}, arithmetic);
    c.constant("weights", {n.rows}, arithmetic);
    c.output("y", {1}, arithmetic).sums(n.rows, 3).at_least(1);
    c.forward = by_names(weighted_sum_forward);
    c.backward = by_names(weighted_sum_backward);
    c.record = [](const OnTape& a) { weighted_sum(a.tape, a("x"), a("weights"), "y"); };
    return c;
}

Case global_norm_case(Sizes n) {
    Case c;
    c.constant("g", {n.rows * n.columns}, arithmetic).with_any_shape();
    c.statistic("norm", {1}).sums(n.rows * n.columns);
    c.forward = by_names(global_norm);
    c.definition = [](const Call& a) {
        double square = 0;
        for (std::int64_t i = 0; i < a("g").count(); i++) square += std::pow(a("g").as<double>()[i], 2);
        *a("norm").as<double>() = std::sqrt(square);
    };
    return c;
}

Case adamw_case(Sizes n, double clip) {
    const int N = n.rows * n.columns;
    Case c;
    c.updated("p", {N}).drawn(scaled(1));
    c.constant("g", {N}, arithmetic).drawn(scaled(1));
    c.updated("m", {N}).drawn(scaled(0.1)).sums(1, 4);
    c.updated("v", {N}).drawn(uniform(0.001, 1)).sums(1, 5);
    c.constant("norm", {1}, arithmetic).drawn(uniform(30, 31));
    c.constant("control", {3}, arithmetic).drawn([](std::vector<double>& x, Sequence&) { x = {0.01, 1.9, 1.2}; });
    OptimiserRule rule;
    rule.decay = 0.1;
    rule.clip = clip;
    c.forward = by_names(adamw, rule);
    c.definition = [rule](const Call& a) {
        const double *control = a("control").as<double>(), norm = *a("norm").as<double>();
        for (std::int64_t i = 0; i < a("p").count(); i++) {
            double &p = a("p").as<double>()[i], &m = a("m").as<double>()[i], &v = a("v").as<double>()[i];
            double g = a("g").as<double>()[i] * (rule.clip > 0 ? std::min(1.0, rule.clip / norm) : 1);
            m = rule.beta1 * m + (1 - rule.beta1) * g;
            v = rule.beta2 * v + (1 - rule.beta2) * g * g;
            p -= control[0] * (m * control[1] / (std::sqrt(v * control[2]) + rule.eps) + rule.decay * p);
        }
    };
    return c;
}

// The curvature B is either 0, where |B| is clamped to 0.01, or so large that the step does not bring it near 0.
Case apollo_case(Sizes n, double clip) {
    const int N = n.rows * n.columns;
    Case c;
    c.updated("p", {N}).drawn(scaled(1)).sums(N).at_least(1);
    c.constant("g", {N}, arithmetic).drawn(scaled(1));
    c.updated("m", {N}).drawn(scaled(0.1)).sums(1, 4).at_least(1);
    c.updated("b", {N}).sums(N, 4).drawn([](std::vector<double>& numbers, Sequence& random) {
        for (double& x : numbers) {
            const double u = random.uniform_double();
            x = u < 0.1 ? 0 : (u < 0.55 ? -1 : 1) * (2 + random.uniform_double());
        }
    });
    c.updated("d", {N}).drawn(scaled(1)).sums(N, 8).at_least(100);
    c.constant("norm", {1}, arithmetic).drawn(uniform(30, 31));
    c.constant("control", {2}, arithmetic).drawn([](std::vector<double>& x, Sequence&) { x = {0.01, 0.2}; });
    c.forward = by_names(apollo, OptimiserRule{0.9, 0, 0.03, 0.1, clip});
    return c;
}

}  // namespace

const std::vector<Op>& ops_table() {
    static const std::vector<Op> table = [] {
        const auto with = [](auto make, auto... more) { return [=](Sizes n) { return make(n, more...); }; };
        const auto features = [](const char* name, FeatureKind kind, bool has_x) {
            return Op{text("feature_map, ", name), [=](Sizes n) { return feature_map_case(n, kind, has_x); }};
        };
        const auto from_to = [](Kind from, Kind to) { return [=](Sizes n) { return convert_case(n, from, to); }; };
        std::vector<Op> all = {
            {"linear", [](Sizes n) { return linear_case(n, true, Kind::storage); }},
            {"linear, no bias", [](Sizes n) { return linear_case(n, false, Kind::storage); }},
            {"linear, y unrounded", [](Sizes n) { return linear_case(n, true, arithmetic); }},
            {"linear, no columns",
             [](Sizes n) {
                 return linear_case({n.rows, 0, n.other}, true, Kind::storage);
             }},
            {"layernorm", layernorm_case},
            {"rms_norm", rms_norm_case},
            {"silu", silu_case},
            {"squared_relu", squared_relu_case},
            {"glu, silu", with(glu_case, GateKind::silu)},
            {"glu, gelu", with(glu_case, GateKind::gelu)},
            {"glu, gelu_tanh", with(glu_case, GateKind::gelu_tanh)},
            {"gelu, erf", with(gelu_case, GeluKind::erf)},
            {"gelu, tanh", with(gelu_case, GeluKind::tanh)},
            {"linear_gelu, erf", with(linear_gelu_case, GeluKind::erf, true)},
            {"linear_gelu, tanh", with(linear_gelu_case, GeluKind::tanh, true)},
            {"gelu_linear, erf", with(gelu_linear_case, GeluKind::erf, true)},
            {"gelu_linear, tanh", with(gelu_linear_case, GeluKind::tanh, true)},
            {"linear_gelu, no bias", with(linear_gelu_case, GeluKind::erf, false)},
            {"gelu_linear, no bias", with(gelu_linear_case, GeluKind::erf, false)},
            {"convert, S to A", from_to(Kind::storage, arithmetic)},
            {"convert, A to S", from_to(arithmetic, Kind::storage)},
            {"convert, S to S", from_to(Kind::storage, Kind::storage)},
            {"add", add_case},
            {"dropout", dropout_case},
            {"residual_norm", [](Sizes n) { return residual_norm_case(n, 0.5f); }},
            {"residual_norm, no dropout", [](Sizes n) { return residual_norm_case(n, 0); }},
            {"embedding", embedding_case},
            {"rotary", rotary_case},
            {"linear_rotary", linear_rotary_case},
            {"gather_rows", [](Sizes n) { return gather_rows_case(n, false); }},
            {"gather_rows, none", [](Sizes n) { return gather_rows_case(n, true); }},
            {"replace_rows", replace_rows_case},
            {"store_rows", store_rows_case},
            {"scale_columns", scale_columns_case},
            {"normalise", [](Sizes n) { return normalise_case(n, 1, arithmetic); }},
            {"normalise, heads", [](Sizes n) { return normalise_case(n, 3, Kind::storage); }},
            {"normalise, clamped", normalise_clamped_case},
            {"head_scores", [](Sizes n) { return head_scores_case(n, true); }},
            {"head_scores, p an activation", [](Sizes n) { return head_scores_case(n, false); }},
            features("positive", FeatureKind::positive, true),
            features("hyperbolic", FeatureKind::hyperbolic, true),
            features("trigonometric", FeatureKind::trigonometric, true),
            features("relu", FeatureKind::relu, true),
            features("rfa", FeatureKind::rfa, false),
            features("softplus", FeatureKind::softplus, false),
            features("elu", FeatureKind::elu, false),
            {"vmf_sample", vmf_sample_case},
            {"gaussian_sample", gaussian_sample_case},
            {"gaussian_kl", [](Sizes n) { return gaussian_kl_case(n, false); }},
            {"gaussian_kl, a prior", [](Sizes n) { return gaussian_kl_case(n, true); }},
            {"gaussian_kl, of each number", [](Sizes n) { return gaussian_kl_case(n, true, true); }},
            {"at_least", at_least_case},
            {"cross_entropy", [](Sizes n) { return cross_entropy_case(n, true); }},
            {"cross_entropy, no bias", [](Sizes n) { return cross_entropy_case(n, false); }},
            {"cross_entropy, smoothed", [](Sizes n) { return cross_entropy_case(n, true, 0.1); }},
            {"cross_entropy, losses only", token_losses_case},
            {"weighted_sum", weighted_sum_case},
            {"global_norm", global_norm_case},
            {"adamw", [](Sizes n) { return adamw_case(n, 0); }},
            {"adamw, clipped", [](Sizes n) { return adamw_case(n, 1); }},
            {"apollo", [](Sizes n) { return apollo_case(n, 0); }},
            {"apollo, clipped", [](Sizes n) { return apollo_case(n, 1); }},
        };
        for (Op& op : all)
            if (op.name == "embedding")
                op.far.push_back(
                    {4700, 2, 300});  // the CUDA radix sort then has 10 tiles * 256 digit counts: more than one scan
        for (const auto& more : {attention_ops(), state_ops(), bucket_ops(), insertion_ops(), code_ops()})
            all.insert(all.end(), more.begin(), more.end());
        return all;
    }();
    return table;
}

}  // namespace masquerade::ladder
