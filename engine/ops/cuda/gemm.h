// SPDX-License-Identifier: MIT
// The matrix product that the CUDA ops call, for factors in f32 and bf16, also mixed.
#pragma once
#include "engine/ops/cuda/multiply.h"
#include "engine/ops/launch.h"

namespace masquerade::DEVICE {

inline DeviceFactor factor(const View& v) { return {v.data, v.dtype, false, v.columns()}; }
inline DeviceFactor transposed(DeviceFactor f) { return {f.data, f.dtype, !f.transposed, f.row}; }
inline DeviceProduct product(const View& v, bool add = false) { return {v.data, v.dtype, add, v.columns()}; }

// C(M,N) = A(M,K) B(K,N) (+ C) (+ bias(N) in every row), summed in float. If one factor is f32 and the other bf16, the
// latter is converted to f32. If C is bf16, it is rounded once, after the bias is added.
void gemm(std::int64_t m, std::int64_t n, std::int64_t k, DeviceFactor a, DeviceFactor b, DeviceProduct c,
          const float* bias = nullptr);

// sums(O) = column sums of x(M,O) in float, in the same order as on the CPU.
void column_sums(const View& x, const Grad& sums);

}  // namespace masquerade::DEVICE
