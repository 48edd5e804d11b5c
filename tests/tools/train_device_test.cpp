// SPDX-License-Identifier: MIT
// What ./bench measures on a GPU, on a device whose memory is closed to the host and whose ops are the CPU's:
// everything but the speed.
#include "tests/cuda/fake_device.h"
#include "tests/tools/small_mark.h"
#include "tools/bench/memory.h"
#include "tools/bench/train_profile.h"
#include "tools/bench/train_measure.h"
#include "tools/bench/train_ours.h"

using namespace masquerade;

namespace {

using Json = nlohmann::ordered_json;

TrainMeasurement short_measurement(Device device, DType storage) {
    TrainMeasurement wanted;
    wanted.mark = small_mark("univae-small");
    wanted.mark.model.backbone.vocabulary = 50;
    for (auto& ids : wanted.mark.sentences)
        for (int& id : ids) id = id > 3 ? 4 + id % 46 : id;
    wanted.storage = storage;
    wanted.device = device;
    wanted.repeats = 1;
    wanted.burst_seconds = wanted.profile_seconds = wanted.product_seconds = 0;
    wanted.floor_side = 32;
    return wanted;
}

}  // namespace

TEST_CASE("train work: multiply-adds of the tape's records are those that the products of the CPU make") {
    for (const char* name : {"bert-small", "univae-small"})
        for (DType storage : {DType::f32, DType::bf16}) {
            INFO(name, " ", name_of(storage));
            OurTraining training(small_mark(name), storage, 1, true);
            StepProfile profile;
            training.observe(&profile);
            training.step();
            for (int i = 0; i < 2; i++) {
                profile.start();
                training.step();
                profile.finish(0);
            }
            double bf16 = 0, f32 = 0;
            for (const FloorProduct& p : floor_products(profile, 0)) {
                const bool rounded = p.kind.a == DType::bf16 && p.kind.b == DType::bf16;
                (rounded ? bf16 : f32) += 2 * p.count * p.kind.multiply_adds();
            }
            CHECK(profile.work.bf16 == bf16);
            CHECK(profile.work.f32 == f32);
            CHECK((bf16 > f32) == (storage == DType::bf16));
        }
}

TEST_CASE("train on a device: the losses of the CPU, its work as large products, its memory") {
    for (DType storage : {DType::f32, DType::bf16}) {
        FakeDevice fake;
        const TrainMeasurement here = short_measurement(Device::cpu, storage);
        TrainMeasurement there = short_measurement(Device::cuda, storage);
        Json kept;
        int graphs = 0;
        there.keep = [&](const Json& so_far) { kept = so_far, graphs = fake.control->graphs; };
        const Json a = measure_training(here), b = measure_training(there);
        CHECK(kept["complete"] == false);
        CHECK(kept["ours"]["check"] == a["ours"]["check"]);
        CHECK(kept["ours"]["tokens_per_second"].get<double>() > 0);
        CHECK(graphs > 0);
        there.graph = false;
        fake.control->graphs = 0;
        CHECK(measure_training(there)["ours"]["first_loss"] == a["ours"]["first_loss"]);
        CHECK(fake.control->graphs == 0);
        CHECK(!fake.control->products.deterministic);
        there.deterministic = true;
        measure_training(there);
        CHECK(fake.control->products.deterministic);
        CHECK(a["complete"] == true);
        CHECK(b["complete"] == true);
        CHECK(b["device"] == "cuda");
        CHECK(b["ours"]["check"] == a["ours"]["check"]);
        CHECK(b["ours"]["first_loss"] == a["ours"]["first_loss"]);
        CHECK(b["ours"]["activation_bytes"] == a["ours"]["activation_bytes"]);
        // Masters, gradients and two moments, and what is planned; far from what the host holds.
        const double held = 16 * b["parameters"].get<double>() + b["ours"]["activation_bytes"].get<double>();
        CHECK(b["ours"]["peak_bytes"].get<double>() > held);
        CHECK(b["ours"]["peak_bytes"].get<double>() < held + (8 << 20));

        const Json &f = b["floor"], &g = a["floor"];
        CHECK(f["gflop"].get<double>() == doctest::Approx(g["gflop"].get<double>()));
        CHECK(f["attention_gflop"] == g["attention_gflop"]);
        CHECK(f["products"].size() == (storage == DType::bf16 ? 2 : 1));
        for (const Json& p : f["products"]) CHECK(p["m"] == 32);
        const double flop = f["gflop"].get<double>() + f["attention_gflop"].get<double>();
        CHECK(f["reached_gflops"].get<double>() ==
              doctest::Approx(flop / b["ours"]["seconds"]["median"].get<double>()));
        for (const Json& part : b["parts"]) CHECK(part["name"] != "GEMM");

        auto joined = [](const std::vector<std::string>& parts) {
            std::string all;
            for (const std::string& part : parts) all += part;
            return all;
        };
        const std::string report = joined(train_report(b));
        CHECK(report.find(" TFLOP/s. At the rate of a product of 32 x 32 x 32") != report.npos);
        CHECK(report.find("the GPU was waited for after every op") != report.npos);
        CHECK(report.find("page faults") == report.npos);
        CHECK(joined(train_report(a)).find("TFLOP/s") == std::string::npos);
    }
}

TEST_CASE("device memory meter: the most at a time, of what is allocated while it lives") {
    FakeDevice fake;
    Buffer older(1 << 20, Device::cuda);
    Buffer kept;
    {
        DeviceMemoryMeter meter;
        CHECK(meter.peak_bytes() == 0);
        { Buffer a(3000, Device::cuda), b(500, Device::cuda); }
        older = Buffer();
        kept = Buffer(2000, Device::cuda);
        CHECK(meter.peak_bytes() == 3500);
        fake.control->limit = fake.control->taken;
        CHECK_THROWS_AS(Buffer(100, Device::cuda), BadInput);
        CHECK(meter.peak_bytes() == 3500);
    }
    CHECK(fake.control->blocks == 1);
}
