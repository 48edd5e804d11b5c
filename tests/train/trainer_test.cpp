// SPDX-License-Identifier: MIT
// Training is a pure function of its settings and data: the same bits from a rerun, any number of threads, planned or
// unplanned memory, recompute on or off, straight through or resumed. And it learns.
#include <doctest/doctest.h>

#include <cmath>

#include "data/grammar.h"
#include "data/text.h"
#include "engine/ops/cpu/parallel.h"
#include "models/univae_task.h"
#include "tests/train/files.h"
#include "tokenizer/trainer.h"

using namespace masquerade;

namespace {

UniVaeSettings tiny(LatentKind kind) {
    UniVaeSettings s;
    s.model.backbone.layers = 3;
    s.model.backbone.width = 16;
    s.model.backbone.heads = 2;
    s.model.backbone.inner = 32;
    s.model.backbone.dropout = 0.1;
    s.model.backbone.attention_dropout = 0.1;
    s.model.latent_layers = 2;
    s.model.latent.kind = kind;
    s.model.latent.size = 8;
    s.vocabulary = 200;
    s.batch_tokens = 80;
    s.train.warmup = 5;
    s.train.schedule_start = 10;
    s.train.schedule_steps = 100;
    return s;
}

struct Run {
    std::vector<std::string> lines = grammar_questions(3, 300);
    UniVaeRun model;
    RunFolder folder;
    UniVaeTask task;
    Trainer trainer;
    Run(const UniVaeSettings& s, RunFolder&& where, std::int64_t steps)
        : model(s, train_vocabulary(lines, s.vocabulary)),
          folder(std::move(where)),
          task(model, model.sentences(lines), model.sentences({lines[0], lines[1]})),
          trainer(model.parameters, task, folder, limited(s, steps)) {
        trainer.quiet = true;
    }
    static TrainOptions limited(const UniVaeSettings& s, std::int64_t steps) {
        TrainOptions o = s.train;
        o.steps = steps;
        o.minutes = 0;
        return o;
    }
    std::vector<char> bits() const {
        View v = model.parameters.values();
        return {static_cast<char*>(v.data), static_cast<char*>(v.data) + v.bytes()};
    }
};

bool never() { return false; }

std::vector<char> trained(const UniVaeSettings& s, std::int64_t steps) {
    TemporaryFolder folder;
    Run run(s, RunFolder::create(folder.file("run")), steps);
    run.trainer.run(never);
    return run.bits();
}

}  // namespace

TEST_CASE("trainer: the same bits from a rerun, any threads, any memory, recompute on or off") {
    for (LatentKind kind : {LatentKind::vmf, LatentKind::gaussian}) {
        UniVaeSettings s = tiny(kind);
        set_threads(1);
        std::vector<char> once = trained(s, 25);
        CHECK(once == trained(s, 25));
        for (int n : {2, 4}) {
            set_threads(n);
            CHECK(once == trained(s, 25));
        }
        set_threads(0);
        s.train.plan_memory = false;
        CHECK(once == trained(s, 25));
        for (bool planned : {true, false}) {
            s.train.plan_memory = planned;
            s.train.recompute = "*layer.*";
            CHECK(once == trained(s, 25));
        }
        s.train.recompute.clear();
        s.train.seed = 2;
        CHECK_FALSE(once == trained(s, 25));
    }
}

TEST_CASE("trainer: 100 steps == 50 and 50 more after a resume") {
    UniVaeSettings s = tiny(LatentKind::gaussian);
    TemporaryFolder folder;
    Run straight(s, RunFolder::create(folder.file("straight")), 100);
    straight.trainer.run(never);
    {
        Run half(s, RunFolder::create(folder.file("halves")), 50);
        half.trainer.run(never);
    }
    Run rest(s, RunFolder::resume(folder.file("halves")), 100);
    rest.trainer.resume();
    CHECK(rest.trainer.step() == 50);
    rest.trainer.run(never);
    CHECK(straight.bits() == rest.bits());
    // The log is that of one run: the same steps.
    auto steps_of = [](const std::string& log) {
        std::string steps;
        for (std::size_t at = log.find("\"step\":"); at != std::string::npos;
             at = log.find("\"step\":", at + 1))
            steps += log.substr(at, log.find(',', at) - at);
        return steps;
    };
    std::string steps = steps_of(read_bytes(straight.folder.file("log.jsonl")));
    CHECK(steps.find("\"step\":100") != std::string::npos);
    CHECK(steps_of(read_bytes(rest.folder.file("log.jsonl"))).find("\"step\":100") != std::string::npos);
}

TEST_CASE("trainer: a loss that is not finite ends the run and leaves what was saved") {
    UniVaeSettings s = tiny(LatentKind::vmf);
    s.train.save_every = 1;
    TemporaryFolder folder;
    Run run(s, RunFolder::create(folder.file("run")), 5);
    auto poison = [&] {  // after three steps somebody writes a NaN into a weight
        if (run.trainer.step() == 3)
            static_cast<float*>(run.model.parameters.find("layer.0.ffn.up.weight")->value)[0] = std::nanf("");
        return false;
    };
    std::string said = message_of<Error>([&] { run.trainer.run(poison); });
    CHECK_SAYS(said, "step 3: the loss is");
    CHECK(run.folder.latest_step() == 3);
}

TEST_CASE("trainer: two sentences are learned by heart in seconds") {
    UniVaeSettings s = tiny(LatentKind::vmf);
    s.model.backbone.dropout = s.model.backbone.attention_dropout = 0;
    s.model.backbone.width = 32;
    s.train.learning_rate = 5e-3;
    s.train.schedule_steps = 300;
    std::vector<std::string> two = {"what is the name of this river?", "how do you cook a large fish?"};
    TemporaryFolder folder;
    UniVaeRun run(s, train_vocabulary(grammar_questions(3, 2000), 500));
    RunFolder where = RunFolder::create(folder.file("run"));
    UniVaeTask task(run, run.sentences(two), run.sentences(two));
    Trainer trainer(run.parameters, task, where, Run::limited(s, 300));
    trainer.quiet = true;
    trainer.run(never);
    std::vector<Metric> held_out = task.validate();
    CHECK(held_out[1].value <= 0.05);  // nats a token with its own z
    CHECK(held_out[2].value >= 0.3);   // with the other's: the first pieces give the sentence away
    UniVaeDecoder decoder(run.model, DType::f32, run.special());
    auto sentences = run.sentences(two);
    auto latents = mean_latents(run.model, DType::f32, {&sentences[0], &sentences[1]});
    std::vector<DecodeRequest> requests;
    for (std::size_t i = 0; i < 2; i++)
        requests.push_back({latents[i], std::uint32_t(i), 0, run.model.start_position(0)});
    auto written = decoder.write(requests, {}, 1);
    CHECK(run.text(written[0]) == two[0]);
    CHECK(run.text(written[1]) == two[1]);
}
