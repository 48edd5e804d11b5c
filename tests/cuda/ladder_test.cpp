// SPDX-License-Identifier: MIT
// Rung 3: the ops of a device that has its own memory. The cases named "gpu: ..." check what the CUDA library computes,
// if a GPU answers. The other cases always run, on the fake device, whose ops are the CPU's: they test how the ladder
// copies inputs and outputs.
#include <array>

#include "tests/cuda/gpu.h"
#include "tests/ladder_climb.h"
#include "tests/train/files.h"

using namespace masquerade;
using namespace masquerade::ladder;

namespace {

bool gpu_has(OpNumber op) { return gpu() && gpu()->has[int(op)]; }

// With the engine's own products, a row that is computed alone has the same bits as in a batch. With the products of
// cuBLASLt, it is only near the row in the batch.
int climb_on_gpu(const char* line) {
    Gpu used;
    int rows = 0;
    for (bool own : {true, false}) {
        cuda_runtime().choose_products({false, own});
        rows += climb(line, own ? "GPU, own products" : "GPU", own ? RowsAlone::same_bits : RowsAlone::near);
    }
    return rows;
}

// A linear layer with an error: if x has only one row, the first number of y is multiplied by 1 + 1 / parts.
template <int parts>
void other_alone(View x, View w, View b, View y) {
    cpu::linear_forward(x, w, b, y);
    if (y.rows() == 1 && y.count() > 0) set_number(y, 0, number(y, 0) * (1 + 1.0 / parts));
}

std::string fault_of_linear(void (*forward)(View, View, View, View), RowsAlone rows) {
    FakeDevice fake;
    OpTable table = op_table(Device::cpu);
    table.linear_forward = forward;
    fake.control->backing = &table;
    Findings findings;
    for (const Op& op : ops_table())
        if (op.name == "linear") check_cuda_contract(op, findings, rows);
    return findings.faults.empty() ? "" : findings.faults.front();
}

}  // namespace

#define OP(name, parameters, ...)                                               \
    TEST_CASE("gpu: " #name* doctest::description("runs where a GPU answers") * \
              doctest::skip(!gpu_has(OpNumber::name))) {                        \
        CHECK(climb_on_gpu(#name) > 0);                                         \
    }
#include "engine/ops/ops.h"
#undef OP

TEST_CASE("gpu: Philox has the words of cuRAND" * doctest::description("runs where a GPU answers") *
          doctest::skip(!gpu())) {
    Gpu used;
    if (std::string(cuda_runtime().facts().name) == "fake GPU") return;
    const auto compute = philox_beside_curand();
    INFO("curand.so beside the tests: make gpu-test builds it");
    REQUIRE((compute != nullptr));
    constexpr int count = 1000;
    std::vector<std::array<std::uint32_t, 6>> questions(count);
    std::vector<std::array<std::array<std::uint32_t, 4>, 2>> answers(count);
    Sequence random(1, "questions");
    for (auto& question : questions)
        for (std::uint32_t& word : question) word = random.bits();
    questions[0] = {}, questions[1].fill(UINT32_MAX);
    REQUIRE(compute(count, questions.data(), answers.data()) == 0);
    for (int i = 0; i < count; i++) {
        const auto& q = questions[std::size_t(i)];
        const Four here = philox({{q[0], q[1], q[2], q[3]}}, q[4], q[5]);
        const auto& [ours, theirs] = answers[std::size_t(i)];
        CHECK(ours == theirs);
        CHECK(std::equal(theirs.begin(), theirs.end(), here.v));
    }
}

TEST_CASE("device memory: the ladder sends what ops read and fetches what they write") {
    FakeDevice fake;
    for (const char* line : {"linear_forward", "layernorm_backward", "gather_rows_forward", "adamw"})
        CHECK(climb(line, "fake device") > 0);
}

TEST_CASE("device memory: the ladder sees an op that leaves its output unwritten there") {
    FakeDevice fake;
    OpTable lazy = op_table(Device::cpu);
    lazy.add_forward = [](View, View, View) {};
    fake.control->backing = &lazy;
    Findings findings;
    for (const Op& op : ops_table())
        if (op.name == "add") check_cuda_contract(op, findings);
    REQUIRE(!findings.faults.empty());
    CHECK(findings.faults.front().find("y: is not fully written") != std::string::npos);
}

TEST_CASE("device memory: a row alone may differ by a rounding where cuBLASLt multiplies, and no more") {
    CHECK(fault_of_linear(cpu::linear_forward, RowsAlone::same_bits) == "");
    CHECK(fault_of_linear(cpu::linear_forward, RowsAlone::near) == "");
    CHECK(fault_of_linear(other_alone<1 << 22>, RowsAlone::near) == "");
    for (auto [forward, rows] : {std::pair{&other_alone<1 << 22>, RowsAlone::same_bits},
                                 {&other_alone<4>, RowsAlone::same_bits},
                                 {&other_alone<4>, RowsAlone::near}}) {
        const int expected = int(rows);
        INFO("rows ", expected);
        CHECK_SAYS(fault_of_linear(forward, rows), "y: of a row alone ");
    }
}
