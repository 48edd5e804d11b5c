// SPDX-License-Identifier: MIT
// ./bench train: full training steps, beside PyTorch.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>

#include "engine/base/log.h"
#include "tools/bench/case.h"
#include "tools/bench/machine.h"
#include "tools/bench/memory.h"
#include "tools/bench/peer.h"
#include "tools/bench/train_measure.h"
#include "tools/bench/train_report.h"

namespace masquerade {
namespace {

using Json = nlohmann::ordered_json;

struct Arguments {
    std::string marks, peers, precision = "f32";
    int repeats = 5;
    bool eager = false, json = false;
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
                       "what to measure: " + joined(train_mark_names()) + " (default: all)")
            ->option_text("NAME,...");
        app.add_option("--precision", a_.precision, "f32, bf16 or both (default: f32)")
            ->check(CLI::IsMember({"f32", "bf16", "both"}))
            ->option_text("NAME");
        app.add_option("--repeats", a_.repeats,
                       "runs of each, in turns; the table has their median (default: 5)")
            ->check(CLI::Range(1, 1000))
            ->option_text("N");
        app.add_option("--peer", a_.peers,
                       "Pythons that have torch, the fastest counts; or none (default: the first found)")
            ->option_text("PYTHON,...");
        app.add_flag("--eager", a_.eager, "do not try torch.compile, which takes minutes a mark");
        app.add_flag("--json", a_.json, "the same as JSON, with each run, op, product and setting tried");
    }

    void run(const Common& common) override {
        stop_requested();  // from here on Ctrl-C asks
        std::vector<std::string> marks = a_.marks.empty() ? train_mark_names() : listed(a_.marks);
        for (const std::string& mark : marks) train_mark(mark, common.seed);  // is there such a mark?
        hide_blas_settings();
        const Machine machine = this_machine();
        describe(machine);
        Json results = Json::array();
        std::string failed;
        for (const std::string& mark : marks)
            for (const char* precision : {"f32", "bf16"}) {
                if (a_.precision != "both" && a_.precision != precision) continue;
                if (stop_requested()) break;
                try {
                    results.push_back(measure(mark, precision, common.seed));
                } catch (const Error& error) {
                    failed = text(mark, ' ', precision, ": ", error.what());
                    log_line("error: ", failed);
                }
            }
        finish(machine, results, failed.empty());
        if (!failed.empty()) throw Error("not every mark could be measured");
    }

  private:
    void describe(const Machine& m) const {
        if (!m.optimised) log_line("warning: a debug or sanitizer build: its speed says nothing");
        if (a_.json) return;
        fmt::print("machine     {}, {} threads, {}\n", m.processor, m.threads, m.instructions);
        fmt::print("program     masquerade {}{}{}; load of the machine {:.1f}\n", version,
                   m.commit.empty() ? "" : ", commit ", m.commit, m.load);
        std::fflush(stdout);
    }

    Json measure(const std::string& mark, const std::string& precision, std::uint64_t seed) const {
        TrainMeasurement wanted;
        wanted.mark = mark;
        wanted.storage = precision == "bf16" ? DType::bf16 : DType::f32;
        wanted.seed = seed;
        wanted.repeats = a_.repeats;
        wanted.all_pythons = !a_.peers.empty();
        wanted.compiled = !a_.eager;
        if (a_.peers != "none") wanted.pythons = a_.peers.empty() ? pythons() : listed(a_.peers);
        const Json result = in_own_process([&] { return measure_training(wanted); });
        if (!a_.json) fmt::print("\n{}", train_report(result));
        std::fflush(stdout);
        return result;
    }

    void finish(const Machine& machine, const Json& results, bool whole) const {
        const bool stopped = stop_requested() || std::any_of(results.begin(), results.end(),
                                                             [](const Json& r) { return !r["complete"]; });
        if (stopped) log_line("note: stopped as asked; the marks that are there are whole");
        if (a_.json)
            fmt::print("{}\n", Json{{"case", "train"},
                                    {"machine", json_of(machine)},
                                    {"marks", results},
                                    {"complete", whole && !stopped}}
                                   .dump(2));
        else if (results.size() > 1)
            fmt::print("\n{}", train_summary(results));
    }

    Arguments a_;
};

}  // namespace

std::unique_ptr<BenchCase> train_case() { return std::make_unique<TrainCase>(); }

}  // namespace masquerade
