// SPDX-License-Identifier: MIT
// Tests training on a packed text: in every family that reads text, it has the bits of training on the same text in
// memory, also if the run is resumed, and if another thread makes the batches. Contradictions between a packed text and
// the options of a run are refused.
#include <doctest/doctest.h>

#include <fstream>

#include "data/text.h"
#include "tests/data/packed.h"
#include "tests/folder.h"
#include "tests/models/runs/tiny_family.h"
#include "tests/train/tiny_run.h"
#include "models/runs/sentence_task.h"
#include "models/runs/training.h"

using namespace masquerade;

namespace {

// Writes a text, its vocabulary and its packed form into a folder.
struct TextFiles {
    TemporaryFolder folder;
    std::string file, vocabulary, packed;
    explicit TextFiles(bool pairs) {
        const std::vector<std::string> lines = grammar_questions(3, 260);
        std::string all;
        for (std::size_t i = 0; i + 1 < lines.size(); i++)
            all += lines[i].substr(0, i % 3 ? 14 : lines[i].size()) + (pairs ? "\t" + lines[i + 1] : "") + "\n";
        file = folder.write("text", all);
        const Vocabulary learned = train_vocabulary(lines, 150);
        vocabulary = folder.write("vocab.txt", "");
        write_file(vocabulary, learned.lines());
        packed = folder.file("packed");
        pack(packed, WordPiece(learned, {}), file);
    }
};

// Returns the name of the family and the settings of a tiny model, as words of ./train.
Strings words_of(const Family& kind, const Strings& more) {
    Strings words = {kind.name};
    const auto settings = tiny(kind), defaults = kind.settings();
    Config keys, others;
    settings->declare(keys);
    defaults->declare(others);
    for (const std::string& key : keys.keys())
        if (keys.value(key) != others.value(key)) words.push_back(key + "=" + keys.value(key));
    words.push_back("precision=f32");
    words.insert(words.end(), more.begin(), more.end());
    return words;
}

// If `ahead` is true, the batch of the next step is made by another thread, as on a GPU.
void train_to(Training& training, std::int64_t steps, bool ahead = false) {
    auto* const task = dynamic_cast<SentenceTask*>(training.task.get());
    REQUIRE(task);
    CHECK(!task->ahead);
    task->ahead = ahead;
    training.options.steps = steps;
    training.options.minutes = 0;
    training.trainer().quiet = true;
    training.trainer().run(never);
}

std::string text_of(const std::vector<std::uint64_t>& place) {
    std::string all;
    for (const std::uint64_t number : place) all += std::to_string(number) + "\n";
    return all;
}

// Returns the log of a run without clock times.
std::string log_of(const std::string& run) {
    std::ifstream log(run + "/log.jsonl");
    std::string all;
    for (std::string line; std::getline(log, line);) {
        const std::size_t at = line.find("\"seconds\"");
        all += at == line.npos ? line : line.substr(0, at) + line.substr(line.find_first_of(",}", at));
    }
    return all;
}

}  // namespace

TEST_CASE("packed run: every family trains on a packed text to the bits of the text in memory, and resumes so") {
    for (const Family& kind : families()) {
        if (kind.reads == TextKind::none) continue;
        const std::string name = kind.name;
        std::vector<Strings> variants = {{}};
        if (name == "univae")
            variants = {{"prior_sentences=30"}, {"pairs=true"}, {"decoder=insertion"}, {"decoder=diffusion"}};
        if (name == "insertion") variants = {{}, {"order=frequency"}};
        if (name == "unilm") variants = {{}, {"objective=lm"}, {"objective=mlm"}};
        for (const bool pairs : {false, true})
            for (const Strings& more : variants) {
                if (!pairs && (only_pairs(tiny(kind)->wants(kind.reads)) || joined(more) == "pairs=true" ||
                               (name == "unilm" && more.empty())))
                    continue;
                CAPTURE(name);
                CAPTURE(joined(more));
                CAPTURE(pairs);
                const TextFiles texts(pairs);
                const auto run = [&](const std::string& out, const std::string& data, const std::string& vocabulary,
                                     std::int64_t steps, bool ahead) {
                    NewTraining wanted;
                    wanted.words = words_of(kind, more);
                    wanted.data = data, wanted.vocabulary = vocabulary, wanted.out = texts.folder.file(out);
                    Training training(wanted);
                    train_to(training, steps, ahead);
                    return bits_of(training.run->parameters.values());
                };
                const std::vector<char> expected = run("memory", texts.file, texts.vocabulary, 14, false);
                CHECK(run("packed-run", texts.packed, "", 14, true) == expected);
                CHECK(log_of(texts.folder.file("packed-run")) == log_of(texts.folder.file("memory")));
                run("halves", texts.packed, "", 5, true);
                Training rest(texts.folder.file("halves"), {});
                train_to(rest, 14, true);
                CHECK(bits_of(rest.run->parameters.values()) == expected);
                if (const std::string prior = "/step-000014/prior.safetensors";
                    std::filesystem::exists(texts.folder.file("memory") + prior))
                    CHECK(read_bytes(texts.folder.file("memory") + prior) ==
                          read_bytes(texts.folder.file("halves") + prior));
                else
                    CHECK(joined(more) != "prior_sentences=30");
            }
    }
}

// A run of mlm on sentences.
struct OnSentences {
    TrainingText text = text_for(TextKind::sentences);
    std::unique_ptr<Run> run;
    OnSentences() {
        const auto settings = tiny(find_family("unilm"));
        Config keys;
        settings->declare(keys);
        keys.set("objective=mlm");
        run = find_family("unilm").fresh(*settings, train_vocabulary(text.train, 200), DType::f32, Device::cpu);
    }
};

TEST_CASE("batches ahead: steps out of order, and a position, have the batches that one thread makes") {
    const auto batches = [](bool ahead) {
        const OnSentences tiny;
        const std::unique_ptr<Task> task = tiny.run->task(tiny.text);
        dynamic_cast<SentenceTask&>(*task).ahead = ahead;
        std::string all;
        for (const int step : {0, 1, 7, 7, 3}) {
            task->next_batch(step);
            all += task->first_documents(200) + text_of(task->place());
        }
        task->move_to({1, 5});
        task->next_batch(4);
        return all + task->first_documents(200) + text_of(task->place());
    };
    CHECK(batches(true) == batches(false));
}

TEST_CASE("batches ahead: an error of the other thread is that of the step whose batch it makes") {
    struct Failing : SentenceTask {
        Failing(Run& run, std::vector<Sentence> train)
            : SentenceTask(run, in_memory(std::move(train)), {},
                           {[](const Sentences&, std::uint32_t step) {
                                if (step == 2) throw BadInput("no batch of step 2");
                                return Batch();
                            },
                            [](const Sentence& s, std::uint32_t) { return s.size(); }}) {
            ahead = true;
        }
        Tensor* loss(Tape&, std::int64_t, std::int64_t) override { return nullptr; }
    };
    const OnSentences tiny;
    Failing task(*tiny.run, encode_lines(tiny.run->tokenizer, tiny.text.train, 16));
    task.next_batch(0);
    task.next_batch(1);
    const std::vector<std::uint64_t> place = task.place();
    CHECK_SAYS(message_of<BadInput>([&] { task.next_batch(2); }), "no batch of step 2");
    CHECK(task.place() == place);
    task.next_batch(3);
    task.next_batch(1);  // the batch of step 2, which the other thread now makes, is never asked for
}

TEST_CASE("packed run: what contradicts the packed text is refused") {
    const TextFiles texts(false);
    const auto refused = [&](const Strings& words, const std::string& vocabulary = "", const std::string& initial = "",
                             const std::string& out = "refused") {
        return message_of<BadUsage>([&] {
            NewTraining wanted;
            wanted.words = words_of(find_family("unilm"), words);
            wanted.data = texts.packed, wanted.vocabulary = vocabulary, wanted.initial = initial;
            wanted.out = texts.folder.file(out);
            Training training(wanted);
            train_to(training, 1);
        });
    };
    CHECK_SAYS(refused({"objective=lm"}, texts.vocabulary), "leave out --vocab");
    CHECK_SAYS(refused({"objective=lm", "cased=true"}), "was packed with another vocabulary or other rules");
    CHECK(refused({"objective=lm"}, "", "", "first") == "");
    const std::string first = texts.folder.file("first");
    CHECK(refused({"objective=lm"}, "", first, "second") == "");  // has the vocabulary of the packed text
    CHECK_SAYS(refused({"objective=lm", "keep_tokens=true"}, "", first), "was packed with another vocabulary");
    CHECK_SAYS(message_of<BadInput>([&] { refused({"objective=lm-target"}); }), "needs pairs, and ");
    // A run with another vocabulary
    NewTraining other;
    other.words = words_of(find_family("unilm"), {"objective=lm", "vocabulary=100"});
    other.data = texts.file, other.out = texts.folder.file("other");
    {
        Training training(other);
        train_to(training, 1);
    }
    CHECK_SAYS(refused({"objective=lm"}, "", texts.folder.file("other")), "was packed with another vocabulary");
}
