// SPDX-License-Identifier: MIT
#include <utility>

#include "engine/ops/library.h"

namespace masquerade {
namespace {

const CudaLibrary* in_use = nullptr;
const OpTable* cuda_ops = nullptr;

}  // namespace

const OpTable& op_table(Device device) {
    static const OpTable cpu_table = {
#define OP(name, parameters, ...) &cpu::name,
#include "engine/ops/ops.h"
#undef OP
    };
    if (device == Device::cpu) return cpu_table;
    if (!cuda_ops) throw Error("no CUDA library is in use; use --device cpu, or call use_cuda() first");
    return *cuda_ops;
}

const OpTable* set_cuda_ops(const OpTable* table) { return std::exchange(cuda_ops, table); }

std::string missing_cuda_ops() {
    std::string names;
    for (int i = 0; in_use && i < op_count; i++)
        if (!in_use->has[i]) names += text(names.empty() ? "" : ", ", op_names[i]);
    return names;
}

void use_cuda_library(const CudaLibrary* library) {
    in_use = library;
    set_cuda_ops(library ? library->ops : nullptr);
    set_cuda_runtime(library ? &library->runtime : nullptr);
}

}  // namespace masquerade

// Used by the tests' fake CUDA library, which computes on the CPU (tests/cuda/library/fake.cpp). The library looks this
// function up in the program that has opened the library; therefore the function must be exported.
extern "C" __attribute__((visibility("default"))) const masquerade::OpTable* masquerade_cpu_ops() {
    return &masquerade::op_table(masquerade::Device::cpu);
}
