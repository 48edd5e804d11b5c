// SPDX-License-Identifier: MIT
#include "tools/inspect/small_model.h"

#include <algorithm>

#include "engine/base/named.h"
#include "data/grammar.h"
#include "models/runs/target_run.h"

namespace masquerade {
namespace {

// Returns the settings of a small model of this family. The settings in `words` (key=value) override the small sizes.
// Sizes that the family does not have are skipped.
std::unique_ptr<RunSettings> small_settings(const Family& kind, const Strings& words, std::uint64_t seed) {
    auto settings = kind.settings();
    Config config;
    settings->declare(config);
    for (const auto& [key, value] : {std::pair{"vocabulary", "200"},
                                     {"batch_tokens", "48"},
                                     {"width", "32"},
                                     {"heads", "2"},
                                     {"inner", "64"},
                                     {"layers", config.has("latent_layers") ? "4" : "2"},
                                     {"latent_layers", "2"},
                                     {"latent_size", "8"},
                                     {"max_length", "12"},
                                     {"max_target", "12"}})
        if (config.has(key)) config.set(key, value);
    apply_words(kind, words, config);
    settings->train.seed = seed;
    settings->train.parts = 1;  // a SmallStep is the whole batch
    return settings;
}

// Returns examples of the task in the settings. If the settings have no task, returns questions from the built-in
// grammar. If the model reads pairs, the target of each question is the next question.
TrainingText small_text(const Family& kind, RunSettings& settings, std::uint64_t seed) {
    const int count = std::clamp(settings.batch_tokens / 4, 200, 12000);
    TrainingText t;
    if (PairOptions made = settings.made; made.any()) {
        made.seed = seed;
        t.origin.name = text("made by task ", made.task), t.origin.pairs = true;
        for (int i = 0; i < count; i++) {
            auto [source, target] = made_pair(made, i, false);
            t.train.push_back(std::move(source)), t.train_targets.push_back(std::move(target));
        }
        return t;
    }
    t.origin.name = "built-in grammar of questions";
    t.origin.pairs = only_pairs(kind.reads) || only_pairs(settings.wants(kind.reads));
    t.train = grammar_questions(seed, count);
    if (!t.origin.pairs) return t;
    t.train_targets = t.train;
    std::rotate(t.train_targets.begin(), t.train_targets.begin() + 1, t.train_targets.end());
    return t;
}

constexpr std::int64_t step = 1;  // the last step of a schedule with one step, so that the KL term has its final weight

}  // namespace

bool describes_model(const Strings& words) {
    if (words.empty()) return false;
    for (const Family& kind : families())
        if (words[0] == kind.name || contains(kind.objectives, words[0])) return true;
    return words[0].find('=') != std::string::npos;
}

SmallStep::SmallStep(const Strings& words, std::uint64_t seed, std::optional<DType> type)
    : kind(kind_of(words)),
      settings(small_settings(kind, words, seed)),
      text(small_text(kind, *settings, seed)),
      storage(type ? *type : settings->precision),
      run(kind.fresh(*settings, learn_vocabulary(*settings, text), storage, Device::cpu)),
      task(run->task(text)),
      arena(Device::cpu, settings->train.blocks()),
      tape(arena, storage),
      bucket(task->next_batch(step)) {
    const std::string& recompute = settings->train.recompute;
    if (!recompute.empty()) tape.recompute(recompute);
}

Tensor* SmallStep::loss() {
    tape.begin(bucket, settings->train.seed, step, true);
    return task->loss(tape, step, step);
}

void SmallStep::backward(Tensor* total) {
    run->parameters.start_gradients();
    tape.backward(total);
    run->parameters.finish_gradients();
}

}  // namespace masquerade
