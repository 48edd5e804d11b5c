// SPDX-License-Identifier: MIT
// One case of an op, in one type. check_contract() uses it, and so does the check that the records of ops on a tape are
// correct (tests/ops/records_test.cpp).
#pragma once
#include "engine/check/ladder.h"

namespace masquerade::ladder {

struct Check {
    const Op& op;
    const Sizes sizes;
    const DType type;
    Findings& findings;
    const Case c = prepared(op, sizes);

    void expect(bool good, const std::string& tensor, const std::string& kind) const {
        findings.expect(good, tensor, kind, text(name_of(type), at(sizes)));
    }
    // Calls f(index of the operand, name of its gradient) for every operand that has a gradient.
    template <class F>
    void each_gradient(F f) const {
        for (std::size_t i = 0; i < c.operands.size(); i++)
            if (c.has_gradient(c.operands[i])) f(i, "d" + c.operands[i].name);
    }
};

}  // namespace masquerade::ladder
