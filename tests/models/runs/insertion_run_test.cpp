// SPDX-License-Identifier: MIT
// Tests how runs of insertion read a training text.
#include "models/runs/insertion_run.h"

#include "tests/models/runs/tiny_training.h"

using namespace masquerade;

TEST_CASE("insertion run: order=frequency counts words of the texts into which the objective inserts") {
    TrainingText text;
    text.train = {"a b b", "b b"}, text.train_targets = {"a", "a a"};
    for (const auto& [objective, of_b] :
         {std::pair<std::string, int>{"insertion", 0}, {"insertion-one-stack", 0}, {"kermit", -4}}) {
        CAPTURE(objective);
        InsertionSettings s;
        s.objective = objective;
        s.slots.order = "frequency";
        s.model.stack.layers = s.model.decoder_layers = 1;
        make_tiny(s, s.model.stack);
        InsertionRun run(s, Vocabulary({"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b"}));
        run.task(text);
        const Vocabulary& words = run.tokenizer.vocabulary();
        const Numbers scores = *run.model.head->scores();
        CHECK(scores.at(std::size_t(words.id("b"))) == of_b);
        CHECK(scores.at(std::size_t(words.id("a"))) == (of_b < 0 ? -4 : -3));
    }
}
