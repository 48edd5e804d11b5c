// SPDX-License-Identifier: MIT
#include "models/unilm_task.h"

#include <algorithm>

#include "models/unilm_evaluation.h"

namespace masquerade {
namespace {
constexpr std::size_t validated = 400;  // held-out lines
constexpr std::size_t shown = 4;

std::vector<const Sentence*> first_of(const std::vector<Sentence>& all, std::size_t most) {
    std::vector<const Sentence*> some;
    for (std::size_t i = 0; i < std::min(most, all.size()); i++) some.push_back(&all[i]);
    return some;
}

std::string shortened(const std::string& line, std::size_t most) {
    if (line.size() <= most) return line;
    std::size_t end = most;
    while (end > 0 && (static_cast<unsigned char>(line[end]) & 0xC0) == 0x80) end--;
    return line.substr(0, end) + " ...";
}
}  // namespace

UniLmTask::UniLmTask(UniLmRun& run, std::vector<Sentence> train, std::vector<Sentence> held_out)
    : run_(run),
      train_(std::move(train)),
      held_out_(std::move(held_out)),
      source_(train_, run.settings.train.seed) {}

std::string UniLmTask::next_batch(std::int64_t step) {
    const Objective& objective = run_.mixture.at(run_.settings.train.seed, std::uint32_t(step));
    batch_ = objective.batch(source_.take(std::size_t(run_.settings.batch_tokens)), std::uint32_t(step),
                             run_.objective_options(), 64);
    return batch_.bucket;
}

Tensor* UniLmTask::loss(Tape& tape, std::int64_t, std::int64_t) {
    return run_.model.loss(tape, batch_, run_.settings.label_smoothing).total;
}

// Of a mixture: the mean by weight, then each of its parts.
std::vector<Metric> UniLmTask::validate() {
    if (held_out_.empty()) return {};
    std::vector<Metric> metrics = {{"loss", 0}};
    for (const ObjectiveMixture::Part& part : run_.mixture.parts) {
        const ScoredLoss loss = scored_loss(run_.model, *part.objective, run_.objective_options(),
                                            first_of(held_out_, validated));
        metrics[0].value += part.weight * loss.per_token;
        if (run_.mixture.parts.size() > 1) metrics.push_back({part.objective->name, loss.per_token});
    }
    return metrics;
}

// What it writes, greedily, for held-out sources. Without pairs and for objectives that do not write: nothing.
std::string UniLmTask::show(std::int64_t) {
    if (!run_.mixture.has(Objective::pairs) || held_out_.empty()) return "";
    const std::vector<const Sentence*> some = first_of(held_out_, shown);
    const auto written = run_.write(some, {}, run_.settings.train.seed);
    std::string out = "  held-out sources, what is written for them, and their own targets\n";
    for (std::size_t i = 0; i < some.size(); i++) {
        const std::vector<int>& ids = some[i]->ids;
        out += "    " + shortened(run_.text({ids.begin() + 1, ids.end() - 1}), 68) + "\n";
        out += "      > " + run_.text(written[i].at(0).tokens) + "\n";
        out += "      = " + run_.text({some[i]->target.begin(), some[i]->target.end() - 1}) + "\n";
    }
    return out;
}

std::vector<std::uint64_t> UniLmTask::place() const { return {source_.place().epoch, source_.place().next}; }

void UniLmTask::move_to(const std::vector<std::uint64_t>& place) {
    if (place.size() != 2) throw BadInput("the checkpoint does not say where in the data it stands");
    source_.move_to({place[0], place[1]});
}

}  // namespace masquerade
