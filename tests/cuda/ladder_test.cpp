// SPDX-License-Identifier: MIT
// Rung 3: the ops of a device that has a memory of its own. On a GPU where one answers: what the CUDA library computes.
// Everywhere: the staging of these tests, on the fake device, whose ops are the CPU's.
#include "tests/cuda/fake_device.h"
#include "tests/ladder_climb.h"

using namespace masquerade;
using namespace masquerade::ladder;

namespace {

// The library, if it was built and a GPU answers; else null. Opened once.
const CudaLibrary* gpu() {
    static const CudaLibrary* const found = []() -> const CudaLibrary* {
        const std::string path = beside_the_tests("libmasquerade_cuda.so");
        if (!std::filesystem::exists(path)) return nullptr;
        const CudaLibrary& library = open_cuda_library(path);
        return library.runtime.answer().devices > 0 ? &library : nullptr;
    }();
    return found;
}

bool gpu_has(OpNumber op) { return gpu() && gpu()->has[int(op)]; }

class Gpu {
  public:
    Gpu() { use_cuda_library(gpu()); }
    Gpu(const Gpu&) = delete;
    ~Gpu() { use_cuda_library(nullptr); }
};

}  // namespace

#define OP(name, parameters)                                                    \
    TEST_CASE("gpu: " #name* doctest::description("runs where a GPU answers") * \
              doctest::skip(!gpu_has(OpNumber::name))) {                        \
        Gpu used;                                                               \
        CHECK(climb(#name, "GPU") > 0);                                         \
    }
#include "engine/ops/ops.h"
#undef OP

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
