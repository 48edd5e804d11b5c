// SPDX-License-Identifier: MIT
// Counters, keys and the words that cuRAND's own Philox 4x32-10 makes of them, a line each:
//     g++ -I/usr/local/cuda/include tests/golden/curand/words.cpp -o words && ./words > tests/golden/curand/words.txt
#include <cstdint>
#include <cstdio>

#include <cuda_runtime.h>
#define QUALIFIERS static inline  // of the host
#include <curand_philox4x32_x.h>

int main() {
    std::uint32_t x = 1;
    auto next = [&] { return x = x * 1664525u + 1013904223u; };
    for (int i = 0; i < 32; i++) {
        const uint4 counter{next(), next(), next(), next()};
        const uint2 key{next(), next()};
        const uint4 words = curand_Philox4x32_10(counter, key);
        for (std::uint32_t word : {counter.x, counter.y, counter.z, counter.w, key.x, key.y})
            std::printf("%08x ", word);
        std::printf("%08x %08x %08x %08x\n", words.x, words.y, words.z, words.w);
    }
}
