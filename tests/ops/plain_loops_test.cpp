// SPDX-License-Identifier: MIT
// Compares the ops without a backward with plain loops in double, in every size of the ladder. The complex step cannot
// check these ops, and the ladder compares an op only with its own formula.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "engine/check/ladder.h"

using namespace masquerade;
using namespace masquerade::ladder;

namespace {

// The tensors of a call, in double.
struct Doubles {
    const Call& call;
    double* operator[](const char* name) const { return call(name).as<double>(); }
    std::int64_t rows(const char* name) const { return call(name).rows(); }
    std::int64_t columns(const char* name) const { return call(name).columns(); }
    std::int64_t count(const char* name) const { return call(name).count(); }
};

void store_rows_defined(const Doubles& a) {
    const std::int64_t C = a.columns("x");
    for (std::int64_t i = 0; i < a.count("x"); i++) a["y"][a.call.ints("rows")[i / C] * C + i % C] = a["x"][i];
}

void token_losses_defined(const Doubles& a) {
    const std::int64_t C = a.columns("h"), V = a.rows("w");
    for (std::int64_t row = 0; row < a.rows("h"); row++) {
        double sum = 0, wanted = 0;
        for (std::int64_t v = 0; v < V; v++) {
            double logit = a["b"][v];
            for (std::int64_t i = 0; i < C; i++) logit += a["h"][row * C + i] * a["w"][v * C + i];
            sum += std::exp(logit);
            if (v == a.call.ints("targets")[row]) wanted = logit;
        }
        a["lse"][row] = std::log(sum);
        a["loss"][row] = std::log(sum) - wanted;
    }
}

void global_norm_defined(const Doubles& a) {
    double square = 0;
    for (std::int64_t i = 0; i < a.count("g"); i++) square += std::pow(a["g"][i], 2);
    *a["norm"] = std::sqrt(square);
}

void shortlist_defined(const Doubles& a) {
    const std::int64_t V = a.columns("x"), W = a.columns("best"), P = a.columns("parts");
    for (std::int64_t n = 0; n < a.rows("x"); n++) {
        const double* x = a["x"] + n * V;
        std::vector<int> order;
        for (int v = 0; v < int(V); v++) order.push_back(v);
        std::stable_sort(order.begin(), order.end(), [&](int v, int w) { return x[v] > x[w]; });
        for (std::int64_t i = 0; i < W; i++)
            a["best"][n * W + i] = x[order[std::size_t(i)]], a["ids"][n * W + i] = order[std::size_t(i)];
        for (std::int64_t p = 0; p < P; p++) a["parts"][n * P + p] = 0;
        for (std::int64_t v = 0; v < V; v++) a["parts"][n * P + v / 1024] += std::exp(x[v] - x[order[0]]);
    }
}

// The definition for the rows "adamw" of the op table. The decay is 0.1, and all other numbers are the defaults of
// OptimiserRule.
void adamw_defined(const Doubles& a, double clip) {
    const OptimiserRule rule;
    const double *control = a["control"], factor = clip > 0 ? std::min(1.0, clip / *a["norm"]) : 1;
    for (std::int64_t i = 0; i < a.count("p"); i++) {
        double &p = a["p"][i], &m = a["m"][i], &v = a["v"][i];
        const double g = a["g"][i] * factor;
        m = rule.beta1 * m + (1 - rule.beta1) * g;
        v = rule.beta2 * v + (1 - rule.beta2) * g * g;
        p -= control[0] * (m * control[1] / (std::sqrt(v * control[2]) + rule.eps) + 0.1 * p);
    }
}

constexpr int groups = 2;

void nearest_code_defined(const Doubles& a) {
    const std::int64_t D = a.columns("codes"), M = a.rows("codes") / groups;
    for (std::int64_t b = 0; b < a.rows("y") * groups; b++) {
        double least = INFINITY;
        for (std::int64_t m = 0; m < M; m++) {
            const double *row = a["codes"] + (b % groups * M + m) * D, *y = a["y"] + b * D;
            double distance = 0;
            for (std::int64_t i = 0; i < D; i++) distance += (y[i] - row[i]) * (y[i] - row[i]);
            if (distance >= least) continue;
            least = distance;
            a["code"][b] = double(m);
            std::copy(row, row + D, a["q"] + b * D);
        }
    }
}

void nearest_level_defined(const Doubles& a, int levels) {
    for (std::int64_t i = 0; i < a.count("t"); i++) {
        double best = -1;
        for (int k = 1; k < levels; k++)
            if (const double at = -1 + 2.0 * k / (levels - 1), t = a["t"][i]; std::fabs(at - t) < std::fabs(best - t))
                best = at;
        a["q"][i] = best;
    }
}

// The definition for the row "learn_codes": the decay is 0.9, a code is dead below 0.3 of the mean, and the stream is
// that of step 2.
void learn_codes_defined(const Doubles& a) {
    constexpr double decay = 0.9, least = 0.3;
    const Stream stream = make_stream(5, "ladder", 2);
    const std::int64_t D = a.columns("codes"), M = a.rows("codes") / groups;
    const std::int64_t there = std::count(a["weights"], a["weights"] + a.count("weights"), 1.0);
    for (std::int64_t r = 0; r < groups * M; r++) {
        const std::int64_t g = r / M;
        double *row = a["codes"] + r * D, *sum = a["sums"] + r * D, &count = a["counts"][r], met = 0;
        std::vector<double> near(std::size_t(D), 0);
        for (std::int64_t b = 0; b < there; b++) {
            if (a["code"][b * groups + g] != double(r % M)) continue;
            met++;
            for (std::int64_t i = 0; i < D; i++) near[std::size_t(i)] += a["y"][(b * groups + g) * D + i];
        }
        count = decay * count + (1 - decay) * met;
        const double even = double(there) / double(M);
        const float some = masquerade::uniform(stream.at(std::uint32_t(r % M), std::uint32_t(g), 0)[0]);
        const std::int64_t drawn = std::min(there - 1, std::int64_t(some * float(there)));
        const bool dead = count < least * even;
        if (dead) count = even;
        for (std::int64_t i = 0; i < D; i++) {
            const double fresh = a["y"][(drawn * groups + g) * D + i];
            sum[i] = dead ? count * fresh : decay * sum[i] + (1 - decay) * near[std::size_t(i)];
            row[i] = dead ? fresh : sum[i] / count;
        }
    }
}

}  // namespace

TEST_CASE("plain loops: a shortlist is not longer than its row, and has a sum for each part") {
    std::vector<float> x(1025), best(1026), ids(1026), parts(3);
    const auto list = [&](int V, int W, int P) {
        shortlist({x.data(), DType::f32, Device::cpu, {1, V}, "x"},
                  {best.data(), DType::f32, Device::cpu, {1, W}, "best"},
                  {ids.data(), DType::f32, Device::cpu, {1, W}, "ids"},
                  {parts.data(), DType::f32, Device::cpu, {1, P}, "parts"});
    };
    list(1025, 1025, 2);
    list(1024, 3, 1);
    CHECK_THROWS_WITH_AS(list(1025, 1026, 2), doctest::Contains("1026 best of 1025 logits of x, expected from 1"),
                         Error);
    CHECK_THROWS_WITH_AS(list(1025, 0, 2), doctest::Contains("0 best"), Error);
    for (int P : {1, 3})
        CHECK_THROWS_WITH_AS(list(1025, 3, P), doctest::Contains("expected 2 columns for the 1025 logits of x"), Error);
}

TEST_CASE("plain loops: every op without a backward") {
    const std::pair<const char*, std::function<void(const Doubles&)>> defined[] = {
        {"store_rows", store_rows_defined},
        {"cross_entropy, losses only", token_losses_defined},
        {"global_norm", global_norm_defined},
        {"shortlist", shortlist_defined},
        {"adamw", [](const Doubles& a) { adamw_defined(a, 0); }},
        {"adamw, clipped", [](const Doubles& a) { adamw_defined(a, 1); }},
        {"nearest_code", nearest_code_defined},
        {"nearest_level, 5", [](const Doubles& a) { nearest_level_defined(a, 5); }},
        {"nearest_level, 2", [](const Doubles& a) { nearest_level_defined(a, 2); }},
        {"learn_codes", learn_codes_defined},
    };
    std::set<std::string> names;
    for (const auto& [name, define] : defined) names.insert(name);
    for (const Op& op : ops_table()) {
        CAPTURE(op.name);
        // tests/train/apollo_test.cpp tests apollo.
        const bool has_backward = prepared(op, op.small.front()).backward != nullptr;
        CHECK((has_backward || names.count(op.name) || op.name.rfind("apollo", 0) == 0));
        for (const auto& [name, define] : defined) {
            if (op.name != name) continue;
            std::vector<Sizes> sizes = op.all;
            sizes.insert(sizes.end(), op.far.begin(), op.far.end());
            for (Sizes s : sizes) {
                CAPTURE(at(s));
                const Case c = prepared(op, s);
                const Call found(c, DType::f64), plain(c, DType::f64);
                found.forward();
                define({plain});
                for (std::size_t i = 0; i < c.operands.size(); i++)
                    if (const Operand& o = c.operands[i]; o.written())
                        CHECK(error_of(found.values[i].view(), plain.values[i].view(), o.floor) <= 1e-12);
            }
        }
    }
}
