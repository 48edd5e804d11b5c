// SPDX-License-Identifier: MIT
#include "models/runs/target_task.h"

#include <algorithm>

namespace masquerade {
namespace {
std::string shortened(const std::string& line, std::size_t most) {
    if (line.size() <= most) return line;
    std::size_t end = most;
    while (end > 0 && (static_cast<unsigned char>(line[end]) & 0xC0) == 0x80) end--;
    return line.substr(0, end) + " ...";
}
}  // namespace

std::string TargetTask::next_batch(std::int64_t step) {
    const auto number = std::uint32_t(step);
    const Objective& objective = run_.mixture.at(run_.common().train.seed, number);
    batch_ = objective.batch(take(), number, run_.objective_options(), 64);
    return batch_.bucket;
}

Tensor* TargetTask::loss(Tape& tape, std::int64_t, std::int64_t) {
    return run_.net().loss(tape, batch_, run_.common().label_smoothing).total;
}

// The losses of a mixture: the mean by weight, then each of its parts.
std::vector<Metric> TargetTask::validate() {
    if (held_out_.empty()) return {};
    std::vector<Metric> metrics = {{"loss", 0}};
    const std::vector<PartLoss> losses = run_.losses(pointers_to(held_out_, validated), true);
    for (const PartLoss& part : losses) {
        metrics[0].value += part.weight * part.loss.per_token;
        if (losses.size() > 1) metrics.push_back({part.objective, part.loss.per_token});
    }
    return metrics;
}

// Shows what it writes, greedily, for held-out sources. Without pairs and for objectives that do not write: nothing.
std::string TargetTask::show(std::int64_t) {
    if (!run_.reads_pairs() || !run_.writes() || held_out_.empty()) return "";
    const std::vector<const Sentence*> some = pointers_to(held_out_, shown);
    const auto written = run_.write(some, {}, run_.common().train.seed);
    std::string out = "  held-out sources, what is written for them, and their own targets\n";
    for (std::size_t i = 0; i < some.size(); i++) {
        const std::vector<int>& ids = some[i]->ids;
        out += "    " + shortened(run_.text({ids.begin() + 1, ids.end() - 1}), 68) + "\n";
        out += "      > " + run_.text(written[i].at(0).tokens) + "\n";
        out += "      = " + run_.text({some[i]->target.begin(), some[i]->target.end() - 1}) + "\n";
    }
    return out;
}

}  // namespace masquerade
