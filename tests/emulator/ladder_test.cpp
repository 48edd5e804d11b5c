// SPDX-License-Identifier: MIT
// Runs the ladder on every op that has kernels, which run as fibers. Ops without kernels are skipped; their names are
// reported.
#include "tests/emulator/emulator.h"
#include "tests/ladder_climb.h"

using namespace masquerade;
using namespace masquerade::ladder;

namespace {

// The kernels, and the CPU's function for each op without a kernel. For some ops, only the forward or only the backward
// has kernels.
const OpTable& kernels_first() {
    static const OpTable table = [] {
        OpTable all = op_table(Device::cpu);
#define OP(name, parameters, ...) \
    if (emulator::kernels().name) all.name = emulator::kernels().name;
#include "engine/ops/ops.h"
#undef OP
        return all;
    }();
    return table;
}

void climb_with_kernels(const std::string& line) {
    emulator::AsCuda emulated;
    set_cuda_ops(&kernels_first());
    const long launches = emulator::counts().launches;
    climb(line, "kernels");
    CHECK(emulator::counts().launches > launches);
}

}  // namespace

#define OP(name, parameters, ...)                                                       \
    TEST_CASE("kernels: " #name* doctest::description("runs where there is a kernel") * \
              doctest::skip(!emulator::kernels().name)) {                               \
        climb_with_kernels(#name);                                                      \
    }
#include "engine/ops/ops.h"
#undef OP
