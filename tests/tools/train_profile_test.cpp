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

TEST_CASE("train profile: the products of a linear layer, without those inside attention") {
    StepProfile profile;
    Layer layer;
    for (int step = 0; step < 2; step++) {
        for (int i = 0; i < 3; i++) record(profile, "linear", false, [&] { layer.forward(); });
        record(profile, "linear", true, [&] { layer.backward(false); });
        record(profile, "linear", true, [&] { layer.backward(true); });
        record(profile, "attention", true, [&] { layer.backward(false); });
        layer.forward();  // between ops: nobody's
    }
    CHECK(profile.metered.f32 == 2 * (3 + 2 + 2) * M * I * O);
    CHECK(profile.metered.bf16 == 0);
    CHECK(profile.shares().at("linear").calls == 10);
    profile.clear();
    CHECK(profile.metered.f32 == 0);
    CHECK(profile.shares().empty());
}

TEST_CASE("train profile: parts add up to the step, and every op finds its own") {
    std::vector<StepPart> parts;
    {
        StepProfile profile;
        Layer layer;
        record(profile, "gelu", false, [] { wait(20); });
        record(profile, "gelu", true, [] { wait(10); });
        record(profile, "some new op", false, [] { wait(15); });
        record(profile, "linear", false, [&] { layer.forward(); });
        record(profile, "attention", false, [&] {
            layer.forward();
            wait(5);
        });
        parts = profile.parts(2, 0.2, 0.008);
    }
    CHECK(gemm_meter == nullptr);
    double sum = 0;
    for (const StepPart& part : parts) sum += part.seconds;
    CHECK(sum == doctest::Approx(0.1));
    CHECK(parts.front().name == "GEMM");
    CHECK(parts.front().seconds > 0);
    CHECK(parts[1].name == "gelu");
    CHECK(parts.back().name == "rest");
    CHECK(seconds_of_part(parts, "gelu") >= 0.015);
    CHECK(seconds_of_part(parts, "some new op") >= 0.0075);
    CHECK(seconds_of_part(parts, "attention") >= 0.0025);
    CHECK(seconds_of_part(parts, "optimiser") == 0.004);
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
