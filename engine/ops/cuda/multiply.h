// SPDX-License-Identifier: MIT
// The one matrix product that the CUDA half takes from elsewhere. In namespace cuda it is cuBLASLt's
// (engine/ops/cuda/cublas.cu); in namespace fibers, where the tests run kernels on the CPU, a plain loop answers
// (tests/emulator/multiply.cpp). What is above it (engine/ops/cuda/gemm.cu) is one source for both.
#pragma once
#include <cstdint>

#include "engine/tensor/dtype.h"
#include "engine/tensor/runtime.h"

namespace masquerade {

// A matrix to be read: whole rows that follow each other; transposed: the rows that lie there are its columns.
struct DeviceFactor {
    const void* data;
    DType dtype;
    bool transposed = false;
};

// The matrix to be written, whole rows that follow each other.
struct DeviceProduct {
    void* data;
    DType dtype;
    bool add = false;  // to what is there, instead of storing
};

// C(M,N) = A(M,K) B(K,N) (+ C) (+ bias(N) in every row), sums in float; M, N, K > 0.
//     A and B        C
//     f32, f32       f32         the factors are taken as they are; rounded to TF32 where choose_products asked for it
//     bf16, bf16     f32, bf16   with a bias only f32: cuBLASLt would have the bias of C's type
struct Multiplication {
    std::int64_t m, n, k;
    DeviceFactor a, b;
    DeviceProduct c;
    const float* bias = nullptr;
};

// One stream, no allocation after the first product, no read-back; for one shape always the same bits.
namespace cuda {
void multiply(const Multiplication& what);
void choose_products(ProductRule rule);
const char* why_no_cublas();
}  // namespace cuda
namespace fibers {
void multiply(const Multiplication& what);
}

}  // namespace masquerade
