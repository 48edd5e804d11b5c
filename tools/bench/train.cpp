// SPDX-License-Identifier: MIT
// ./bench train: full training steps.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tools/bench/memory.h"
#include "tools/bench/session.h"
#include "tools/bench/train_measure.h"

namespace masquerade {
namespace {

class TrainCase : public BenchCase {
  public:
    TrainCase() : BenchCase("train", "full training steps of BERT and UniVAE", "PyTorch") {}

    void add_options(CLI::App& app) override {
        app.add_option("--marks", marks_,
                       fmt::format("what to measure: {} (default: {}; with --device cuda {})",
                                   fmt::join(train_mark_names(), ", "),
                                   fmt::join(default_train_marks(Device::cpu), ", "),
                                   fmt::join(default_train_marks(Device::cuda), ", ")))
            ->delimiter(',')
            ->option_text("NAME,...");
        app.add_option("--precision", precision_, "f32, bf16 or both (default: f32; with --device cuda bf16)")
            ->check(CLI::IsMember({"f32", "bf16", "both"}))
            ->option_text("NAME");
        app.add_flag("--no-graph", no_graph_, "with --device cuda, steps op by op, not as one graph");
        app.add_flag("--deterministic", deterministic_,
                     "with --device cuda, products by the engine's own kernels");
        app.add_flag("--brief", brief_, "a few steps: enough to try the bench, too few to believe a number");
    }

    void run(Session& session) override {
        const Common& common = session.common;
        if (precision_.empty()) precision_ = common.device == Device::cuda ? "bf16" : "f32";
        if (marks_.empty()) marks_ = default_train_marks(common.device);
        for (const std::string& mark : marks_) train_mark(mark, common.seed);  // is there such a mark?
        session.begin("marks", {}, "");
        bool whole = true;
        for (const std::string& mark : marks_)
            for (const char* precision : {"f32", "bf16"}) {
                if (precision_ != "both" && precision_ != precision) continue;
                try {
                    measure(session, mark, precision);
                } catch (const std::exception& error) {
                    whole = false;
                    log_line("error: ", mark, ' ', precision, ": ", error.what());
                    session.add({{"mark", mark}, {"precision", precision}, {"notes", {error.what()}},
                                 {"complete", false}},
                                {});
                }
            }
        if (!whole) throw Error("not every mark could be measured");
    }

  private:
    void measure(Session& session, const std::string& mark, const std::string& precision) const {
        TrainMeasurement wanted;
        wanted.mark = train_mark(mark, session.common.seed);
        wanted.storage = precision == "bf16" ? DType::bf16 : DType::f32;
        wanted.device = session.common.device;
        wanted.seed = session.common.seed;
        wanted.repeats = brief_ ? 1 : session.options.repeats;
        wanted.graph = !no_graph_;
        wanted.deterministic = deterministic_;
        if (brief_) {
            wanted.burst_seconds = wanted.profile_seconds = wanted.product_seconds = 0;
            wanted.floor_side = 64;
        }
        wanted.keep = [&](const Json& so_far) { session.keep(so_far); };
        wanted.start = [&](const Json& about) { session.start(about); };
        wanted.turn = [&] { return session.turn(); };
        // On a GPU, which a process that was forked cannot use, in this one.
        const auto work = [&] { return measure_training(wanted); };
        const Json result = wanted.device == Device::cuda ? work() : in_own_process(work);
        session.add(result, train_report(result));
        if (!result.at("complete").get<bool>()) throw Stopped{};
    }

    std::vector<std::string> marks_;
    std::string precision_;
    bool brief_ = false, no_graph_ = false, deterministic_ = false;
};

}  // namespace

std::unique_ptr<BenchCase> train_case() { return std::make_unique<TrainCase>(); }

}  // namespace masquerade
