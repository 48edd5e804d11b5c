// SPDX-License-Identifier: MIT
#include "engine/ops/ops.h"

namespace masquerade {

const OpTable& op_table(Device device) {
    static const OpTable cpu_table = {
#define OP(name, parameters) &cpu::name,
#include "engine/ops/ops.h"
#undef OP
    };
    if (device != Device::cpu) throw Error("no CUDA device answers; use --device cpu");
    return cpu_table;
}

}  // namespace masquerade
