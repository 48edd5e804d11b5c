// SPDX-License-Identifier: MIT
// What --device comes to.
#pragma once
#include <string>

#include "engine/base/log.h"
#include "engine/ops/library.h"

namespace masquerade {

// What of a program's work could be done by a GPU.
enum class Work {
    none,
    models,  // and is not yet: they lie on the CPU
};

// The device for `wish`: auto, cpu or cuda. Where auto comes to the CPU although there is work for a GPU, one note says
// why; where cuda is asked for and cannot be, that is an Error.
inline Device choose_device(const std::string& wish, const std::string& program, Work work) {
    if (wish == "cpu" || (wish == "auto" && work == Work::none)) return Device::cpu;
    if (work == Work::none)
        throw Error(text("--device cuda: ", program, " has no work for a GPU; leave the option out"));
    std::string why_not = use_cuda();
    if (why_not.empty()) {
        why_not = text("a GPU answers (", cuda_runtime().facts().name, "), but models do not run there yet");
        if (const std::string missing = missing_cuda_ops(); !missing.empty())
            why_not += text(": no CUDA form of ", missing);
    }
    if (wish == "cuda") throw Error(text("--device cuda: ", why_not, "; --device cpu runs everywhere"));
    log_line("note: ", why_not, "; using the CPU");
    return Device::cpu;
}

}  // namespace masquerade
