// SPDX-License-Identifier: MIT
// Every op that has kernels climbs the ladder with them, as fibers; one that has none is skipped by name.
#include <doctest/doctest.h>

#include "tests/emulator/emulator.h"
#include "tests/ladder.h"

using namespace masquerade;
using namespace masquerade::ladder;

namespace {

// The kernels, and the CPU's form of what has none: a forward may have kernels before its backward does, or after.
const OpTable& kernels_first() {
    static const OpTable table = [] {
        OpTable all = op_table(Device::cpu);
#define OP(name, parameters) \
    if (emulator::kernels().name) all.name = emulator::kernels().name;
#include "engine/ops/ops.h"
#undef OP
        return all;
    }();
    return table;
}

// All rows of the op that a line of ops.h names: its backward by contract, the rest with its forward.
void climb(const std::string& line) {
    const bool backward = line.find("_backward") != std::string::npos,
               forward = line.find("_forward") != std::string::npos;
    const std::string name = line.substr(0, line.find(backward ? "_backward" : "_forward"));
    emulator::AsCuda emulated;
    set_cuda_ops(&kernels_first());
    const long launches = emulator::counts().launches;
    for (const Op& op : ops_table()) {
        if (op.name.substr(0, op.name.find(',')) != name) continue;
        for (auto check : {check_cuda_precision, check_cuda_contract}) {
            if ((backward && check == check_cuda_precision) || (forward && check == check_cuda_contract))
                continue;
            Findings findings;
            findings.op = op.name + " (kernels)";
            check(op, findings);
            for (const std::string& fault : findings.faults) FAIL_CHECK(fault);
        }
    }
    CHECK(emulator::counts().launches > launches);
}

}  // namespace

#define OP(name, parameters)                                                            \
    TEST_CASE("kernels: " #name* doctest::description("runs where there is a kernel") * \
              doctest::skip(!emulator::kernels().name)) {                               \
        climb(#name);                                                                   \
    }
#include "engine/ops/ops.h"
#undef OP
