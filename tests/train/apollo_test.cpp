// SPDX-License-Identifier: MIT
// Compares Apollo with the paper's formulas, computed in Python (tests/golden/apollo), tensor by tensor. Also tests
// threads, bf16 and NaN.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <fstream>

#include "engine/base/random.h"
#include "engine/ops/cpu/parallel.h"
#include "engine/tape/trace.h"
#include "engine/train/optimiser.h"

using namespace masquerade;

namespace {

std::unique_ptr<Optimiser> apollo_of(Parameters& p, double clip = 0, double decay = 0) {
    OptimiserOptions o;
    o.optimiser = "apollo";
    o.clip = clip;
    o.weight_decay = decay;
    return make_optimiser(p, o);
}

void set(const View& view, std::int64_t i, double x) {
    if (view.dtype == DType::f64)
        view.as<double>()[i] = x;
    else
        view.as<float>()[i] = float(x);
}

// Returns the largest difference from golden.txt.
double difference(DType type) {
    Parameters p(type);
    const std::pair<Tensor*, int> tensors[] = {{p.add("w", {40, 33}, {Init::zeros, 0}), 1320},
                                               {p.add("b", {4}, {Init::zeros, 0}), 4}};
    p.allocate(1);
    for (const auto& [t, count] : tensors)
        for (int i = 0; i < count; i++) set(t->view(), i, ((7 * i + 1) % 11 - 5) / 10.0);
    const auto apollo = apollo_of(p, 1, 0.005);
    std::ifstream golden("tests/golden/apollo/golden.txt");
    double worst = 0, expected = 0;
    const double swing[] = {-1, 0.8, 0.5, -0.2, -2, 1};
    for (int step = 1; step <= 6; step++) {
        for (const auto& [t, count] : tensors)
            for (int i = 0; i < count; i++)
                set(t->grad_view(), i, swing[step - 1] * ((3 * i + count) % 13 - 6) * (1 + i / 200.0) / 300);
        apollo->update(step, 0.02 / step);
        for (const auto& [t, count] : tensors)
            for (int i = 0; i<count; i += count> 4 ? 131 : 1) {
                REQUIRE(bool(golden >> expected));
                const double d = std::fabs(number_at(t->view(), i) - expected);
                worst = d > worst || d != d ? d : worst;
            }
    }
    return worst;
}

// Matrices of many blocks, matrices of less than a block, and vectors, and their gradients for one step.
struct Model {
    Parameters p;
    explicit Model(DType type) : p(type) {
        for (int i : {7, 1, 300, 5, 64, 17}) {
            p.add(text("w", i), {i, 17}, {Init::normal, 1});
            p.add(text("b", i), {i}, {Init::normal, 1});
        }
        p.allocate(2);
    }
    void draw(std::int64_t t) {
        for (Tensor& each : p.all()) {
            Sequence random(std::uint64_t(t), each.path);
            for (std::int64_t i = 0; i < each.shape.count(); i++)
                set(each.grad_view(), i, 4 * double(random.uniform()) - 2);
        }
    }
};

}  // namespace

TEST_CASE("apollo: the numbers of the paper's formulas, written in another language") {
    CHECK(difference(DType::f64) <= 1e-14);
    CHECK(difference(DType::f32) <= 1e-6);
}

TEST_CASE("apollo: a tensor moves among others as it does alone, with any threads") {
    Model all(DType::f32);
    const auto together = apollo_of(all.p);
    std::vector<float> moved;
    for (int threads : {1, 2, 4}) {
        Model again(DType::f32);
        const auto apollo = apollo_of(again.p);
        set_threads(threads);
        for (int t = 1; t <= 4; t++) again.draw(t), apollo->update(t, 1e-2);
        const float* x = again.p.values().as<float>();
        std::vector<float> now(x, x + again.p.length());
        if (moved.empty()) moved = now;
        CHECK(std::memcmp(moved.data(), now.data(), now.size() * sizeof(float)) == 0);
    }
    set_threads(0);
    for (int t = 1; t <= 4; t++) all.draw(t), together->update(t, 1e-2);
    for (const Tensor& one : all.p.all()) {
        Parameters p;
        Tensor* lone = p.add(one.path, one.shape, {Init::normal, 1});
        p.allocate(2);
        const auto apollo = apollo_of(p);
        for (int t = 1; t <= 4; t++) {
            all.draw(t);
            std::memcpy(lone->grad, one.grad, one.grad_view().bytes());
            apollo->update(t, 1e-2);
        }
        INFO(one.path);
        CHECK(std::memcmp(lone->value, one.value, one.view().bytes()) == 0);
    }
}

TEST_CASE("apollo: copies in bf16 follow their f32 masters, which move as in f32") {
    Model half(DType::bf16), single(DType::f32);
    const auto of_half = apollo_of(half.p), of_single = apollo_of(single.p);
    for (int t = 1; t <= 3; t++) {
        half.draw(t), single.draw(t);
        of_half->update(t, 1e-3), of_single->update(t, 1e-3);
    }
    const View masters = half.p.values(), rounded = half.p.rounded();
    CHECK(std::memcmp(masters.data, single.p.values().data, masters.bytes()) == 0);
    int different = 0;
    for (std::int64_t i = 0; i < rounded.count(); i++)
        different += rounded.as<bfloat16>()[i].bits != bfloat16(masters.as<float>()[i]).bits;
    CHECK(different == 0);
}

TEST_CASE("apollo: with the smallest apollo_eps, the first steps are finite; less is refused") {
    OptimiserOptions o;
    o.optimiser = "apollo";
    Config config;
    o.declare_numbers(config);
    config.set("apollo_eps", "3e-25");
    Model model(DType::f32);
    const auto apollo = make_optimiser(model.p, o);
    for (int t = 1; t <= 3; t++) model.draw(t), apollo->update(t, 1e-3);
    for (const double x : numbers_of(model.p.values())) REQUIRE(std::isfinite(x));
    CHECK_THROWS_AS(config.set("apollo_eps", "2e-25"), BadUsage);
}

TEST_CASE("apollo: a NaN among the gradients reaches the parameters, and the gaps between tensors stay 0") {
    Model model(DType::f32);
    const auto apollo = apollo_of(model.p);
    for (int t = 1; t <= 3; t++) model.draw(t), apollo->update(t, 1e-2);
    const float* x = model.p.values().as<float>();
    const std::int64_t behind = model.p.all()[0].shape.count();  // 119 numbers, and then a gap of 9 numbers
    for (std::int64_t i = behind; i < 128; i++) CHECK(x[i] == 0);
    set(model.p.all()[0].grad_view(), 3, NAN);
    apollo->update(4, 1e-2);
    CHECK(std::isnan(apollo->norm()));
    CHECK(std::isnan(x[3]));
}

TEST_CASE("optimisers: an unknown one is refused, the known ones are named") {
    Model model(DType::f32);
    OptimiserOptions options;
    options.optimiser = "adam";
    CHECK_THROWS_WITH_AS(make_optimiser(model.p, options), "there is no optimiser adam; there are adamw, apollo",
                         BadUsage);
}
