// SPDX-License-Identifier: MIT
// Runs tests with every way in which the CPU engine can multiply on this machine.
#pragma once
#include <string>

#include "engine/ops/cpu/gemm.h"
#include "engine/ops/cpu/parallel.h"

namespace masquerade {

// Calls f(description, threads) with each instruction set and each form of bf16 that the machine has, with one thread
// and with three threads. Then restores the previous settings.
template <class F>
void each_product_form(F f) {
    const std::string set = instruction_set(), form = bf16_form();
    const int before = threads();
    for (const char* name : {"generic", "avx2", "avx512"}) {
        if (!set_instruction_set(name)) continue;
        for (const char* bf16 : {"widened", "avx512_bf16", "amx"}) {
            if (!set_bf16_form(bf16)) continue;
            for (int count : {1, 3}) {
                set_threads(count);
                f(text(name, ' ', bf16, ", threads ", count), count);
            }
        }
    }
    set_threads(before);
    set_instruction_set(set.c_str());
    set_bf16_form(form.c_str());
}

}  // namespace masquerade
