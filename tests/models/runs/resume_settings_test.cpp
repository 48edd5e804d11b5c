// SPDX-License-Identifier: MIT
// Tests that a run that was stopped and resumed from the disk has the same bits as a run without a stop. For every
// setting of every family, one value that is not the default is tried. The settings come from the table, so a new
// setting is tested as soon as it is declared.
#include <doctest/doctest.h>

#include <cmath>

#include "data/text.h"
#include "engine/nn/functions.h"
#include "engine/tensor/numbers.h"
#include "tests/folder.h"
#include "tests/models/runs/other_value.h"
#include "tests/models/runs/tiny_family.h"
#include "tests/train/tiny_run.h"
#include "models/runs/training.h"

using namespace masquerade;

namespace {

// Trains a run in a folder up to a step. If the folder exists, its run is resumed, and only data from the disk is used.
void train(const Family& kind, const RunSettings& settings, const std::string& path, std::int64_t steps) {
    const TrainingText text = text_for(settings.wants(kind.reads));
    const bool again = std::filesystem::exists(path);
    const auto run = again ? kind.load(path, true, Device::cpu)
                           : kind.fresh(settings, vocabulary_of(settings, text), settings.precision, Device::cpu);
    RunFolder folder = again ? RunFolder::resume(path) : RunFolder::create(path);
    if (!again) {
        folder.write("run.json", "{}");
        run->save_tokenizer(folder);
    }
    const std::unique_ptr<Task> task = run->task(text);
    TrainOptions options = run->common().train;
    options.steps = steps;
    options.minutes = 0;
    Trainer trainer(run->parameters, *task, folder, options);
    trainer.quiet = true;
    if (again) trainer.resume();
    trainer.run(never);
}

std::string checkpoint(const std::string& run, const char* file) { return read_bytes(run + "/step-000006/" + file); }

// Checks that all files of the last step have the same bytes in both runs.
void check_same_checkpoints(const std::string& one, const std::string& other) {
    for (const char* file : {"model.safetensors", "state.safetensors", "config.json"}) {
        INFO(std::string(file));
        const bool same_bytes = checkpoint(one, file) == checkpoint(other, file);
        CHECK(same_bytes);
    }
}

}  // namespace

TEST_CASE("resume: every setting of every family, with another value than its default, through the disk") {
    for (const Family& kind : families()) {
        Config all;
        const auto defaults = tiny(kind);
        defaults->declare(all);
        std::vector<std::pair<std::string, std::string>> changes;  // key and value; value "": any value but the default
        for (const std::string& key : all.keys()) changes.emplace_back(key, "");
        if (all.has("attention"))
            changes.emplace_back("attention", "A lsh; B softmax | layers 1:: A luna; B performer");
        for (const auto& [changed, value] : changes) {
            const std::string& key = changed;
            if (key == "attention" && value.empty()) continue;
            INFO(std::string(kind.name), " ", key);
            const auto settings = tiny(kind);
            Config keys;
            settings->declare(keys);
            // With more frequent saving, the best checkpoint could be at a step that the other run does not save.
            settings->train.save_every = 3;
            // The baselines of task copy are faster than those of the default task, but only the default task has masks
            // that every kind of attention honours.
            if (std::string(kind.name) == "classify" && key != "attention") keys.set("task", "copy");
            if (key == "tokens" || key == "paired") keys.set("task", folder_of_files());
            if (key == "latent_projection") keys.set("latent_size", "16");
            if (key == "conditional" || key == "source_prior") keys.set("pairs", "true");
            if (key == "source_prior") keys.set("conditional", "true"), keys.set("latent", "gaussian");
            if (key == "redraw") keys.set("attention", "performer");
            if (key == "reach") keys.set("attention", "lambda");
            if (key == "sharing" || key == "value_weights") keys.set("attention", "linformer");
            if (key.rfind("free_bits", 0) == 0) keys.set("latent", "gaussian"), keys.set("free_bits", "2");
            if (value.empty())
                change(keys, kind.name, key);
            else
                keys.set(key, value);
            INFO("= ", keys.value(key));
            const TemporaryFolder folder;
            const std::string straight = folder.file("straight"), halves = folder.file("halves");
            try {
                train(kind, *settings, straight, 6);
            } catch (const BadUsage& refusal) {
                const bool mask = std::string(refusal.what()).find("does not support this mask") != std::string::npos;
                REQUIRE_MESSAGE((mask && key == "attention"), refusal.what());
                continue;
            }
            train(kind, *settings, halves, 3);
            train(kind, *settings, halves, 6);
            check_same_checkpoints(straight, halves);
            if (keys.has("precision") && key != "precision") {
                const std::string f32 = keys.value("precision");
                keys.set("precision", "bf16");
                train(kind, *settings, folder.file("bf16"), 1);
                keys.set("precision", f32);
            }
            const auto loaded = kind.load(halves, true, Device::cpu);
            Config found;
            loaded->settings_to_change().declare(found);
            CHECK(found.value(key) == keys.value(key));
            for (const Tensor& p : loaded->parameters.all()) {
                if (key != "redraw" || p.path.find(".features") == std::string::npos) continue;
                const std::vector<double> drawn =
                    random_features(int(p.rows()), 2, int(p.columns()) / 2, {}, settings->train.seed, p.path, 2);
                for (std::size_t i = 0; i < drawn.size(); i++)
                    REQUIRE(number_at(p.view(), std::int64_t(i)) == float(drawn[i]));
            }
            if (key != "attention") continue;
            bool rotates = true;
            const AttentionWords words(value, 0);
            for (const AttentionKind* of : words.named()) rotates &= of->rotates;
            CHECK(found.value("rotary") == (rotates ? "true" : "false"));
        }
    }
}

TEST_CASE(
    "resume: every family with RMSNorm, SwiGLU, no biases and two heads of keys trains, and resumes to the same bits") {
    for (const Family& kind : families()) {
        INFO(std::string(kind.name));
        const auto settings = tiny(kind);
        Config keys;
        settings->declare(keys);
        if (!keys.has("ffn")) continue;  // the family has no Transformer
        for (const auto& [key, value] :
             {std::pair("norm", "rms"), {"ffn", "swiglu"}, {"bias", "false"}, {"heads", "4"}, {"kv_heads", "2"}})
            keys.set(key, value);
        settings->train.save_every = 3;
        const TemporaryFolder folder;
        const std::string straight = folder.file("straight"), halves = folder.file("halves");
        train(kind, *settings, straight, 6);
        train(kind, *settings, halves, 3);
        train(kind, *settings, halves, 6);
        check_same_checkpoints(straight, halves);
        const auto early = kind.load(halves + "/step-000003", false, Device::cpu),
                   late = kind.load(halves, true, Device::cpu);
        for (const Tensor& p : late->parameters.all()) {
            INFO(p.path);
            const bool of_linear =
                p.path.find("layer.") != std::string::npos && p.path.find(".bias") != std::string::npos;
            CHECK_FALSE(of_linear);
            if (!p.needs_grad) continue;
            double moved = 0;
            const View before = early->parameters.find(p.path)->view();
            for (std::int64_t i = 0; i < p.shape.count(); i++)
                moved += std::abs(number_at(p.view(), i) - number_at(before, i));
            CHECK(moved > 0);
        }
    }
}

// The average must be the mean of the weights after each step. The newest weights count with 1, the ones before with
// the decay, the ones before that with its square, and so on.
TEST_CASE("average: of every family, the moving average of the weights; --average 1 reads the last weights") {
    for (const Family& kind : families())
        for (const char* precision : {"f32", "bf16"}) {
            INFO(std::string(kind.name), " ", std::string(precision));
            const auto settings = tiny(kind);
            Config keys;
            settings->declare(keys);
            for (const auto& [key, value] : {std::pair("attention", "performer"), {"redraw", "2"}, {"ema", "0.8"}})
                if (keys.has(key)) keys.set(key, value);
            if (keys.has("precision")) keys.set("precision", precision);
            settings->train.save_every = 1;
            settings->train.keep = 7;
            const TemporaryFolder folder;
            const std::string path = folder.file("run");
            train(kind, *settings, path, 5);
            const auto used = kind.load(path, false, Device::cpu), last = kind.load(path, true, Device::cpu);
            std::vector<std::unique_ptr<Run>> steps;
            for (int step = 1; step <= 5; step++)
                steps.push_back(kind.load(text(path, "/step-00000", step), true, Device::cpu));
            int differ = 0;
            const auto raw = [&](const std::unique_ptr<Run>& run, const Tensor& p, std::int64_t i) {
                return number_at(run->parameters.master(*run->parameters.find(p.path)), i);
            };
            for (const Tensor& p : used->parameters.all())
                for (std::int64_t i = 0; i < p.shape.count(); i++) {
                    double sum = 0, weights = 0;
                    for (const auto& one : steps) {
                        sum = 0.8 * sum + raw(one, p, i);
                        weights = 0.8 * weights + 1;
                    }
                    const double found = number_at(p.view(), i);
                    if (!p.needs_grad) {  // a state is not averaged; the last one counts
                        REQUIRE(found == raw(last, p, i));
                        continue;
                    }
                    REQUIRE(std::abs(found - sum / weights) <= 1e-6 * std::max(1.0, std::abs(found)));
                    differ += found != raw(last, p, i);
                }
            CHECK(differ > 0);
            used->average_checkpoints(1);
            for (const Tensor& p : used->parameters.all())
                for (std::int64_t i = 0; i < p.shape.count(); i++) REQUIRE(raw(used, p, i) == raw(last, p, i));
            // The held-out loss in the log is the loss of the averaged weights.
            if (std::string(kind.name) == "unilm" && std::string(precision) == "f32") {
                const auto again = kind.load(path, false, Device::cpu);
                const double found = again->task(text_for(kind))->validate().at(0).value;
                const std::string log = read_bytes(path + "/log.jsonl"), key = "\"held_out_loss\":";
                CHECK(std::stod(log.substr(log.rfind(key) + key.size())) == doctest::Approx(found).epsilon(1e-5));
                CHECK(last->task(text_for(kind))->validate().at(0).value != found);
                std::filesystem::remove(path + "/step-000005/state.safetensors");
                const auto without = kind.load(path, false, Device::cpu);
                CHECK(bits_of(without->parameters.values()) == bits_of(last->parameters.values()));
            }
        }
}

TEST_CASE("average: of every family, the last checkpoints up to the one that is read") {
    for (const Family& kind : families())
        for (const char* attention : {"softmax", "performer"}) {
            INFO(std::string(kind.name), " ", std::string(attention));
            const auto settings = tiny(kind);
            Config keys;
            settings->declare(keys);
            if (keys.has("attention")) keys.set("attention", attention), keys.set("redraw", "2");
            settings->train.save_every = 1;
            settings->train.keep = 5;
            const TemporaryFolder folder;
            const std::string path = folder.file("run");
            train(kind, *settings, path, 6);
            const auto mean = kind.load(path + "/step-000005", false, Device::cpu),
                       last = kind.load(path, false, Device::cpu);
            mean->average_checkpoints(3);
            std::vector<std::unique_ptr<Run>> steps;
            for (const char* step : {"/step-000003", "/step-000004", "/step-000005"})
                steps.push_back(kind.load(path + step, false, Device::cpu));
            int differ = 0;
            for (const Tensor& p : mean->parameters.all())
                for (std::int64_t i = 0; i < p.shape.count(); i++) {
                    double sum = 0;
                    for (const auto& one : steps) sum += number_at(one->parameters.find(p.path)->view(), i);
                    const double found = number_at(p.view(), i);
                    if (!p.needs_grad) {  // a state is not averaged; the last one counts
                        REQUIRE(found == number_at(steps[2]->parameters.find(p.path)->view(), i));
                        continue;
                    }
                    REQUIRE(found == doctest::Approx(sum / 3).epsilon(1e-6));
                    differ += found != number_at(steps[2]->parameters.find(p.path)->view(), i);
                }
            CHECK(differ > 0);
            if (auto* univae = dynamic_cast<UniVaeRun*>(mean.get()); univae && univae->model.options.latent_layers > 0)
                CHECK_SAYS(
                    message_of<BadInput>([&] { univae->choose_prior("fitted", {}); }),
                    "the mean of several checkpoints (--average) has no fitted prior: leave out --average or --prior");
            last->average_checkpoints(1);
            // In this run, the best checkpoint of a flow is an older one, which is kept as well.
            if (kind.options == Family::of_vectors) continue;
            CHECK_SAYS(message_of<BadUsage>([&] { mean->average_checkpoints(5); }),
                       "--average 5 needs 5 checkpoints, but " + path +
                           " has only 4 up to step 5; train with keep=5 to keep more");
        }
}
