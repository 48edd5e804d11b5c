// SPDX-License-Identifier: MIT
// Runs the ladder's checks for one line of ops.h on Device::cuda, which may be a GPU or the emulator.
#pragma once
#include <doctest/doctest.h>

#include <cstdlib>
#include <string>

#include "engine/check/ladder.h"

namespace masquerade::ladder {

// True if the environment variable MASQUERADE_SMALL_LADDER is set. The checks below then use only the smallest sizes,
// so that they can run under slow tools that check every memory access.
inline bool small_ladder() { return std::getenv("MASQUERADE_SMALL_LADDER") != nullptr; }

// True if a check at these sizes is fast enough. A GPU runs all sizes. Without a GPU, the tests run the kernels on the
// CPU, with a fiber for each CUDA thread. For a costly op, rows * columns * other may then be at most `most`, and rows
// at most 300.
inline bool fits_fibers(const Op& op, Sizes s, std::int64_t most) {
    return !op.costly || lies_apart(Device::cuda) ||
           (s.rows <= 300 && std::int64_t(s.rows) * s.columns * s.other <= most);
}

inline void check_cuda_precision(const Op& op, Findings& findings) {
    std::vector<Sizes> sizes = small_ladder() ? op.small : op.all;
    if (!small_ladder()) sizes.insert(sizes.end(), op.far.begin(), op.far.end());
    for (Sizes s : sizes)
        if (fits_fibers(op, s, 5200)) check_precision_on(Device::cuda, op, s, findings);
}

inline void check_cuda_contract(const Op& op, Findings& findings, RowsAlone rows = RowsAlone::same_bits) {
    std::vector<Sizes> some;  // without the large sizes, which take long without a GPU and find nothing more
    for (Sizes s : op.all)
        if (s.rows * s.columns <= 33 * 33 && fits_fibers(op, s, 1100)) some.push_back(s);
    check_contract_on(Device::cuda, op, small_ladder() ? op.small : some, {DType::f32, DType::bf16}, findings, rows);
    if (!small_ladder() && !op.costly) check_contract_on(Device::cuda, op, op.far, {DType::f32}, findings, rows, true);
}

// Checks all rows of the op table for the op that the line names. If the line names a backward, checks the contract of
// the backward; otherwise, checks the op with its forward. Returns the number of rows.
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
