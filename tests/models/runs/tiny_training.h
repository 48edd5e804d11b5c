// SPDX-License-Identifier: MIT
// Tiny runs of models that read pairs, and checks for all of them: the bits do not depend on the number of threads or
// on the memory plan, a resumed run equals a run without a stop, and a run that is read again writes the same text.
#pragma once
#include <doctest/doctest.h>

#include <algorithm>

#include "data/grammar.h"
#include "engine/ops/cpu/parallel.h"
#include "models/runs/seq2seq_run.h"
#include "models/runs/unilm_run.h"
#include "tests/train/tiny_run.h"

namespace masquerade {

// The settings that do not depend on the model.
template <class Settings>
void make_tiny(Settings& s, BackboneOptions& stack) {
    stack.width = 16;
    stack.heads = 2;
    stack.inner = 32;
    stack.dropout = 0.1;
    stack.attention_dropout = 0.1;
    s.max_length = 16;
    s.max_target = 12;
    s.vocabulary = 200;
    s.batch_tokens = 120;
    s.train.warmup = 5;
    s.train.schedule_start = 10;
    s.train.schedule_steps = 40;
}

inline UniLmSettings tiny_unilm(const std::string& objective) {
    UniLmSettings s;
    s.objective = objective;
    s.model.layers = 2;
    make_tiny(s, s.model);
    return s;
}

inline Seq2SeqSettings tiny_seq2seq(const std::string& objective) {
    Seq2SeqSettings s;
    s.objective = objective;
    s.model.stack.layers = 1;
    s.model.decoder_layers = 2;
    make_tiny(s, s.model.stack);
    return s;
}

// Returns questions. The target of each question is the next question.
inline TrainingText questions() {
    TrainingText t;
    t.train = grammar_questions(3, 200);
    t.train_targets = t.train;
    std::rotate(t.train_targets.begin(), t.train_targets.begin() + 1, t.train_targets.end());
    t.held_out = {t.train[0], t.train[1]};
    t.held_out_targets = {t.train_targets[0], t.train_targets[1]};
    return t;
}

// Returns the pairs of the task, or questions if there is no task.
inline TrainingText text_of(const TargetSettings& s) {
    return s.made.any() ? find_training_text("", "", TextKind::pairs, s.made) : questions();
}

template <class R>
struct TinyTraining {
    TrainingText text;
    R run;
    RunFolder folder;
    std::unique_ptr<Task> task;
    Trainer trainer;
    template <class Settings>
    TinyTraining(const Settings& s, RunFolder&& where, std::int64_t steps)
        : TinyTraining(s, std::move(where), steps, text_of(s)) {}
    template <class Settings>
    TinyTraining(const Settings& s, RunFolder&& where, std::int64_t steps, TrainingText about)
        : text(std::move(about)),
          run(s, s.made.any() ? Vocabulary(s.words()) : train_vocabulary(text.train, s.vocabulary), s.precision),
          folder(std::move(where)),
          task(run.task(text)),
          trainer(run.parameters, *task, folder, limited(s, steps)) {
        trainer.quiet = true;
        folder.write("run.json", "{}");
        folder.write("vocab.txt", run.tokenizer.vocabulary().lines());
    }
    static TrainOptions limited(const RunSettings& s, std::int64_t steps) {
        TrainOptions o = s.train;
        o.steps = steps;
        o.minutes = 0;
        return o;
    }
    template <class Settings>
    static std::vector<char> trained(const Settings& s, std::int64_t steps) {
        TemporaryFolder folder;
        TinyTraining t(s, RunFolder::create(folder.file("run")), steps);
        t.trainer.run(never);
        return bits_of(t.run.parameters.values());
    }
};

template <class R, class Settings>
void check_same_bits(Settings s, std::int64_t steps) {
    using Tiny = TinyTraining<R>;
    for (DType precision : {DType::f32, DType::bf16}) {
        s.precision = precision;
        s.train.plan_memory = true;
        s.train.recompute = "";
        set_threads(1);
        const std::vector<char> once = Tiny::trained(s, steps);
        for (int n : {1, 2, 3}) {
            set_threads(n);
            CHECK(once == Tiny::trained(s, steps));
        }
        set_threads(0);
        s.train.plan_memory = false;
        CHECK(once == Tiny::trained(s, steps));
        s.train.recompute = "*layer.*";
        CHECK(once == Tiny::trained(s, steps));
    }
}

// Trains `steps` steps without a stop, in folder/straight, and again in two halves, and compares the runs. Returns the
// first run, loaded from the disk.
template <class R, class Settings>
std::unique_ptr<R> check_resume(const Settings& s, std::int64_t steps, const TemporaryFolder& folder) {
    using Tiny = TinyTraining<R>;
    Tiny straight(s, RunFolder::create(folder.file("straight")), steps);
    straight.trainer.run(never);
    {
        Tiny half(s, RunFolder::create(folder.file("halves")), steps / 2);
        half.trainer.run(never);
    }
    Tiny rest(s, RunFolder::resume(folder.file("halves")), steps);
    rest.trainer.resume();
    rest.trainer.run(never);
    CHECK(bits_of(straight.run.parameters.values()) == bits_of(rest.run.parameters.values()));

    auto loaded = load_run<R>(folder.file("straight"));
    CHECK(bits_of(loaded->parameters.values()) == bits_of(straight.run.parameters.values()));
    const std::vector<Sentence> sources = straight.run.sentences(straight.text.held_out);
    const std::vector<const Sentence*> all = {&sources[0], &sources[1]};
    SearchOptions beams;
    beams.beams = beams.n_best = 3;
    const auto here = straight.run.write(all, beams, 1), there = loaded->write(all, beams, 1);
    REQUIRE(here.size() == 2);
    for (std::size_t i = 0; i < here.size(); i++) {
        REQUIRE(here[i].size() == 3);
        for (std::size_t n = 0; n < 3; n++) {
            CHECK(here[i][n].tokens == there[i][n].tokens);
            CHECK(here[i][n].score == there[i][n].score);
            CHECK(here[i][n].tokens.size() <= std::size_t(s.max_target));
        }
    }
    return loaded;
}

}  // namespace masquerade
