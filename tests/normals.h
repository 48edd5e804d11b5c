// SPDX-License-Identifier: MIT
// Four normal numbers from four random words, for tests that need some normal numbers.
#pragma once
#include "engine/math/normal.h"

namespace masquerade {

struct FourNormals {
    float v[4];
    float operator[](int i) const { return v[i]; }
};
inline FourNormals normal4(Four words) {
    FourNormals z;
    normal_pair(words[0], words[1], z.v[0], z.v[1]);
    normal_pair(words[2], words[3], z.v[2], z.v[3]);
    return z;
}

}  // namespace masquerade
