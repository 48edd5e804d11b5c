// SPDX-License-Identifier: MIT
// The op table of the CUDA library contains Missing::call() for each op that the library does not implement.
// Missing::call() throws Error.
#pragma once
#include "engine/ops/ops.h"

namespace masquerade {

template <int op, class Slot>
struct Missing;
template <int op, class... Parameters>
struct Missing<op, void (*)(Parameters...)> {
    static void call(Parameters...) { throw Error("op ", op_names[op], " has no CUDA form yet"); }
};

}  // namespace masquerade
