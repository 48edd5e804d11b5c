// SPDX-License-Identifier: MIT
#pragma once
#include "engine/tensor/runtime.h"

namespace masquerade::cuda {

DeviceRuntime runtime();

}  // namespace masquerade::cuda
