// SPDX-License-Identifier: MIT
#include "engine/tensor/dtype.h"

#ifdef __AVX512BF16__
#include <immintrin.h>
#endif

namespace masquerade {

void round_to_bfloat16(const float* from, bfloat16* to, int n) {
#ifdef __AVX512BF16__
    int i = 0;
    for (; i + 32 <= n; i += 32) {
        __m512bh both = _mm512_cvtne2ps_pbh(_mm512_loadu_ps(from + i + 16), _mm512_loadu_ps(from + i));
        _mm512_storeu_si512(to + i, reinterpret_cast<__m512i>(both));
    }
    for (; i < n; i += 16) {
        auto mask = __mmask16(n - i < 16 ? (1 << (n - i)) - 1 : 0xffff);
        __m256bh some = _mm512_cvtneps_pbh(_mm512_maskz_loadu_ps(mask, from + i));
        _mm256_mask_storeu_epi16(to + i, mask, reinterpret_cast<__m256i>(some));
    }
#else
    for (int i = 0; i < n; i++) to[i] = bfloat16(from[i]);
#endif
}

}  // namespace masquerade
