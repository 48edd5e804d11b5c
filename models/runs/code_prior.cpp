// SPDX-License-Identifier: MIT
#include "models/runs/code_prior.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "engine/base/random.h"
#include "engine/base/write_file.h"
#include "input/input.h"

namespace masquerade {
namespace {

constexpr int epochs = 10;
constexpr std::size_t held_out_share = 20;  // one sentence in so many chooses the best checkpoint

Vocabulary words_of(int choices) {
    std::vector<std::string> words(std::begin(special_tokens), std::end(special_tokens));
    for (int i = 0; i < choices; i++) words.push_back(std::to_string(i));
    return Vocabulary(words);
}
constexpr int first_code = int(std::size(special_tokens));

}  // namespace

// Nothing is changed at `path` before the whole is there.
void CodePrior::fit(const std::string& path, const LatentSpace& space, const std::vector<std::vector<double>>& latents,
                    std::uint64_t seed, std::uint64_t model, Device device) {
    const Vocabulary words = words_of(space.code_choices());
    std::vector<Sentence> train, held_out;
    int tokens = 0;
    for (std::size_t i = 0; i < latents.size(); i++) {
        Sentence s;
        s.name = int(i);
        s.ids = {words.cls()};
        for (int part : space.code(latents[i])) s.ids.push_back(first_code + part);
        s.ids.push_back(words.sep());
        tokens = int(s.ids.size());
        (i % held_out_share == held_out_share - 1 ? held_out : train).push_back(s);
    }
    UniLmSettings settings;
    settings.objective = "lm";
    settings.model.width = 64, settings.model.inner = 256, settings.model.layers = 2;
    settings.label_smoothing = 0;
    settings.max_length = tokens;
    settings.train.seed = seed;
    settings.train.minutes = 0;
    settings.train.steps = 1 + epochs * std::int64_t(train.size()) * tokens / settings.batch_tokens;
    settings.train.warmup = settings.train.steps / 10;
    settings.train.save_every = 1 + settings.train.steps / epochs;
    settings.train.keep = 1;
    UniLmRun run(settings, words, settings.precision, device);
    const std::unique_ptr<Task> task = run.task_of(train, held_out);
    const std::filesystem::path place(path);
    const PrivateFolder beside(place.parent_path().string(), path);
    const std::string fresh = beside.file(place.filename().string());
    {
        RunFolder folder = RunFolder::create(fresh);
        run.start(folder, {{"model", settings.family()}, {"seed", seed}, {"latents_of", model}});
        Trainer trainer(run.parameters, *task, folder, settings.train);
        trainer.quiet = true;
        trainer.run([] { return false; });
    }
    move_into_place(fresh, path);
}

CodePrior::CodePrior(const std::string& folder, const LatentSpace& space, std::uint64_t model, Device device)
    : space_(space),
      run_(load_run<UniLmRun>(folder + (std::filesystem::exists(folder + "/best") ? "/best" : ""), false, device)) {
    const auto refuse = [&](const auto&... why) {
        throw BadInput(text(folder, why..., "; make it anew with ./train --fit-prior RUN, or remove it"));
    };
    const nlohmann::json record = parse_input<BadInput>(run_->run_json, folder + "/run.json");
    if (const auto of = record.find("latents_of"); of == record.end() || *of != model)
        refuse(" was fitted to other weights than those beside it");
    if (run_->settings.objective != "lm")
        refuse(" was trained on ", clipped(run_->settings.objective), ", expected a language model (lm)");
    if (run_->tokenizer.vocabulary().lines() != words_of(space.code_choices()).lines())
        refuse(" has other words than the ", space.code_choices(), " codes of the model");
    if (const int parts = run_->settings.max_length - 2; parts != space.code_parts())
        refuse(" writes ", parts, " parts, and a code of the model has ", space.code_parts());
}

std::vector<double> CodePrior::draw(std::uint64_t seed, std::uint32_t line, std::uint32_t number,
                                    double temperature) const {
    const Vocabulary& words = run_->tokenizer.vocabulary();
    const int parts = space_.code_parts();
    Sentence start;
    start.ids = {words.cls()};
    start.name = int(line);
    SearchOptions options;
    options.samples = 1;
    options.temperature = std::max(temperature, 1e-3);
    options.forbidden = {words.unk()};
    options.minimum = options.maximum = parts;
    Sequence mixed(seed, "latent.codes", number);
    const std::uint64_t own = std::uint64_t(mixed.bits()) << 32 | mixed.bits();
    const Hypothesis written = run_->write({&start}, options, own).at(0).at(0);
    std::vector<int> code;
    for (int token : written.tokens) code.push_back(token - first_code);
    return space_.latent_of(code);
}

}  // namespace masquerade
