// SPDX-License-Identifier: MIT
#include "engine/ops/cpu/parallel.h"
#include "tools/bench/train_profile.h"

#include <chrono>
#include <thread>

#include "doctest/doctest.h"
#include "engine/ops/ops.h"

using namespace masquerade;

namespace {

constexpr int M = 5, I = 8, O = 3;

struct Layer {
    std::vector<float> x = std::vector<float>(M * I, 0.5f), w = std::vector<float>(O * I, 0.25f),
                       y = std::vector<float>(M * O);
    std::vector<float> dx = std::vector<float>(M * I), dw = std::vector<float>(O * I);

    static View view(std::vector<float>& numbers, int rows) {
        return {
            numbers.data(), DType::f32, Device::cpu, {rows, std::int64_t(numbers.size()) / rows}, "layer"};
    }
    void forward() { linear_forward(view(x, M), view(w, O), View{}, view(y, M)); }
    void backward(bool add) {
        linear_backward(view(y, M), view(x, M), view(w, O), Grad{view(dx, M), false}, Grad{view(dw, O), add},
                        Grad{});
    }
};

template <class Work>
void record(StepProfile& profile, const char* op, bool backward, Work work) {
    Tensor x, w, y;
    x.shape = {M, I}, w.shape = {O, I}, y.shape = {M, O};
    Record r;
    r.op = op;
    r.in = {&x, &w};
    r.out = {&y};
    profile.before(r, backward);
    work();
    profile.after(r, backward);
}

void wait(int milliseconds) { std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds)); }

double seconds_of_part(const std::vector<StepPart>& parts, const std::string& name) {
    for (const StepPart& part : parts)
        if (part.name == name) return part.seconds;
    return -1;
}

}  // namespace

TEST_CASE("train profile: the products of a linear layer, their orders and how often they come") {
    StepProfile profile;
    Layer layer;
    for (int step = 0; step < 2; step++) {
        profile.start();
        for (int i = 0; i < 3; i++) record(profile, "linear", false, [&] { layer.forward(); });
        record(profile, "linear", true, [&] { layer.backward(false); });
        record(profile, "linear", true, [&] { layer.backward(true); });
        record(profile, "attention", true, [&] { layer.backward(false); });
        profile.finish(0);
        layer.forward();  // between steps: nobody's
    }
    CHECK(gemm_meter == nullptr);
    auto count = [&](std::int64_t m, std::int64_t n, std::int64_t k, const char* order, bool add) {
        const auto found = profile.products.find({m, n, k, order, DType::f32, DType::f32, DType::f32, add});
        return found == profile.products.end() ? 0 : int(found->second.size());
    };
    CHECK(count(M, O, I, "NT", false) == 6);
    CHECK(count(M, I, O, "NN", false) == 4);
    CHECK(count(O, I, M, "TN", false) == 2);
    CHECK(count(O, I, M, "TN", true) == 2);
    CHECK(profile.products.size() == 4);  // those inside attention are not among them

    const auto products = floor_products(profile, 0);
    double multiply_adds = 0;
    for (const FloorProduct& p : products) multiply_adds += p.count * p.kind.multiply_adds();
    CHECK(multiply_adds == (3 + 2 + 2) * M * I * O);
    CHECK(profile.ops.at("linear").calls == 6);
    CHECK(profile.ops.at("attention").products > 0);
}

TEST_CASE("train profile: parts add up to the step, and every op finds its own") {
    StepProfile profile;
    Layer layer;
    profile.start();
    record(profile, "gelu", false, [] { wait(20); });
    record(profile, "gelu", true, [] { wait(10); });
    record(profile, "some new op", false, [] { wait(15); });
    record(profile, "linear", false, [&] { layer.forward(); });
    record(profile, "attention", false, [&] {
        layer.forward();
        wait(5);
    });
    wait(10);
    profile.finish(0.008);
    const std::vector<StepPart> parts = parts_of(profile);
    double sum = 0;
    for (const StepPart& part : parts) sum += part.seconds;
    CHECK(sum == doctest::Approx(profile.seconds));
    CHECK(parts.front().name == "GEMM");
    CHECK(parts.front().seconds == doctest::Approx(profile.ops.at("linear").products));
    CHECK(parts.back().name == "rest");
    CHECK(parts.back().seconds >= 0.002);
    CHECK(seconds_of_part(parts, "some new op") >= 0.015);
    CHECK(parts[1].name == "gelu");
    CHECK(seconds_of_part(parts, "gelu") >= 0.030);
    CHECK(seconds_of_part(parts, "attention") >= 0.005);
    CHECK(seconds_of_part(parts, "optimiser") == 0.008);
    CHECK(profile.ops.at("gelu").forward >= 0.020);
    CHECK(profile.ops.at("gelu").backward >= 0.010);
}

TEST_CASE("gemm meter: a product inside a piece is told from one that all threads share") {
    struct Meter : GemmMeter {
        std::mutex lock;
        int alone = 0, shared = 0;
        void note(const GemmCall& call) override {
            std::lock_guard<std::mutex> guard(lock);
            (call.alone ? alone : shared)++;
            CHECK(call.seconds >= 0);
        }
    } meter;
    Layer layers[4];
    const int before = threads();
    set_threads(2);
    gemm_meter = &meter;
    layers[0].forward();
    parallel_each(4, [&](std::int64_t i) { layers[i].forward(); });
    gemm_meter = nullptr;
    set_threads(before);
    layers[0].forward();
    CHECK(meter.alone == 1);
    CHECK(meter.shared == 4);
}

TEST_CASE("train floor: each product at the faster of two, attention at the best rate") {
    Floor floor;
    floor.products = {{{10, 10, 10, "NT", DType::f32, DType::f32, DType::f32, false}, 3, 2.0, 1.0},
                      {{20, 10, 10, "NN", DType::f32, DType::f32, DType::f32, false}, 0.5, 1.0, 4.0},
                      {{1, 10, 10, "TN", DType::f32, DType::f32, DType::f32, true}, 1, 5.0, 0}};
    floor.attention = 4000;
    CHECK(floor.products_seconds() == 3 * 1.0 + 0.5 * 1.0 + 5.0);
    CHECK(floor.multiply_adds() == 3 * 1000 + 0.5 * 2000 + 100);
    CHECK(floor.best_rate() == 2000);
    CHECK(floor.attention_seconds() == 2);
    CHECK(floor.seconds() == 10.5);
}

TEST_CASE("train floor: a product is measured in its own order and types") {
    struct Meter : GemmMeter {
        std::vector<ProductKind> kinds;
        void note(const GemmCall& call) override { kinds.push_back(kind_of(call)); }
    } meter;
    gemm_meter = &meter;
    std::vector<ProductKind> asked;
    for (const char* order : {"NT", "NN", "TN"})
        for (DType type : {DType::f32, DType::bf16}) {
            asked.push_back({7, 5, 3, order, type, type, DType::f32, true});
            CHECK(seconds_alone(asked.back(), 0) > 0);
        }
    gemm_meter = nullptr;
    REQUIRE(meter.kinds.size() == 2 * asked.size());
    for (std::size_t i = 0; i < meter.kinds.size(); i++) {
        const ProductKind &found = meter.kinds[i], &wanted = asked[i / 2];
        CHECK(!(found < wanted));
        CHECK(!(wanted < found));
    }
}
