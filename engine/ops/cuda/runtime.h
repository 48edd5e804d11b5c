// SPDX-License-Identifier: MIT
#pragma once
#include "engine/tensor/runtime.h"

namespace masquerade::cuda {

// Returns the functions of the CUDA runtime: memory, copies, timing and graph capture (engine/tensor/runtime.h).
DeviceRuntime runtime();

}  // namespace masquerade::cuda
