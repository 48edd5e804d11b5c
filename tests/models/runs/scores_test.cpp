// SPDX-License-Identifier: MIT
// Tests Run::scores(): the scores of lines are those of each line alone, their tokens add up, and their sums are the losses
// and bounds that ./evaluate measures.
#include <doctest/doctest.h>

#include <cmath>
#include <numeric>

#include "models/tasks/univae_evaluation.h"
#include "models/runs/univae_run.h"
#include "tests/models/runs/tiny_training.h"
#include "tests/train/files.h"

using namespace masquerade;

namespace {

const Strings lines = {"what is a red cup?", "who?", "where can i buy the blue door in the morning?"};

Vocabulary words() { return train_vocabulary(grammar_questions(3, 300), 200); }

}  // namespace

TEST_CASE("scores: of every objective that reads texts, the loss that is measured, and the sum over tokens") {
    for (const Objective& objective : UniLmRun(tiny_unilm("lm"), words()).common().table()) {
        if (objective.has(Objective::pairs) || objective.has(Objective::trees) || objective.has(Objective::counts))
            continue;
        CAPTURE(objective.name);
        UniLmRun run(tiny_unilm(objective.name), words());
        const std::vector<LineScore> all = run.scores(lines, 1, 5);
        REQUIRE(all.size() == 3);
        double nats = 0, tokens = 0;
        for (const LineScore& s : all) {
            nats += s.nats, tokens += s.tokens;
            if (s.each.empty()) continue;
            CHECK(std::size_t(s.tokens) == s.each.size());
            CHECK(s.labels.size() == s.each.size());
            CHECK(s.nats == doctest::Approx(std::accumulate(s.each.begin(), s.each.end(), 0.0)));
        }
        const std::vector<Sentence> read = run.sentences(lines);
        const bool bound = objective.has(Objective::bound);
        const double mean = bound ? run.bound(objective, pointers_to(read), 5).per_document * 3 / tokens
                                  : run.loss(objective, pointers_to(read)).per_token;
        CHECK(nats / tokens == doctest::Approx(mean).epsilon(1e-9));
    }
}

TEST_CASE("scores: of a language model, a line has the same bits alone, and a part of a line those of the whole") {
    UniLmRun run(tiny_unilm("lm"), words());
    const std::vector<LineScore> all = run.scores(lines, 1, 1);
    for (std::size_t i = 0; i < 3; i++) CHECK(run.scores({lines[i]}, 1, 1)[0].each == all[i].each);
    const LineScore other = run.scores({"what is a red door?"}, 1, 1)[0];
    for (std::size_t t = 0; t < 4; t++) CHECK(other.each[t] == all[0].each[t]);
    CHECK(run.scores({}, 1, 1).empty());
}

TEST_CASE("scores: of univae, the estimates of -log p(x) that are measured") {
    UniVaeSettings s;
    s.model.backbone.layers = 3, s.model.latent_layers = 2, s.model.latent.kind = LatentKind::gaussian;
    s.model.backbone.width = 16, s.model.backbone.heads = 2, s.model.backbone.inner = 32, s.model.max_length = 20;
    UniVaeRun run(s, words());
    const std::vector<LineScore> all = run.scores(lines, 4, 7);
    const std::vector<Sentence> read = run.sentences(lines);
    const Numbers nats = importance_weighted_nll(run.model, pointers_to(read), 4, 7);
    for (std::size_t i = 0; i < 3; i++) {
        CHECK(all[i].nats == nats[i]);
        CHECK(all[i].tokens == int(read[i].ids.size()) - 1);
        CHECK(all[i].each.empty());
    }
}

TEST_CASE("scores: of a diffusion that draws its length, the bound with -log p of the length") {
    TrainingText text;
    text.train = grammar_questions(3, 200);
    for (const char* objective : {"diffusion", "any-order", "gaps:1,diffusion:2", "diffusion:2,gaps:1"}) {
        CAPTURE(objective);
        UniLmSettings s = tiny_unilm(objective);
        s.how.diffusion.canvas = DiffusionRule::drawn;
        UniLmRun run(s, words());
        const std::vector<Sentence> read = run.sentences(lines);
        const bool counts = run.counter() != nullptr;
        if (!counts)  // without a table of lengths, the length is given
            CHECK(run.scores(lines, 1, 5)[0].nats == run.bound(*run.diffusion(), {&read[0]}, 5).per_document);
        run.task(text);
        const std::vector<LineScore> all = run.scores(lines, 1, 5);
        for (std::size_t i = 0; i < 3; i++) {
            const LikelihoodBound bound = run.bound(*run.diffusion(), {&read[i]}, 5);
            const double length = run.length_cost({&read[i]});
            CHECK(length > 0.1);
            CHECK(all[i].nats == doctest::Approx(bound.per_document + length).epsilon(1e-12));
            CHECK(all[i].tokens == bound.tokens);
            CHECK(all[i].each.empty());
        }
    }
}

TEST_CASE("scores: what cannot be read or has no likelihood is refused by its line and its reason") {
    UniLmRun run(tiny_unilm("lm"), words());
    CHECK_SAYS(message_of<BadInput>([&] { run.scores({""}, 1, 1); }), "line 1 has no text; expected a text");
    CHECK_SAYS(message_of<BadInput>([&] { run.scores({"a", "a\tb"}, 1, 1); }), "line 2 has a target");
    CHECK_SAYS(message_of<BadInput>([&] { run.scores({"a\tb", "a"}, 1, 1); }), "line 2 has no target");
    // Labels of gaps are numbers of tokens, so their loss is no likelihood of a line.
    UniLmRun gaps(tiny_unilm("gaps"), words()), mixed(tiny_unilm("gaps:1,lm:1"), words());
    CHECK_SAYS(message_of<BadUsage>([&] { gaps.scores(lines, 1, 1); }), "predicts how many tokens are missing");
    const int V = mixed.tokenizer.vocabulary().size();
    for (const LineScore& s : mixed.scores(lines, 1, 1))
        for (int token : s.labels) CHECK(token < V);
    UniLmRun of_pairs(tiny_unilm("gaps:1,unilm:1"), words());
    CHECK_SAYS(message_of<BadInput>([&] { of_pairs.scores(lines, 1, 1); }), "needs pairs");
}
