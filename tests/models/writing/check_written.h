// SPDX-License-Identifier: MIT
#pragma once
#include <doctest/doctest.h>

#include "models/writing/canvas.h"

namespace masquerade {

inline void check_equal(const Written& a, const Written& b) {
    CHECK(a.tokens == b.tokens);
    CHECK(a.came == b.came);
    CHECK(a.rounds == b.rounds);
    CHECK(a.score == b.score);
    CHECK(a.ended == b.ended);
}

}  // namespace masquerade
