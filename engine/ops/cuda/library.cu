// SPDX-License-Identifier: MIT
// masquerade_cuda(), the only function that the CUDA library exports. It returns the table of ops, the runtime, and the
// stamp, which identifies the build of the library. This file declares all ops in namespace cuda as weak symbols. If a
// file of the library defines an op, the address of the op goes into the table. If no file defines the op, the address
// of its symbol is null, and the table gets a function that throws Error.
#include "engine/ops/library.h"

#include "engine/ops/cuda/missing.h"
#include "engine/ops/cuda/runtime.h"

namespace masquerade {
namespace cuda {
#define OP(name, parameters, ...) __attribute__((weak, visibility("hidden"))) void name parameters;
#include "engine/ops/ops.h"
#undef OP
}  // namespace cuda

namespace {

const bool has[] = {
#define OP(name, parameters, ...) &cuda::name != nullptr,
#include "engine/ops/ops.h"
#undef OP
};

const OpTable table = {
#define OP(name, parameters, ...) \
    &cuda::name != nullptr ? &cuda::name : &Missing<int(OpNumber::name), decltype(OpTable::name)>::call,
#include "engine/ops/ops.h"
#undef OP
};

}  // namespace
}  // namespace masquerade

extern "C" __attribute__((visibility("default"))) const masquerade::CudaLibrary* masquerade_cuda();

const masquerade::CudaLibrary* masquerade_cuda() {
    static const masquerade::CudaLibrary library = {masquerade::this_stamp(), &masquerade::table, masquerade::has,
                                                    masquerade::cuda::runtime()};
    return &library;
}
