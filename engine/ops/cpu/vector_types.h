// SPDX-License-Identifier: MIT
// Included by vector.h and, for each instruction set, by gemm_pack.h, into a namespace that has `lanes`, the floats in
// a vector register, and Vector, `lanes` floats. Defines further types of vectors, and the transpose of `lanes`
// vectors.

typedef float LooseVector __attribute__((vector_size(4 * lanes), aligned(4), may_alias));
typedef std::uint32_t Bits __attribute__((vector_size(4 * lanes)));
typedef std::uint16_t Halves __attribute__((vector_size(2 * lanes), aligned(2), may_alias));

// One step of a transpose, where N is a power of two. Exchanges the elements of `a` whose index has bit N with the
// elements of `b` whose index does not have bit N.
template <int N, int... I>
inline void exchange(Vector& a, Vector& b, std::integer_sequence<int, I...>) {
    Vector low = __builtin_shufflevector(a, b, (I & N ? lanes + I - N : I)...);
    b = __builtin_shufflevector(a, b, (I & N ? lanes + I : I + N)...);
    a = low;
}
template <int N = 1>
inline void transpose(Vector (&v)[lanes]) {
    if constexpr (N < lanes) {
#pragma GCC unroll 16
        for (int i = 0; i < lanes; i++)
            if (!(i & N)) exchange<N>(v[i], v[i + N], std::make_integer_sequence<int, lanes>{});
        transpose<2 * N>(v);
    }
}
