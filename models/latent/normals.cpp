// SPDX-License-Identifier: MIT
#include "models/latent/normals.h"

#include <algorithm>

#include "engine/math/normal.h"

namespace masquerade {

// Everything is inlined into this function (flatten), because a loop with a call in it is not vectorised.
[[gnu::flatten]] void set_normals(float* to, std::size_t count, const Stream& stream, std::uint32_t a, std::uint32_t b,
                                  std::uint32_t block) {
    constexpr std::size_t blocks = 8;  // at a time, in two loops that compilers vectorise
    std::uint32_t words[4][blocks];
    float numbers[4][blocks];
    for (std::size_t first = 0; first < count; first += 4 * blocks, block += blocks) {
        for (std::uint32_t k = 0; k < blocks; k++) {
            const Four four = stream.at(a, b, block + k);
            for (int i = 0; i < 4; i++) words[i][k] = four[i];
        }
        for (int i : {0, 2})
            for (std::size_t k = 0; k < blocks; k++)
                normal_pair(words[i][k], words[i + 1][k], numbers[i][k], numbers[i + 1][k]);
        const std::size_t here = std::min(count - first, 4 * blocks);
        for (std::size_t n = 0; n < here; n++) to[first + n] = numbers[n % 4][n / 4];
    }
}

Numbers normals(const Stream& stream, std::uint32_t a, std::uint32_t b, std::size_t count, std::uint32_t block) {
    std::vector<float> e(count);
    set_normals(e.data(), count, stream, a, b, block);
    return {e.begin(), e.end()};
}

}  // namespace masquerade
