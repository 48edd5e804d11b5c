// SPDX-License-Identifier: MIT
// Parts of a row of logits, and checks of the arguments of the op shortlist, for the op on the CPU and on CUDA. The
// search uses the same parts (models/writing/token_scores.cpp).
#pragma once
#include "engine/ops/check.h"

namespace masquerade {

// Number of logits in a part of a row. The sums of exp are computed part by part.
constexpr int logits_a_part = 1024;
inline std::int64_t logit_parts(std::int64_t V) { return (V + logits_a_part - 1) / logits_a_part; }

// Checks the arguments of the op, except for what ops.h states. ids are floats, which hold only integers up to 2^24
// exactly.
inline void check_shortlist(const View& x, const View& best, const View& parts) {
    const std::int64_t V = x.columns(), W = best.columns();
    if (W < 1 || W > V || V > 1 << 24 || W * logit_parts(V) > 1 << 30)
        throw Error("shortlist: ", W, " best of ", V, " logits of ", x.path, ", expected from 1 to all of at most ",
                    1 << 24, ", and at most ", 1 << 30, " in the ", logit_parts(V), " parts together");
    if (parts.columns() != logit_parts(V))
        throw Error("shortlist: ", seen("parts", parts), ", expected ", logit_parts(V), " columns for the ", V,
                    " logits of ", x.path);
}

}  // namespace masquerade
