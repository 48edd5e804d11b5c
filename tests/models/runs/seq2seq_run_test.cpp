// SPDX-License-Identifier: MIT
// Tests a run of two stacks: the bits do not depend on the number of threads or on the memory plan, a resumed run
// equals a run without a stop, and a run that is read again writes the same text.
#include <doctest/doctest.h>

#include "tests/models/runs/tiny_training.h"

using namespace masquerade;

TEST_CASE("seq2seq run: the same bits from a rerun, any threads, any memory, recompute on or off") {
    check_same_bits<Seq2SeqRun>(tiny_seq2seq("seq2seq,mass,diffusion"), 16);
}

TEST_CASE("seq2seq run: 20 steps == 10 and 10 more after a resume, and what is loaded writes the same") {
    TemporaryFolder folder;
    const auto loaded = check_resume<Seq2SeqRun>(tiny_seq2seq("seq2seq:2,mass:1,diffusion:1"), 20, folder);
    CHECK(loaded->settings.objective == "seq2seq:2,mass:1,diffusion:1");
    CHECK(loaded->model.options.decoder_layers == 2);
    CHECK(std::string(family_of_run(folder.file("straight")).name) == "seq2seq");
}

TEST_CASE("seq2seq run: a task makes its pairs, room for them and its words; a resume meets the same pairs") {
    TemporaryFolder folder;
    Seq2SeqSettings s = tiny_seq2seq("seq2seq");
    Config keys;
    s.declare(keys);
    keys.set("words=12");
    CHECK(s.max_length == 16);
    CHECK(s.max_target == 12);
    for (const char* pair : {"task=sort", "length=20", "words=12"}) keys.set(pair);
    CHECK(s.max_length == 22);
    CHECK(s.max_target == 21);
    keys.set("max_target=30");
    CHECK(s.max_target == 30);
    const auto loaded = check_resume<Seq2SeqRun>(s, 20, folder);
    CHECK(loaded->settings.made.task == "sort");
    CHECK(loaded->settings.made.length == 20);
    CHECK(loaded->settings.max_length == 22);
    CHECK(loaded->tokenizer.vocabulary().lines() == Vocabulary(s.words()).lines());
    const std::vector<Sentence> one = loaded->sentences({"w11 w0"}, {""});
    CHECK(one[0].ids == std::vector<int>{2, 16, 5, 3});
    CHECK(one[0].target == std::vector<int>{3});
    CHECK(std::isfinite(loaded->losses({&one[0]}, true)[0].loss.per_token));
    CHECK_SAYS(message_of<BadInput>([&] { Seq2SeqRun(s, train_vocabulary(questions().train, 200)); }),
               "the vocabulary is not that of task sort");
    keys.set("words=0");
    keys.set("task=star_graph");
    keys.set("level=hard");
    CHECK(s.max_length == 169);
}

TEST_CASE("seq2seq run: what it was trained on says what it needs, what it can write and which losses it has") {
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
    // An untrained model has about the loss of the uniform distribution.
    CHECK(std::abs(losses[0].loss.per_token / std::log(words.size()) - 1) <= 0.05);
    CHECK(both.losses({&held_out[0]}, false).size() == 1);
    CHECK_THROWS_WITH_AS(Seq2SeqRun(tiny_seq2seq("unilm"), words),
                         doctest::Contains("there are seq2seq, seq2seq-reverse, mass"), BadUsage);
}

TEST_CASE("seq2seq run: masks in words are refused before there is a run, and say what can be written") {
    const Vocabulary words = train_vocabulary(questions().train, 200);
    auto run = [&](const char* mask) {
        Seq2SeqSettings s = tiny_seq2seq("seq2seq");
        s.mask = mask;
        return std::make_unique<Seq2SeqRun>(s, words);
    };
    CHECK_SAYS(message_of<BadUsage>([&] { run("A ful"); }), "\"ful\" is no rule");
    CHECK_SAYS(message_of<BadUsage>([&] { run("A full sees B; B causal"); }), "an encoder has no cross-attention");
    CHECK(run("A full window=2; B causal sees A[0]")->writes());
    CHECK(run("A causal")->writes());
    const auto deaf = run("A full; B full sees A");
    CHECK_FALSE(deaf->writes());
    CHECK_SAYS(message_of<BadUsage>([&] { deaf->expect_to_write(false); }), "nothing can be written token by token");
    CHECK(deaf->writing_command("folder").empty());
    // The decoder sees only [CLS] of the source, and [CLS] has not read the rest. Therefore, all sources give the same
    // text.
    const auto masked = run("A none; B causal sees A[0]");
    const auto others = masked->sentences({"how long is the river", "who painted the door"});
    SearchOptions options;
    options.minimum = options.maximum = 8;
    auto written = [&](const Seq2SeqRun& r) { return r.write(pointers_to(others), options, 1); };
    CHECK(written(*masked)[0][0].score == written(*masked)[1][0].score);
    CHECK(written(*run(""))[0][0].score != written(*run(""))[1][0].score);
}

TEST_CASE("seq2seq run: the share of hidden tokens reaches the objective") {
    Seq2SeqSettings s = tiny_seq2seq("mass");
    s.how.span = 0.37;
    CHECK(Seq2SeqRun(s, train_vocabulary(questions().train, 200)).objective_options().span == 0.37);
}

TEST_CASE("seq2seq run: without a maximum, a target is as long as the run can write") {
    Seq2SeqSettings s = tiny_seq2seq("seq2seq");
    s.max_target = 200;
    const Seq2SeqRun run(s, train_vocabulary(questions().train, 200));
    SearchOptions options;
    options.minimum = 200;
    const auto text = run.sentences({"how long is the river"});
    CHECK(run.write(pointers_to(text), options, 1)[0][0].tokens.size() == 200);
}

// Both the written text and the target begin with [CLS]. A score is a mean over tokens.
TEST_CASE("seq2seq run: the score of what is written is its loss as a target; max_target bounds it") {
    Seq2SeqSettings s = tiny_seq2seq("seq2seq");
    s.model.stack.deviation = 0.3;
    const Seq2SeqRun run(s, train_vocabulary(questions().train, 200));
    std::vector<Sentence> text = run.sentences({"how long is the river", "who painted the door"});
    for (int maximum : {3, 100}) {
        SearchOptions options;
        options.maximum = maximum;
        options.minimum = 100;  // so that no text ends before it has the maximum length
        const auto found = run.write(pointers_to(text), options, 1);
        double sum = 0;
        for (std::size_t i = 0; i < text.size(); i++) {
            REQUIRE(int(found[i][0].tokens.size()) == std::min(maximum, s.max_target));
            text[i].target = found[i][0].tokens;
            const ScoredLoss loss = run.losses({&text[i]}, true)[0].loss;
            CHECK(std::abs(loss.per_token + found[i][0].score) <= 1e-5);
            sum += loss.per_document;
        }
        const ScoredLoss both = run.losses(pointers_to(text), true)[0].loss;
        CHECK(std::abs(both.per_document * 2 - sum) <= 1e-4);
        CHECK(std::abs(both.per_token * double(both.tokens) - sum) <= 1e-4);
    }
}
