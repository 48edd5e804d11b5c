// SPDX-License-Identifier: MIT
// Compares layers of every kind of norm and feed-forward part with plain loops in double, and tests what a stack
// refuses.
#include "tests/models/nets/block_kinds.h"

#include <doctest/doctest.h>

#include <cmath>
#include <map>

#include "engine/tensor/numbers.h"
#include "models/masks/mask.h"
#include "tests/train/files.h"

using namespace masquerade;

namespace {

using Row = std::vector<double>;
using Matrix = std::vector<Row>;

double gelu_of(double x) { return 0.5 * x * std::erfc(-x / std::sqrt(2.0)); }
double silu_of(double x) { return x / (1 + std::exp(-x)); }

// One layer in plain loops, as the papers define it. Every row of a document sees the whole document.
struct Papers {
    const Parameters& parameters;
    const BackboneOptions& o;

    Matrix at(const std::string& path) const {
        const Tensor& t = *parameters.find("layer.0." + path);
        Matrix all(std::size_t(t.shape.rank > 1 ? t.rows() : 1));
        const std::size_t columns = std::size_t(t.shape.count()) / all.size();
        for (std::size_t i = 0; i < all.size(); i++)
            for (std::size_t j = 0; j < columns; j++)
                all[i].push_back(number_at(t.view(), std::int64_t(i * columns + j)));
        return all;
    }
    Matrix linear(const Matrix& x, const std::string& path) const {
        const Matrix w = at(path + ".weight");
        CHECK((parameters.find("layer.0." + path + ".bias") != nullptr) == o.bias);
        Matrix y(x.size(), Row(w.size()));
        for (std::size_t n = 0; n < x.size(); n++)
            for (std::size_t i = 0; i < w.size(); i++)
                for (std::size_t j = 0; j < w[i].size(); j++) y[n][i] += w[i][j] * x[n][j];
        return y;
    }
    Matrix norm(Matrix x, const std::string& path) const {
        const Row w = at(path + ".weight")[0];
        const bool layer = o.norm == "layer";
        const Row b = layer ? at(path + ".bias")[0] : Row(w.size());
        for (Row& row : x) {
            double mean = 0, square = 0;
            for (double v : row) mean += layer ? v / double(row.size()) : 0;
            for (double v : row) square += (v - mean) * (v - mean) / double(row.size());
            for (std::size_t i = 0; i < row.size(); i++)
                row[i] = (row[i] - mean) / std::sqrt(square + 1e-6) * w[i] + b[i];
        }
        return x;
    }
    Matrix attention(const Matrix& x, const std::vector<int>& document) const {
        const std::size_t H = std::size_t(o.heads), G = std::size_t(o.kv_heads), D = std::size_t(o.width) / H;
        const Matrix q = linear(x, "attention.query"), kv = linear(x, "attention.key_value");
        Matrix y(x.size(), Row(std::size_t(o.width)));
        for (std::size_t n = 0; n < x.size(); n++)
            for (std::size_t h = 0; h < H; h++) {
                const std::size_t key = h / (H / G) * D, value = G * D + key;
                double total = 0;
                for (std::size_t m = 0; m < x.size(); m++) {
                    if (document[m] != document[n]) continue;
                    double dot = 0;
                    for (std::size_t d = 0; d < D; d++) dot += q[n][h * D + d] * kv[m][key + d];
                    const double p = std::exp(dot / std::sqrt(double(D)));
                    total += p;
                    for (std::size_t d = 0; d < D; d++) y[n][h * D + d] += p * kv[m][value + d];
                }
                for (std::size_t d = 0; d < D; d++) y[n][h * D + d] /= total;
            }
        return linear(y, "attention.output");
    }
    Matrix ffn(const Matrix& x) const {
        Matrix u = linear(x, "ffn.up");
        const std::size_t F = std::size_t(o.inner);
        for (Row& row : u) {
            CHECK(row.size() == (o.ffn == "swiglu" || o.ffn == "geglu" ? 2 * F : F));
            for (std::size_t i = 0; i < F; i++)
                row[i] = o.ffn == "gelu"     ? gelu_of(row[i])
                         : o.ffn == "swiglu" ? silu_of(row[i]) * row[F + i]
                         : o.ffn == "geglu"  ? gelu_of(row[i]) * row[F + i]
                                             : std::pow(std::max(row[i], 0.0), 2);
            row.resize(F);
        }
        return linear(u, "ffn.down");
    }
};

Matrix sum(Matrix a, const Matrix& b) {
    for (std::size_t n = 0; n < a.size(); n++)
        for (std::size_t i = 0; i < a[n].size(); i++) a[n][i] += b[n][i];
    return a;
}

BackboneOptions small() {
    BackboneOptions o;
    o.vocabulary = 20, o.width = 16, o.inner = 12, o.layers = 1, o.positions = 9, o.rotary = false, o.eps = 1e-6;
    o.deviation = 0.5;
    return o;
}

}  // namespace

TEST_CASE("blocks: every kind of norm and feed-forward part, with fewer heads of keys, is the papers' layer, 1e-13") {
    for (bool pre_norm : {false, true})
        for (BackboneOptions o : with_block_kinds(small())) {
            o.pre_norm = pre_norm;
            INFO(o.norm, " ", o.ffn, " ", o.kv_heads, " ", pre_norm);
            Parameters parameters(DType::f64);
            const Backbone stack(parameters, o);
            parameters.allocate(3);
            Sequence random(4, "parameters");  // changes all parameters, because gains start at 1
            const View p = parameters.values();
            for (std::int64_t i = 0; i < p.count(); i++) p.as<double>()[i] += 0.4 * (2 * random.uniform_double() - 1);
            TokenRows rows;
            const SegmentGraph graph = full_mask({{5, 0}, {3, 0}});
            for (int n = 0; n < 8; n++) rows.push((7 * n + 3) % 20, n % o.types, n < 5 ? n : n - 5, n >= 5);
            Arena arena(Device::cpu, Blocks::loose);
            Tape tape(arena, DType::f64);
            tape.begin("blocks");
            const auto numbers = [](const Tensor* t) {
                Matrix all(std::size_t(t->rows()));
                for (std::int64_t i = 0; i < t->shape.count(); i++)
                    all[std::size_t(i / t->columns())].push_back(number_at(t->view(), i));
                return all;
            };
            const Papers papers{parameters, o};
            const std::vector<int> document = {0, 0, 0, 0, 0, 1, 1, 1};
            Matrix x = numbers(stack.embed(tape, rows));
            const auto attend = [&](const Matrix& h) { return papers.attention(h, document); };
            if (pre_norm) {
                x = sum(x, attend(papers.norm(x, "norm1")));
                x = sum(x, papers.ffn(papers.norm(x, "norm2")));
            } else {
                x = papers.norm(sum(x, attend(x)), "norm1");
                x = papers.norm(sum(x, papers.ffn(x)), "norm2");
            }
            const Matrix found = numbers(stack.run(tape, rows, graph));
            double worst = 0;
            for (std::size_t n = 0; n < x.size(); n++)
                for (std::size_t i = 0; i < x[n].size(); i++) worst = std::max(worst, std::abs(x[n][i] - found[n][i]));
            CHECK(worst < 1e-13);
        }
}

TEST_CASE("blocks: the gate of GeGLU is the gelu of the settings, and the head has the activation of the layers") {
    const auto result = [](const char* ffn, GeluKind gelu, bool head) {
        BackboneOptions o = small();
        o.ffn = ffn, o.gelu = gelu;
        Parameters parameters(DType::f64);
        const Backbone stack(parameters, o);
        parameters.allocate(3);
        TokenRows rows;
        const SegmentGraph graph = full_mask({{1, 0}});
        rows.push(5, 0, 0, 0);
        Arena arena(Device::cpu, Blocks::loose);
        Tape tape(arena, DType::f64);
        tape.begin("gelu");
        Tensor* x = head ? stack.head(tape, stack.embed(tape, rows)) : stack.run(tape, rows, graph);
        return number_at(x->view(), 0);
    };
    for (bool head : {false, true}) {
        for (const char* ffn : {"gelu", "geglu"})
            CHECK(result(ffn, GeluKind::erf, head) != result(ffn, GeluKind::tanh, head));
        for (const char* ffn : {"swiglu", "relu2"})
            CHECK(result(ffn, GeluKind::erf, head) == result(ffn, GeluKind::tanh, head));
    }
    CHECK(result("gelu", GeluKind::erf, true) == result("geglu", GeluKind::erf, true));
    CHECK(result("gelu", GeluKind::erf, true) != result("swiglu", GeluKind::erf, true));
    CHECK(result("relu2", GeluKind::erf, true) != result("swiglu", GeluKind::erf, true));
}

TEST_CASE("blocks: heads of keys divide the heads, and only kinds that group heads have fewer") {
    const auto refusal = [](int kv_heads, const char* attention) {
        BackboneOptions o = small();
        o.kv_heads = kv_heads, o.attention = attention;
        Parameters parameters;
        return message_of<BadUsage>([&] { Backbone(parameters, o); });
    };
    CHECK_SAYS(refusal(3, "softmax"), "kv_heads is 3, which does not divide heads, 4");
    for (const AttentionKind& kind : attention_kinds()) {
        INFO(std::string(kind.name));
        if (kind.groups_heads)
            CHECK_NOTHROW([&] {
                BackboneOptions o = small();
                o.kv_heads = 2, o.attention = kind.name;
                Parameters parameters;
                Backbone(parameters, o);
            }());
        else
            CHECK_SAYS(refusal(2, kind.name),
                       text("attention ", kind.name, " has as many heads of keys as of queries"));
    }
    BackboneOptions unknown = small();
    unknown.norm = "batch";
    Parameters parameters;
    CHECK_SAYS(message_of<BadUsage>([&] { Backbone(parameters, unknown); }),
               "there is no norm batch; there are layer, rms");
}
