// SPDX-License-Identifier: MIT
// The matrix product that the CUDA ops call. Each factor is f32 or bf16; the two types may differ.
#pragma once
#include "engine/ops/cuda/multiply.h"
#include "engine/ops/launch.h"

namespace masquerade::DEVICE {

inline DeviceFactor factor(const View& v) { return {v.data, v.dtype, false, v.columns()}; }
inline DeviceFactor transposed(DeviceFactor f) { return {f.data, f.dtype, !f.transposed, f.row}; }
inline DeviceProduct product(const View& v, bool add = false) { return {v.data, v.dtype, add, v.columns()}; }

// Computes C(M,N) = A(M,K) B(K,N), summed in float. If c.add is set, the old C is added. If there is a bias, bias(N),
// which is f32, is added to every row. If one factor is f32 and the other bf16, the bf16 factor is first converted to
// f32. A bf16 C is rounded once, after the bias is added. If C and both factors are bf16, the bias is first rounded to
// bf16, because cuBLASLt requires a bias of the type of C.
void gemm(std::int64_t m, std::int64_t n, std::int64_t k, DeviceFactor a, DeviceFactor b, DeviceProduct c,
          const View& bias = {});

// Computes the gradients of w(O,I) and b(O) in y(M,O) = x(M,I) w^T + b: dw = dy^T x, and db = the column sums of dy, in
// float. dy may be a part of the columns of a matrix. dw or db may be absent. If both are wanted, cuBLASLt computes
// them together, if it can. Otherwise, and with ProductRule::deterministic, db is summed in the same order as on the
// CPU.
void weight_gradients(const DeviceFactor& dy, const View& x, const Grad& dw, const Grad& db);

}  // namespace masquerade::DEVICE
