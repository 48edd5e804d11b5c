// SPDX-License-Identifier: MIT
#include "data/training_text.h"

#include <cmath>
#include <filesystem>

#include "data/corpus.h"
#include "data/grammar.h"
#include "data/held_out.h"
#include "data/text.h"
#include "engine/base/clock.h"
#include "engine/base/error.h"
#include "engine/base/log.h"
#include "engine/base/random.h"

namespace masquerade {
namespace {

// Moves some of the training lines to the held-out lines.
void hold_out(TrainingText& t) {
    Strings kept, kept_targets;
    const auto add = [&](HeldOutLines::Line line, Strings& sources, Strings& targets) {
        sources.push_back(std::move(line.source));
        if (t.origin.pairs) targets.push_back(std::move(line.target));
    };
    HeldOutLines chosen([&](HeldOutLines::Line line) { add(std::move(line), kept, kept_targets); });
    for (std::size_t i = 0; i < t.train.size(); i++)
        chosen.add(std::move(t.train[i]), t.origin.pairs ? std::move(t.train_targets[i]) : "");
    for (HeldOutLines::Line& line : chosen.finish()) add(std::move(line), t.held_out, t.held_out_targets);
    t.train = std::move(kept);
    t.train_targets = std::move(kept_targets);
    t.warning = chosen.warning();
}

void set_held_out(TrainingText& t, Text held_out) {
    t.held_out = std::move(held_out.source);
    if (t.origin.pairs) t.held_out_targets = std::move(held_out.target);
}

void read_held_out(TrainingText& t, const std::string& file) {
    t.origin.held_out_file = std::filesystem::absolute(file).string();
    Text held_out = read_text(file);
    t.origin.held_out_hash = held_out.hash;
    if (t.origin.pairs && held_out.target.empty())
        throw BadInput(file, " holds no pairs, but ", t.origin.file,
                       " does; expected source<TAB>target on every line of both");
    set_held_out(t, std::move(held_out));
}

// Reads a text or opens a packed text, whose ids are read in training.
TrainingText text_of(const std::string& name, const std::string& file, const std::string& held_out_file,
                     TextKind wanted) {
    TrainingText t;
    t.origin.name = name;
    t.origin.file = std::filesystem::absolute(file).string();
    if (PackedText::is_at(file)) t.packed = std::make_shared<const PackedText>(file);
    Text read = t.packed ? Text() : read_text(file);
    const bool targets = t.packed ? t.packed->pairs() : !read.target.empty();
    t.origin.lines = t.packed ? t.packed->lines() : read.counts.lines;
    t.origin.hash = t.packed ? t.packed->hash() : read.hash;
    t.origin.pairs = wanted != TextKind::sentences && targets;
    t.sources_alone = targets && !t.origin.pairs;
    t.train = std::move(read.source);
    if (t.origin.pairs) t.train_targets = std::move(read.target);
    if (!held_out_file.empty())
        read_held_out(t, held_out_file);
    else if (t.packed)
        set_held_out(t, t.packed->held_out());
    else
        hold_out(t);
    return t;
}

// Returns questions of the built-in grammar, divided into training and held-out lines. If held_out_file is not empty,
// the lines of this file replace the held-out lines; the training lines stay the same.
TrainingText grammar_text(const std::string& held_out_file) {
    TrainingText t;
    t.origin.name = "built-in grammar of questions";
    t.train = grammar_questions(1, 12000);
    t.origin.lines = t.train.size();
    hold_out(t);
    if (!held_out_file.empty()) read_held_out(t, held_out_file);
    return t;
}

// Returns a text without lines, for a model that is trained on examples of a task or on vectors.
TrainingText no_text() {
    TrainingText t;
    t.origin.name = "examples of its task";
    return t;
}

// Returns the pairs that a task generates. The hash of all pairs is stored, so that read_again() can detect a later
// change of the task.
TrainingText made_text(const PairOptions& made) {
    TrainingText t;
    t.origin.name = text("made by task ", made.task);
    t.origin.pairs = true;
    t.origin.made = made;
    std::string all;
    constexpr std::uint64_t train = 50000, held_out = 5000;
    const double start = steady_seconds();
    bool slow = false;
    for (std::uint64_t i = 0; i < train + held_out; i++) {
        if (!slow && i % 64 == 0 && steady_seconds() - start > 3) {
            slow = true;
            log_line("note: the ", train + held_out, " pairs of task ", made.task,
                     " are made first, which takes about ",
                     std::ceil((steady_seconds() - start) * double(train + held_out) / double(i)), " seconds");
        }
        auto [source, target] = made_pair(made, i < train ? i : i - train, i >= train);
        all += source + '\t' + target + '\n';
        (i < train ? t.train : t.held_out).push_back(std::move(source));
        (i < train ? t.train_targets : t.held_out_targets).push_back(std::move(target));
    }
    t.origin.lines = t.train.size();
    t.origin.hash = hash_of(all);
    return t;
}

void expect_same(const std::string& file, std::uint64_t found, std::uint64_t expected) {
    if (found != expected)
        throw BadInput(
            file,
            " has changed since the run was started; expected the same text (./evaluate --data measures another one)");
}

}  // namespace

std::shared_ptr<const SentenceList> TrainingText::sentences(const WordPiece& tokenizer, int max_length, int max_target,
                                                            bool targets) const {
    if (packed) return sentences_of(packed, tokenizer.vocabulary(), targets && pairs(), max_length, max_target);
    return in_memory(encode_pairs(tokenizer, train, targets ? train_targets : Strings(), max_length, max_target));
}

TrainingText find_training_text(const std::string& file, const std::string& held_out_file, TextKind wanted,
                                const PairOptions& made) {
    if (wanted == TextKind::none || made.any()) {
        if (!file.empty() || !held_out_file.empty())
            throw BadUsage(
                "--data and --dev name texts, but this model generates its own examples or reads those of a setting "
                "(task=... or, for a flow, points=...): leave the options out");
        return made.any() ? made_text(made) : no_text();
    }
    if (!file.empty()) {
        TrainingText t = text_of(file, file, held_out_file, wanted);
        if (!t.warning.empty()) log_line("warning: ", t.warning);
        return t;
    }
    const bool here = std::filesystem::exists("corpus/SOURCE.json");
    const Corpus corpus = here ? read_corpus("corpus") : Corpus{};
    const bool has_pairs = !corpus.pairs[0].empty();
    const bool translated = wanted == TextKind::translations && !corpus.translations[0].empty();
    if (only_pairs(wanted) && !has_pairs && !translated)
        throw BadInput(here ? "the corpus/ here"
                            : "there is no corpus/ here (make data builds one), and the built-in grammar",
                       " holds no pairs; give --data FILE with source<TAB>target on every line");
    if (!here) {
        log_line("note: there is no corpus/ here (make data builds one): using questions from the built-in grammar");
        return grammar_text(held_out_file);
    }
    if (wanted == TextKind::translations && !translated)
        log_line(
            "note: corpus/ holds no translations: using its other pairs (make data FORCE=1 adds translations if the "
            "package lists have German descriptions)");
    const std::string* files = translated                                   ? corpus.translations
                               : wanted != TextKind::sentences && has_pairs ? corpus.pairs
                                                                            : corpus.sentences;
    return text_of(corpus.name + ", " + corpus.date, files[0], held_out_file.empty() ? files[1] : held_out_file,
                   wanted);
}

TrainingText read_again(const TextOrigin& origin) {
    if (origin.lines == 0) return TrainingText{origin, {}, {}, {}, {}};
    TrainingText t = origin.made.any()     ? made_text(origin.made)
                     : origin.file.empty() ? grammar_text(origin.held_out_file)
                                           : text_of(origin.name, origin.file, origin.held_out_file,
                                                     origin.pairs ? TextKind::pairs : TextKind::sentences);
    expect_same(origin.made.any() ? "task " + origin.made.task : origin.file, t.origin.hash, origin.hash);
    if (origin.held_out_hash != 0) expect_same(origin.held_out_file, t.origin.held_out_hash, origin.held_out_hash);
    return t;
}

TrainingText read_if_there(const TextOrigin& origin, const std::string& without) {
    try {
        return read_again(origin);
    } catch (const BadInput& e) {
        log_line("note: ", e.what(), "; ", without);
        return TrainingText{origin, {}, {}, {}, {}};
    }
}

}  // namespace masquerade
