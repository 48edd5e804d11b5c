// SPDX-License-Identifier: MIT
// The parts that the checks of the contract and of records share: one case of an op, in one type.
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
    // Calls f(operand, name of its gradient) for every gradient.
    template <class F>
    void each_gradient(F f) const {
        for (std::size_t i = 0; i < c.operands.size(); i++)
            if (c.has_gradient(c.operands[i])) f(i, "d" + c.operands[i].name);
    }
};

}  // namespace masquerade::ladder
