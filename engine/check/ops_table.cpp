// SPDX-License-Identifier: MIT
// The op table of the test ladder (engine/check/ladder.h). Each op of ops.h has one row for each way of using it. A row
// says the sizes, the operands, the forward call and, if the op has them, the backward call and the call that records
// the op on a tape. Further rows are in the files ops_table_*.cpp.
#include "engine/check/ops_table.h"
#include "engine/base/shuffle.h"
#include "engine/math/features.h"

#include <cctype>
#include <cmath>
#include <regex>
#include <sstream>

namespace masquerade::ladder {

std::vector<int> some_below(int count, int bound, std::uint32_t salt) {
    Sequence random(salt, "indices");
    std::vector<int> all(count);
    for (int& x : all) x = int(random.below(std::uint32_t(bound)));
    return all;
}

std::vector<int> different_below(int count, int bound) {
    Sequence random(std::uint64_t(bound), "order");
    std::vector<int> all(bound);
    for (int i = 0; i < bound; i++) all[i] = i;
    shuffle(all, random);
    all.resize(count);
    return all;
}

Draw scaled(double deviation) {
    return each([=](Sequence& random) { return deviation * random.normal(); });
}

Draw with_zeros(double low, double high) {
    return by_index(
        [=](int i, Sequence& random) { return i % 3 == 1 ? 0 : low + (high - low) * random.uniform_double(); });
}

Draw given(const std::vector<double>& numbers) {
    return [numbers](std::vector<double>& drawn, Sequence&) { drawn = numbers; };
}

void name_rows(Case& c, int rows, std::uint32_t salt, bool of_row) {
    c.ints("document", some_below(rows, 1 << 20, salt), of_row);
    c.ints("position", some_below(rows, 512, salt + 1), of_row);
}

Op costly_op(const std::string& name, const std::function<Case(Sizes)>& make, const std::vector<Sizes>& all,
             const std::vector<Sizes>& far) {
    return {name, make, {{6, 2, 2}, {4, 3, 1}, {17, 1, 1}}, {{70, 8, 3}}, all, far, true};
}

Case stated(const std::string& letters, const std::vector<int>& sizes, OpNumber forward) {
    const int op = int(forward);
    const std::string parameters = op_parameters[op], of_backward = op_parameters[op + 1],
                      matrix = text("(", letters[0], ",", letters[1], ")"),
                      shapes = std::regex_replace(op_shapes[op], std::regex("\\(\\*\\)"), matrix);
    const auto contains = [](const std::string& where, const std::string& pattern) {
        return std::regex_search(where, std::regex(pattern));
    };
    Case c;
    bool written = false;  // outputs come after inputs, and the main output is the first of them
    const std::regex tensor("View (\\w+)");
    for (std::sregex_iterator at(parameters.begin(), parameters.end(), tensor), end; at != end; ++at) {
        const std::string name = (*at)[1];
        std::smatch found;  // the sizes and the type of x in "x w?(N,2C)A"
        if (!std::regex_search(shapes, found, std::regex("\\b" + name + "\\b[^(]*\\((.*?)\\)(A?)"))) continue;
        Shape shape;
        std::istringstream in(found[1]);
        for (std::string size; std::getline(in, size, ',');) {
            std::int64_t& product = shape.size[shape.rank++];
            for (char letter : size) product *= std::isdigit(letter) ? letter - '0' : sizes.at(letters.find(letter));
        }
        const bool output = contains(of_backward, "View d" + name + "\\b");
        written |= output;
        const Role role = contains(of_backward, "Grad d" + name + "\\b") ? Role::input
                          : output                                       ? Role::output
                          : written                                      ? Role::statistic
                                                                         : Role::constant;
        Operand& o = c.add(name, role, shape, found.length(2) > 0 ? arithmetic : Kind::storage);
        o.of_row = *found[1].first == letters[0];
        o.weight = o.kind == Kind::storage && contains(shapes, "\\bd" + name + "\\(.*?\\)A");
    }
    return c;
}

namespace {

// Sets the length of the sums that give the gradients of x(M,I), w(O,I) and b(O) in a product, where n is {M, I, O}.
// Without a bias, removes b.
void judge_product(Case& c, Sizes n, bool bias) {
    c["x"].sums(n.other);
    c["w"].sums(n.rows);
    c["b"].sums(n.rows).any_order = true;
    if (!bias) c.remove("b");
}

// x may have no columns. Every sum is then 0, and y is the bias.
Case linear_case(Sizes n, bool bias, Kind of_y) {
    Case c = stated("MIO", n, linear_forward, linear_backward, of_y == arithmetic ? linear_unrounded : linear);
    c["y"].sums(n.columns).at_least(1).kind = of_y;
    c["y"].biased = bias && of_y == Kind::storage;
    judge_product(c, n, bias);
    return c;
}

// Sets the length of the sums in layernorm and in residual_norm, for rows of the width C.
void judge_layernorm(Case& c, Sizes n) {
    for (const char* name : {"w", "b"}) c[name].sums(n.rows);
    for (const char* name : {"y", "mean", "rstd"}) c[name].sums(n.columns);
    c["mean"].at_least(1);
}

Case layernorm_case(Sizes n) {
    Case c = stated("NC", n, layernorm_forward, layernorm_backward, layernorm, 1e-5);
    // at_least(3) divides the error of dx by at least 3. With two columns, dx is close to 0, but it is computed as a
    // difference of terms as large as rstd, and has their rounding errors.
    c["x"].sums(n.columns).at_least(3);
    judge_layernorm(c, n);
    return c;
}

Case rms_norm_case(Sizes n) {
    Case c = stated("NC", n, rms_norm_forward, rms_norm_backward, rms_norm, 1e-5);
    // at_least(4) divides the error of dx by at least 4. With one column, dx is close to 0, but it is computed as a
    // difference of two terms as large as `inverse`, and has their rounding errors.
    c["x"].sums(n.columns).at_least(4);
    c["w"].sums(n.rows);
    for (const char* name : {"y", "inverse"}) c[name].sums(n.columns);
    return c;
}

// Each number of y(N,F) is a function of one or two numbers of x. `calls` are the arguments of set_calls().
template <class... Calls>
Case activation_case(Sizes n, Calls... calls) {
    Case c = stated("NF", n, calls...);
    c["x"].drawn(uniform(-6, 6)).sums(1, 4).at_least(1);
    c["y"].at_least(1);
    return c;
}

// u = x w^T + b, a = gelu(u). No gradient of `a` is used here, because gelu_linear_case() checks the backward of the
// gelu.
Case linear_gelu_case(Sizes n, GeluKind kind, bool bias) {
    Case c = stated("MIO", n, OpNumber::linear_forward);
    judge_product(c, n, bias);
    c.remove("y");
    c.usual.by_row().sums(n.columns).at_least(1);
    c.output("u", {n.rows, n.other}).biased = bias;
    c.statistic("a", {n.rows, n.other}, Kind::storage).from_rounded();
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
    c.input("w", {O, I}).from_rounded().sums(M).weight = true;
    if (bias) c.input("b", {O}, arithmetic).sums(M).any_order = true;
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

// Converts from the storage type to the arithmetic type (such as bf16 to f32) or the reverse. Between equal types, the
// op is a copy.
Case convert_case(Sizes n, Kind from, Kind to) {
    Case c = stated("NC", n, OpNumber::convert_forward);
    c["x"].kind = from;
    c["y"].kind = to;
    c.forward = by_names(convert_forward);
    c.backward = by_names(convert_backward);
    c.record = [to](const OnTape& a) {
        convert(a.tape, a("x"), to == arithmetic ? arithmetic_of(a.tape.dtype) : a.tape.dtype, "y");
    };
    return c;
}

Case add_case(Sizes n) { return stated("NC", n, add_forward, add_backward, add); }

Case dropout_case(Sizes n) {
    DropoutRule rule{0.3f, make_stream(5, "ladder", 2)};
    Case c = stated("NC", n, dropout_forward, dropout_backward, dropout, rule, rule.rate);
    name_rows(c, n.rows);
    return c;
}

// Returns a multiple of 1/16 from -2 to 2. If all numbers of x and f are such multiples, and the dropout rate is 1/2 or
// 0, s = x + dropout(f) is exact in bf16. All types then have the same s, and its mean and rstd can be compared.
double sixteenth(Sequence& random) { return (double(random.below(65)) - 32) / 16; }

Case residual_norm_case(Sizes n, float rate) {
    DropoutRule rule{rate, make_stream(5, "ladder", 2)};
    Case c = stated("NC", n, residual_norm_forward, residual_norm_backward, residual_norm, rule, rate, 1e-5,
                    ResidualNames{"ladder", "s", "y"});
    for (const char* name : {"x", "f"}) c[name].drawn(each(sixteenth)).sums(n.columns).at_least(3);
    judge_layernorm(c, n);
    if (rate > 0) name_rows(c, n.rows);
    return c;
}

// The table w has `other` rows. If `other` is small, many rows of y are copies of the same row of w.
Case embedding_case(Sizes n) {
    Case c = stated("NCV", n, embedding_forward, embedding_backward, embedding);
    c["w"].with_any_rows().sums(n.rows);
    c.ints("ids", some_below(n.rows, n.other, 3));
    return c;
}

// x has two heads of 2 * `other` columns each, which are rotated, and `columns` more columns, which are copied.
Case rotary_case(Sizes n) {
    const int D = 2 * n.other, P = 50;
    // The numbers in the table need not be cosines and sines: the backward multiplies by the transposed matrix, which
    // is the gradient for any numbers.
    Case c = stated("NWPD", {n.rows, 2 * D + n.columns, P, D}, rotary_forward, rotary_backward, rotary, 2 * D);
    c["rotary_table"].with_any_rows();
    c.ints("positions", some_below(n.rows, P, 4));
    return c;
}

// y has two heads of 2 * `other` columns each, which are rotated, and three more columns; x has `columns` columns.
Case linear_rotary_case(Sizes n) {
    const int M = n.rows, I = n.columns, D = 2 * n.other, O = 2 * D + 3, P = 50;
    Case c = stated("MIOPD", {M, I, O, P, D}, linear_rotary_forward, linear_rotary_backward, linear_rotary, 2 * D);
    for (Operand& o : c.operands) o.from_rounded().at_least(1);
    judge_product(c, {M, I, O}, true);
    c["rotary_table"].with_any_rows().drawn(uniform(-0.7, 0.7));
    c["y"].sums(I);
    c.ints("positions", some_below(M, P, 4));
    return c;
}

// q has two heads of 2 * `other` columns each; kv has the keys of one such head, which are rotated, and its values.
Case query_key_value_case(Sizes n, bool bias) {
    const int M = n.rows, I = n.columns, D = 2 * n.other, P = 50;
    Case c = stated("MIQKPD", {M, I, 2 * D, 2 * D, P, D}, OpNumber::query_key_value_forward);
    for (Operand& o : c.operands) o.from_rounded().at_least(1);
    c["x"].sums(4 * D);
    for (const std::string name : {"q", "kv"}) {
        c["w" + name].sums(M);
        c["b" + name].sums(M).any_order = true;
        if (!bias) c.remove("b" + name);
        c[name].sums(I);
    }
    c["rotary_table"].with_any_rows().drawn(uniform(-0.7, 0.7));
    c.ints("positions", some_below(M, P, 4));
    c.forward = by_names(query_key_value_forward, D);
    c.backward = by_names(query_key_value_backward, D);
    c.record = [bias, D](const OnTape& a) {
        query_key_value(a.tape, a("x"), a("wq"), bias ? a("bq") : nullptr, a("wkv"), bias ? a("bkv") : nullptr,
                        a("rotary_table"), a.ints("positions"), D, "q", "kv");
    };
    return c;
}

Case gather_rows_case(Sizes n, bool none) {
    const int M = none ? 0 : n.rows, N = n.rows + n.other;
    Case c = stated("MCN", {M, n.columns, N}, gather_rows_forward, gather_rows_backward, gather_rows);
    c["x"].with_any_rows();
    c["y"].of_row = !none;
    c.ints("rows", different_below(M, N), !none);
    return c;
}

// Rows 0, 3, 6 ... of x are replaced by the rows of u, in random order.
Case replace_rows_case(Sizes n) {
    const int B = (n.rows + 2) / 3;
    std::vector<int> order = different_below(B, B), which(n.rows, -1);
    for (int b = 0; b < B; b++) which[3 * b] = order[b];
    Case c = stated("NCB", {n.rows, n.columns, B}, replace_rows_forward, replace_rows_backward, replace_rows);
    c["u"].with_any_rows();
    c.ints("which", which);
    return c;
}

Case store_rows_case(Sizes n) {
    Case c;
    c.constant("x", matrix(n)).by_row();
    c.updated("y", {n.rows + n.other, n.columns}, Kind::storage).with_any_rows();
    c.ints("rows", different_below(n.rows, n.rows + n.other));
    c.forward = by_names(store_rows);
    return c;
}

Case normalise_case(Sizes n, int heads, Kind kind) {
    Case c = stated("NZH", {n.rows, n.columns, heads}, normalise_forward, normalise_backward, normalise, heads);
    for (Operand& o : c.operands) o.sums(n.columns);
    c["x"].from_rounded().at_least(heads > 1 ? 3 : 1).kind = c["y"].kind = kind;
    return c;
}

// All norms are below the lower bound 1e-6, so that y = 1e6 x.
Case normalise_clamped_case(Sizes n) {
    Case c = normalise_case(n, 1, arithmetic);
    c["x"].drawn(uniform(-1e-8, 1e-8)).at_least(1e6);
    return c;
}

Case scale_columns_case(Sizes n) {
    Case c = stated("NC", n, scale_columns_forward, scale_columns_backward, scale_columns);
    c["w"].sums(n.rows);
    return c;
}

// x has two heads of `columns` columns each; p has `other` rows. If `weight` is true, p is a parameter, whose gradient
// has the arithmetic type (f32 if p is bf16); otherwise, p is an activation.
Case head_scores_case(Sizes n, bool weight) {
    Case c =
        stated("NDRH", {n.rows, n.columns, n.other, 2}, head_scores_forward, head_scores_backward, head_scores, 2, 0.7);
    c["x"].sums(n.other).at_least(1);
    c["p"].sums(n.rows).at_least(1).weight = weight;
    c["y"].sums(n.columns).at_least(1);
    return c;
}

// There are two heads, each with `columns` columns of x and `other` projections. x may be absent if the features do not
// depend on |x|.
Case feature_map_case(Sizes n, FeatureKind kind, bool has_x) {
    const int D = n.columns, R = n.other, F = features_of(kind, R);
    const double scale = std::pow(D, -0.25);
    Case c = stated("NDRH", {n.rows, D, R, 2}, feature_map_forward, feature_map_backward, feature_map, 2, scale, kind);
    c["t"].drawn(uniform(-4, 4)).sums(D).at_least(1);
    c["x"].sums(D + F).at_least(3);
    if (!has_x) c.remove("x");
    c.output("y", {n.rows, 2 * F}, arithmetic).by_row().sums(D).at_least(1);
    return c;
}

// Z is at least 2, because in one dimension, no direction is orthogonal to the unit vector mu. |w| is at most 0.95,
// because the gradient of w diverges at -1 and 1.
Case vmf_sample_case(Sizes n) {
    const int Z = n.columns + 1;
    auto unit_rows = [Z](std::vector<double>& numbers, Sequence& random) {
        for (std::size_t row = 0; row < numbers.size(); row += std::size_t(Z)) {
            double square = 0;
            for (std::size_t i = row; i < row + std::size_t(Z); i++) {
                numbers[i] = random.normal();
                square += numbers[i] * numbers[i];
            }
            for (std::size_t i = row; i < row + std::size_t(Z); i++) numbers[i] /= std::sqrt(square);
        }
    };
    Case c = stated("BZ", {n.rows, Z}, vmf_sample_forward, vmf_sample_backward, vmf_sample);
    c["mu"].drawn(unit_rows).sums(Z, 4);
    c["w"].drawn(uniform(-0.95, 0.95)).sums(Z, 16);
    c["e"].drawn(scaled(1));
    c["z"].sums(Z, 4);
    return c;
}

// Returns a mean or a log variance. The number is well inside the interval [-8, 8], to which log variances are clamped,
// or well outside.
double gaussian(Sequence& random) {
    const double u = random.uniform_double();
    return u < 0.8 ? 3 * random.uniform_double() - 1.5 : u < 0.9 ? 9 : -9;
}

Case gaussian_sample_case(Sizes n) {
    Case c = stated("BZ", n, gaussian_sample_forward, gaussian_sample_backward, gaussian_sample);
    c["x"].drawn(each(gaussian));
    c["e"].drawn(scaled(1));
    return c;
}

Case gaussian_kl_case(Sizes n, bool prior, bool apart) {
    const int B = n.rows, Z = n.columns;
    Case c = stated("BZ", n, gaussian_kl_forward, gaussian_kl_backward, gaussian_kl, apart);
    for (Operand& o : c.operands) o.drawn(each(gaussian)).sums(1, prior ? 8 : 2);
    if (!prior) c.remove("prior");
    c.output("kl", apart ? Shape{B, Z} : Shape{B}, arithmetic).by_row().sums(Z, apart ? 8 : 1);
    return c;
}

// All numbers of x are well above or well below `least`, because the gradient jumps at `least`.
Case at_least_case(Sizes n) {
    static constexpr double least = 0.25;
    Case c = stated("NC", n, at_least_forward, at_least_backward, at_least, least);
    c["x"].drawn(each([](Sequence& random) {
        const int sign = random.uniform_double() < 0.5 ? -1 : 1;
        return least + sign * (0.1 + random.uniform_double());
    }));
    return c;
}

// n is {N, C, V}. The logits have a standard deviation of 1.4 with a bias, and of 1 without a bias. Every
// third row has weight 0; the other weights are in (-1, 1).
Case cross_entropy_case(Sizes n, bool bias, double smoothing) {
    // The gradients contain p - q, predicted minus label probability. If a row is nearly certain of its target, p - q
    // is small but has the rounding errors of numbers of size 1. Errors are therefore divided by at least `least`.
    const double least = smoothing > 0 ? 1 : 0.1;
    const int N = n.rows, C = n.columns, V = n.other;
    Case c;
    c.usual.sums(C + N).at_least(least);
    c.input("h", {N, C}).by_row().from_rounded().sums(C + V).at_least(1).drawn(scaled(1 / std::sqrt(C)));
    c.input("w", {V, C}).from_rounded().drawn(scaled(1)).weight = true;
    if (bias) c.input("b", {V}, arithmetic).drawn(scaled(1));
    c.constant("weights", {N}, arithmetic).by_row().drawn(with_zeros(-1, 1));
    c.output("total", {1}, arithmetic).sums(C + V + N, 4).at_least(4);
    c.statistic("loss", {N}).by_row().sums(C + V).at_least(1);
    c.statistic("lse", {N}).by_row().sums(C + V).at_least(1);
    c.statistic("h1", {N, C}, Kind::storage).by_row().from_rounded().sums(C + V).at_least(0.5);
    c.statistic("w1", {V, C}).from_rounded();
    if (bias) c.statistic("b1", {V});
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
    Case c = cross_entropy_case(n, true, 0);
    for (const char* name : {"weights", "total", "h1", "w1", "b1"}) c.remove(name);
    for (const char* name : {"h", "w", "b"}) c[name].role = Role::constant;
    c.backward = nullptr;
    c.record = in_order(token_losses);
    return c;
}

Case weighted_sum_case(Sizes n) {
    Case c;
    c.input("x", {n.rows}, arithmetic);
    c.constant("weights", {n.rows}, arithmetic);
    c.output("y", {1}, arithmetic).sums(n.rows, 3).at_least(1);
    set_calls(c, weighted_sum_forward, weighted_sum_backward, weighted_sum);
    return c;
}

// Many logits are equal, and some are zeros of either sign. A row of x may have any number of columns, because neither
// W nor the number of parts says how many there are.
Case shortlist_case(Sizes n) {
    const int V = n.columns, W = std::min(n.other, V);
    Case c;
    c.usual.by_row();
    c.constant("x", {n.rows, V}, arithmetic).with_any_shape().drawn(each([](Sequence& random) {
        return (int(random.below(41)) - 20) * 0.375 * (random.below(2) ? 1 : -1);
    }));
    c.statistic("best", {n.rows, W});
    c.statistic("ids", {n.rows, W});
    c.statistic("parts", {n.rows, (V + 1023) / 1024}).sums(1024, 16);
    c.forward = by_names(shortlist);
    return c;
}

Case global_norm_case(Sizes n) {
    Case c;
    c.constant("g", {n.rows * n.columns}, arithmetic).with_any_shape();
    c.statistic("norm", {1}).sums(n.rows * n.columns);
    c.forward = by_names(global_norm);
    return c;
}

// Returns a case with the tensors that all optimisers have.
Case optimiser_case(int N, const std::vector<double>& control) {
    Case c;
    c.updated("p", {N}).drawn(scaled(1));
    c.constant("g", {N}, arithmetic).drawn(scaled(1));
    c.updated("m", {N}).drawn(scaled(0.1)).sums(1, 4);
    c.constant("norm", {1}, arithmetic).drawn(uniform(30, 31));
    c.constant("control", {std::int64_t(control.size())}, arithmetic).drawn(given(control));
    return c;
}

Case adamw_case(Sizes n, double clip) {
    const int N = n.rows * n.columns;
    Case c = optimiser_case(N, {0.01, 1.9, 1.2});
    c.updated("v", {N}).drawn(uniform(0.001, 1)).sums(1, 5);
    OptimiserRule rule;
    rule.decay = 0.1;
    rule.clip = clip;
    c.forward = by_names(adamw, rule);
    return c;
}

// b is the diagonal of the approximate Hessian. Some numbers of b are 0. The step leaves them so small that the op
// divides by the lower bound 0.01 instead of |b|. The other numbers of b are so large that the step does not bring them
// near 0.
Case apollo_case(Sizes n, double clip) {
    const int N = n.rows * n.columns;
    Case c = optimiser_case(N, {0.01, 0.2});
    c["p"].sums(N).at_least(1);
    c["m"].at_least(1);
    c.updated("b", {N}).sums(N, 4).drawn(each([](Sequence& random) {
        const double u = random.uniform_double();
        return u < 0.1 ? 0 : (u < 0.55 ? -1 : 1) * (2 + random.uniform_double());
    }));
    c.updated("d", {N}).drawn(scaled(1)).sums(N, 8).at_least(100);
    c.forward = by_names(apollo, OptimiserRule{0.9, 0, 0.03, 0.1, clip});
    return c;
}

}  // namespace

const std::vector<Op>& ops_table() {
    static const std::vector<Op> table = [] {
        const auto activation = [](auto... calls) { return [=](Sizes n) { return activation_case(n, calls...); }; };
        const auto gate = [=](GateKind kind) { return activation(glu_forward, glu_backward, glu, kind); };
        Op embedding{"embedding", embedding_case};
        // 4700 ids below 300, because the table has 300 rows. Such ids have two digits of 8 bits, so the CUDA radix
        // sort needs two passes.
        embedding.far.push_back({4700, 2, 300});
        std::vector<Op> all = {
            {"linear", with(linear_case, true, Kind::storage)},
            {"linear, no bias", with(linear_case, false, Kind::storage)},
            {"linear, y unrounded", with(linear_case, true, arithmetic)},
            {"linear, no columns",
             [](Sizes n) {
                 return linear_case({n.rows, 0, n.other}, true, Kind::storage);
             }},
            {"layernorm", layernorm_case},
            {"rms_norm", rms_norm_case},
            {"silu", activation(silu_forward, silu_backward, silu)},
            {"squared_relu", activation(squared_relu_forward, squared_relu_backward, squared_relu)},
            {"glu, silu", gate(GateKind::silu)},
            {"glu, gelu", gate(GateKind::gelu)},
            {"glu, gelu_tanh", gate(GateKind::gelu_tanh)},
            {"gelu, erf", activation(gelu_forward, gelu_backward, gelu, GeluKind::erf)},
            {"gelu, tanh", activation(gelu_forward, gelu_backward, gelu, GeluKind::tanh)},
            {"linear_gelu, erf", with(linear_gelu_case, GeluKind::erf, true)},
            {"linear_gelu, tanh", with(linear_gelu_case, GeluKind::tanh, true)},
            {"gelu_linear, erf", with(gelu_linear_case, GeluKind::erf, true)},
            {"gelu_linear, tanh", with(gelu_linear_case, GeluKind::tanh, true)},
            {"linear_gelu, no bias", with(linear_gelu_case, GeluKind::erf, false)},
            {"gelu_linear, no bias", with(gelu_linear_case, GeluKind::erf, false)},
            {"convert, S to A", with(convert_case, Kind::storage, arithmetic)},
            {"convert, A to S", with(convert_case, arithmetic, Kind::storage)},
            {"convert, S to S", with(convert_case, Kind::storage, Kind::storage)},
            {"add", add_case},
            {"dropout", dropout_case},
            {"residual_norm", with(residual_norm_case, 0.5f)},
            {"residual_norm, no dropout", with(residual_norm_case, 0)},
            embedding,
            {"rotary", rotary_case},
            {"linear_rotary", linear_rotary_case},
            {"query_key_value", with(query_key_value_case, true)},
            {"query_key_value, no bias", with(query_key_value_case, false)},
            {"gather_rows", with(gather_rows_case, false)},
            {"gather_rows, none", with(gather_rows_case, true)},
            {"replace_rows", replace_rows_case},
            {"store_rows", store_rows_case},
            {"scale_columns", scale_columns_case},
            {"normalise", with(normalise_case, 1, arithmetic)},
            {"normalise, heads", with(normalise_case, 3, Kind::storage)},
            {"normalise, clamped", normalise_clamped_case},
            {"head_scores", with(head_scores_case, true)},
            {"head_scores, p an activation", with(head_scores_case, false)},
            {"feature_map, positive", with(feature_map_case, FeatureKind::positive, true)},
            {"feature_map, hyperbolic", with(feature_map_case, FeatureKind::hyperbolic, true)},
            {"feature_map, trigonometric", with(feature_map_case, FeatureKind::trigonometric, true)},
            {"feature_map, relu", with(feature_map_case, FeatureKind::relu, true)},
            {"feature_map, rfa", with(feature_map_case, FeatureKind::rfa, false)},
            {"feature_map, softplus", with(feature_map_case, FeatureKind::softplus, false)},
            {"feature_map, elu", with(feature_map_case, FeatureKind::elu, false)},
            {"vmf_sample", vmf_sample_case},
            {"gaussian_sample", gaussian_sample_case},
            {"gaussian_kl", with(gaussian_kl_case, false, false)},
            {"gaussian_kl, a prior", with(gaussian_kl_case, true, false)},
            {"gaussian_kl, of each number", with(gaussian_kl_case, true, true)},
            {"at_least", at_least_case},
            {"cross_entropy", with(cross_entropy_case, true, 0.0)},
            {"cross_entropy, no bias", with(cross_entropy_case, false, 0.0)},
            {"cross_entropy, smoothed", with(cross_entropy_case, true, 0.1)},
            {"cross_entropy, losses only", token_losses_case},
            {"weighted_sum", weighted_sum_case},
            {"shortlist", shortlist_case, {{5, 4, 3}}, {{33, 65, 17}}, boundary_sizes(), {{2, 2600, 70}, {3, 2571, 5}}},
            {"global_norm", global_norm_case},
            {"adamw", with(adamw_case, 0)},
            {"adamw, clipped", with(adamw_case, 1)},
            {"apollo", with(apollo_case, 0)},
            {"apollo, clipped", with(apollo_case, 1)},
        };
        for (const auto& more : {attention_ops(), state_ops(), bucket_ops(), insertion_ops(), code_ops()})
            all.insert(all.end(), more.begin(), more.end());
        return all;
    }();
    return table;
}

}  // namespace masquerade::ladder
