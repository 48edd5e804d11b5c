// SPDX-License-Identifier: MIT
// Tests that training depends only on its settings and data. The bits are the same in a second run, with any number of
// threads, with and without a memory plan, with and without recomputation, and after a resume. Also tests that the
// model learns.
#include <doctest/doctest.h>

#include <cmath>

#include "engine/ops/cpu/parallel.h"
#include "engine/train/adamw.h"
#include "tests/train/tiny_run.h"

using namespace masquerade;

namespace {

// Returns the parameters after this number of steps, and the losses and KL terms in the log.
std::vector<char> trained(const UniVaeSettings& s, std::int64_t steps) {
    TemporaryFolder folder;
    TinyRun run(s, RunFolder::create(folder.file("run")), steps);
    run.trainer.run(never);
    std::vector<char> all = run.bits();
    const std::string log = read_bytes(run.folder.file("log.jsonl"));
    for (const std::string key : {"\"loss\":", "\"kl\":"})
        for (std::size_t at = log.find(key); at != std::string::npos; at = log.find(key, at + 1))
            all.insert(all.end(), log.begin() + std::ptrdiff_t(at),
                       log.begin() + std::ptrdiff_t(std::min(log.find_first_of(",}", at), log.size())));
    return all;
}

void check_resume(DType precision, const char* optimiser, LatentKind kind = LatentKind::gaussian, int parts = 1) {
    UniVaeSettings s = tiny_settings(kind);
    s.train.parts = parts;
    s.model.latent.codes = 16;
    s.precision = precision;
    s.train.optimiser = optimiser;
    TemporaryFolder folder;
    TinyRun straight(s, RunFolder::create(folder.file("straight")), 100);
    straight.trainer.run(never);
    {
        TinyRun half(s, RunFolder::create(folder.file("halves")), 50);
        half.trainer.run(never);
    }
    TinyRun rest(s, RunFolder::resume(folder.file("halves")), 100);
    rest.trainer.resume();
    CHECK(rest.trainer.step() == 50);
    rest.trainer.run(never);
    CHECK(straight.bits() == rest.bits());
    // The log has the steps of a single run.
    auto steps_of = [](const std::string& log) {
        std::string steps;
        for (std::size_t at = log.find("\"step\":"); at != std::string::npos; at = log.find("\"step\":", at + 1))
            steps += log.substr(at, log.find(',', at) - at);
        return steps;
    };
    std::string steps = steps_of(read_bytes(straight.folder.file("log.jsonl")));
    CHECK(steps.find("\"step\":100") != std::string::npos);
    CHECK(steps_of(read_bytes(rest.folder.file("log.jsonl"))).find("\"step\":100") != std::string::npos);
}

}  // namespace

TEST_CASE("trainer: the same bits from a rerun, any threads, any memory, recompute on or off") {
    for (const LatentKindRow& row : latent_kinds()) {
        CAPTURE(std::string(row.name));
        UniVaeSettings s = tiny_settings(row.kind);
        s.model.latent.codes = 16;
        if (row.kind == LatentKind::vmf || row.kind == LatentKind::vq) s.precision = DType::bf16;
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
        for (const char* scopes : {"*layer.*", "encoder"})
            for (bool planned : {true, false}) {
                s.train.plan_memory = planned;
                s.train.recompute = scopes;
                CHECK(once == trained(s, 25));
            }
        s.train.recompute.clear();
        s.train.seed = 2;
        CHECK_FALSE(once == trained(s, 25));
    }
}

TEST_CASE("trainer: 100 steps == 50 and 50 more after a resume") {
    for (const OptimiserKind& kind : optimiser_kinds()) {
        check_resume(DType::f32, kind.name);
        check_resume(DType::bf16, kind.name);
    }
    for (const LatentKindRow& row : latent_kinds()) check_resume(DType::f32, "adamw", row.kind);
}

TEST_CASE("trainer: batches in parts give the same bits from a rerun, any threads, any memory, and after a resume") {
    for (const LatentKind kind : {LatentKind::gaussian, LatentKind::vq}) {
        UniVaeSettings s = tiny_settings(kind);
        s.model.latent.codes = 16;
        set_threads(1);
        const std::vector<char> whole = trained(s, 25);
        s.train.parts = 3;
        const std::vector<char> once = trained(s, 25);
        CHECK_FALSE(once == whole);  // the order of the sums differs
        set_threads(4);
        CHECK(once == trained(s, 25));
        set_threads(0);
        s.train.plan_memory = false;
        CHECK(once == trained(s, 25));
        s.train.plan_memory = true;
        s.train.recompute = "*layer.*";
        CHECK(once == trained(s, 25));
    }
    check_resume(DType::f32, "adamw", LatentKind::vq, 3);
    check_resume(DType::bf16, "apollo", LatentKind::gaussian, 2);
}

TEST_CASE("trainer: another optimiser than that of the checkpoint is refused") {
    UniVaeSettings s = tiny_settings(LatentKind::vmf);
    TemporaryFolder folder;
    { TinyRun(s, RunFolder::create(folder.file("run")), 2).trainer.run(never); }
    s.train.optimiser = "apollo";
    TinyRun other(s, RunFolder::resume(folder.file("run")), 4);
    CHECK_SAYS(message_of<BadInput>([&] { other.trainer.resume(); }), "has no tensor apollo.mean");
}

TEST_CASE("trainer: a loss that is not finite ends the run and leaves what was saved") {
    UniVaeSettings s = tiny_settings(LatentKind::vmf);
    s.train.save_every = 1;
    TemporaryFolder folder;
    TinyRun run(s, RunFolder::create(folder.file("run")), 5);
    auto poison = [&] {  // after three steps, writes a NaN into a weight
        if (run.trainer.step() == 3)
            static_cast<float*>(run.model.parameters.find("layer.0.ffn.up.weight")->value)[0] = std::nanf("");
        return false;
    };
    std::string said = message_of<Error>([&] { run.trainer.run(poison); });
    CHECK_SAYS(said, "step 3: the loss is");
    CHECK(run.folder.latest_step() == 3);
}

TEST_CASE("univae: the losses of ten steps are what they were") {
    // Computed in double, from fixed sentences of random pieces. If a formula, an initial value, a random number or the
    // order of the data changes, these numbers change. If the change is intended, print them again.
    const std::vector<double> frozen[4] = {
        {4.2481554, 4.2083593, 4.072203, 4.0387802, 4.0445919, 4.1088456, 3.860006, 3.7545807, 3.7650675,
         3.7435454},  // vmf
        {4.3751602, 4.3280648, 4.1413467, 4.0980138, 4.1160165, 4.070259, 3.9029358, 3.777161, 3.78968,
         3.7456916},  // gaussian
        {4.2354525, 4.2227848, 4.0662783, 4.0450065, 4.04653, 4.1117685, 3.8626358, 3.7516059, 3.7749544,
         3.7438001},  // none
        {4.2556132, 4.1856519, 4.0629163, 4.0478446, 4.062722, 4.0579716, 3.8602934, 3.7754014, 3.7992712,
         3.7446811},  // K = 0
    };
    for (int kind = 0; kind < 4; kind++) {
        const LatentKind latents = kind == 0 ? LatentKind::vmf : kind == 1 ? LatentKind::gaussian : LatentKind::none;
        UniVaeOptions o = tiny_model(latents, kind == 1);
        if (kind == 3) o.latent_layers = 0;
        const std::vector<Sentence> sentences = random_sentences(40);
        Parameters parameters(DType::f64);
        UniVae model(parameters, o);
        parameters.allocate(1);
        AdamW optimiser(parameters, {0.9, 0.98, 1e-8, 0.01, 1});
        SentenceSource source(in_memory(sentences), 1);
        Arena arena;
        Tape tape(arena, DType::f64);
        std::vector<double> losses;
        for (std::uint32_t step = 0; step < 10; step++) {
            Batch batch = halves_batch(model, source.take(60), 16);
            LatentNoise noise = model.space.noise(batch.names(), 1, step);
            tape.begin(batch.bucket, 1, step, true);
            Tensor* loss = model.loss(tape, batch, &noise, 0.1).total;
            parameters.start_gradients();
            tape.backward(loss);
            parameters.finish_gradients();
            optimiser.update(step + 1, 1e-2);
            losses.push_back(number_at(loss->view(), 0));
            tape.end();
        }
        REQUIRE(losses.size() == frozen[kind].size());
        for (std::size_t i = 0; i < losses.size(); i++)
            CHECK(std::abs(losses[i] - frozen[kind][i]) <= 1e-5 * std::abs(frozen[kind][i]));
    }
}

TEST_CASE("trainer: two sentences are learned by heart in seconds") {
    UniVaeSettings s = tiny_settings(LatentKind::vmf);
    s.model.backbone.dropout = s.model.backbone.attention_dropout = 0;
    s.model.backbone.width = 32;
    s.train.learning_rate = 5e-3;
    s.train.schedule_steps = 300;
    std::vector<std::string> two = {"what is the name of this river?", "how do you cook a large fish?"};
    TemporaryFolder folder;
    UniVaeRun run(s, train_vocabulary(grammar_questions(3, 2000), 500));
    RunFolder where = RunFolder::create(folder.file("run"));
    UniVaeTask task(run, in_memory(run.sentences(two)), run.sentences(two));
    Trainer trainer(run.parameters, task, where, TinyRun::limited(s, 300));
    trainer.quiet = true;
    trainer.run(never);
    std::vector<Metric> held_out = task.validate();
    CHECK(held_out[1].value <= 0.05);  // nats per token, with the sentence's own z
    // With the z of the other sentence: after the first pieces, the model knows which sentence it is.
    CHECK(held_out[2].value >= 0.3);
    UniVaeDecoder decoder(run.model, run.special());
    auto sentences = run.sentences(two);
    auto latents = mean_latents(run.model, {&sentences[0], &sentences[1]});
    std::vector<DecodeRequest> requests;
    for (std::size_t i = 0; i < 2; i++)
        requests.push_back({latents[i], std::uint32_t(i), 0, run.model.start_position(0)});
    auto written = decoder.write(requests, {}, 1);
    CHECK(run.decode(written[0]) == two[0]);
    CHECK(run.decode(written[1]) == two[1]);
}
