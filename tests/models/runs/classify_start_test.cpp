// SPDX-License-Identifier: MIT
// Tests classification runs that start with a stack that was trained on something else: with runs of every family, and
// with a BERT.
#include <doctest/doctest.h>

#include "models/runs/classify_run.h"
#include "models/runs/start.h"
#include "models/runs/training.h"
#include "tests/models/runs/tiny_family.h"
#include "tests/train/tiny_run.h"

using namespace masquerade;

namespace {

struct TextFiles : TemporaryFolder {
    TextFiles() {
        for (const char* kind : {"a", "b"}) {
            std::filesystem::create_directory(file(kind));
            for (int i = 0; i < 40; i++)
                write(text(kind, "/", i), text(grammar_questions(std::uint64_t(i + 1), 1)[0], "\nthe ", kind));
        }
    }
};

// Trains two steps. `words` are the settings.
void train(const std::vector<std::string>& words, const std::string& data, const std::string& initial,
           const std::string& out, const std::string& vocabulary = "") {
    NewTraining wanted;
    wanted.words = words;
    wanted.data = data, wanted.initial = initial, wanted.out = out, wanted.vocabulary = vocabulary;
    Training training(wanted);
    training.options.steps = 2, training.options.minutes = 0;
    training.trainer().quiet = true;
    training.trainer().run(never);
}

// Returns a classification that starts with `initial`, before its first step; `said` is its description.
std::unique_ptr<ClassifyRun> begun(const std::string& initial, ClassifySettings s, std::string& said,
                                   const std::function<void(ClassifySettings&)>& change) {
    const auto start = Start::open(initial);
    start->adopt(s);
    change(s);
    start->extend(s, s.task.task);
    auto run = std::make_unique<ClassifyRun>(s, start->tokenizer().vocabulary());
    said = start->give_weights(*run);
    return run;
}

bool same(const Parameters& a, const Parameters& b, const std::string& path) {
    return bits_of(a.master(*a.find(path))) == bits_of(b.master(*b.find(path)));
}

}  // namespace

TEST_CASE("classify start: every family of one stack gives its layers and its words, and the head is new") {
    const TextFiles texts;
    const TemporaryFolder folder;
    std::string lines;
    for (const std::string& line : grammar_questions(3, 100)) lines += line + "\t" + line + "\n";
    folder.write("pairs", lines);
    int started = 0;
    for (const Family& kind : families()) {
        if (kind.reads == TextKind::none) continue;
        CAPTURE(std::string(kind.name));
        std::vector<std::string> words = {kind.name,  "width=16",       "heads=2",          "inner=32",     "layers=3",
                                          "warmup=1", "vocabulary=120", "batch_tokens=200", "precision=f32"};
        if (kind.name == std::string("univae")) words.push_back("latent_layers=1");
        if (kind.name == std::string("insertion")) words.push_back("objective=insertion-one-stack");
        const std::string path = folder.file(kind.name);
        train(words, folder.file("pairs"), "", path);
        const std::unique_ptr<Run> theirs = kind.load(path, false, Device::cpu);
        std::string said;
        if (theirs->stacks().decoder) {
            CHECK_SAYS(message_of<BadInput>([&] { begun(path, {}, said, [](auto&) {}); }), "this model is one stack");
            continue;
        }
        started++;
        const auto reads_words = [&](ClassifySettings& s) { s.task.task = texts.path, s.task.tokens = "words"; };
        const auto run = begun(path, {}, said, reads_words);
        CHECK_SAYS(said, "all 3 layers, embedding; new: head");
        CHECK_SAYS(said, "; 2 tokens that it does not know");
        CHECK(same(run->parameters, theirs->parameters, "layer.2.ffn.up.weight"));
        const int V = theirs->tokenizer.vocabulary().size();
        REQUIRE(run->tokenizer.vocabulary().size() == V + 2);
        const Tensor* rows = run->parameters.find("embedding.token.weight");
        const Tensor* had = theirs->parameters.find("embedding.token.weight");
        for (int i = 0; i < V * 16; i++)
            REQUIRE(number_at(run->parameters.master(*rows), i) == number_at(theirs->parameters.master(*had), i));
        const Solved example = run->source->example(0, true);
        CHECK(example.answers[0] >= V);
        const std::string read = run->decode({example.tokens.begin() + 1, example.tokens.end() - 1});
        CHECK(read.find(" the " + std::string(example.answers[0] == V ? "a" : "b")) != read.npos);

        // If the task reads bytes, only the special tokens are known. All other tokens belong to the task and are new.
        begun(path, {}, said, [&](ClassifySettings& s) { s.task.task = texts.path; });
        CHECK_SAYS(said, "all 3 layers, embedding; new: head");
        CHECK_SAYS(said, text("; 5 of ", V, " tokens; 258 tokens that it does not know"));
    }
    CHECK(started == 3);
}

TEST_CASE("classify start: a run that reads words is trained, resumed, measured, and starts another with its head") {
    const TextFiles texts;
    const TemporaryFolder folder;
    const std::string bert = "tests/golden/hugging_face/bert_google", first = folder.file("first"),
                      task = "task=" + texts.path;
    train({"classify", task, "tokens=words", "max_length=12", "precision=f32"}, "", bert, first);
    const auto run = load_run<ClassifyRun>(first);
    CHECK(run->settings.model.positions >= 12);
    CHECK(run->tokenizer.vocabulary().size() == Start::open(bert)->tokenizer().vocabulary().size() + 2);
    CHECK(run->measures(4)[0].key == "loss");
    CHECK(run->source->longest == 12);
    CHECK(run->source->counts().cut > 0);
    Training again(first, {}, Device::cpu);
    again.options.steps = 3, again.options.minutes = 0;
    again.trainer().quiet = true;
    again.trainer().run(never);

    std::string said;
    begun(first, {}, said,
          [&](ClassifySettings& s) { s.task.task = texts.path, s.task.tokens = "words", s.task.max_length = 12; });
    CHECK(said.find("new") == said.npos);
    CHECK_NOTHROW(train({"classify", task, "tokens=words", "max_length=12", "layers=1", "width=16"}, "", "",
                        folder.file("vocabulary"), bert));
}

TEST_CASE("classify start: a task with its own words takes a stack of another, and words need a vocabulary") {
    const TextFiles texts;
    const TemporaryFolder folder;
    train({"classify", "task=recall", "width=16", "layers=2", "batch_tokens=200", "precision=f32"}, "", "",
          folder.file("recall"));
    std::string said;
    begun(folder.file("recall"), {}, said, [](ClassifySettings& s) { s.task.task = "listops_mini"; });
    CHECK_SAYS(said, "all 2 layers, embedding; new: head; 5 of ");
    begun(folder.file("recall"), {}, said, [](ClassifySettings& s) { s.task.task = "recall", s.task.vocabulary = 80; });
    CHECK_SAYS(said, "all 2 layers, embedding, head");

    CHECK_SAYS(message_of<BadUsage>([&] {
                   train({"classify", "task=" + texts.path, "tokens=words"}, "", "", folder.file("none"));
               }),
               "give --init or --vocab");
    CHECK_SAYS(message_of<BadUsage>([&] {
                   train({"classify", "tokens=words"}, "", "", folder.file("none"));
               }),
               "only a folder of texts");
    ClassifySettings s;
    s.task.task = texts.path, s.task.tokens = "words";
    CHECK_SAYS(message_of<BadInput>([&] { ClassifyRun(s, train_vocabulary(grammar_questions(3, 50), 100)); }),
               "the vocabulary has no =a, an answer of task");
}
