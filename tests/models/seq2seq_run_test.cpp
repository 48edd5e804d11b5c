// SPDX-License-Identifier: MIT
// A run of two stacks: the same bits whatever the threads and the memory, a resume that nobody can tell, what is read again
// writes as it wrote.
#include <doctest/doctest.h>

#include "tests/models/tiny_training.h"

using namespace masquerade;

namespace {

using Training = TinyTraining<Seq2SeqRun>;

}  // namespace

TEST_CASE("seq2seq run: the same bits from a rerun, any threads, any memory, recompute on or off") {
    for (DType precision : {DType::f32, DType::bf16}) {
        Seq2SeqSettings s = tiny_seq2seq("seq2seq,mass");
        s.precision = precision;
        set_threads(1);
        const std::vector<char> once = Training::trained(s, 12);
        for (int n : {1, 3}) {
            set_threads(n);
            CHECK(once == Training::trained(s, 12));
        }
        set_threads(0);
        s.train.plan_memory = false;
        CHECK(once == Training::trained(s, 12));
        s.train.recompute = "*layer.*";
        CHECK(once == Training::trained(s, 12));
    }
}

TEST_CASE("seq2seq run: 20 steps == 10 and 10 more after a resume, and what is loaded writes the same") {
    const Seq2SeqSettings s = tiny_seq2seq("seq2seq:2,mass:1");
    TemporaryFolder folder;
    Training straight(s, RunFolder::create(folder.file("straight")), 20);
    straight.trainer.run(never);
    {
        Training half(s, RunFolder::create(folder.file("halves")), 10);
        half.trainer.run(never);
    }
    Training rest(s, RunFolder::resume(folder.file("halves")), 20);
    rest.trainer.resume();
    rest.trainer.run(never);
    CHECK(bits_of(straight.run.parameters.values()) == bits_of(rest.run.parameters.values()));

    const auto loaded = Seq2SeqRun::load(folder.file("straight"));
    CHECK(bits_of(loaded->parameters.values()) == bits_of(straight.run.parameters.values()));
    CHECK(loaded->settings.objective == s.objective);
    CHECK(loaded->model.options.decoder_layers == 2);
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
    CHECK(std::string(model_of_run(folder.file("straight")).name) == "seq2seq");
}

TEST_CASE(
    "seq2seq run: what it was trained on says what it needs, what it can write and which losses it has") {
    const TrainingText text = questions();
    const Vocabulary words = train_vocabulary(text.train, 200);
    TrainingText alone = text;
    alone.train_targets.clear();
    alone.held_out_targets.clear();
    Seq2SeqRun pairs(tiny_seq2seq("seq2seq"), words), both(tiny_seq2seq("seq2seq:3,mass:1"), words),
        mass(tiny_seq2seq("mass"), words);
    CHECK(pairs.writes());
    CHECK_FALSE(mass.writes());
    CHECK(pairs.writing_command("r") == "./generate r < SOURCES");
    CHECK(mass.writing_command("r") == "");
    CHECK_SAYS(message_of<BadInput>([&] { both.task(alone); }), "needs pairs");
    CHECK(mass.task(alone)->validate().size() == 1);
    const std::vector<Sentence> held_out = both.sentences(text.held_out, text.held_out_targets);
    const std::vector<PartLoss> losses = both.losses({&held_out[0], &held_out[1]}, true);
    REQUIRE(losses.size() == 2);
    CHECK(losses[0].objective == "seq2seq");
    CHECK(losses[0].weight == doctest::Approx(0.75));
    CHECK(losses[0].loss.tokens == std::int64_t(held_out[0].target.size() + held_out[1].target.size()));
    CHECK(losses[0].loss.per_token == doctest::Approx(std::log(words.size())).epsilon(0.05));  // untrained
    CHECK(both.losses({&held_out[0]}, false).size() == 1);
    CHECK_THROWS_WITH_AS(Seq2SeqRun(tiny_seq2seq("unilm"), words),
                         doctest::Contains("there are seq2seq, mass"), BadUsage);
}
