// SPDX-License-Identifier: MIT
#include "models/runs/training.h"

#include <fmt/chrono.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <nlohmann/json.hpp>
#include <set>

#include "engine/base/log.h"
#include "engine/base/named.h"
#include "engine/base/processes.h"
#include "engine/base/version.h"
#include "engine/io/checkpoint.h"
#include "engine/io/checksum.h"
#include "engine/ops/cpu/gemm.h"
#include "input/input.h"
#include "models/masks/words.h"
#include "models/runs/origin.h"
#include "models/runs/start.h"
#include "tokenizer/hugging_face/hugging_face.h"
#include "tokenizer/trainer.h"

namespace masquerade {
namespace {

using nlohmann::json;

bool is_setting(const std::string& word) { return word.find('=') != std::string::npos; }

// Changes the settings of a resumed run by `words` (key=value). Returns the changed settings with their new values.
json changed(RunSettings& settings, const Strings& words) {
    static const Strings may_change = {"learning_rate",  "warmup",     "clip", "schedule_start",
                                       "schedule_steps", "save_every", "keep", "recompute"};
    Config keys;
    settings.declare(keys);
    json changes;
    for (const std::string& word : words) {
        const std::string key = word.substr(0, word.find('='));
        if (std::find(may_change.begin(), may_change.end(), key) == may_change.end())
            throw BadUsage("--resume keeps the settings of the run: ", key, " cannot be changed; only ",
                           joined(may_change), " can");
        keys.set(word);
        if (key.rfind("schedule_", 0) == 0 && keys.value(key) == "0")
            throw BadUsage(key, "=0 would keep the schedule of the run: leave it out, or give a step");
        changes[key] = keys.value(key);
    }
    return changes;
}

// Returns the tokenizer of the initial weights, of --vocab or of a packed text. Returns nothing if the user gives none.
std::optional<WordPiece> given_tokenizer(const NewTraining& wanted, Start* initial, HuggingFace brought,
                                         const Config& config, const RunSettings& settings, const TrainingText& text) {
    const Strings answers = settings.answers();
    if (settings.keep_tokens && !initial)
        throw BadUsage("keep_tokens makes the vocabulary of --init smaller, but there is no --init");
    if (initial) {
        if (settings.keep_tokens)
            initial->keep(text);
        else if (!answers.empty() || !settings.words().empty())
            initial->extend(settings, config.value("task"));
        return initial->tokenizer();
    }
    if (text.packed) return text.packed->tokenizer();
    if (wanted.vocabulary.empty() && !answers.empty())
        throw BadUsage("tokens=words reads texts by a vocabulary that exists: give --init or --vocab");
    if (wanted.vocabulary.empty()) return std::nullopt;
    if (settings.cased == brought.options.lower) brought = read_tokenizer(wanted.vocabulary, settings.cased);
    for (const std::string& note : brought.notes) log_line("note: ", wanted.vocabulary, ": ", note);
    expect_trainable(brought.vocabulary, wanted.vocabulary,
                     masquerade::text("(echo '[PAD]'; grep -vxF '[PAD]' ", shell_word(wanted.vocabulary),
                                      ") >new-vocab.txt"));
    const WordPiece reader = training_tokenizer(std::move(brought));
    if (answers.empty()) return reader;
    return with_tokens(reader, with_more(reader.vocabulary(), answers));
}

// Throws BadUsage if the run reads text in another way than the packed text was read.
void expect_same_reading(const WordPiece& run, const PackedText& packed, const std::string& name) {
    const auto reading = [](const WordPiece& t) {
        const WordPiece::Options& o = t.options();
        std::string added;
        for (const AddedToken& token : t.added())
            added += text(token.text, '\n', token.id, token.special, token.single_word, token.strip_left,
                          token.strip_right, token.normalised, token.beyond, '\n');
        return std::make_tuple(t.vocabulary().tokens(), added, o.rules, o.lower, o.strips(), o.clean,
                               o.split_ideographs, o.single_digits, o.replace, o.max_word, o.unknown);
    };
    if (reading(run) != reading(packed.tokenizer()))
        throw BadUsage("--data ", name, " was packed with another vocabulary or other rules than those of --init, ",
                       "keep_tokens= or cased=; expected the same: pack the text again with ./tokenize --pack");
}

// Opens the folder of a run that is resumed. Process 0 alone changes it; then the other processes read the same step.
RunFolder opened_to_resume(const std::string& path) {
    std::optional<RunFolder> first;
    if (first_process()) first.emplace(RunFolder::resume(path));
    const double step = from_first(first ? double(first->latest_step()) : 0);
    return first ? std::move(*first) : RunFolder::open(RunFolder::open(path).step_folder(std::int64_t(step)));
}

// Throws BadUsage if mask= or attention= has a range of layers that names no layer of the run. Only new runs are
// checked, so that all old runs can be loaded.
void expect_layers_of(const Run& run) {
    const Stacks stacks = run.stacks();
    std::vector<int> layers = {stacks.first.layers};
    if (stacks.decoder) layers.push_back(stacks.decoder->layers);
    if (stacks.none()) return;
    expect_layers("attention", stacks.first.attention, layers);
    expect_layers("mask", run.common().mask, layers);
}

// Adds the number of processes and of the machines that they run on.
void add_processes(json& record) {
    char name[256] = "";
    gethostname(name, sizeof name - 1);
    const Strings names = gather_messages(name);
    record["processes"] = names.size();
    record["hosts"] = std::set<std::string>(names.begin(), names.end()).size();
}

}  // namespace

Training::Training(const std::string& run_folder, const Strings& changes, Device device)
    : folder(opened_to_resume(run_folder)) {
    kind = &family_of_run(folder.path());
    run = kind->load(folder.path(), true, device);
    record_ = std::make_shared<json>(json{{"device", name_of(device)}});
    if (json made = changed(run->settings_to_change(), changes); !made.empty())
        (*record_)["settings"] = std::move(made);
    text = read_again(origin_of(run->run_json, folder.file("run.json")));
    task = run->task(text);
    options = run->common().train;
}

Training::Training(const NewTraining& wanted) : out_(wanted.out) {
    if (!out_.empty()) RunFolder::expect_free(out_);
    kind = &kind_of(wanted.words);
    const std::unique_ptr<RunSettings> settings = default_settings(*kind, wanted.device);
    const bool has_vocabulary = !wanted.vocabulary.empty();
    if (!wanted.initial.empty() && has_vocabulary) throw BadUsage("--init has its own vocabulary: leave out --vocab");
    const std::unique_ptr<Start> start = wanted.initial.empty() ? nullptr : Start::open(wanted.initial);
    if (start) start->adopt(*settings);
    const bool packed = !wanted.data.empty() && PackedText::is_at(wanted.data);
    if (packed && has_vocabulary)
        throw BadUsage("--data ", wanted.data, " is a packed text with its own vocabulary: leave out ",
                       "--vocab, or pack the text again with this vocabulary");
    if (packed && !start) settings->cased = PackedText(wanted.data).cased();
    HuggingFace brought;  // the tokenizer of --vocab
    if (has_vocabulary) {
        brought = read_tokenizer(wanted.vocabulary);
        settings->cased = !brought.options.lower;
    }
    Config config;
    settings->declare(config);
    if (!wanted.config.empty()) config.load(wanted.config);
    apply_words(*kind, wanted.words, config);

    PairOptions made = settings->made;
    made.seed = settings->train.seed;
    text = find_training_text(wanted.data, wanted.held_out, settings->wants(kind->reads), made);
    if (text.sources_alone)
        log_line("note: ", wanted.data, " holds pairs; only their sources are read (pairs=true reads both)");
    const bool brings_words = !settings->words().empty();
    if (has_vocabulary && brings_words)
        throw BadUsage("--vocab: the task of ", kind->name, " has its own vocabulary: leave out --vocab");
    if ((start || packed || has_vocabulary) && !brings_words)
        for (const std::string& word : wanted.words)
            if (word.rfind("vocabulary=", 0) == 0)
                log_line("note: ", word, " is ignored: no vocabulary is learned, because ",
                         start    ? "--init"
                         : packed ? "the packed text"
                                  : "--vocab",
                         " has one");
    const std::optional<WordPiece> reader =
        given_tokenizer(wanted, start.get(), std::move(brought), config, *settings, text);
    run = kind->fresh(*settings, reader ? reader->vocabulary() : learn_vocabulary(*settings, text), settings->precision,
                      wanted.device);
    if (!start) expect_layers_of(*run);  // the words that --init brings may name layers that this run leaves out
    if (reader) {
        WordPiece::Options how = reader->options();
        how.lower = !settings->cased;  // if the user did not set `cased`, it has the tokenizer's value
        run->tokenizer = WordPiece(reader->vocabulary(), how, reader->added());
    }
    if (text.packed) expect_same_reading(run->tokenizer, *text.packed, wanted.data);
    if (start) {
        initial = start->source();
        was_given = start->give_weights(*run);
    }
    task = run->task(text);
    run->complete(text.origin);
    json record = {{"model", kind->name},
                   {"version", version},
                   {"seed", settings->train.seed},
                   {"settings", config.to_json()},
                   {"data", json_of(text.origin)},
                   {"device", name_of(wanted.device)},
                   {"dtype", name_of(settings->precision)}};
    if (start) record["init"] = json_name(initial);
    if (start) record["init_weights"] = hexadecimal(checksum_of(run->parameters));
    record_ = std::make_shared<json>(std::move(record));
    options = run->common().train;
}

void Training::limit(std::int64_t steps, double minutes) {
    options.steps = steps;
    options.minutes = minutes >= 0 ? minutes : steps > 0 ? 0 : 10;
    options.to_schedule_end = resumed() && minutes < 0 && steps == 0;
}

Trainer& Training::trainer() {
    if (trainer_) return *trainer_;
    if (!command.empty()) (*record_)["command"] = command;
    if (!commit.empty()) (*record_)["commit"] = commit;
    (*record_)["date"] = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));  // UTC
    if (!alone()) add_processes(*record_);
    trainer_.emplace(run->parameters, *task, folder, options);
    if (!resumed()) {
        trainer_->begin = [this] {
            if (!first_process()) return;
            folder = out_.empty() ? RunFolder::create_next("runs", kind->name) : RunFolder::create(out_);
            run->start(folder, std::move(*record_));
        };
        return *trainer_;
    }
    trainer_->resume();
    trainer_->begin = [this, from = trainer_->step()] {
        if (!first_process() || trainer_->step() == from) return;  // a resume without a step is not recorded
        json record = parse_input<BadInput>(run->run_json, folder.file("run.json"));
        (*record_)["step"] = from;
        record["resumed"].push_back(*record_);
        folder.write("run.json", record.dump(2) + "\n");
    };
    return *trainer_;
}

std::unique_ptr<RunSettings> default_settings(const Family& kind, Device device) {
    std::unique_ptr<RunSettings> settings = kind.settings();
    if (device == Device::cuda || std::string(bf16_form()) != "widened") settings->precision = DType::bf16;
    return settings;
}

const Family& kind_of(const Strings& words) {
    return words.empty() || is_setting(words[0]) ? families().front() : find_family(words[0]);
}

void apply_words(const Family& kind, const Strings& words, Config& config) {
    if (!words.empty() && !is_setting(words[0]) && words[0] != kind.name) config.set("objective", words[0]);
    for (std::size_t i = 0; i < words.size(); i++) {
        if (is_setting(words[i]))
            config.set(words[i]);
        else if (i > 0)
            throw BadUsage(words[i], " is neither a model, which comes first, nor key=value");
    }
}

Vocabulary learn_vocabulary(const RunSettings& s, const TrainingText& t) {
    if (Strings words = s.words(); !words.empty()) return Vocabulary(std::move(words));
    TrainerOptions options;
    options.lower = !s.cased;
    Strings lines = t.train;
    append(lines, t.train_targets);
    return train_vocabulary(lines, s.vocabulary, options);
}

}  // namespace masquerade
