// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <memory>

#include "engine/tape/trace.h"
#include "tools/inspect/inspect.h"
#include "tools/inspect/small_model.h"

namespace masquerade {
namespace {

void print_times(const Clock& clock, int steps) {
    double total = 0;
    for (const auto& [op, share] : clock.shares()) total += share.forward + share.backward;
    fmt::print("{:16}{:>8}{:>14}{:>14}{:>9}\n", "op", "calls", "forward ms", "backward ms", "share");
    for (const auto& [op, share] : clock.shares())
        fmt::print("{:16}{:8}{:14.3f}{:14.3f}{:8.1f}%\n", op, share.calls / steps,
                   1e3 * share.forward / steps, 1e3 * share.backward / steps,
                   100 * (share.forward + share.backward) / total);
    fmt::print("{:16}{:8}{:14.3f} ms a step, forward and backward\n", "all", "", 1e3 * total / steps);
}

}  // namespace

void print_program(const std::vector<std::string>& words, const std::string& folder, bool time, std::uint64_t seed) {
    SmallStep step(words, seed);
    Clock clock;
    std::unique_ptr<Dump> dump;
    if (!folder.empty()) {
        dump = std::make_unique<Dump>(folder);
        step.tape.observe(dump.get());
    }
    if (time) step.tape.observe(&clock);
    const int steps = time ? 4 : 1;  // the first one plans memory and is not timed
    for (int i = 0; i < steps; i++) {
        if (i == 1) clock.clear();
        step.backward(step.loss());
        step.tape.end();
    }
    if (time) return print_times(clock, steps - 1);
    if (dump) dump->write_program(step.tape);
    fmt::print("{}\n{}: {}\n{} parameters; {} tokens are asked for, of a batch in bucket {}\n",
               step.tape.program(), step.kind.name, step.run->description(), step.run->parameters.count(),
               step.task->batch_tokens(), step.bucket);
    fmt::print("values and gradients: {:.1f} KiB as planned, {:.1f} side by side\n",
               double(step.arena.planned_bytes()) / 1024, double(step.arena.unplanned_bytes()) / 1024);
    if (dump) fmt::print("every value and gradient: {}/<path>.npy and <path>.grad.npy\n", folder);
}

}  // namespace masquerade
