// SPDX-License-Identifier: MIT
// Tests how runs of insertion read a training text.
#include "models/runs/insertion_run.h"

#include <fstream>

#include "models/runs/writer.h"
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

TEST_CASE("insertion run: order=FILE keeps the order of numbers that f32 cannot tell apart") {
    TemporaryFolder folder;
    const std::string path = folder.file("order.txt");
    std::ofstream(path) << "16777217\n16777216\n1e39\n-1e300\n1e40\n16777217\n";
    InsertionSettings s;
    s.slots.order = path;
    s.model.stack.layers = s.model.decoder_layers = 1;
    make_tiny(s, s.model.stack);
    InsertionRun run(s, Vocabulary({"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a"}));
    TrainingText text;
    text.train = {"a"}, text.train_targets = {"a"};
    run.task(text);
    CHECK(*run.model.head->scores() == Numbers{2, 1, 3, 0, 4, 2});
}

TEST_CASE("insertion run: a canvas without a tab, or with too many tokens, is refused by its line") {
    InsertionSettings s;
    s.model.stack.layers = s.model.decoder_layers = 1;
    make_tiny(s, s.model.stack);
    InsertionRun run(s, Vocabulary({"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b"}));
    Writing how;
    how.from_canvas = true;
    const std::string eleven = "b b b b b b b b b b b";
    CHECK(run.writer(how).write({"a\t" + eleven, "a\t"}, 0).find(eleven + "\n") == 0);
    CHECK_SAYS(message_of<BadInput>([&] {
                   run.writer(how).write({"a\tb", "a\t" + eleven + " b"}, 4);
               }),
               "standard input, line 6: 12 tokens, expected at most 11 (max_target)");
    CHECK_SAYS(message_of<BadInput>([&] {
                   run.writer(how).write({"a\tb", "a b"}, 4);
               }),
               "standard input, line 6: there is no tab, expected source<TAB>words");
    how.search.maximum = 3;
    CHECK_SAYS(message_of<BadInput>([&] { run.writer(how).write({"a\tb b b"}, 0); }),
               "line 1: 3 tokens, expected at most 2 (--maximum)");
}
