// SPDX-License-Identifier: MIT
// Tests runs that answer questions: a resumed run is exact for every task, questions belong to the right rows, and the
// tasks are learned.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "models/runs/classify_run.h"
#include "tests/train/tiny_run.h"
#include "models/runs/training.h"
#include "models/runs/origin.h"

using namespace masquerade;

namespace {

ClassifySettings tiny_classify(const std::string& task) {
    ClassifySettings s;
    s.task.task = task;
    s.task.length = 16;
    s.task.pairs = 3;
    s.task.vocabulary = 16;
    s.model.layers = 2;
    s.model.width = 16;
    s.model.heads = 2;
    s.model.inner = 32;
    s.model.dropout = 0.1;
    s.batch_tokens = 120;
    s.train.warmup = 5;
    s.train.schedule_start = 10;
    s.train.schedule_steps = 40;
    return s;
}

std::vector<char> trained(const ClassifySettings& s, const std::string& path, std::int64_t steps) {
    const bool again = std::filesystem::exists(path);
    const auto run =
        again ? load_run<ClassifyRun>(path, true) : std::make_unique<ClassifyRun>(s, learn_vocabulary(s, {}));
    RunFolder folder = again ? RunFolder::resume(path) : RunFolder::create(path);
    if (!again) {
        folder.write("run.json", "{}");
        run->save_tokenizer(folder);
    }
    const auto task = run->task({});
    TrainOptions o = run->common().train;
    o.steps = steps;
    o.minutes = 0;
    Trainer trainer(run->parameters, *task, folder, o);
    trainer.quiet = true;
    if (again) trainer.resume();
    trainer.run(never);
    return bits_of(run->parameters.values());
}

double measured(ClassifyRun& run, const std::string& key, std::uint64_t examples) {
    for (const Measure& m : run.measures(examples))
        if (m.key == key) return m.value;
    FAIL("no measure ", key);
    return 0;
}

}  // namespace

TEST_CASE("classify run: stopped and resumed has the bits of straight, for tasks and for files") {
    const TemporaryFolder files;
    for (const char* kind : {"a", "b"}) {
        std::filesystem::create_directory(files.file(kind));
        for (int i = 0; i < 40; i++) files.write(text(kind, "/", i), text(kind, " text ", i, kind));
    }
    for (const std::string& task :
         {std::string("listops_mini"), std::string("recall"), std::string("copy"), files.path}) {
        INFO(task);
        const ClassifySettings s = tiny_classify(task);
        const TemporaryFolder folder;
        const std::vector<char> straight = trained(s, folder.file("straight"), 8);
        const std::vector<char> half = trained(s, folder.file("halves"), 4);
        CHECK(straight != half);
        CHECK(straight == trained(s, folder.file("halves"), 8));
    }
    const TemporaryFolder folder;
    trained(tiny_classify(files.path), folder.file("run"), 2);
    files.write("a/1", "another size by far");
    CHECK_THROWS_WITH_AS(trained(tiny_classify(files.path), folder.file("run"), 4), doctest::Contains("have changed"),
                         BadInput);
}

TEST_CASE("classify run: a file that is edited is noticed, where it is trained on and where it is measured") {
    const TemporaryFolder files, folder;
    for (const char* kind : {"a", "b"}) {
        std::filesystem::create_directory(files.file(kind));
        for (int i = 0; i < 40; i++) files.write(text(kind, "/", i), text(kind, " text ", i, kind));
    }
    trained(tiny_classify(files.path), folder.file("run"), 2);
    TextOrigin origin;
    load_run<ClassifyRun>(folder.file("run"))->complete(origin);
    CHECK(origin.file == files.path);
    CHECK(read_again(origin).origin.hash == origin.hash);  // the folder is not read as a text
    folder.write("run/run.json", nlohmann::json{{"data", json_of(origin)}}.dump());
    CHECK(load_run<ClassifyRun>(folder.file("run"))->measures(4)[0].key == "loss");
    files.write("a/1", "a text 1b");  // another content with the same number of bytes
    const auto run = load_run<ClassifyRun>(folder.file("run"));
    CHECK_THROWS_WITH_AS(run->measures(4), doctest::Contains("have changed since the run was started"), BadInput);
    CHECK_THROWS_WITH_AS(run->task({}), doctest::Contains("have changed since the run was started"), BadInput);
    folder.write("run/run.json", "{}");  // an older version, which stored no hash of the contents
    CHECK(load_run<ClassifyRun>(folder.file("run"))->measures(4)[0].key == "loss");
}

TEST_CASE("classify run: a folder that is named from here is found from elsewhere") {
    ClassifySettings s;
    Config keys;
    s.declare(keys);
    keys.set("task=tests");
    CHECK(s.task.task == std::filesystem::absolute("tests"));
    keys.set("task=recall");
    CHECK(s.task.task == "recall");
    keys.set("task", "/caf\xE9");
    CHECK_NOTHROW(keys.to_json().dump());
    s.task.task = "";
    keys.from_json({{"task", "file:///caf%E9"}}, "config.json");
    CHECK(s.task.task == "/caf\xE9");
    CHECK_THROWS_AS(keys.set("task="), BadUsage);
}

TEST_CASE("classify run: batches hold the examples' rows and questions, and fill the tokens") {
    const ClassifySettings s = tiny_classify("recall");
    const ClassifyRun run(s, learn_vocabulary(s, {}));
    const std::vector<Solved> some = run.examples(5);
    REQUIRE(some.size() == 7);  // each has 17 rows, and 7 fit into 120
    CHECK(some[1].tokens == run.source->example(6, false).tokens);
    const std::vector<Sentence> read = run.sentences(some, 5);
    const Batch b = run.batch(pointers_to(read), 64);
    CHECK(b.rows.count() % 64 == 0);
    CHECK(b.labels.count == 21);
    CHECK(b.labels.rows[3] == 17 + some[1].rows[0]);
    CHECK(b.labels.tokens[3] == some[1].answers[0]);
    CHECK(b.rows.document[17] == 6);
    CHECK(b.rows.positions[18] == 1);
    CHECK(b.scored_graph.queries.empty());  // questions may be in any row
    const ClassifySettings l = tiny_classify("listops_mini");
    const ClassifyRun lists(l, learn_vocabulary(l, {}));
    const std::vector<Sentence> some_lists = lists.sentences(lists.examples(0), 0);
    CHECK(!lists.batch(pointers_to(some_lists), 64).scored_graph.queries.empty());
    CHECK_THROWS_WITH_AS(ClassifyRun(l, learn_vocabulary(s, {})), doctest::Contains("is not that of task listops_mini"),
                         BadInput);
}

TEST_CASE("classify run: a change where the mask does not look changes no answer") {
    ClassifySettings s = tiny_classify("listops_mini");
    s.model.dropout = 0;
    const auto losses = [](ClassifyRun& run, const std::vector<Solved>& some) {
        Arena arena;
        Tape tape(arena, DType::f32);
        tape.begin("test");
        const std::vector<Sentence> read = run.sentences(some, 0);
        const Batch b = run.batch(pointers_to(read), 1);
        const std::vector<char> bits = bits_of(run.model.hidden(tape, b)->view());
        tape.end();
        return bits;
    };
    for (const char* mask : {"", "A full; B causal | layers -1: A causal", "A none"}) {
        s.mask = mask;
        ClassifyRun run(s, learn_vocabulary(s, {}));
        std::vector<Solved> some = run.examples(0);
        const std::vector<char> before = losses(run, some);
        some[0].tokens.back() = first_word;
        CHECK((before == losses(run, some)) == (s.mask == "A none"));
    }
}

TEST_CASE("classify run: recall of two pairs is learned, the loss is that of the answers, and baselines stay behind") {
    ClassifySettings s = tiny_classify("recall");
    s.task.pairs = 2;
    s.task.length = 10;
    s.task.vocabulary = 8;
    s.model.width = 32;
    s.model.inner = 64;
    s.model.dropout = 0;
    s.batch_tokens = 1000;
    s.train.learning_rate = 5e-3;
    s.train.warmup = 20;
    s.train.schedule_start = 300;
    s.train.schedule_steps = 400;
    const TemporaryFolder folder;
    trained(s, folder.file("run"), 400);
    const auto run = load_run<ClassifyRun>(folder.file("run"));
    CHECK(measured(*run, "accuracy", 300) > 95);
    CHECK(measured(*run, "loss", 300) < 0.3);
    CHECK(measured(*run, "baseline.majority", 300) < 40);
    CHECK(measured(*run, "questions", 300) == 600);
    CHECK(run->measures(10)[0].key == "loss");
}
