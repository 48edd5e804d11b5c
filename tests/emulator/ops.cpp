// SPDX-License-Identifier: MIT
// The table of the ops in namespace fibers. The functions are declared weak: an op that is compiled for the emulator
// has its address in the table, and any other op has null.
#include "engine/ops/cuda/missing.h"
#include "tests/emulator/emulator.h"

namespace masquerade {

namespace fibers {
#define OP(name, parameters, ...) __attribute__((weak)) void name parameters;
#include "engine/ops/ops.h"
#undef OP
}  // namespace fibers

namespace emulator {
const OpTable& kernels() {
    static const OpTable table = {
#define OP(name, parameters, ...) &fibers::name,
#include "engine/ops/ops.h"
#undef OP
    };
    return table;
}

const OpTable& ops() {
    static const OpTable table = [] {
        OpTable all = kernels();
#define OP(name, parameters, ...) \
    if (!all.name) all.name = &Missing<int(OpNumber::name), decltype(OpTable::name)>::call;
#include "engine/ops/ops.h"
#undef OP
        return all;
    }();
    return table;
}

AsCuda::AsCuda(Settings chosen) : before_(set_cuda_ops(&ops())), settings_before_(settings()) { settings() = chosen; }
AsCuda::~AsCuda() {
    set_cuda_ops(before_);
    settings() = settings_before_;
}

}  // namespace emulator
}  // namespace masquerade
