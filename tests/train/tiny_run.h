// SPDX-License-Identifier: MIT
// A run of a UniVAE that trains in moments, with dropout, held-out sentences and samples.
#pragma once
#include "data/grammar.h"
#include "data/text.h"
#include "engine/tensor/numbers.h"
#include "models/runs/univae_task.h"
#include "tests/train/files.h"
#include "tokenizer/trainer.h"

namespace masquerade {

inline UniVaeSettings tiny_settings(LatentKind kind) {
    UniVaeSettings s;
    s.model.backbone.layers = 3;
    s.model.backbone.width = 16;
    s.model.backbone.heads = 2;
    s.model.backbone.inner = 32;
    s.model.backbone.dropout = 0.1;
    s.model.backbone.attention_dropout = 0.1;
    s.model.latent_layers = 2;
    s.model.latent.kind = kind;
    s.latent_sizes = "8";
    s.vocabulary = 200;
    s.batch_tokens = 80;
    s.train.warmup = 5;
    s.train.schedule_start = 10;
    s.train.schedule_steps = 100;
    return s;
}

// Returns options of an even smaller model, for steps without a run.
inline UniVaeOptions tiny_model(LatentKind kind, bool pre_norm) {
    UniVaeOptions o;
    o.backbone.vocabulary = 60;
    o.backbone.width = 16;
    o.backbone.heads = 2;
    o.backbone.inner = 32;
    o.backbone.layers = 3;
    o.backbone.positions = 32;
    o.backbone.deviation = 0.2;
    o.backbone.dropout = o.backbone.attention_dropout = 0.1;
    o.backbone.pre_norm = pre_norm;
    o.latent_layers = 2;
    o.latent.kind = kind;
    o.latent.size = 8;
    o.latent.kappa = 80;
    o.max_length = 16;
    return o;
}
// Returns sentences of up to 13 random pieces, for tiny_model().
inline std::vector<Sentence> random_sentences(std::size_t count) {
    std::vector<Sentence> all(count);
    Sequence random(5, "sentences");
    for (std::size_t i = 0; i < all.size(); i++) {
        all[i].name = int(i);
        all[i].ids.push_back(2);
        for (std::uint32_t n = random.below(14); n > 0; n--) all[i].ids.push_back(5 + int(random.below(55)));
        all[i].ids.push_back(3);
    }
    return all;
}

inline bool never() { return false; }

inline std::vector<char> bits_of(const View& tensor) {
    const OnHost here(tensor);
    const char* bytes = static_cast<const char*>(here.view().data);
    return {bytes, bytes + tensor.bytes()};
}

struct TinyRun {
    std::vector<std::string> lines = grammar_questions(3, 300);
    UniVaeRun model;
    RunFolder folder;
    UniVaeTask task;
    Trainer trainer;
    TinyRun(const UniVaeSettings& s, RunFolder&& where, std::int64_t steps, Device device = Device::cpu)
        : model(s, train_vocabulary(lines, s.vocabulary), s.precision, device),
          folder(std::move(where)),
          task(model, in_memory(model.sentences(lines)), model.sentences({lines[0], lines[1]})),
          trainer(model.parameters, task, folder, limited(s, steps)) {
        trainer.quiet = true;
    }
    static TrainOptions limited(const UniVaeSettings& s, std::int64_t steps) {
        TrainOptions o = s.train;
        o.steps = steps;
        o.minutes = 0;
        return o;
    }
    std::vector<char> bits() const { return bits_of(model.parameters.values()); }
};

}  // namespace masquerade
