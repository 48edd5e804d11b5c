// SPDX-License-Identifier: MIT
// ./train: with no argument, UniVAE on the default corpus, sized for this machine.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "engine/base/memory.h"
#include "engine/io/checkpoint.h"
#include "engine/ops/cpu/gemm.h"
#include "engine/tape/trace.h"
#include "models/runs/start.h"
#include "models/runs/target_run.h"
#include "tools/new_model.h"
#include "tools/origin.h"
#include "tools/program.h"
#include "tools/say.h"

using namespace masquerade;
using nlohmann::json;

namespace {

struct Arguments {
    Options given;
    std::vector<std::string> words;  // the model's name and key=value pairs
    std::string config, data, dev, vocab, init, out, resume, precision, trace, fit_prior;
    std::int64_t steps = 0;
    double minutes = -1;
};

// bf16 where what computes multiplies it: there it is the faster, and trains as well.
std::unique_ptr<RunSettings> default_settings(const ModelKind& kind, Device device) {
    std::unique_ptr<RunSettings> settings = kind.settings();
    if (device == Device::cuda || std::string(bf16_form()) != "widened") settings->precision = DType::bf16;
    return settings;
}

// BadUsage where an option is given that is none of these.
void expect_only(const Options& options, const std::set<std::string>& names, const char* why) {
    for (const Option& option : options.given())
        if (names.count(option.name()) == 0) throw BadUsage(why);
}

// A run that has no fitted prior, or an old one, gets it; nothing is trained.
void fit_prior_of(const Arguments& a, const Common& common) {
    expect_only(a.given, {"--fit-prior", "--threads", "--device"},
                "--fit-prior takes a run as it is: only --threads and --device go with it");
    const RunFolder alone = RunFolder::resume(RunFolder::open(a.fit_prior).path());  // no other writer
    const std::unique_ptr<Run> run = model_of_run(a.fit_prior).load(a.fit_prior, true, common.device);
    say("{}\n", run->fit_prior(read_again(origin_of(run->run_json, a.fit_prior + "/run.json"))));
}

// Everything that a run needs, from its folder or from the arguments.
struct Prepared {
    const ModelKind* kind;
    std::unique_ptr<Run> run;
    RunFolder folder;
    TrainingText text;
    std::unique_ptr<Task> task;
    json record;                    // of a new run, for its run.json
    std::string initial, given;     // what it started with, and which weights it took; empty: from nothing
    json changes = json::object();  // settings that a resumed run has changed
};

// Changes settings of a run that goes on: those of its optimiser and of its checkpoints.
json changed(RunSettings& settings, const std::vector<std::string>& words) {
    static const std::vector<std::string> may_change = {"learning_rate",  "warmup",     "clip", "schedule_start",
                                                        "schedule_steps", "save_every", "keep"};
    Config keys;
    settings.declare(keys);
    json changes = json::object();
    for (const std::string& word : words) {
        const std::string key = word.substr(0, word.find('='));
        if (std::find(may_change.begin(), may_change.end(), key) == may_change.end())
            throw BadUsage(text("--resume goes on as the run was started: ", key, " stays as it is; ",
                                fmt::format("{}", fmt::join(may_change, ", ")), " can be changed"));
        keys.set(word);
        changes[key] = keys.value(key);
    }
    return changes;
}

Prepared resumed(const Arguments& a, const Common& common) {
    expect_only(a.given, {"--resume", "words", "--steps", "--minutes", "--threads", "--device", "--trace"},
                "--resume goes on as the run was started: only --steps, --minutes, --threads, --device, --trace and "
                "settings of the optimiser (learning_rate=...) go with it");
    Prepared p;
    p.folder = RunFolder::resume(a.resume);
    p.kind = &model_of_run(p.folder.path());
    p.run = p.kind->load(p.folder.path(), true, common.device);
    p.changes = changed(p.run->settings_to_change(), a.words);
    p.text = read_again(origin_of(p.run->run_json, p.folder.file("run.json")));
    p.task = p.run->task(p.text);
    return p;
}

Prepared started(const Arguments& a, const Common& common) {
    Prepared p;
    if (!a.out.empty()) RunFolder::expect_free(a.out);
    p.kind = &kind_of(a.words);
    std::unique_ptr<RunSettings> settings = default_settings(*p.kind, common.device);
    if (!a.init.empty() && !a.vocab.empty())
        throw BadUsage("--init brings its vocabulary: --vocab does not go with it");
    const std::unique_ptr<Start> initial = a.init.empty() ? nullptr : Start::open(a.init);
    if (initial) initial->adopt(*settings);
    HuggingFace brought;  // by --vocab
    if (!a.vocab.empty()) {
        brought = read_tokenizer(a.vocab);
        settings->cased = !brought.options.lower;
    }
    Config config;
    settings->declare(config);
    if (!a.config.empty()) config.load(a.config);
    apply_words(*p.kind, a.words, config);
    if (!a.precision.empty()) config.set("precision=" + a.precision);
    if (common.seed_given) config.set("seed=" + std::to_string(common.seed));
    const TargetSettings* const targets = settings->targets();
    PairOptions made = targets ? targets->made : PairOptions();
    made.seed = settings->train.seed;
    p.text = find_training_text(a.data, a.dev, settings->wants(p.kind->reads), made);
    if (p.text.sources_alone)
        log_line("note: ", a.data, " holds pairs, of which the sources alone are read; pairs=true reads both");
    if (!a.vocab.empty() && !settings->words().empty())
        throw BadUsage(text("--vocab: the task of ", p.kind->name, " brings its vocabulary"));
    if ((initial || !a.vocab.empty()) && settings->words().empty())
        for (const std::string& word : a.words)
            if (word.rfind("vocabulary=", 0) == 0)
                log_line("note: ", word, " is of a vocabulary that is learned, and ", initial ? "--init" : "--vocab",
                         " brings one");
    if (settings->keep_tokens && !initial)
        throw BadUsage("keep_tokens makes the vocabulary of --init smaller, and there is no --init");
    if (settings->keep_tokens)
        initial->keep(p.text);
    else if (initial && !settings->words().empty())
        initial->extend(settings->words(), config.value("task"));
    if (!a.vocab.empty()) {
        if (settings->cased == brought.options.lower) brought = read_tokenizer(a.vocab, settings->cased);
        for (const std::string& note : brought.notes) log_line("note: ", a.vocab, ": ", note);
        expect_trainable(brought.vocabulary, a.vocab,
                         text("(echo '[PAD]'; grep -vxF '[PAD]' ", shell_word(a.vocab), ") >new-vocab.txt"));
    }
    std::optional<WordPiece> reader;  // that came with the vocabulary
    if (initial)
        reader = initial->tokenizer();
    else if (!a.vocab.empty())
        reader = training_tokenizer(std::move(brought));
    p.run = p.kind->fresh(*settings, reader ? reader->vocabulary() : learn_vocabulary(*settings, p.text),
                          settings->precision, common.device);
    if (reader) {
        WordPiece::Options options = reader->options();
        options.lower = !settings->cased;  // as it came, unless the user said otherwise
        p.run->tokenizer = WordPiece(reader->vocabulary(), options, reader->added());
    }
    if (initial) {
        p.initial = initial->source();
        p.given = initial->give_weights(*p.run);
    }
    p.task = p.run->task(p.text);
    p.run->complete(p.text.origin);
    json record = {{"model", p.kind->name},
                   {"version", version},
                   {"seed", settings->train.seed},
                   {"settings", config.to_json()},
                   {"data", json_of(p.text.origin)},
                   {"device", name_of(common.device)},
                   {"dtype", name_of(settings->precision)}};
    if (initial) record["init"] = json_name(initial->source());
    if (initial) record["init_weights"] = fmt::format("{:016x}", checksum_of(p.run->parameters));
    p.record = std::move(record);
    return p;
}

// The folder of a new run, for which nothing can be refused any more.
void make_folder(const Arguments& a, Prepared& p) {
    p.folder = a.out.empty() ? RunFolder::create_next("runs", p.kind->name) : RunFolder::create(a.out);
    p.run->start(p.folder, std::move(p.record));
}

void train(const Arguments& a, const Common& common, std::chrono::steady_clock::time_point start) {
    const bool resuming = !a.resume.empty();
    std::signal(SIGPIPE, SIG_IGN);  // where nobody reads any more the run is saved first
    Prepared p = resuming ? resumed(a, common) : started(a, common);
    TrainOptions options = p.run->common().train;
    options.steps = a.steps;
    options.minutes = a.minutes >= 0 ? a.minutes : a.steps > 0 ? 0 : 10;
    options.to_schedule_end = resuming && a.minutes < 0 && a.steps == 0;
    const std::string lines = p.text.train.empty()
                                  ? ""
                                  : fmt::format("{} {} to train on, {} held out; ", p.text.train.size(),
                                                p.text.origin.pairs ? "pairs" : "sentences", p.text.held_out.size());
    say("text    {}\n        {}vocabulary {}\n", p.text.origin.name, lines, p.run->tokenizer.vocabulary().size());
    say("model   {}: {}\n        {:.2f} M parameters, {}, {}\n", p.kind->name, p.run->description(),
        double(p.run->parameters.count()) / 1e6, name_of(p.run->common().precision), shown(common.device));
    if (!p.initial.empty()) say("init    {}\n        {}\n", p.initial, p.given);
    std::fflush(stdout);
    if (!resuming)
        for (const std::string& warning : p.task->warnings()) log_line(warning);
    Trainer trainer(p.run->parameters, *p.task, p.folder, options);
    trainer.begin = [&] {
        if (!resuming) make_folder(a, p);
        say("run     {}\n", p.folder.path());
    };
    trainer.saved = stop_at_once;
    NanTrace nan_trace;
    if (a.trace == "nan") trainer.observe(&nan_trace);
    trainer.terminal = is_terminal(stdout);
    trainer.columns = [] { return terminal_width(stdout); };
    trainer.seconds_before = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (resuming) {
        trainer.resume();
        json record = parse_input<BadInput>(p.run->run_json, p.folder.file("run.json"));
        json sitting = {{"step", trainer.step()}, {"device", name_of(common.device)}};
        if (!p.changes.empty()) sitting["settings"] = p.changes;
        record["resumed"].push_back(sitting);
        p.folder.write("run.json", record.dump(2) + "\n");
    }
    say_when_stopped(is_terminal(stderr) ? "\r\x1b[Ksaving...\n" : "saving...\n");
    StopReason reason = trainer.run(stop_requested);
    say_when_stopped(nullptr);
    if (reason == StopReason::unheard)
        throw BadInput(text("standard output cannot be written: was it closed, is the disk full? Stopped after ",
                            trainer.step(), " steps, saved: go on with --resume ", shell_word(p.folder.path())));
    const char* why = reason == StopReason::asked ? "stopped as asked" : "done";
    say("{} after {} steps, saved in {}\nmemory  {:.0f} MiB at its peak\n", why, trainer.step(), p.folder.path(),
        double(peak_resident_bytes()) / (1 << 20));
    const std::string write = p.run->writing_command(p.folder.path());
    const std::string run = shell_word(p.folder.path());
    if (!write.empty()) say("next    {}\n", write);
    say("{}./evaluate {}\n        ./train --resume {}{}\n", write.empty() ? "next    " : "        ", run, run,
        reason == StopReason::asked ? "" : " --minutes 10");
}

// The settings of every model, under its name.
std::string settings_tables() {
    std::string all;
    for (const ModelKind& kind : model_kinds()) {
        std::unique_ptr<RunSettings> defaults = default_settings(kind, Device::cpu);
        Config keys;
        defaults->declare(keys);
        all += text(all.empty() ? "" : "\n", kind.name, ": ", kind.what, "\nsettings (key=value):\n", keys.table());
    }
    return all;
}

}  // namespace

int main(int argc, char** argv) {
    auto start = std::chrono::steady_clock::now();
    Arguments a;
    return run_program(
        argc, argv, "train", "Trains a model. With no argument: UniVAE on the default corpus, ten minutes.",
        [&](Options& app) {
            a.given = app;
            app.value("words", a.words, "[MODEL] [KEY=VALUE ...]",
                      "univae (default), unilm, seq2seq, insertion or classify, then settings as key=value");
            app.input("--config", a.config, "FILE", "settings from a file; key=value goes over it");
            app.input(
                "--data", a.data, "FILE",
                "text, one sentence a line, or source<TAB>target for unilm, seq2seq and insertion (default: corpus/)");
            app.input("--dev", a.dev, "FILE", "held-out text (default: one line in fifty)");
            app.input("--vocab", a.vocab, "FILE",
                      "vocab.txt, tokenizer.json or their folder (default: learned from the text)");
            app.input(
                "--init", a.init, "FOLDER",
                "start with the weights and the vocabulary of this run, or of a BERT or RoFormer of Hugging Face's");
            app.output("--out", a.out, "DIR", "run folder (default: runs/MODEL-NNN)");
            app.input("--resume", a.resume, "DIR",
                      "go on with this run, to the end of its schedule, or ten minutes more");
            app.input("--fit-prior", a.fit_prior, "RUN", "train nothing: fit the prior of this run's latents anew");
            app.number("--steps", a.steps, std::int64_t(1), std::int64_t(1) << 40, "stop after so many steps");
            app.number("--minutes", a.minutes, 0.0, 1e6, "stop after so long (default: 10; 0: no limit)", "M");
            app.choice("--precision", a.precision, {"f32", "bf16"},
                       "f32, or bf16 with f32 masters (default: bf16 where the device multiplies it)", "TYPE");
            app.choice("--trace", a.trace, {"nan"}, "nan: stop at the first number that is not finite", "WHAT");
            app.footer(settings_tables());
        },
        [&](const Common& common) {
            if (!a.fit_prior.empty()) return fit_prior_of(a, common);
            train(a, common, start);
        },
        Work::models);
}
