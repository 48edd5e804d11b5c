// SPDX-License-Identifier: MIT
// The matrix product that the CUDA ops call. Each factor is f32 or bf16; the two types may differ.
#pragma once
#include "engine/ops/cuda/multiply.h"
#include "engine/ops/launch.h"

namespace masquerade::DEVICE {

inline DeviceFactor factor(const View& v) { return {v.data, v.dtype, false, v.columns()}; }
inline DeviceFactor transposed(DeviceFactor f) { return {f.data, f.dtype, !f.transposed, f.row}; }
inline DeviceProduct product(const View& v, bool add = false) { return {v.data, v.dtype, add, v.columns()}; }

// Computes C(M,N) = A(M,K) B(K,N), summed in float. If c.add is set, the old C is added; if `bias` is not null,
// bias(N) is added to every row. If one factor is f32 and the other bf16, the bf16 factor is first converted to f32.
// If C is bf16, it is rounded only once, after the bias is added.
void gemm(std::int64_t m, std::int64_t n, std::int64_t k, DeviceFactor a, DeviceFactor b, DeviceProduct c,
          const float* bias = nullptr);

// Computes the column sums of x(M,O) in float, in the same order as on the CPU. Stores them in sums(O) or, if sums.add
// is set, adds them to sums(O).
void column_sums(const View& x, const Grad& sums);

}  // namespace masquerade::DEVICE
