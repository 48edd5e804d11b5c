// SPDX-License-Identifier: MIT
#include <utility>

#include "engine/ops/ops.h"

namespace masquerade {
namespace {
const OpTable* cuda_ops = nullptr;
}  // namespace

const OpTable& op_table(Device device) {
    static const OpTable cpu_table = {
#define OP(name, parameters) &cpu::name,
#include "engine/ops/ops.h"
#undef OP
    };
    if (device == Device::cpu) return cpu_table;
    if (!cuda_ops) throw Error("no CUDA device answers; use --device cpu");
    return *cuda_ops;
}

const OpTable* set_cuda_ops(const OpTable* table) { return std::exchange(cuda_ops, table); }

}  // namespace masquerade
