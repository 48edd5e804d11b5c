// SPDX-License-Identifier: MIT
// Every op that has kernels climbs the ladder with them, as fibers; one that has none is skipped by name.
#include <doctest/doctest.h>

#include <set>

#include "tests/emulator/emulator.h"
#include "tests/ladder.h"

using namespace masquerade;
using namespace masquerade::ladder;

namespace {

// All rows of the table that use the op of this line of ops.h; a backward is checked with its forward.
void climb(const std::string& line) {
    const std::string name = line.substr(0, line.find("_forward"));
    for (const Op& op : ops_table()) {
        if (op.name.substr(0, op.name.find(',')) != name) continue;
        for (auto check : {check_cuda_precision, check_cuda_contract}) {
            emulator::AsCuda kernels;
            Findings findings;
            findings.op = op.name + " (kernels)";
            check(op, findings);
            CHECK(findings.checks > 0);
            for (const std::string& fault : findings.faults) FAIL_CHECK(fault);
        }
    }
}

}  // namespace

#define OP(name, parameters)                                                                           \
    TEST_CASE("kernels: " #name* doctest::description("there is no kernel")* doctest::skip(!emulator::kernels().name)) { \
        climb(#name);                                                                                  \
    }
#include "engine/ops/ops.h"
#undef OP
