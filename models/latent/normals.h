// SPDX-License-Identifier: MIT
#pragma once
#include "engine/math/normal.h"

namespace masquerade {

// Returns `count` standard normal numbers. The random bits of stream.at(a, b, block) give four numbers; the next four
// come from block + 1, and so on. a and b identify what the numbers are for, for example a document and a layer.
inline std::vector<double> normals(const Stream& stream, std::uint32_t a, std::uint32_t b, std::size_t count,
                                   std::uint32_t block = 0) {
    std::vector<double> e;
    for (; e.size() < count; block++) {
        const FourNormals four = normal4(stream.at(a, b, block));
        e.insert(e.end(), four.v, four.v + 4);
    }
    e.resize(count);
    return e;
}

}  // namespace masquerade
