// SPDX-License-Identifier: MIT
#include "engine/ops/cuda/gemm.h"
#include "engine/ops/cuda/workspace.cuh"
#include "engine/ops/launch.h"

namespace masquerade::DEVICE {
namespace {

using Count = std::int64_t;

void multiply_part(std::int64_t m, std::int64_t n, std::int64_t k, DeviceFactor a, DeviceFactor b, DeviceProduct c) {
    gemm(m, n, k, a, b, c);
}

}  // namespace
}  // namespace masquerade::DEVICE

#include "engine/ops/head_scores.h"
