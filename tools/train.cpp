// SPDX-License-Identifier: MIT
// ./train: with no argument, UniVAE on the default corpus, sized for this machine.
#include <fmt/format.h>

#include <chrono>
#include <nlohmann/json.hpp>

#include "engine/base/memory.h"
#include "engine/ops/cpu/gemm.h"
#include "engine/tape/trace.h"
#include "models/univae_task.h"
#include "tokenizer/trainer.h"
#include "tools/origin.h"
#include "tools/program.h"

using namespace masquerade;
using nlohmann::json;

namespace {

struct Arguments {
    std::vector<std::string> words;  // the model's name and key=value pairs
    std::string config, data, dev, vocab, out, resume, precision, trace, fit_prior;
    std::int64_t steps = 0;
    double minutes = -1;
};

Vocabulary learn_vocabulary(const UniVaeSettings& s, const std::vector<std::string>& lines) {
    TrainerOptions options;
    options.lower = !s.cased;
    return train_vocabulary(lines, s.vocabulary, options);
}

void apply_words(const std::vector<std::string>& words, Config& config) {
    for (std::size_t i = 0; i < words.size(); i++) {
        if (words[i].find('=') != std::string::npos)
            config.set(words[i]);
        else if (i > 0 || words[i] != "univae")
            throw BadUsage(
                text("there is no model ", words[i], "; there is univae (and settings are key=value)"));
    }
}

// A run that has no fitted prior, or an old one, gets it; nothing is trained.
void fit_prior_of(const Arguments& a, const Common& common) {
    if (!a.words.empty() || !a.data.empty() || !a.dev.empty() || !a.vocab.empty() || !a.out.empty() ||
        !a.config.empty() || !a.resume.empty() || !a.precision.empty() || !a.trace.empty() || a.steps > 0 ||
        a.minutes >= 0 || common.seed_given)
        throw BadUsage("--fit-prior takes a run as it is: only --threads and --device go with it");
    const RunFolder alone = RunFolder::resume(RunFolder::open(a.fit_prior).path());  // no other writer
    std::unique_ptr<UniVaeRun> run = UniVaeRun::load(a.fit_prior, true, common.device);
    TrainingText text_read = read_again(origin_of(run->run_json, a.fit_prior + "/run.json"));
    const int sentences = run->settings.prior_sentences;
    UniVaeTask task(*run, run->sentences(text_read.train), {});
    task.fit(run->step_folder, sentences > 0 ? sentences : UniVaeSettings().prior_sentences);
    fmt::print("fitted a prior of {} components; saved as {}\n", run->prior->codes().components(),
               UniVaeRun::prior_file(run->step_folder));
}

// bf16 where what computes multiplies it: there it is the faster, and trains as well.
UniVaeSettings default_settings(Device device) {
    UniVaeSettings settings;
    if (device == Device::cuda || std::string(bf16_form()) != "widened") settings.precision = DType::bf16;
    return settings;
}

void train(const Arguments& a, const Common& common, std::chrono::steady_clock::time_point start) {
    UniVaeSettings settings = default_settings(common.device);
    Config config;
    settings.declare(config);
    std::unique_ptr<UniVaeRun> run;
    std::unique_ptr<RunFolder> folder;
    TrainingText text_read;
    const bool resuming = !a.resume.empty();
    if (resuming) {
        if (!a.words.empty() || !a.data.empty() || !a.dev.empty() || !a.vocab.empty() || !a.out.empty() ||
            !a.precision.empty() || !a.config.empty() || common.seed_given)
            throw BadUsage(
                "--resume goes on as the run was started: only --steps, --minutes, --threads and --device go "
                "with it");
        folder = std::make_unique<RunFolder>(RunFolder::resume(a.resume));
        run = UniVaeRun::load(folder->path(), true, common.device);
        text_read = read_again(origin_of(run->run_json, folder->file("run.json")));
    } else {
        if (!a.config.empty()) config.load(a.config);
        apply_words(a.words, config);
        if (!a.precision.empty()) config.set("precision=" + a.precision);
        if (common.seed_given) settings.train.seed = common.seed;
        text_read = find_training_text(a.data, a.dev);
        Vocabulary vocabulary =
            a.vocab.empty() ? learn_vocabulary(settings, text_read.train) : Vocabulary::load(a.vocab);
        run = std::make_unique<UniVaeRun>(settings, std::move(vocabulary), settings.precision, common.device);
        folder = std::make_unique<RunFolder>(a.out.empty() ? RunFolder::create_next("runs", "univae")
                                                           : RunFolder::create(a.out));
        json record = {{"model", "univae"},
                       {"version", version},
                       {"seed", settings.train.seed},
                       {"settings", config.to_json()},
                       {"data", json_of(text_read.origin)},
                       {"device", name_of(common.device)},
                       {"dtype", name_of(settings.precision)}};
        folder->write("run.json", record.dump(2) + "\n");
        run->tokenizer.vocabulary().save(folder->file("vocab.txt"));
    }

    TrainOptions options = run->settings.train;
    options.steps = a.steps;
    options.minutes = a.minutes >= 0 ? a.minutes : a.steps > 0 ? 0 : 10;
    auto train_sentences = run->sentences(text_read.train), held_out = run->sentences(text_read.held_out);
    const UniVaeOptions& o = run->model.options;
    fmt::print("text    {}\n        {} sentences to train on, {} held out; vocabulary {}\n", text_read.origin.name,
               train_sentences.size(), held_out.size(), o.backbone.vocabulary);
    fmt::print(
        "model   univae: {} layers, the upper {} with a latent of {} numbers, width {}\n"
        "        {:.2f} M parameters, {}, {}\n",
        o.backbone.layers, o.latent_layers, o.latent.size, o.backbone.width,
        double(run->parameters.count()) / 1e6, name_of(run->settings.precision), shown(common.device));
    fmt::print("run     {}\n", folder->path());
    UniVaeTask task(*run, std::move(train_sentences), std::move(held_out));
    Trainer trainer(run->parameters, task, *folder, options);
    NanTrace nan_trace;
    if (a.trace == "nan") trainer.observe(&nan_trace);
    trainer.terminal = is_terminal(stdout);
    trainer.columns = terminal_width();
    trainer.seconds_before = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (resuming) {
        trainer.resume();
        json record = json::parse(run->run_json);
        record["resumed"].push_back({{"step", trainer.step()}, {"device", name_of(common.device)}});
        folder->write("run.json", record.dump(2) + "\n");
    }
    StopReason reason = trainer.run(stop_requested);
    const char* why = reason == StopReason::asked ? "stopped as asked" : "done";
    fmt::print("{} after {} steps, saved in {}\nmemory  {:.0f} MiB at its peak\n", why, trainer.step(), folder->path(),
               double(peak_resident_bytes()) / (1 << 20));
    fmt::print("next    ./generate {0} --count 10\n        ./evaluate {0}\n        ./train --resume {0} --minutes 10\n",
               folder->path());
}

}  // namespace

int main(int argc, char** argv) {
    auto start = std::chrono::steady_clock::now();
    Arguments a;
    return run_program(
        argc, argv, "train", "Trains a model. With no argument: UniVAE on the default corpus, ten minutes.",
        [&](CLI::App& app) {
            app.add_option("words", a.words, "the model (univae), then settings as key=value")
                ->option_text("[MODEL] [KEY=VALUE ...]");
            app.add_option("--config", a.config, "settings from a file; key=value goes over it")
                ->option_text("FILE");
            app.add_option("--data", a.data, "text, one sentence a line (default: corpus/)")
                ->option_text("FILE");
            app.add_option("--dev", a.dev, "held-out text (default: one line in fifty)")->option_text("FILE");
            app.add_option("--vocab", a.vocab, "vocab.txt (default: learned from the text)")
                ->option_text("FILE");
            app.add_option("--out", a.out, "run folder (default: runs/univae-NNN)")->option_text("DIR");
            app.add_option("--resume", a.resume, "go on with this run")->option_text("DIR");
            app.add_option("--fit-prior", a.fit_prior,
                           "train nothing: fit the prior of this run's latents anew")
                ->option_text("RUN");
            app.add_option("--steps", a.steps, "stop after so many steps")
                ->check(CLI::Range(std::int64_t(1), std::int64_t(1) << 40))
                ->option_text("N");
            app.add_option("--minutes", a.minutes, "stop after so long (default: 10; 0: no limit)")
                ->check(CLI::Range(0.0, 1e6))
                ->option_text("M");
            app.add_option("--precision", a.precision,
                           "f32, or bf16 with f32 master weights (default: bf16 on a GPU "
                           "and where the processor multiplies it)")
                ->check(CLI::IsMember({"f32", "bf16"}))
                ->option_text("TYPE");
            app.add_option("--trace", a.trace, "nan: stop at the first number that is not finite")
                ->check(CLI::IsMember({"nan"}))
                ->option_text("WHAT");
            UniVaeSettings defaults = default_settings(Device::cpu);
            Config keys;
            defaults.declare(keys);
            app.footer("settings (key=value):\n" + keys.table());
        },
        [&](const Common& common) {
            if (!a.fit_prior.empty()) return fit_prior_of(a, common);
            train(a, common, start);
        },
        Work::models);
}
