// SPDX-License-Identifier: MIT
#include "models/runs/classify_run.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "engine/base/named.h"
#include "engine/base/processes.h"
#include "engine/tensor/numbers.h"
#include "models/runs/numbered_task.h"
#include "models/runs/origin.h"
#include "models/runs/sentence_task.h"
#include "models/tasks/batch_parts.h"

namespace masquerade {
namespace {

class ClassifyTask : public NumberedTask {
  public:
    explicit ClassifyTask(ClassifyRun& run) : NumberedTask(run, "example"), run_(run) {}

    std::string next_batch(std::int64_t) override {
        const std::vector<Solved> some = run_.examples(next());
        const StoredSentences all = run_.sentences(some, next());
        batch_ = BatchParts(pointers_to(all), run_.settings.train.parts,
                            [&](const Sentences& part) { return run_.batch(part, 64); });
        tokens_ = 0;
        for (const Sentence& s : all) tokens_ += s.ids.size();
        advance(some.size());
        return batch_.bucket();
    }
    int parts() const override { return batch_.count(); }
    std::string next_part() override { return batch_.next(); }
    Tensor* loss(Tape& tape, std::int64_t, std::int64_t) override { return run_.model.loss(tape, batch_.now()).total; }
    std::int64_t batch_tokens() const override { return tokens_; }
    Strings warnings() const override {
        const ReadCounts counts = run_.source->counts();
        Strings all;
        add_cut_warning(all, counts, "files", run_.settings.task.reads_words() ? "tokens" : "bytes",
                        {"max_length", run_.settings.task.max_length});
        add_unknown_warning(all, counts);
        return all;
    }
    std::string first_documents(int columns) const override {
        return batch_in_words(batch_.all()[0], run_.tokenizer.vocabulary(), columns);
    }

  private:
    std::uint64_t hash() const override { return run_.source->hash(); }
    std::string changed() const override {
        return text("the files of ", run_.settings.task.task, " have changed since the run was started");
    }
    // Long examples take long, so fewer of them are measured. Their number is 200,000 divided by the maximum length of
    // an example, but at least 100, and never more than the setting held_out.
    MeasureRows measured() const override {
        return run_.measures(std::min(std::max(200000 / run_.source->longest, 100), run_.settings.held_out));
    }

    ClassifyRun& run_;
    BatchParts batch_;
    std::int64_t tokens_ = 0;  // tokens of all parts, without padding
};

}  // namespace

ClassifySettings::ClassifySettings() {
    batch_tokens = 4096;
    model.width = 64;
    model.heads = 4;
    model.inner = 256;
    model.layers = 4;
    model.types = 1;
    model.positions = 0;
    model.pre_norm = true;
    model.deviation = 0.05;
    train.learning_rate = 2e-3;
    train.warmup = 500;
}

void ClassifySettings::declare(Config& c) {
    c.topic("Task");
    c.add_path(
        "task", &task.task,
        "what is learned, on generated examples: " + described(task_kinds()) +
            ". Or PATH, texts of your own: a folder with a folder of text files for each class; the settings of this "
            "task are marked \"files:\". docs/classify.md has examples",
        names_of(task_kinds()));
    c.add("pairs", &task.pairs, "recall: number of key-value pairs", 1, 65536);
    c.add("length", &task.length,
          "recall, induction: number of words of an example; copy: number of words that are copied", 1, 65536);
    c.add("vocabulary", &task.vocabulary,
          "recall, copy, induction: number of different words; in recall half of them are keys", 2, 65536);
    c.add("dashes", &task.dashes, "pathfinder: dashes of a curve; 6, 9 and 14 are easy, medium and hard", 1, 14);
    c.add("side", &task.side, "pathfinder: width and height of the picture, in pixels (128 in the benchmark Path-X)",
          16, 256);
    c.add("levels", &task.levels, "pathfinder: levels of grey", 4, 256);
    c.add("paired", &task.paired,
          "files: PATH has two folders, which are not classes here; an example is one text from each folder, and the "
          "model learns whether both belong together; two texts belong together if their files have the same name");
    c.add("max_length", &task.max_length, "files: bytes or tokens that are read of each file; the rest is cut", 1,
          65536);
    c.add("tokens", &task.tokens,
          "files: read as bytes, or as words: tokens of the vocabulary of --init or --vocab (see ./train --help-all), "
          "with [CLS] and [SEP]",
          {"bytes", "words"});
    c.add("cased", &cased, "files, tokens=words: keep case and accents");
    declare_mask(c);
    declare_backbone(c, model);
    declare_foreign(c, model);
    declare_positions(c, model, "the longest example needs");
    c.topic("Optimiser");
    c.add("batch_tokens", &batch_tokens, "tokens of a batch", 2, 1000000);
    c.topic("Run");
    c.add("held_out", &held_out, "maximum number of held-out examples measured at a checkpoint; fewer if they are long",
          1, 100000000);
    declare_training(c);
}

BackboneOptions ClassifySettings::net(int vocabulary_size) const {
    BackboneOptions o = model;
    o.vocabulary = vocabulary_size;
    o.positions = std::max(o.positions, open_examples(task, train.seed)->longest);
    return o;
}

ClassifyRun::ClassifyRun(const ClassifySettings& s, Vocabulary v, DType storage, Device device,
                         const TensorFile* weights)
    : RunOf(s, std::move(v), storage, device, weights), source(open_examples(s.task, s.train.seed, &tokenizer)) {
    options_.masks = std::make_shared<const LayerMasks>(s.mask, s.model.layers);
    options_.example_mask = std::make_shared<const MaskWords>(source->mask);
    if (Vocabulary(source->vocabulary).lines() != tokenizer.vocabulary().lines())
        throw BadInput("the vocabulary is not that of task ", s.task.task, "; have its folders changed?");
}

std::unique_ptr<Task> ClassifyRun::task(const TrainingText&) {
    expect_same_files();
    return std::make_unique<ClassifyTask>(*this);
}

void ClassifyRun::complete(TextOrigin& origin) const {
    if (source->contents() == 0) return;
    origin.name = "files of " + settings.task.task;
    origin.file = std::filesystem::absolute(settings.task.task).string();
    origin.hash = source->contents();
}

void ClassifyRun::loaded(const nlohmann::json& record) { files_hash_ = file_hash(record); }

void ClassifyRun::expect_same_files() const {
    if (files_hash_ != 0 && files_hash_ != source->contents())
        throw BadInput("the files of ", settings.task.task,
                       " have changed since the run was started: restore the old files, ",
                       "or train on the new ones from the start");
}

std::string ClassifyRun::description() const {
    const BackboneOptions& b = model.backbone.options;
    return text(b.layers, " layers of width ", b.width, ", ", b.attention, " attention, task ", source->name);
}

std::vector<Solved> ClassifyRun::examples(std::uint64_t first) const {
    std::vector<Solved> some;
    for (std::size_t used = 0;; first++) {
        Solved s = source->example(first, false);
        used += s.tokens.size();
        if (!some.empty() && used > std::size_t(settings.batch_tokens)) break;
        some.push_back(std::move(s));
    }
    return some;
}

StoredSentences ClassifyRun::sentences(const std::vector<Solved>& some, std::uint64_t first) const {
    StoredSentences all;
    for (const Solved& s : some) {
        Sentence& sentence = all.emplace_back();
        sentence.name = int(first++ % 0x70000000);
        sentence.ids = s.tokens, sentence.asked = s.rows, sentence.target = s.answers;
    }
    return all;
}

Batch ClassifyRun::batch(const Sentences& some, int pad_to) const {
    return question_objectives()[source->scattered].batch(some, 0, options_, pad_to);
}

MeasureRows ClassifyRun::measures(std::uint64_t count) {
    expect_same_files();
    count = std::min(count, source->held_out());
    const Backbone& stack = model.backbone;
    const int words = tokenizer.vocabulary().size();
    std::vector<Solved> all;
    for (std::uint64_t i = 0; i < count; i++) all.push_back(source->example(i, true));
    const StoredSentences read = sentences(all, 0);
    Numbers own_losses, own_right;  // for each question of this process, the loss, and 1 if the answer is right
    const auto make = [&](const Sentences& some) { return batch(some, 1); };
    each_own_batch(stack, pointers_to(read), 64, make, [&](Tape& tape, const Batch& b, std::size_t) {
        tape.begin("evaluate");
        Tensor* h = model.hidden(tape, b);
        const Numbers losses = numbers_of(stack.token_losses(tape, h, b.labels.tokens)->view()),
                      logits = numbers_of(stack.logits(tape, h)->view());
        for (int m = 0; m < b.labels.count; m++) {
            const auto row = logits.begin() + m * words;
            own_losses.push_back(losses[m]);
            own_right.push_back(std::max_element(row, row + words) - row == b.labels.tokens[m]);
        }
        tape.end();
    });
    const Numbers losses = gather_numbers(own_losses), right = gather_numbers(own_right);
    const double questions = losses.size();
    if (measured_ != count) {
        baselines_.clear();
        for (const Baseline& b : source->baselines(all))
            baselines_.push_back({"baseline." + b.name, 100 * b.right, "%", b.what});
        measured_ = count;
    }
    MeasureRows measured = {{"loss", sum_of(losses) / questions, "nats/question", "cross-entropy"},
                            {"accuracy", 100 * sum_of(right) / questions, "%", "questions answered right"}};
    append(measured, baselines_);
    measured.push_back({"questions", questions, "", text("of ", count, " held-out examples")});
    return measured;
}

Measures ClassifyRun::measures(const Measuring& how) {
    if (!how.data.empty()) throw BadUsage("--data: ", how.run, " is measured on examples of its task");
    return {{}, {}, measures(how.limit)};
}

// A line is read as if it were a file. The states are computed with the attention mask of the examples.
Vectors ClassifyRun::vectors(const Strings& lines, const VectorChoice& which) const {
    if (which.drawn || source->tokens_of("").empty()) return {};
    StoredSentences all;
    for (const std::string& line : lines) all.emplace_back().ids = source->tokens_of(line);
    const Objective& objective = question_objectives()[source->scattered];
    const auto make = [&](const Sentences& some) {
        std::vector<Example> examples;
        for (const Sentence* s : some) examples.push_back(objective.make(*s, 0, options_));
        Batch b = pack(examples, 0);
        objective.give_masks(b, options_);
        return b;
    };
    const Backbone& stack = model.backbone;
    return state_vectors(which.state, stack, pointers_to(all), make,
                         [&](Tape& tape, const Batch& b) { return stack.finish(tape, run_rows(tape, stack, b)); });
}

}  // namespace masquerade
