// SPDX-License-Identifier: MIT
#include "tests/fuzz/run_samples.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <vector>

#include "engine/io/file.h"
#include "models/latent/latent.h"
#include "models/runs/target_run.h"
#include "tests/fuzz/check.h"
#include "tests/models/runs/tiny_family.h"
#include "models/runs/training.h"
#include "models/runs/origin.h"

namespace masquerade::fuzz {
namespace fs = std::filesystem;
namespace {

using Changes = std::vector<std::pair<std::string, std::string>>;  // settings that differ from those of tiny()

struct Sample {
    const Family* kind;
    Changes changes;
    std::string path;  // "" if the run has not been made yet
};

// Whether a family has all these settings, and permits these values.
bool fits(const Family& kind, const Changes& changes) {
    const std::unique_ptr<RunSettings> settings = kind.settings();
    Config keys;
    settings->declare(keys);
    try {
        for (const auto& [key, value] : changes) keys.set(key, value);
    } catch (const BadUsage&) {
        return false;
    }
    return true;
}

std::vector<Sample> all_samples() {
    std::vector<Changes> variants = {
        {},
        {{"seed", "2"}},
        {{"width", "12"}, {"inner", "8"}},
        {{"layers", "1"}, {"decoder_layers", "1"}},
        {{"layers", "3"}},
        {{"max_length", "8"}},
        {{"vocabulary", "90"}},
        {{"cased", "true"}},
        {{"optimiser", "apollo"}},
        {{"rotary", "false"}},
        {{"task", "copy"}},
        {{"task", run_folder() + "/classes"}},
        {{"attention", "performer"}, {"redraw", "1"}},
        {{"attention", "by_head"}, {"patterns", "0:1 window=1 | 1:2 stride=2"}},
        {{"latent_layers", "0"}},
        {{"layers", "3"}, {"latent_layers", "2"}, {"latent_kinds", "flow,vq"}},
        {{"pairs", "true"}, {"conditional", "true"}},
        {{"pairs", "true"}, {"conditional", "true"}, {"latent", "gaussian"}, {"source_prior", "true"}},
        {{"flow_actnorm", "true"}, {"flow_linear", "lu"}, {"latent", "flow"}},
        {{"flow_actnorm", "false"}, {"points", "rings"}},
        {{"free_length", "true"}},
        {{"order", "frequency"}},
        {{"decoder", "insertion"}, {"latent", "gaussian"}, {"order", "frequency"}},
        {{"decoder", "diffusion"}}};
    for (const LatentKindRow& row : latent_kinds())
        variants.push_back({{"latent", row.name}, {"codes", "6"}, {"levels", "4"}});
    variants.push_back({{"latent", "vq"}, {"codes", "9"}, {"groups", "4"}});
    variants.push_back({{"latent", "fsq"}, {"levels", "3"}, {"latent_size", "6"}});
    std::vector<Sample> all;
    for (const Family& kind : families()) {
        for (const Changes& v : variants)
            if (fits(kind, v)) all.push_back({&kind, v, ""});
        for (const std::string& objective : kind.objectives) all.push_back({&kind, {{"objective", objective}}, ""});
    }
    return all;
}

std::vector<Sample>& samples() {
    static std::vector<Sample> all = all_samples();
    return all;
}

// Trains two steps and saves a checkpoint after each. Then fits the priors that the family has.
void train(const Sample& sample, const std::string& path) {
    const std::unique_ptr<RunSettings> settings = tiny(*sample.kind);
    Config keys;
    settings->declare(keys);
    const Changes small = {{"layers", "2"},        {"latent_layers", "1"},    {"width", "8"},       {"inner", "16"},
                           {"batch_tokens", "60"}, {"prior_sentences", "10"}, {"vocabulary", "70"}, {"held_out", "2"}};
    for (const Changes& changes : {small, sample.changes})
        for (const auto& [key, value] : changes)
            if (keys.has(key)) keys.set(key, value);
    const PairOptions made = settings->made;
    const TextKind wanted = settings->wants(sample.kind->reads);
    const auto file = [&](const char* name) {
        return made.any() || wanted == TextKind::none ? "" : run_folder() + name;
    };
    const TrainingText text = find_training_text(file("/text.tsv"), file("/held_out.tsv"), wanted, made);
    const std::unique_ptr<Run> run =
        sample.kind->fresh(*settings, learn_vocabulary(*settings, text), DType::f32, Device::cpu);
    const std::unique_ptr<Task> task = run->task(text);
    RunFolder folder = RunFolder::create(path);
    run->start(folder, {{"model", sample.kind->name},
                        {"seed", settings->train.seed},
                        {"settings", keys.to_json()},
                        {"data", json_of(text.origin)}});
    TrainOptions options = settings->train;
    options.steps = 2, options.minutes = 0, options.save_every = 1;
    Trainer trainer(run->parameters, *task, folder, options);
    trainer.quiet = true;
    trainer.run([] { return false; });
    run->step_folder = folder.step_folder(2);
    try {
        run->fit_prior(text);
    } catch (const Error&) {  // the family has no latents
    }
}

void write_classes(const std::string& path) {
    fs::remove_all(path);
    for (const char* label : {"near", "far"})
        for (int i = 0; i < 20; i++) {
            fs::create_directories(path + "/" + label);
            std::ofstream(text(path, "/", label, "/", i)) << label << " is what this file says, number " << i << "\n";
        }
}

std::string make_folder() {
    std::string path = (fs::temp_directory_path() / "masquerade-fuzz-runs-XXXXXX").string();
    if (!mkdtemp(path.data())) fail_to("make", path);
    std::ofstream pairs(path + "/text.tsv"), held_out(path + "/held_out.tsv");
    const std::vector<std::string> lines = grammar_questions(3, 24);
    for (std::size_t i = 0; i < lines.size(); i++)
        (i < 20 ? pairs : held_out) << lines[i].substr(0, 24) << '\t' << lines[i].substr(4, 20) << '\n';
    write_classes(path + "/classes");
    return path;
}

}  // namespace

const std::string& run_folder() {
    struct Folder {
        std::string path = make_folder();
        ~Folder() {
            std::error_code ignored;
            fs::remove_all(path, ignored);
        }
    };
    static const Folder folder;
    return folder.path;
}

void make_classes() { write_classes(run_folder() + "/classes"); }

std::size_t run_count() { return samples().size(); }

std::string name_of_run(std::size_t number) {
    const Sample& sample = samples()[number % run_count()];
    std::string name = sample.kind->name;
    for (const auto& [key, value] : sample.changes) name += text(" ", key, "=", value);
    return name;
}

const std::string& run_sample(std::size_t number) {
    Sample& sample = samples()[number % run_count()];
    if (sample.path.empty()) {
        const std::string path = text(run_folder(), "/run-", number % run_count());
        try {
            train(sample, path);
        } catch (const std::exception& e) {
            throw Broken{text("a good run is made: ", name_of_run(number), ": ", e.what())};
        }
        sample.path = path;
    }
    return sample.path;
}

}  // namespace masquerade::fuzz
