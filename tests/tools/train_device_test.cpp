// SPDX-License-Identifier: MIT
// Tests the measurements of ./bench for a GPU, except the speed. The device of the test has memory that the host cannot
// access, and its ops are those of the CPU.
#include <nlohmann/json.hpp>

#include "tests/cuda/fake_device.h"
#include "tests/tools/small_mark.h"
#include "tools/bench/bench.h"
#include "tools/bench/train.h"

using namespace masquerade;

namespace {

// Returns the row for a mark that is small enough for a test.
Json row_of(Device device, DType storage, bool graph = true, bool deterministic = false) {
    TrainMark mark = small_mark("univae-small");
    mark.model.backbone.vocabulary = 50;
    for (auto& ids : mark.sentences)
        for (int& id : ids) id = id > 3 ? 4 + id % 46 : id;
    Bench::Options options;
    options.repeats = 1;
    options.json = true;  // so that nothing is printed
    Common common;
    common.device = device;
    Bench bench("train", options, common);
    measure_training(bench, mark, storage, {!graph, deterministic, true});
    return bench.json()["rows"][0];
}

}  // namespace

TEST_CASE("train on a device: the losses of the CPU, its work, its memory") {
    for (DType storage : {DType::f32, DType::bf16}) {
        FakeDevice fake;
        const Json a = row_of(Device::cpu, storage), b = row_of(Device::cuda, storage);
        CHECK(fake.control->graphs > 0);
        CHECK(!fake.control->products.deterministic);
        CHECK(b["check"] == a["check"]);
        CHECK(b["activation_bytes"] == a["activation_bytes"]);
        fake.control->graphs = 0;
        CHECK(row_of(Device::cuda, storage, false, true)["check"] == a["check"]);
        CHECK(fake.control->graphs == 0);
        CHECK(fake.control->products.deterministic);
        // Master weights, gradients, two moments, and the planned memory. This is far less than the memory of the test
        // program.
        const double held = 16 * b["parameters"].get<double>() + b["activation_bytes"].get<double>();
        CHECK(b["peak_bytes"].get<double>() > held);
        CHECK(b["peak_bytes"].get<double>() < held + (8 << 20));
        CHECK(b["seconds"]["median"].get<double>() > 0);

        const Json &f = b["floor"], &g = a["floor"];
        CHECK(f["gflop"].get<double>() == doctest::Approx(g["gflop"].get<double>()));
        CHECK(f["attention_gflop"] == g["attention_gflop"]);
        const double flop = f["gflop"].get<double>() + f["attention_gflop"].get<double>();
        CHECK(f["reached_gflops"].get<double>() == doctest::Approx(flop / b["seconds"]["median"].get<double>()));
        double parts = 0;
        for (const Json& part : b["parts"]) parts += part["seconds"].get<double>();
        CHECK(parts == doctest::Approx(b["profiled_step"].get<double>()));
        CHECK(b["parts"].back()["name"] == "rest");
    }
}
