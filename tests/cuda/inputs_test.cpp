// SPDX-License-Identifier: MIT
// Tests which numbers the tape uploads for its ops, which numbers the host reads back, and which memory holds them.
#include <vector>

#include "engine/tape/inputs.h"
#include "engine/tape/plan.h"
#include "engine/tensor/numbers.h"
#include "tests/cuda/fake_device.h"
#include "tests/train/files.h"

using namespace masquerade;

namespace {

// Returns `count` elements, copied from the device.
template <class T>
std::vector<T> read_back(const T* there, std::size_t count) {
    std::vector<T> here(count);
    copy_bytes(there, Device::cuda, here.data(), Device::cpu, count * sizeof(T));
    return here;
}

}  // namespace

TEST_CASE("cuda inputs: on the CPU ops read the caller's own memory") {
    Inputs inputs(Device::cpu);
    inputs.begin_step();
    const std::vector<int> numbers = {3, 1, 4};
    CHECK(inputs.ints(numbers).data == numbers.data());
    CHECK(inputs.ints(numbers).count == 3);
    std::vector<float> x = {1, 2};
    const View view{x.data(), DType::f32, Device::cpu, {2}, "x"};
    CHECK(OnHost(view).view().data == x.data());
    OnHost::to_write(view).store();
    CHECK(x == std::vector<float>{1, 2});
}

TEST_CASE("cuda inputs: numbers arrive, each list once a step") {
    FakeDevice fake;
    Inputs inputs(Device::cuda);
    std::vector<int> numbers(1000), none;
    for (int step = 0; step < 3; step++) {
        inputs.begin_step();
        for (std::size_t i = 0; i < numbers.size(); i++) numbers[i] = int(i) * (step + 1);
        const int before = fake.control->ways[0];
        const Ints there = inputs.ints(numbers);
        CHECK(inputs.ints(numbers).data == there.data);
        CHECK(inputs.ints(none).data == nullptr);
        CHECK(fake.control->ways[0] == before + 1);
        CHECK(there.count == 1000);
        CHECK(read_back(there.data, 1000) == numbers);
    }
}

TEST_CASE("cuda inputs: a device refuses an id out of range in the words of the CPU") {
    FakeDevice fake;
    const std::vector<int> ids = {1, 0, 2};
    std::string said[2];
    for (Device device : {Device::cpu, Device::cuda}) {
        Inputs inputs(device);
        const Buffer w(2 * 4 * sizeof(float), device), y(3 * 4 * sizeof(float), device);
        said[int(device)] = message_of<Error>([&] {
            embedding_forward(inputs.ints(ids), {w.data(), DType::f32, device, {2, 4}, "w"},
                              {y.data(), DType::f32, device, {3, 4}, "y"});
        });
    }
    CHECK(said[0] == "embedding: id 2 at place 2, expected in [0, 2), the rows of w");
    CHECK(said[1] == said[0]);
}

TEST_CASE("cuda inputs: a step no larger than an earlier one allocates nothing") {
    FakeDevice fake;
    Inputs inputs(Device::cuda);
    std::vector<std::vector<int>> many(30, std::vector<int>(5000, 7));
    int allocations[4] = {};
    for (int step = 0; step < 4; step++) {
        inputs.begin_step();
        for (const auto& numbers : many) inputs.ints(numbers);
        for (const auto& numbers : many) CHECK(read_back(inputs.ints(numbers).data, 5000) == numbers);
        allocations[step] = fake.control->allocations;
    }
    CHECK(allocations[0] > 1);                    // the memory has grown by several blocks
    CHECK(allocations[1] == allocations[0] + 1);  // one block has replaced the several blocks
    CHECK(allocations[3] == allocations[1]);
    CHECK(fake.control->blocks == 1);
}

TEST_CASE("cuda inputs: numbers become those of a tensor's type, there and back") {
    FakeDevice fake;
    const double numbers[3] = {1.5, -2, 1.0 / 3};
    const float floats[3] = {1.5f, -2, 1.0f / 3};
    for (DType type : {DType::f32, DType::bf16, DType::f64, DType::c128})
        for (Device device : {Device::cpu, Device::cuda}) {
            Buffer memory(3 * bytes_of(type), device);
            const View view{memory.data(), type, device, {3}, "x"};
            const bool wide = type == DType::f64 || type == DType::c128;
            write_numbers(view, numbers);
            CHECK(OnHost(view)[1] == -2);
            CHECK(OnHost(view)[2] == (wide                  ? numbers[2]
                                      : type == DType::bf16 ? double(bfloat16(floats[2]))
                                                            : double(floats[2])));
            write_numbers(view, floats);
            CHECK(OnHost(view)[2] == (type == DType::bf16 ? double(bfloat16(floats[2])) : double(floats[2])));
            const OnHost here(view);
            fill_bytes(here.view(), 0);
            here.store();
            CHECK(OnHost(view)[0] == 0);
        }
}

TEST_CASE("cuda inputs: a plan takes the place of the loose blocks") {
    FakeDevice fake;
    constexpr std::size_t block = std::size_t(1) << 18;
    fake.control->limit = 7 * block / 2;
    Arena arena(Device::cuda);
    auto step = [&](const std::string& bucket, int blocks) {
        arena.begin_step(bucket);
        std::vector<int> taken(static_cast<std::size_t>(blocks));
        for (int& number : taken) fill_bytes(arena.take(block, &number), 0, block, Device::cuda);
        arena.tick();
        for (int number : taken) arena.touch(number);
        arena.end_step();
    };
    step("one", 1);
    step("two",
         2);  // two loose blocks beside the buffer of one block; end_step() then replaces all by a buffer of two blocks
    CHECK(arena.planned_bytes() == 2 * block);
    step("one", 1);
    CHECK(arena.planned());
    fake.control->limit = 4 * block;
    CHECK_THROWS_AS(step("three", 3), BadInput);  // three loose blocks do not fit beside the buffer of two
    step("two", 2);                               // the plan of this bucket still holds
    CHECK(arena.planned());
}
