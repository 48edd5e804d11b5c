// SPDX-License-Identifier: MIT
// What the tape uploads for its ops, what the host reads back, and whose memory it is.
#include <cstring>
#include <vector>

#include "engine/tape/inputs.h"
#include "engine/tape/plan.h"
#include "engine/tensor/numbers.h"
#include "tests/cuda/fake_device.h"

using namespace masquerade;

namespace {

// `count` elements of the device.
template <class T>
std::vector<T> read_back(const T* there, std::size_t count) {
    std::vector<T> here(count);
    copy_bytes(there, Device::cuda, here.data(), Device::cpu, count * sizeof(T));
    return here;
}

template <class T>
bool same_table(const T* there, const std::vector<T>& table) {
    const std::vector<T> here = read_back(there, table.size());
    return std::memcmp(here.data(), table.data(), table.size() * sizeof(T)) == 0;
}

SegmentGraph graph_of(int documents) {
    SegmentGraph g;
    g.documents = documents;
    for (int b = 0; b < documents; b++) {
        KeySegment key;
        key.begin = 3 * b;
        key.end = key.begin + 3;
        QuerySegment query;
        query.begin = key.begin;
        query.end = key.end;
        query.document = query.self = query.sees_begin = b;
        query.sees_end = b + 1;
        query.rule = b % 2 ? Rule::bits : Rule::strict_rank;
        query.bits_begin = 9 * b;
        g.keys.push_back(key);
        g.queries.push_back(query);
        g.sees.push_back(b);
        for (int i = 0; i < 3; i++) g.query_rank.push_back(i - b), g.key_rank.push_back(5 * i + b);
    }
    for (int i = 0; i <= 9 * documents / 32; i++) g.bits.push_back(0x9e3779b9u * std::uint32_t(i + 1));
    return g;
}

}  // namespace

TEST_CASE("cuda inputs: on the CPU ops read the caller's own memory") {
    Inputs inputs(Device::cpu);
    inputs.begin_step();
    const std::vector<int> numbers = {3, 1, 4};
    const SegmentGraph graph = graph_of(2);
    CHECK(inputs.ints(numbers).data == numbers.data());
    CHECK(inputs.ints(numbers).count == 3);
    CHECK(&inputs.graph(graph) == &graph);
    CHECK(graph.on_device.keys == nullptr);
    std::vector<float> x = {1, 2};
    const View view{x.data(), DType::f32, Device::cpu, {2}, "x"};
    CHECK(OnHost(view).view().data == x.data());
    OnHost::to_write(view).store();
    CHECK(x == std::vector<float>{1, 2});
}

TEST_CASE("cuda inputs: numbers and all tables of a mask arrive, each once a step") {
    FakeDevice fake;
    Inputs inputs(Device::cuda);
    std::vector<int> numbers(1000), none;
    const SegmentGraph first = graph_of(5), second = graph_of(40);
    for (int step = 0; step < 3; step++) {
        inputs.begin_step();
        for (std::size_t i = 0; i < numbers.size(); i++) numbers[i] = int(i) * (step + 1);
        const int before = fake.control->ways[0];
        const Ints there = inputs.ints(numbers);
        const SegmentGraph &a = inputs.graph(first), &b = inputs.graph(second);
        CHECK(inputs.ints(numbers).data == there.data);
        CHECK(&inputs.graph(first) == &a);
        CHECK(inputs.ints(none).data == nullptr);
        CHECK(fake.control->ways[0] == before + 3);
        CHECK(there.count == 1000);
        CHECK(read_back(there.data, 1000) == numbers);
        for (const auto& [given, placed] : {std::pair(&first, &a), std::pair(&second, &b)}) {
            CHECK(placed->documents == given->documents);
            CHECK(placed->queries.size() == given->queries.size());  // for the host, as on the CPU
            CHECK(same_table(placed->on_device.keys, given->keys));
            CHECK(same_table(placed->on_device.queries, given->queries));
            CHECK(same_table(placed->on_device.sees, given->sees));
            CHECK(same_table(placed->on_device.query_rank, given->query_rank));
            CHECK(same_table(placed->on_device.key_rank, given->key_rank));
            CHECK(same_table(placed->on_device.bits, given->bits));
        }
    }
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
    CHECK(allocations[0] > 1);                    // it grew
    CHECK(allocations[1] == allocations[0] + 1);  // what several blocks held is one
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
         2);  // loose blocks, then the plan in their place, each beside the smaller plan or instead of it
    CHECK(arena.planned_bytes() == 2 * block);
    step("one", 1);
    CHECK(arena.planned());
    fake.control->limit = 4 * block;
    CHECK_THROWS_AS(step("three", 3), BadInput);  // three loose ones beside the plan of two
    step("two", 2);  // loose blocks beside the smaller plan, then the plan in their place
    CHECK(arena.planned());
}
