// SPDX-License-Identifier: MIT
#include <memory>

#include "engine/base/write_file.h"
#include "engine/tape/trace.h"
#include "tools/inspect/inspect.h"
#include "tools/inspect/pictures.h"
#include "tools/inspect/small_model.h"
#include "tools/plot/plot.h"
#include "tools/say.h"

namespace masquerade {
namespace {

void print_times(const Clock& clock, int steps) {
    double total = 0;
    for (const auto& [op, share] : clock.shares()) total += share.forward + share.backward;
    say("{:16}{:>8}{:>14}{:>14}{:>9}\n", "op", "calls", "forward ms", "backward ms", "share");
    for (const auto& [op, share] : clock.shares())
        say("{:16}{:8}{:14.3f}{:14.3f}{:8.1f}%\n", op, share.calls / steps, 1e3 * share.forward / steps,
            1e3 * share.backward / steps, 100 * (share.forward + share.backward) / total);
    say("{:16}{:8}{:14.3f} ms a step, forward and backward\n", "all", "", 1e3 * total / steps);
}

}  // namespace

void print_program(const ProgramSettings& s, std::uint64_t seed) {
    if (!s.graph.empty()) check_picture(s.graph, dot);
    SmallStep step(s.words, seed);
    Clock clock;
    Timeline timeline;
    std::unique_ptr<Dump> dump;
    if (!s.dump.empty()) {
        dump = std::make_unique<Dump>(s.dump);
        step.tape.observe(dump.get());
    }
    if (s.time) step.tape.observe(&clock);
    if (!s.timeline.empty()) step.tape.observe(&timeline);
    const int steps = s.time || !s.timeline.empty() ? 4 : 1;  // the first step is not timed, because it plans memory
    for (int i = 0; i < steps; i++) {
        if (i == 1) clock.clear();
        timeline.clear();
        step.backward(step.loss());
        step.tape.end();
    }
    if (!s.graph.empty()) draw_graph_of(step.tape, s.graph);
    if (!s.memory.empty()) replace_file(s.memory, memory_picture(step.tape, *step.arena.plan(step.bucket)));
    if (!s.timeline.empty()) replace_file(s.timeline, timeline.json());
    if (s.time) return print_times(clock, steps - 1);
    if (dump) dump->write_program(step.tape);
    say("{}\n{}: {}\n{} parameters; {} tokens are asked for, of a batch in bucket {}\n", Lines{step.tape.program()},
        step.kind.name, step.run->description(), step.run->parameters.count(), step.task->batch_tokens(), step.bucket);
    say("values and gradients: {:.1f} KiB as planned, {:.1f} side by side\n", double(step.arena.planned_bytes()) / 1024,
        double(step.arena.unplanned_bytes()) / 1024);
    if (dump) say("every value and gradient: {}/<path>.npy and <path>.grad.npy\n", s.dump);
}

}  // namespace masquerade
