// SPDX-License-Identifier: MIT
#include "engine/ops/library.h"

namespace masquerade {
namespace {

const CudaLibrary* in_use = nullptr;

}  // namespace

const OpTable& op_table(Device device) {
    static const OpTable cpu_table = {
#define OP(name, parameters) &cpu::name,
#include "engine/ops/ops.h"
#undef OP
    };
    if (device == Device::cpu) return cpu_table;
    if (!in_use) throw Error("no CUDA library is in use; use --device cpu, or call use_cuda() first");
    return *in_use->ops;
}

std::string missing_cuda_ops() {
    std::string names;
    for (int i = 0; in_use && i < op_count; i++)
        if (!in_use->has[i]) names += text(names.empty() ? "" : ", ", op_names[i]);
    return names;
}

void use_cuda_library(const CudaLibrary* library) {
    in_use = library;
    set_cuda_runtime(library ? &library->runtime : nullptr);
}

}  // namespace masquerade
