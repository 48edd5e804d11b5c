// SPDX-License-Identifier: MIT
#include "engine/tensor/runtime.h"

#include "engine/base/error.h"

namespace masquerade {
namespace {

const DeviceRuntime* in_use = nullptr;

}  // namespace

const DeviceRuntime& cuda_runtime() {
    if (!in_use) throw Error("no CUDA library is in use; use --device cpu, or call use_cuda() first");
    return *in_use;
}

bool has_cuda_runtime() { return in_use != nullptr; }

void set_cuda_runtime(const DeviceRuntime* runtime) { in_use = runtime; }

}  // namespace masquerade
