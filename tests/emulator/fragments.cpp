// SPDX-License-Identifier: MIT
// The tensor cores' instruction mma.sync.m16n8k16 on bf16, lane by lane: every number is fetched from the lane and the
// register that PTX says holds it. Products are exact, sums in float in the order of the depth; a GPU may add in
// another order.
#include "tests/emulator/block.h"

namespace masquerade::emulator {
namespace {

struct Fragments {
    std::uint32_t a[4], b[2];
};
Fragments of_lanes[32][32];  // of every warp

float half_of(std::uint32_t pair, int half) {
    const std::uint32_t bits = half ? pair & 0xffff0000u : pair << 16;
    float x;
    std::memcpy(&x, &bits, sizeof x);
    return x;
}

}  // namespace

void multiply_fragments(float* d, const std::uint32_t* a, const std::uint32_t* b, const char* file, int line) {
    Fragments* lanes = of_lanes[running->warp];
    const int lane = running->lane;
    std::copy(a, a + 4, lanes[lane].a);
    std::copy(b, b + 2, lanes[lane].b);
    meet_warp(Exchange::ballot, 0xffffffffu, 1, 0, 32, "mma.sync", {file, line});
    for (int s = 0; s < 4; s++) {
        const int row = lane / 4 + s / 2 * 8, column = lane % 4 * 2 + s % 2;
        for (int k = 0; k < 16; k++) {
            const int of_a = row % 8 * 4 + k % 8 / 2, of_b = column * 4 + k % 8 / 2;
            d[s] += half_of(lanes[of_a].a[row / 8 + k / 8 * 2], k % 2) * half_of(lanes[of_b].b[k / 8], k % 2);
        }
    }
    // Nobody brings the next ones before all have read these.
    meet_warp(Exchange::ballot, 0xffffffffu, 0, 0, 32, "mma.sync", {file, line});
}

}  // namespace masquerade::emulator
