// SPDX-License-Identifier: MIT
// The table of namespace fibers. Its functions are weak: what is compiled for the emulator is there, the rest null.
#include "tests/emulator/emulator.h"

namespace masquerade {

namespace fibers {
#define OP(name, parameters) __attribute__((weak)) void name parameters;
#include "engine/ops/ops.h"
#undef OP
}  // namespace fibers

namespace emulator {
namespace {

// A function of the slot's type that throws the op's name.
template <class Function, const char* const* name>
struct Missing;
template <class... Parameters, const char* const* name>
struct Missing<void (*)(Parameters...), name> {
    static void call(Parameters...) { throw Error(text(*name, " has no kernel that could run as fibers")); }
};

#define OP(name, parameters) constexpr const char* name_of_##name = #name;
#include "engine/ops/ops.h"
#undef OP

}  // namespace

const OpTable& kernels() {
    static const OpTable table = {
#define OP(name, parameters) &fibers::name,
#include "engine/ops/ops.h"
#undef OP
    };
    return table;
}

const OpTable& ops() {
    static const OpTable table = [] {
        OpTable all = kernels();
#define OP(name, parameters) \
    if (!all.name) all.name = &Missing<decltype(OpTable::name), &name_of_##name>::call;
#include "engine/ops/ops.h"
#undef OP
        return all;
    }();
    return table;
}

AsCuda::AsCuda(Settings chosen) : before_(set_cuda_ops(&ops())), settings_before_(settings()) {
    settings() = chosen;
}
AsCuda::~AsCuda() {
    set_cuda_ops(before_);
    settings() = settings_before_;
}

}  // namespace emulator
}  // namespace masquerade
