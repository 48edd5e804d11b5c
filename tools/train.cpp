// SPDX-License-Identifier: MIT
// ./train: trains a model. Without arguments, it trains UniVAE on the default corpus for ten minutes.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <csignal>
#include <map>
#include <set>

#include "engine/base/memory.h"
#include "engine/base/named.h"
#include "engine/base/processes.h"
#include "engine/base/wrap.h"
#include "engine/io/checkpoint.h"
#include "engine/tape/trace.h"
#include "models/runs/origin.h"
#include "tools/help.h"
#include "tools/program.h"
#include "tools/say.h"
#include "tools/train_options.h"

#ifndef COMMIT
#define COMMIT ""  // the Makefile sets the commit of the sources
#endif

using namespace masquerade;

namespace {

struct Arguments : TrainingOptions {
    Options given;
    std::string precision, trace, fit_prior;
    bool dry_run = false;
};

// Throws BadUsage(why) if the user gave an option that is not one of `names`.
void expect_only(const Options& options, const std::set<std::string>& names, const char* why) {
    for (const Option& option : options.given())
        if (names.count(option.name()) == 0) throw BadUsage(why);
}

// Fits a prior to the latents of a trained run, and saves it with the weights of the step that it was fitted to. The
// weights do not change.
void fit_prior_of(const Arguments& a, const Common& common) {
    expect_only(a.given, {"--fit-prior", "--threads", "--device"},
                "--fit-prior does not change the run: it can be combined only with --threads and --device");
    if (!alone()) throw BadUsage("--fit-prior is work for one process: leave out mpirun or srun");
    const RunFolder locked = RunFolder::resume(RunFolder::open(a.fit_prior).path());  // locks the run folder
    const auto run = family_of_run(a.fit_prior).load(a.fit_prior, true, common.device);
    run->use_moving_average();
    say("{}\n", run->fit_prior(read_again(origin_of(run->run_json, a.fit_prior + "/run.json"))));
}

std::unique_ptr<Training> training_of(Arguments a, const Common& common) {
    if (!a.resume.empty()) {
        expect_only(
            a.given, {"--resume", "words", "--steps", "--minutes", "--threads", "--device", "--patience", "--trace"},
            "--resume keeps the settings of the run: it can be combined only with --steps, --minutes, --threads, "
            "--device, --trace and settings of the optimiser (learning_rate=...)");
    } else {
        if (!a.precision.empty()) a.wanted.words.push_back("precision=" + a.precision);
        if (common.seed_given) a.wanted.words.push_back("seed=" + std::to_string(common.seed));
    }
    a.wanted.device = common.device;
    return a.training();
}

void train(const Arguments& a, const Common& common, double start) {
    std::signal(SIGPIPE, SIG_IGN);  // so that the run is saved even if standard output is closed
    const auto made = training_of(a, common);
    Training& t = *made;
    t.command = common.command;
    t.commit = COMMIT;
    const std::string lines = t.text.lines() == 0
                                  ? ""
                                  : fmt::format("{} {} to train on, {} held out; ", t.text.lines(),
                                                t.text.origin.pairs ? "pairs" : "sentences", t.text.held_out.size());
    say_wrapped(2, "text    {}\n", t.text.origin.name);
    if (t.kind->options != Family::of_vectors)
        say_wrapped(2, "        {}vocabulary {}\n", lines, t.run->tokenizer.vocabulary().size());
    if (const std::string own = t.run->own_text(); !own.empty()) say_wrapped(2, "        {}\n", own);
    say_wrapped(2, "model   {}: {}\n        {:.2f} M parameters, {}, {}\n", t.kind->name, t.run->description(),
                double(t.run->parameters.count()) / 1e6, name_of(t.run->common().precision), shown(common.device));
    // was_given: a text that lists which weights were copied (Start::give_weights)
    if (!t.initial.empty()) say_wrapped(2, "init    {}\n        {}\n", t.initial, t.was_given);
    std::fflush(stdout);
    if (const int count = processes().count(); count > 1) {
        // All processes must train the same model on the same text, because each of them computes all updates.
        Config settings;
        t.run->settings_to_change().declare(settings);
        expect_equal(text(t.text.lines(), " sentences, hashes ", t.text.origin.hash, " ", t.text.origin.held_out_hash,
                          ", ", name_of(common.device), ", ", name_of(t.run->common().precision), ", weights ",
                          fmt::format("{:016x}", checksum_of(t.run->parameters)),
                          ", settings (of --config and the command) ",
                          fmt::format("{:016x}", hash_of(settings.to_json().dump())), ", sources of ", COMMIT));
        say("shared  by {} processes; {} parts of each batch\n", count, t.options.parts);
        if (t.options.parts < count)
            log_line("warning: parts=", t.options.parts, ": a batch has fewer parts than there are processes, so ",
                     count - t.options.parts, " of them compute nothing; start the run with parts=", count);
    }
    if (!t.resumed())
        for (const std::string& warning : t.task->warnings()) log_line(warning);
    Trainer& trainer = t.trainer();
    trainer.columns = [] { return terminal_width(stdout); };
    if (a.dry_run) {
        trainer.try_step();
        return say("done    nothing was written; leave out --dry-run to train\n");
    }
    trainer.begin = [&, make_folder = trainer.begin] {
        if (make_folder) make_folder();
        say("run     {}\n", t.folder.path());
    };
    trainer.saved = stop_at_once;  // after the last checkpoint is saved, Ctrl-C may end the program at once
    NanTrace nan_trace;
    if (a.trace == "nan") trainer.observe(&nan_trace);
    trainer.terminal = is_terminal(stdout);
    trainer.seconds_before = steady_seconds() - start;
    if (first_process()) say_when_stopped(is_terminal(stderr) ? "\r\x1b[Ksaving...\n" : "saving...\n");
    StopReason reason = trainer.run(stop_requested);
    say_when_stopped(nullptr);
    const std::string run = shell_word(t.folder.path());
    const std::string rest = t.options.steps > 0      ? fmt::format(" --steps {}", t.options.steps)
                             : trainer.has_schedule() ? ""
                                                      : fmt::format(" --minutes {:g}", t.options.minutes);
    if (reason == StopReason::unheard && first_process())  // standard output is closed
        throw BadInput("standard output cannot be written: was it closed, is the disk full? Stopped after ",
                       trainer.step(), " steps, saved: continue with --resume ", run, rest);
    const char* why = reason == StopReason::asked ? "stopped as asked" : "done";
    say("{} after {} steps, saved in {}\nmemory  {:.0f} MiB at its peak\n", why, trainer.step(), t.folder.path(),
        double(peak_resident_bytes()) / (1 << 20));
    if (!alone()) say("sent    {:.1f} MiB by process 0\n", double(processes().bytes_sent) / (1 << 20));
    const std::string write = t.run->writing_command(t.folder.path());
    if (!write.empty()) say("next    {}\n", write);
    say("{}./evaluate {}\n        ./train --resume {}{}\n", write.empty() ? "next    " : "        ", run, run,
        reason == StopReason::asked ? rest : " --minutes 10");
}

// Returns the lines of --help about a family: its settings by topic, with their values, after `words` (the model and
// key=value) have been applied.
std::string settings_of(const Family& kind, const Strings& words) {
    const auto defaults = default_settings(kind, Device::cpu);
    Config keys;
    defaults->declare(keys);
    apply_words(kind, words, keys);
    Strings topics;
    std::map<std::string, std::vector<HelpRow>> rows;  // by topic
    for (const auto& [topic, key, value, help, expected] : keys.settings()) {
        if (rows[topic].empty()) topics.push_back(topic);
        std::string choices;  // with spaces, so that a long list of choices can be wrapped
        for (char c : expected) choices += c == '|' ? " | " : std::string(1, c);
        rows[topic].push_back({key + "=" + value, text(help, " (", choices, ")")});
    }
    std::string all = paragraph(text(kind.name, ": ", kind.what));
    if (!kind.objectives.empty())
        all += "\n" + paragraph("objectives (./inspect models explains them): " + joined(kind.objectives));
    for (const std::string& topic : topics) all += help_list(topic, rows[topic]);
    return all;
}

constexpr const char* description = "Trains a model (default: univae on the default corpus, for ten minutes).";
constexpr const char *often = "Options", *rarely = "More options";

std::string help_of(const Options& app, const Strings& words, bool all) {
    constexpr int column = 17;
    std::vector<HelpRow> models;
    for (const Family& kind : families()) models.push_back({kind.name, kind.what});
    if (all) {
        std::string whole = app.help() + help_list("Models", models);
        for (const Family& kind : families()) whole += "\n" + settings_of(kind, {kind.name});
        return whole;
    }
    if (!words.empty())
        return settings_of(kind_of(words), words) + "\n" +
               paragraph(
                   "A setting is given as KEY=VALUE; the list shows the default values. ./train --help lists the "
                   "main options, ./train --help-all lists all.");
    return paragraph(description) + "\n" + paragraph("Usage: ./train [MODEL] [KEY=VALUE ...] [OPTION ...]") +
           help_list("Models (or an objective, which chooses the model; ./inspect models lists both)", models, column) +
           app.help(often, column) + "\n" +
           paragraph(
               "./train MODEL --help lists the settings of a model; ./train --help-all lists all options "
               "and settings.");
}

}  // namespace

int main(int argc, char** argv) {
    const double start = steady_seconds();
    Arguments a;
    return run_program(
        argc, argv, "train", description,
        [&](Options& app) {
            a.given = app;
            app.heading(often);
            app.value("words", a.wanted.words, "[MODEL] [KEY=VALUE ...]",
                      "a model (default: univae) or an objective, then settings as key=value");
            a.declare(app);
            app.flag("--dry-run", a.dry_run, "print sizes, memory and the first batch; create no files");
            app.heading(rarely);
            a.declare_more(app);
            app.input("--fit-prior", a.fit_prior, "RUN", "train nothing: fit the latent prior of this run again");
            a.declare_steps(app);
            app.choice("--precision", a.precision, {"f32", "bf16"},
                       "f32, or bf16 with f32 master weights (default: bf16 if the device multiplies it fast)", "TYPE");
            app.choice("--trace", a.trace, {"nan"}, "nan: stop at the first number that is not finite", "WHAT");
            app.on_help([&, app](bool all) { return help_of(app, a.wanted.words, all); },
                        "print all options and settings");
        },
        [&](const Common& common) {
            if (!a.fit_prior.empty()) return fit_prior_of(a, common);
            train(a, common, start);
        },
        Work::models, Together::yes);
}
