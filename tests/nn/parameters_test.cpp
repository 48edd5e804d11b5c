// SPDX-License-Identifier: MIT
#include <ctime>
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "engine/base/error.h"
#include "engine/nn/parameters.h"
#include "engine/ops/ops.h"
#include "engine/tape/trace.h"

using namespace masquerade;

namespace {

struct Two {
    Parameters p;
    Tensor *w, *b;
    explicit Two(DType type, std::uint64_t seed = 3) : p(type) {
        w = p.add("layer.weight", {70, 50}, {Init::normal, 0.1});
        b = p.add("layer.bias", {5}, {Init::zeros});
        p.add("norm.weight", {7}, {Init::ones});
        p.allocate(seed);
    }
};

}  // namespace

TEST_CASE("parameters: the same numbers in float and in double, bf16 rounds them") {
    Two single(DType::f32), twice(DType::f64), half(DType::bf16), other(DType::f32, 4);
    int different = 0;
    for (int i = 0; i < 3500; i++) {
        float x = single.w->view().as<float>()[i];
        CHECK(twice.w->view().as<double>()[i] == double(x));
        CHECK(float(half.w->view().as<bfloat16>()[i]) == float(bfloat16(x)));
        different += other.w->view().as<float>()[i] != x;
    }
    CHECK(different > 3400);
}

TEST_CASE("parameters: a value depends on the seed, the path and the place, not on its neighbours") {
    Parameters p;
    p.add("another", {33, 3}, {Init::normal, 1});
    Tensor* w = p.add("layer.weight", {70, 50}, {Init::normal, 0.1});
    p.allocate(3);
    Two two(DType::f32);
    CHECK(std::memcmp(w->value, two.w->value, w->bytes()) == 0);
}

TEST_CASE("parameters: normal numbers of the deviation, cut off at two; zeros; ones") {
    Two two(DType::f32);
    double mean = 0, square = 0, most = 0;
    for (int i = 0; i < 3500; i++) {
        double x = two.w->view().as<float>()[i];
        mean += x / 3500;
        square += x * x / 3500;
        most = std::max(most, std::fabs(x));
    }
    CHECK(std::fabs(mean) <= 0.005);
    CHECK(std::fabs(std::sqrt(square) - 0.088) <= 0.004);  // cutting off the tails leaves 0.88 of the deviation
    CHECK(most <= 0.2);
    CHECK(most >= 0.19);
    for (int i = 0; i < 5; i++) CHECK(two.b->view().as<float>()[i] == 0);
    for (int i = 0; i < 7; i++) CHECK(number_at(two.p.find("norm.weight")->view(), i) == 1);
}

TEST_CASE("parameters: named slices of one row, each on its own cache line") {
    Two two(DType::f32);
    View all = two.p.values();
    CHECK(two.p.count() == 3500 + 5 + 7);
    CHECK(all.shape == Shape{two.p.length()});
    CHECK(two.p.length() % 16 == 0);
    double sum = 0, parts = 0;
    for (std::int64_t i = 0; i < all.count(); i++) sum += number_at(all, i);  // the gaps are zeros
    for (const Tensor& t : two.p.all()) {
        CHECK(reinterpret_cast<std::uintptr_t>(t.value) % 64 == 0);
        View slice = two.p.slice(all, t);
        CHECK(slice.data == t.value);
        CHECK(slice.shape == t.shape);
        CHECK(two.p.slice(two.p.gradients(), t).data == t.grad);
        for (std::int64_t i = 0; i < t.shape.count(); i++) parts += number_at(t.view(), i);
    }
    CHECK(sum == doctest::Approx(parts));
    CHECK(two.p.find("layer.bias") == two.b);
    CHECK(two.p.find("layer") == nullptr);
}

TEST_CASE("parameters: what no backward reached has gradient zero") {
    Two two(DType::f32);
    for (Tensor& t : two.p.all())
        for (std::int64_t i = 0; i < t.shape.count(); i++) static_cast<float*>(t.grad)[i] = 5;
    two.p.start_gradients();
    two.w->grad_written = true;
    two.p.finish_gradients();
    CHECK(number_at(two.w->grad_view(), 17) == 5);
    for (int i = 0; i < 5; i++) CHECK(number_at(two.b->grad_view(), i) == 0);
}

TEST_CASE("parameters: while they are frozen, products keep copies of the matrices") {
    Two two(DType::f32);
    CHECK(two.w->view().packed == nullptr);
    const float x[50] = {1}, no[70] = {};
    const auto first_column = [&] {
        std::vector<float> y(70);
        linear_forward({const_cast<float*>(x), DType::f32, Device::cpu, {1, 50}, "x"}, two.w->view(),
                       {const_cast<float*>(no), DType::f32, Device::cpu, {70}, "b"},
                       {y.data(), DType::f32, Device::cpu, {1, 70}, "y"});
        return y;
    };
    const std::vector<float> before = first_column();
    two.p.freeze();
    CHECK(two.w->view().packed != nullptr);
    CHECK(two.b->view().packed == nullptr);
    CHECK(rows_of(two.w->view(), 0, 70).packed == nullptr);
    CHECK(first_column() == before);
    static_cast<float*>(two.w->value)[0] += 1;
    two.p.freeze();  // again, because a value has changed
    CHECK(first_column()[0] == before[0] + 1);
    two.p.start_gradients();
    CHECK(two.w->view().packed == nullptr);
    static_cast<float*>(two.w->value)[0] -= 1;
    CHECK(first_column()[0] == doctest::Approx(before[0]));
}

TEST_CASE("parameters: a path twice, a slice of another model") {
    Two two(DType::f32), other(DType::f32);
    CHECK_THROWS_WITH_AS(two.p.add("layer.bias", {1}, {}), "parameter layer.bias is declared twice", Error);
    CHECK_THROWS_WITH_AS(two.p.slice(two.p.values(), *other.b), "parameter layer.bias belongs to another model", Error);
}

TEST_CASE("parameters: with bf16 storage matrices are rounded copies of f32 masters; vectors are the masters") {
    Two two(DType::bf16), single(DType::f32);
    CHECK(two.w->dtype == DType::bf16);
    CHECK(two.b->dtype == DType::f32);
    CHECK(two.w->grad_view().dtype == DType::f32);
    CHECK(two.p.values().dtype == DType::f32);
    CHECK(std::memcmp(two.p.values().data, single.p.values().data, two.p.values().bytes()) == 0);
    float* master = two.p.master(*two.w).as<float>();
    const bfloat16* seen = two.w->view().as<bfloat16>();
    // Less than half a step of bf16: the master copy keeps it, but the rounded weight does not show it yet.
    master[7] = 1.0f + 0x1p-9f;
    two.p.round();
    CHECK(float(seen[7]) == 1.0f);
    CHECK(master[7] == 1.0f + 0x1p-9f);
    master[7] += 0x1p-8f;
    two.p.round();
    CHECK(float(seen[7]) == 1.0f + 0x1p-7f);
    two.p.master(*two.b).as<float>()[2] = 0.3f;
    CHECK(two.b->view().as<float>()[2] == 0.3f);
}

// If the time grew in proportion to n * n, the larger case would take a hundred times as long.
TEST_CASE("parameters: ten times as many take about ten times as long") {
    const auto ticks = [](int count) {
        const std::clock_t begin = std::clock();  // processor time, which hardly depends on other programs
        Parameters parameters;
        for (int i = 0; i < count; i++) parameters.add(text("layer.", i, ".weight"), {1}, {Init::ones});
        parameters.allocate(1);
        for (const Tensor& t : parameters.all()) CHECK(parameters.master(*parameters.find(t.path)).data == t.value);
        return double(std::clock() - begin);
    };
    const double few = ticks(5000);
    CHECK(ticks(50000) < 50 * few);
}

TEST_CASE("parameters: two matrices of one shape begin with other numbers") {
    Parameters p;
    Tensor *a = p.add("a", {8, 8}, {Init::normal, 1}), *b = p.add("b", {8, 8}, {Init::normal, 1});
    p.allocate(3);
    int equal = 0;
    for (int i = 0; i < 64; i++)
        equal += static_cast<const float*>(a->value)[i] == static_cast<const float*>(b->value)[i];
    CHECK(equal == 0);
}
