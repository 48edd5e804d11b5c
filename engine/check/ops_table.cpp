// SPDX-License-Identifier: MIT
// Every op of ops.h, a row for each way of using it: sizes, what goes in and comes out, the two calls, and the one that
// leaves its record on a tape.
// That alone gives it every rung of the ladder (engine/check/ladder.h). Attention has its rows in
// ops_table_attention.cpp.
#include "engine/check/ops_table.h"

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
    for (int i = bound; i > 1; i--) std::swap(all[std::size_t(i - 1)], all[random.below(std::uint32_t(i))]);
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

enum class Inner { some, none };  // columns of x: the sum over none is 0

Op linear_op(const char* name, bool bias, Kind of_y, Inner inner = Inner::some) {
    return {name, [bias, of_y, inner](Sizes n) {
                const int M = n.rows, I = inner == Inner::none ? 0 : n.columns, O = n.other;
                Case c;
                c.input("x", {M, I}).by_row().sums(O);
                c.input("w", {O, I}).as_weight().sums(M);
                if (bias) c.input("b", {O}, arithmetic).sums(M);
                c.output("y", {M, O}, of_y).by_row().sums(I).at_least(1);
                c.forward = [bias](const Call& a) {
                    linear_forward(a("x"), a("w"), bias ? a("b") : View{}, a("y"));
                };
                c.backward = [bias](const Call& a) {
                    linear_backward(a.d("y"), a("x"), a("w"), a.grad("x"), a.grad("w"),
                                    bias ? a.grad("b") : Grad{});
                };
                c.record = [bias, of_y](const OnTape& a) {
                    (of_y == arithmetic ? linear_unrounded : linear)(a.tape, a("x"), a("w"), bias ? a("b") : nullptr, "y");
                };
                return c;
            }};
}

Op layernorm_op() {
    return {"layernorm", [](Sizes n) {
        const int N = n.rows, C = n.columns;
        Case c;
        // of two columns dx is next to nothing: the difference of terms as large as rstd
        c.input("x", {N, C}).by_row().sums(C).at_least(3);
        c.input("w", {C}, arithmetic).sums(N);
        c.input("b", {C}, arithmetic).sums(N);
        c.output("y", {N, C}).by_row().sums(C);
        c.statistic("mean", {N}).by_row().sums(C).at_least(1);
        c.statistic("rstd", {N}).by_row().sums(C);
        c.forward = [](const Call& a) {
            layernorm_forward(a("x"), a("w"), a("b"), 1e-5, a("y"), a("mean"), a("rstd"));
        };
        c.backward = [](const Call& a) {
            layernorm_backward(a.d("y"), a("x"), a("w"), a("mean"), a("rstd"), a.grad("x"), a.grad("w"),
                               a.grad("b"));
        };
        c.record = [](const OnTape& a) { layernorm(a.tape, a("x"), a("w"), a("b"), 1e-5, "y"); };
        return c;
    }};
}

Op gelu_op(GeluKind kind) {
    return {kind == GeluKind::erf ? "gelu, erf" : "gelu, tanh", [kind](Sizes n) {
        Case c;
        c.input("x", {n.rows, n.columns}).by_row().drawn(uniform(-6, 6)).sums(1, 4).at_least(1);
        c.output("y", {n.rows, n.columns}).by_row().at_least(1);
        c.forward = [kind](const Call& a) { gelu_forward(a("x"), kind, a("y")); };
        c.backward = [kind](const Call& a) { gelu_backward(a.d("y"), a("x"), kind, a.grad("x")); };
        c.record = [kind](const OnTape& a) { gelu(a.tape, a("x"), kind, "y"); };
        return c;
    }};
}

// u = x w^T + b with a = gelu(u): of a no gradient is asked, it is for gelu_linear to read.
Op linear_gelu_op(GeluKind kind) {
    return {kind == GeluKind::erf ? "linear_gelu, erf" : "linear_gelu, tanh", [kind](Sizes n) {
                const int M = n.rows, I = n.columns, O = n.other;
                Case c;
                c.input("x", {M, I}).by_row().sums(O);
                c.input("w", {O, I}).as_weight().sums(M);
                c.input("b", {O}, arithmetic).sums(M);
                c.output("u", {M, O}).by_row().sums(I).at_least(1);
                c.statistic("a", {M, O}, Kind::storage).by_row().from_rounded().sums(I).at_least(1);
                c.forward = [kind](const Call& a) {
                    linear_gelu_forward(a("x"), a("w"), a("b"), kind, a("u"), a("a"));
                };
                c.backward = [](const Call& a) {
                    linear_backward(a.d("u"), a("x"), a("w"), a.grad("x"), a.grad("w"), a.grad("b"));
                };
                c.record = [kind](const OnTape& a) { linear_gelu(a.tape, a("x"), a("w"), a("b"), kind, "u", "a"); };
                return c;
            }};
}

// y = gelu(u) w^T + b, all of it.
Op gelu_linear_op(GeluKind kind) {
    return {kind == GeluKind::erf ? "gelu_linear, erf" : "gelu_linear, tanh", [kind](Sizes n) {
                const int M = n.rows, I = n.columns, O = n.other;
                Case c;
                c.input("u", {M, I}).by_row().from_rounded().sums(O).at_least(1);
                c.input("w", {O, I}).as_weight().from_rounded().sums(M);
                c.input("b", {O}, arithmetic).sums(M);
                c.output("y", {M, O}).by_row().from_rounded().sums(I).at_least(1);
                c.statistic("a", {M, I}, Kind::storage).by_row().at_least(1);
                c.forward = [kind](const Call& a) {
                    gelu_forward(a("u"), kind, a("a"));
                    linear_forward(a("a"), a("w"), a("b"), a("y"));
                };
                c.backward = [kind](const Call& a) {
                    gelu_linear_backward(a.d("y"), a("u"), a("a"), a("w"), kind, a.grad("u"), a.grad("w"),
                                         a.grad("b"));
                };
                c.record = [kind](const OnTape& a) {
                    gelu_forward(a("u")->view(), kind, a("a")->view());
                    gelu_linear(a.tape, {a("u"), a("a"), kind}, a("w"), a("b"), "y");
                };
                return c;
            }};
}

// Between the storage type and the arithmetic type, both ways, and of one type: a copy.
Op convert_op(const char* name, Kind from, Kind to) {
    return {name, [from, to](Sizes n) {
                Case c;
                c.input("x", {n.rows, n.columns}, from).by_row();
                c.output("y", {n.rows, n.columns}, to).by_row();
                c.forward = [](const Call& a) { convert_forward(a("x"), a("y")); };
                c.backward = [](const Call& a) { convert_backward(a.d("y"), a.grad("x")); };
                c.record = [to](const OnTape& a) {
                    convert(a.tape, a("x"), to == arithmetic ? arithmetic_of(a.tape.dtype) : a.tape.dtype, "y");
                };
                return c;
            }};
}

Op add_op() {
    return {"add", [](Sizes n) {
        Case c;
        c.input("a", {n.rows, n.columns}).by_row();
        c.input("b", {n.rows, n.columns}).by_row();
        c.output("y", {n.rows, n.columns}).by_row();
        c.forward = [](const Call& a) { add_forward(a("a"), a("b"), a("y")); };
        c.backward = [](const Call& a) { add_backward(a.d("y"), a.grad("a"), a.grad("b")); };
        c.record = [](const OnTape& a) { add(a.tape, a("a"), a("b"), "y"); };
        return c;
    }};
}

Op dropout_op() {
    return {"dropout", [](Sizes n) {
        Case c;
        c.input("x", {n.rows, n.columns}).by_row();
        c.output("y", {n.rows, n.columns}).by_row();
        c.ints("document", some_below(n.rows, 1 << 20, 1));
        c.ints("position", some_below(n.rows, 512, 2));
        auto rows = [](const Call& a) { return RowNames{a.ints("document"), a.ints("position")}; };
        DropoutRule rule{0.3f, make_stream(5, "ladder", 2)};
        c.forward = [=](const Call& a) { dropout_forward(a("x"), rows(a), rule, a("y")); };
        c.backward = [=](const Call& a) { dropout_backward(a.d("y"), rows(a), rule, a.grad("x")); };
        c.record = [](const OnTape& a) {
            dropout(a.tape, a("x"), {a.ints("document"), a.ints("position")}, 0.3f, "ladder");
        };
        return c;
    }};
}

// Sixteenths, and a rate of 1/2 or 0: bf16 holds s = x + dropout(f) as it is, and the statistics are of the same s in
// every type.
void sixteenths(std::vector<double>& numbers, Sequence& random) {
    for (double& x : numbers) x = (double(random.below(65)) - 32) / 16;
}

Op residual_norm_op(float rate) {
    return {rate > 0 ? "residual_norm" : "residual_norm, no dropout", [rate](Sizes n) {
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
        c.ints("document", some_below(N, 1 << 20, 1));
        c.ints("position", some_below(N, 512, 2));
        DropoutRule rule{rate, make_stream(5, "ladder", 2)};
        auto rows = [rate](const Call& a) {
            return rate > 0 ? RowNames{a.ints("document"), a.ints("position")} : RowNames{};
        };
        c.forward = [=](const Call& a) {
            residual_norm_forward(a("x"), a("f"), rows(a), rule, a("w"), a("b"), 1e-5, a("s"), a("y"), a("mean"),
                                  a("rstd"));
        };
        c.backward = [=](const Call& a) {
            residual_norm_backward(a.d("y"), a("s"), rows(a), rule, a("w"), a("mean"), a("rstd"), a.grad("x"),
                                   a.grad("f"), a.grad("w"), a.grad("b"));
        };
        c.record = [rate](const OnTape& a) {
            residual_norm(a.tape, a("x"), a("f"), {a.ints("document"), a.ints("position")}, rate, a("w"), a("b"), 1e-5,
                          {"ladder", "s", "y"});
        };
        return c;
    }};
}

// `other` words, so that with few of them many rows share one.
Op embedding_op() {
    return {"embedding", [](Sizes n) {
        Case c;
        c.input("w", {n.other, n.columns}).as_weight().with_any_rows().sums(n.rows);
        c.output("y", {n.rows, n.columns}).by_row();
        c.ints("ids", some_below(n.rows, n.other, 3));
        c.forward = [](const Call& a) { embedding_forward(a.ints("ids"), a("w"), a("y")); };
        c.backward = [](const Call& a) { embedding_backward(a.d("y"), a.ints("ids"), a.grad("w")); };
        c.record = [](const OnTape& a) { embedding(a.tape, a.ints("ids"), a("w"), "y"); };
        return c;
    }};
}

// Two heads of 2 * `other` numbers are turned, `columns` more are copied.
Op rotary_op() {
    return {"rotary", [](Sizes n) {
        const int D = 2 * n.other, P = 50;
        Case c;
        c.input("x", {n.rows, 2 * D + n.columns}).by_row();
        c.constant("turns", {P, D}, arithmetic).with_any_rows();
        c.output("y", {n.rows, 2 * D + n.columns}).by_row();
        c.ints("positions", some_below(n.rows, P, 4));
        c.forward = [D](const Call& a) {
            rotary_forward(a("x"), a.ints("positions"), a("turns"), 2 * D, a("y"));
        };
        // turned back by the transpose, which for any two numbers in `turns` is the gradient
        c.backward = [D](const Call& a) {
            rotary_backward(a.d("y"), a.ints("positions"), a("turns"), 2 * D, a.grad("x"));
        };
        c.record = [D](const OnTape& a) {
            rotary(a.tape, a("x"), a.ints("positions"), a("turns"), 2 * D, "y");
        };
        return c;
    }};
}

// A product whose first two heads of 2 * `other` numbers are turned; `columns` are read.
Op linear_rotary_op() {
    return {"linear_rotary", [](Sizes n) {
                const int M = n.rows, I = n.columns, D = 2 * n.other, O = 2 * D + 3, P = 50;
                Case c;
                c.input("x", {M, I}).by_row().from_rounded().sums(O).at_least(1);
                c.input("w", {O, I}).as_weight().from_rounded().sums(M).at_least(1);
                c.input("b", {O}, arithmetic).from_rounded().sums(M).at_least(1);
                c.constant("turns", {P, D}, arithmetic).with_any_rows().drawn(uniform(-0.7, 0.7));
                c.output("y", {M, O}).by_row().from_rounded().sums(I).at_least(1);
                c.ints("positions", some_below(M, P, 4));
                c.forward = [D](const Call& a) {
                    linear_rotary_forward(a("x"), a("w"), a("b"), a.ints("positions"), a("turns"), 2 * D,
                                          a("y"));
                };
                c.backward = [D](const Call& a) {
                    linear_rotary_backward(a.d("y"), a("x"), a("w"), a.ints("positions"), a("turns"), 2 * D,
                                           a.grad("x"), a.grad("w"), a.grad("b"));
                };
                c.record = [D](const OnTape& a) {
                    linear_rotary(a.tape, a("x"), a("w"), a("b"), a.ints("positions"), a("turns"), 2 * D, "y");
                };
                return c;
            }};
}

Op gather_rows_op(bool none) {
    return {none ? "gather_rows, none" : "gather_rows", [none](Sizes n) {
        const int M = none ? 0 : n.rows, N = n.rows + n.other;
        Case c;
        c.input("x", {N, n.columns}).with_any_rows();
        c.output("y", {M, n.columns}).of_row = !none;
        c.ints("rows", different_below(M, N), !none);
        c.forward = [](const Call& a) { gather_rows_forward(a("x"), a.ints("rows"), a("y")); };
        c.backward = [](const Call& a) { gather_rows_backward(a.d("y"), a.ints("rows"), a.grad("x")); };
        c.record = [](const OnTape& a) { gather_rows(a.tape, a("x"), a.ints("rows"), "y"); };
        return c;
    }};
}

// Every third row of x is replaced, by the rows of u in another order.
Op replace_rows_op() {
    return {"replace_rows", [](Sizes n) {
        const int B = (n.rows + 2) / 3;
        std::vector<int> order = different_below(B, B), which(static_cast<std::size_t>(n.rows), -1);
        for (int b = 0; b < B; b++) which[std::size_t(3 * b)] = order[std::size_t(b)];
        Case c;
        c.input("x", {n.rows, n.columns}).by_row();
        c.input("u", {B, n.columns}).with_any_rows();
        c.output("y", {n.rows, n.columns}).by_row();
        c.ints("which", which);
        c.forward = [](const Call& a) { replace_rows_forward(a("x"), a.ints("which"), a("u"), a("y")); };
        c.backward = [](const Call& a) {
            replace_rows_backward(a.d("y"), a.ints("which"), a.grad("x"), a.grad("u"));
        };
        c.record = [](const OnTape& a) { replace_rows(a.tape, a("x"), a.ints("which"), a("u"), "y"); };
        return c;
    }};
}

Op store_rows_op() {
    return {"store_rows", [](Sizes n) {
        Case c;
        c.constant("x", {n.rows, n.columns}).by_row();
        c.updated("y", {n.rows + n.other, n.columns}, Kind::storage).with_any_rows();
        c.ints("rows", different_below(n.rows, n.rows + n.other));
        c.forward = [](const Call& a) { store_rows(a("x"), a.ints("rows"), a("y")); };
        c.definition = [C = n.columns](const Call& a) {
            for (std::int64_t i = 0; i < a("x").count(); i++)
                a("y").as<double>()[a.ints("rows")[i / C] * C + i % C] = a("x").as<double>()[i];
        };
        return c;
    }};
}

Op normalise_op() {
    return {"normalise", [](Sizes n) {
        const int B = n.rows, Z = n.columns;
        Case c;
        c.input("x", {B, Z}, arithmetic).by_row().sums(Z).at_least(1);
        c.output("y", {B, Z}, arithmetic).by_row().sums(Z);
        c.statistic("inverse", {B}).by_row().sums(Z);
        c.forward = [](const Call& a) { normalise_forward(a("x"), a("y"), a("inverse")); };
        c.backward = [](const Call& a) { normalise_backward(a.d("y"), a("y"), a("inverse"), a.grad("x")); };
        c.record = [](const OnTape& a) { normalise(a.tape, a("x"), "y"); };
        return c;
    }};
}

// Shorter than the clamp of the norm: y = 1e6 x.
Op normalise_clamped_op() {
    Op op = normalise_op();
    auto make = op.make;
    op.name = "normalise, clamped";
    op.make = [make](Sizes n) {
        Case c = make(n);
        c.operands[0].drawn(uniform(-1e-8, 1e-8)).at_least(1e6);
        return c;
    };
    return op;
}

// Two numbers at least, or no direction is left beside mu, which has length 1; w from almost -1 to almost 1.
Op vmf_sample_op() {
    return {"vmf_sample", [](Sizes n) {
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
        c.constant("w", {B}, arithmetic).by_row().drawn(uniform(-0.95, 0.95));
        c.constant("e", {B, Z}, arithmetic).by_row().drawn(scaled(1));
        c.output("z", {B, Z}, arithmetic).by_row().sums(Z);
        c.forward = [](const Call& a) { vmf_sample_forward(a("mu"), a("w"), a("e"), a("z")); };
        c.backward = [](const Call& a) {
            vmf_sample_backward(a.d("z"), a("mu"), a("w"), a("e"), a.grad("mu"));
        };
        c.record = [](const OnTape& a) { vmf_sample(a.tape, a("mu"), a("w"), a("e"), "z"); };
        return c;
    }};
}

// mu | log variance, where the latter lies well inside the clamp to [-8, 8], or well outside.
void gaussian_rows(std::vector<double>& numbers, Sequence& random) {
    for (double& x : numbers) {
        double u = random.uniform_double();
        x = u < 0.8 ? 3 * random.uniform_double() - 1.5 : u < 0.9 ? 9 : -9;
    }
}

Op gaussian_sample_op() {
    return {"gaussian_sample", [](Sizes n) {
        const int B = n.rows, Z = n.columns;
        Case c;
        c.input("x", {B, 2 * Z}, arithmetic).by_row().drawn(gaussian_rows);
        c.constant("e", {B, Z}, arithmetic).by_row().drawn(scaled(1));
        c.output("z", {B, Z}, arithmetic).by_row();
        c.forward = [](const Call& a) { gaussian_sample_forward(a("x"), a("e"), a("z")); };
        c.backward = [](const Call& a) { gaussian_sample_backward(a.d("z"), a("x"), a("e"), a.grad("x")); };
        c.record = [](const OnTape& a) { gaussian_sample(a.tape, a("x"), a("e"), "z"); };
        return c;
    }};
}

Op gaussian_kl_op() {
    return {"gaussian_kl", [](Sizes n) {
        const int B = n.rows, Z = n.columns;
        Case c;
        c.input("x", {B, 2 * Z}, arithmetic).by_row().drawn(gaussian_rows);
        c.output("kl", {B}, arithmetic).by_row().sums(Z);
        c.forward = [](const Call& a) { gaussian_kl_forward(a("x"), a("kl")); };
        c.backward = [](const Call& a) { gaussian_kl_backward(a.d("kl"), a("x"), a.grad("x")); };
        c.record = [](const OnTape& a) { gaussian_kl(a.tape, a("x"), "kl"); };
        return c;
    }};
}

// Logits of deviation about 1.5; `other` words. The loss is a difference of logits. Every third row weighs
// nothing, others less than that.
Op cross_entropy_op(const char* name, bool bias, double smoothing = 0) {
    // A row that is nearly sure of its target: p - q is small, and as inexact as numbers of size 1 are.
    const double least = smoothing > 0 ? 1 : 0.1;
    return {name, [bias, smoothing, least](Sizes n) {
                const int N = n.rows, C = n.columns, V = n.other;
                auto some_zero = [](std::vector<double>& numbers, Sequence& random) {
                    for (std::size_t i = 0; i < numbers.size(); i++)
                        numbers[i] = i % 3 == 1 ? 0 : 2 * random.uniform_double() - 1;
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
                c.forward = [bias, smoothing](const Call& a) {
                    cross_entropy_forward(a("h"), a("w"), bias ? a("b") : View{}, a.ints("targets"),
                                          a("weights"), smoothing, a("loss"), a("lse"), a("total"), a("h1"),
                                          a("w1"), bias ? a("b1") : View{});
                };
                c.backward = [bias](const Call& a) {
                    cross_entropy_backward(a.d("total"), a("h1"), a("w1"), bias ? a("b1") : View{},
                                           a.grad("h"), a.grad("w"), bias ? a.grad("b") : Grad{});
                };
                c.record = [bias, smoothing](const OnTape& a) {
                    cross_entropy(a.tape, a("h"), a("w"), bias ? a("b") : nullptr, a.ints("targets"), a("weights"), "total",
                                  nullptr, smoothing);
                };
                return c;
            }};
}

// Only the losses of the rows: no weights, no gradients.
Op token_losses_op() {
    return {"cross_entropy, losses only", [](Sizes n) {
                const int N = n.rows, C = n.columns, V = n.other;
                Case c;
                c.constant("h", {N, C}).by_row().drawn(scaled(1 / std::sqrt(C)));
                c.constant("w", {V, C}).drawn(scaled(1));
                c.constant("b", {V}, arithmetic).drawn(scaled(1));
                c.statistic("loss", {N}).by_row().sums(C + V).at_least(1);
                c.statistic("lse", {N}).by_row().sums(C + V).at_least(1);
                c.ints("targets", some_below(N, V, 5));
                c.forward = [](const Call& a) {
                    const View none;
                    cross_entropy_forward(a("h"), a("w"), a("b"), a.ints("targets"), none, 0, a("loss"), a("lse"),
                                          none, none, none, none);
                };
                c.record = [](const OnTape& a) {
                    token_losses(a.tape, a("h"), a("w"), a("b"), a.ints("targets"), "loss");
                };
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
            }};
}

Op weighted_sum_op() {
    return {"weighted_sum", [](Sizes n) {
        Case c;
        c.input("x", {n.rows}, arithmetic);
        c.constant("weights", {n.rows}, arithmetic);
        c.output("y", {1}, arithmetic).sums(n.rows, 3).at_least(1);
        c.forward = [](const Call& a) { weighted_sum_forward(a("x"), a("weights"), a("y")); };
        c.backward = [](const Call& a) { weighted_sum_backward(a.d("y"), a("weights"), a.grad("x")); };
        c.record = [](const OnTape& a) { weighted_sum(a.tape, a("x"), a("weights"), "y"); };
        return c;
    }};
}

Op global_norm_op() {
    return {"global_norm", [](Sizes n) {
        Case c;
        c.constant("g", {n.rows * n.columns}, arithmetic).with_any_shape();
        c.statistic("norm", {1}).sums(n.rows * n.columns);
        c.forward = [](const Call& a) { global_norm(a("g"), a("norm")); };
        c.definition = [](const Call& a) {
            double square = 0;
            for (std::int64_t i = 0; i < a("g").count(); i++) square += std::pow(a("g").as<double>()[i], 2);
            *a("norm").as<double>() = std::sqrt(square);
        };
        return c;
    }};
}

Op adamw_op(double clip) {
    return {clip > 0 ? "adamw, clipped" : "adamw", [clip](Sizes n) {
        const int N = n.rows * n.columns;
        Case c;
        c.updated("p", {N}).drawn(scaled(1));
        c.constant("g", {N}, arithmetic).drawn(scaled(1));
        c.updated("m", {N}).drawn(scaled(0.1)).sums(1, 4);
        c.updated("v", {N}).drawn(uniform(0.001, 1)).sums(1, 5);
        c.constant("norm", {1}, arithmetic).drawn(uniform(30, 31));
        c.constant("control", {3}, arithmetic).drawn([](std::vector<double>& x, Sequence&) {
            x = {0.01, 1.9, 1.2};
        });
        AdamWRule rule;
        rule.decay = 0.1;
        rule.clip = clip;
        c.forward = [rule](const Call& a) {
            adamw(a("p"), a("g"), a("m"), a("v"), a("norm"), a("control"), rule, View{});
        };
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
    }};
}

}  // namespace

const std::vector<Op>& ops_table() {
    static const std::vector<Op> table = [] {
        std::vector<Op> all = {
            linear_op("linear", true, Kind::storage),
            linear_op("linear, no bias", false, Kind::storage),
            linear_op("linear, y unrounded", true, arithmetic),
            linear_op("linear, no columns", true, Kind::storage, Inner::none),
            layernorm_op(),
            gelu_op(GeluKind::erf),
            gelu_op(GeluKind::tanh),
            linear_gelu_op(GeluKind::erf),
            linear_gelu_op(GeluKind::tanh),
            gelu_linear_op(GeluKind::erf),
            gelu_linear_op(GeluKind::tanh),
            convert_op("convert, S to A", Kind::storage, arithmetic),
            convert_op("convert, A to S", arithmetic, Kind::storage),
            convert_op("convert, S to S", Kind::storage, Kind::storage),
            add_op(),
            dropout_op(),
            residual_norm_op(0.5f),
            residual_norm_op(0),
            embedding_op(),
            rotary_op(),
            linear_rotary_op(),
            gather_rows_op(false),
            gather_rows_op(true),
            replace_rows_op(),
            store_rows_op(),
            normalise_op(),
            normalise_clamped_op(),
            vmf_sample_op(),
            gaussian_sample_op(),
            gaussian_kl_op(),
            cross_entropy_op("cross_entropy", true),
            cross_entropy_op("cross_entropy, no bias", false),
            cross_entropy_op("cross_entropy, smoothed", true, 0.1),
            token_losses_op(),
            weighted_sum_op(),
            global_norm_op(),
            adamw_op(0),
            adamw_op(1),
        };
        for (const Op& op : attention_ops()) all.push_back(op);
        return all;
    }();
    return table;
}

}  // namespace masquerade::ladder
