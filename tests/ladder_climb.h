// SPDX-License-Identifier: MIT
// The rungs of one line of ops.h on Device::cuda, whoever computes for it at the moment.
#pragma once
#include <doctest/doctest.h>

#include <string>

#include "engine/check/ladder.h"

namespace masquerade::ladder {

// All rows of the op that the line names: a backward by contract, the rest with its forward. Returns how many.
inline int climb(const std::string& line, const std::string& who, RowsAlone rows_alone = RowsAlone::same_bits) {
    const bool backward = line.find("_backward") != std::string::npos,
               forward = line.find("_forward") != std::string::npos;
    const std::string name = line.substr(0, line.find(backward ? "_backward" : "_forward"));
    int rows = 0;
    for (const Op& op : ops_table()) {
        if (op.name.substr(0, op.name.find(',')) != name) continue;
        Findings findings;
        findings.op = op.name + " (" + who + ")";
        if (!backward) check_cuda_precision(op, findings);
        if (!forward) check_cuda_contract(op, findings, rows_alone);
        for (const std::string& fault : findings.faults) FAIL_CHECK(fault);
        rows++;
    }
    return rows;
}

}  // namespace masquerade::ladder
