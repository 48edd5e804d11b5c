// SPDX-License-Identifier: MIT
// ./bench train: full training steps, beside PyTorch.
#include <fmt/format.h>

#include <cstdlib>
#include <sstream>

#include "engine/base/log.h"
#include "tools/bench/case.h"
#include "tools/bench/machine.h"
#include "tools/bench/memory.h"
#include "tools/bench/peer.h"
#include "tools/bench/train_measure.h"
#include "tools/bench/train_peers.h"
#include "tools/bench/train_report.h"

namespace masquerade {
namespace {

using Json = nlohmann::ordered_json;

struct Arguments {
    std::string marks, peers, precision, variant, save;
    int repeats = 5;
    bool eager = false, brief = false, no_graph = false, deterministic = false, json = false;
};

std::vector<std::string> listed(const std::string& text) {
    std::vector<std::string> items;
    std::istringstream in(text);
    for (std::string item; std::getline(in, item, ',');)
        if (!item.empty()) items.push_back(item);
    return items;
}

std::string joined(const std::vector<std::string>& items) {
    std::string all;
    for (const std::string& item : items) all += (all.empty() ? "" : ", ") + item;
    return all;
}

// They make OpenBLAS slower than it is, and a comparison with it unfair.
void hide_blas_settings() {
    for (const char* name : {"OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"})
        if (const char* value = std::getenv(name)) {
            log_line("note: ", name, '=', value, " of the environment is not passed on to the peer");
            unsetenv(name);
        }
}

class TrainCase : public BenchCase {
  public:
    TrainCase() : BenchCase("train", "full training steps of BERT and UniVAE") {}

    void add_options(CLI::App& app) override {
        app.add_option("--marks", a_.marks,
                       "what to measure: " + joined(train_mark_names()) +
                           " (default: " + joined(default_train_marks(Device::cpu)) +
                           "; with --device cuda " + joined(default_train_marks(Device::cuda)) + ")")
            ->option_text("NAME,...");
        app.add_option("--precision", a_.precision,
                       "f32, bf16 or both (default: f32; with --device cuda bf16)")
            ->check(CLI::IsMember({"f32", "bf16", "both"}))
            ->option_text("NAME");
        app.add_option("--repeats", a_.repeats,
                       "runs of each, in turns; the table has their median (default: 5)")
            ->check(CLI::Range(1, 1000))
            ->option_text("N");
        app.add_option("--peer", a_.peers,
                       "Pythons that have torch, the fastest counts; or none (default: the first found)")
            ->option_text("PYTHON,...");
        CLI::Option* eager =
            app.add_flag("--eager", a_.eager, "do not try torch.compile, which takes minutes a mark");
        app.add_option(
               "--variant", a_.variant,
               "these settings of PyTorch alone, not a search for the fastest: " + choices_of_variants() +
                   "; what is not named is the first of those this PyTorch has")
            ->excludes(eager)
            ->option_text("NAME=CHOICE,...");
        app.add_flag("--no-graph", a_.no_graph, "with --device cuda, steps op by op, not as one graph");
        app.add_flag("--deterministic", a_.deterministic,
                     "with --device cuda, products by the engine's own kernels");
        app.add_flag("--brief", a_.brief,
                     "a few steps: enough to try the bench, too few to believe a number");
        app.add_flag("--json", a_.json, "the same as JSON, with each run, op, product and setting tried");
        app.add_option("--save", a_.save, "the JSON into a file, too, which is written after each mark")
            ->option_text("FILE");
    }

    void run(const Common& common) override {
        stop_requested();  // from here on Ctrl-C asks
        if (a_.precision.empty()) a_.precision = common.device == Device::cuda ? "bf16" : "f32";
        const std::vector<std::string> marks =
            a_.marks.empty() ? default_train_marks(common.device) : listed(a_.marks);
        for (const std::string& mark : marks) train_mark(mark, common.seed);  // is there such a mark?
        variant_named(a_.variant);
        hide_blas_settings();
        const Machine machine = this_machine();
        head_ = json_head("train", common.device, machine);
        const std::string about = described(machine, common.device);
        if (!a_.json) fmt::print("{}", about);
        std::fflush(stdout);
        bool whole = true;
        for (const std::string& mark : marks)
            for (const char* precision : {"f32", "bf16"}) {
                if (a_.precision != "both" && a_.precision != precision) continue;
                if (stop_requested()) break;
                try {
                    results_.push_back(measure(mark, precision, common));
                } catch (const std::exception& error) {
                    whole = false;
                    log_line("error: ", mark, ' ', precision, ": ", error.what());
                    results_.push_back({{"mark", mark},
                                        {"precision", precision},
                                        {"notes", {error.what()}},
                                        {"complete", false}});
                }
                save(results_, false);
            }
        finish(whole);
        if (!whole) throw Error("not every mark could be measured");
    }

  private:
    Json measure(const std::string& mark, const std::string& precision, const Common& common) const {
        TrainMeasurement wanted;
        wanted.mark = train_mark(mark, common.seed);
        wanted.storage = precision == "bf16" ? DType::bf16 : DType::f32;
        wanted.device = common.device;
        wanted.seed = common.seed;
        wanted.repeats = a_.brief ? 1 : a_.repeats;
        wanted.all_pythons = !a_.peers.empty();
        wanted.compiled = !a_.eager;
        wanted.variant = variant_named(a_.variant);
        wanted.graph = !a_.no_graph;
        wanted.deterministic = a_.deterministic;
        if (a_.brief) {
            wanted.burst_seconds = wanted.profile_seconds = wanted.product_seconds = 0;
            wanted.floor_side = 64;
        }
        if (a_.peers != "none") wanted.pythons = a_.peers.empty() ? pythons() : listed(a_.peers);
        wanted.keep = [this](const Json& so_far) {
            Json all = results_;
            all.push_back(so_far);
            save(all, false);
        };
        const auto work = [&] { return measure_training(wanted); };
        const Json result = common.device == Device::cuda ? work() : in_own_process(work);
        if (!a_.json) fmt::print("\n{}", train_report(result));
        std::fflush(stdout);
        return result;
    }

    Json save(const Json& marks, bool complete) const {
        Json all = head_;
        all["marks"] = marks;
        all["complete"] = complete;
        if (!a_.save.empty()) save_json(a_.save, all);
        return all;
    }

    void finish(bool whole) const {
        const bool stopped = stop_requested();
        if (stopped) log_line("note: stopped as asked; the marks that are there are whole");
        const Json all = save(results_, whole && !stopped);
        if (a_.json)
            fmt::print("{}\n", all.dump(2));
        else if (results_.size() > 1)
            fmt::print("\n{}", train_summary(results_));
    }

    Json head_, results_ = Json::array();
    Arguments a_;
};

}  // namespace

std::unique_ptr<BenchCase> train_case() { return std::make_unique<TrainCase>(); }

}  // namespace masquerade
