// SPDX-License-Identifier: MIT
// Chooses whether a program computes on the CPU or on a GPU (option --device).
#pragma once
#include <string>

#include "engine/base/log.h"
#include "engine/ops/cpu/parallel.h"
#include "engine/ops/library.h"

namespace masquerade {

// The work for which a program can use a GPU. none: the program cannot use a GPU. --device auto can choose a GPU only
// for `models`; otherwise, it chooses the CPU.
enum class Work { none, models, measurements };

// Returns the reason why models cannot run on a GPU, in one line; "" if they can. A model may use any op, so every op
// must have a CUDA version.
inline std::string why_no_gpu() {
    const std::string why_not = use_cuda();
    if (!why_not.empty()) return why_not;
    const std::string missing = missing_cuda_ops();
    if (missing.empty()) return "";
    return text("a GPU answers (", cuda_runtime().facts().name, "), but there is no CUDA form of ", missing);
}

// Whether the CUDA ops have passed their tests on a GPU (docs/results/gpu.md). While this is false, --device auto
// always means the CPU.
constexpr bool proven_on_gpu = false;

// Returns the device for --device `wish`: "auto", "cpu" or "cuda". If auto chooses the CPU for models, a logged note
// says why. Throws Error if cuda is requested but cannot be used. `program` is the program's name, for messages.
inline Device choose_device(const std::string& wish, const std::string& program, Work work) {
    if (wish == "cpu" || (wish == "auto" && work != Work::models)) return Device::cpu;
    if (work == Work::none) throw Error("--device cuda: ", program, " has no work for a GPU; leave the option out");
    std::string why_not = why_no_gpu();
    if (why_not.empty() && (proven_on_gpu || wish == "cuda")) {
        const std::string no_cublas = cuda_runtime().why_no_cublas();
        if (!no_cublas.empty())
            log_line("note: ", no_cublas, "; the engine's own kernels multiply instead, which is slower");
        return Device::cuda;
    }
    if (why_not.empty())
        why_not = text("a GPU answers (", cuda_runtime().facts().name,
                       "), but its results have not been tested yet "
                       "(make gpu-test); --device cuda uses it anyway");
    if (wish == "cuda") throw Error("--device cuda: ", why_not, "; --device cpu runs everywhere");
    log_line("note: ", why_not, "; using the CPU");
    return Device::cpu;
}

// Returns a number with its noun: "1 thread", "8 threads", "2 processes".
inline std::string counted(std::size_t count, const std::string& noun) {
    const char* plural = noun.back() == 's' ? "es" : "s";
    return text(count, ' ', noun, count == 1 ? "" : plural);
}

// Returns the name of the device for users: the name of the GPU, such as "NVIDIA H200", or the number of CPU threads,
// such as "8 threads".
inline std::string shown(Device device) {
    if (device == Device::cuda) return cuda_runtime().facts().name;
    return counted(threads(), "thread");
}

}  // namespace masquerade
