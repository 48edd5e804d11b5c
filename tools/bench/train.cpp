// SPDX-License-Identifier: MIT
// ./bench train: measures full training steps, where their time goes, and how well they use the device.
#include <malloc.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>

#include "engine/base/wrap.h"
#include "engine/ops/ops.h"
#include "engine/tensor/numbers.h"
#include "tools/bench/measure.h"
#include "tools/bench/train.h"

namespace masquerade {
namespace {

struct CaseOptions {
    Strings marks;
    std::string precision;
    TrainWay way;
};

// Computes two steps without dropout, whose results the peer (PyTorch) must reproduce. Adds the results to `row` and,
// as text, to `said`. Returns what the peer needs for these steps: the batch, the optimiser's settings, the noise of
// the latents and, with --turns, the weights. Without --turns, no peer runs, so the large file of weights is not
// written.
Json check(Bench& bench, const TrainMark& mark, DType storage, const TrainWay& way, const SharedFolder& folder,
           Json& row, std::string& said) {
    MarkTraining plain(mark, storage, bench.common, false, way);
    const TrainOptions& o = plain.options;
    const Parameters& parameters = plain.task->parameters;
    Json about = {{"ids", mark.sentences},
                  {"targets", mark.targets},
                  {"rule",
                   {{"rate", o.learning_rate},
                    {"beta1", o.beta1},
                    {"beta2", o.beta2},
                    {"eps", o.eps},
                    {"decay", o.weight_decay},
                    {"clip", o.clip}}}};
    if (bench.options.turns) {
        const OnHost all(parameters.values());
        about["weights"] = folder.write("weights", {static_cast<const char*>(all.view().data), all.view().bytes()});
        about["places"] = weight_places(parameters);
    }
    const double loss = plain.trainer.train_step(), norm = plain.trainer.norm(), next = plain.trainer.train_step();
    about["noise"] = plain.task->noise();
    row["parameters"] = parameters.count();
    row["check"] = {{"loss", loss}, {"norm", norm}, {"next", next}};
    const BackboneOptions& b = mark.model.backbone;
    said += fmt::format(
        "  {} layers, width {}, {} heads, inner {}, vocabulary {}{}; {:.2f} M parameters; {} sentences, {} tokens\n"
        "  without dropout: loss {:.5f}, norm {:.5f}, after an update {:.5f}\n",
        b.layers, b.width, b.heads, b.inner, b.vocabulary,
        mark.univae ? text(", ", mark.model.latent_layers, " latents of ", mark.model.latent.size) : "",
        double(parameters.count()) / 1e6, mark.sentences.size(), mark.tokens(), loss, norm, next);
    return about;
}

// Measures how long each op takes in a step: the time of all calls of the op, forward and backward, as the mean of
// several steps. Adds these times, the time of the optimiser and the rest of the step to `row`, and to `said` as lines
// of text. The times are sorted, longest first, but the rest comes last. Returns the multiply-adds of the linear layers
// and of the loss in one step.
double profile(MarkTraining& training, double budget, Json& row, std::string& said) {
    StepProfile profile;
    Trainer& trainer = training.trainer;
    trainer.observe(&profile);
    trainer.train_step();
    profile = {};
    int steps = 0;
    double backward_end = 0, update = 0;
    trainer.before_update = [&] {
        wait_for(training.task->parameters.device());
        backward_end = steady_seconds();
    };
    const double start = steady_seconds();
    while (steps < 3 || steady_seconds() - start < budget) {
        trainer.train_step();
        update += steady_seconds() - backward_end;
        steps++;
    }
    const double all = steady_seconds() - start;
    trainer.ignore(&profile);
    trainer.before_update = nullptr;
    row["profiled_step"] = all / steps;
    said += "  of a step, which took " + figures(1e3 * all / steps) + " ms taken apart\n";
    std::vector<std::pair<double, std::string>> parts = {{update, "optimiser"}};
    for (const auto& [op, share] : profile.shares()) parts.emplace_back(share.forward + share.backward, op);
    double rest = all;
    for (const auto& part : parts) rest -= part.first;
    std::sort(parts.rbegin(), parts.rend());
    parts.emplace_back(rest, "rest");
    for (const auto& [seconds, name] : parts) {
        row["parts"].push_back({{"name", name}, {"seconds", seconds / steps}});
        said += fmt::format("  {:<18}{:>9} ms{:>7.1f} %\n", name, figures(1e3 * seconds / steps), 100 * seconds / all);
    }
    return profile.multiply_adds / steps;
}

void run(Bench& bench, CaseOptions o) {
    const Device device = bench.common.device;
    if (o.precision.empty()) o.precision = device == Device::cuda ? "bf16" : "f32";
    if (o.marks.empty()) o.marks = train_mark_names(device);
    bench.begin(Json::object());
    for (const std::string& mark : o.marks)
        for (DType storage : {DType::f32, DType::bf16})
            if (o.precision == "both" || o.precision == name_of(storage))
                measure_training(bench, train_mark(mark, bench.common.seed), storage, o.way);
}

}  // namespace

// This engine's first steps run before the peer (PyTorch) starts. The reason: if the first step is not rehearsed
// (engine/tape/rehearsal.h), its memory is not planned, so it needs more memory than later steps. When the peer runs,
// so much memory may not be free.
void measure_training(Bench& bench, const TrainMark& mark, DType storage, const TrainWay& way) {
    const Device device = bench.common.device;
    const std::string precision = name_of(storage), name = mark.name + ", " + precision;
    const std::int64_t side = way.brief ? 64 : device == Device::cuda ? 8192 : 2048;  // rows of large square matrices
    const double run_seconds = way.brief ? 0 : 1, product_seconds = 0.1 * run_seconds;
    Json row = {{"name", name},           {"mark", mark.name},
                {"precision", precision}, {"amount", mark.tokens()},
                {"unit", "tokens"},       {"sentences", mark.sentences.size()},
                {"sizes", mark.sizes()}};
    if (device == Device::cuda) row["graph"] = !way.no_graph, row["deterministic"] = way.deterministic;
    bench.progress(name + ": without dropout");
    const SharedFolder folder;
    std::string said, parts;
    Json about = check(bench, mark, storage, way, folder, row, said);
    about["budget"] = run_seconds;
    forget_peak();
    const std::int64_t before = memory_taken(device);
    MarkTraining training(mark, storage, bench.common, true, way);
    Trainer& trainer = training.trainer;
    bench.progress(name + ": the first steps");
    trainer.train_step();
    malloc_trim(0);        // returns memory to the system: a first step without rehearsal needs more than later steps
    trainer.train_step();  // this step uses the memory plan, even if the first step was not rehearsed
    bench.progress(name + ": where the time goes");
    const double products = profile(training, 1.5 * run_seconds, row, parts);
    const std::int64_t peak = memory_taken(device) - before;
    row["activation_bytes"] = trainer.planned_bytes();
    row["peak_bytes"] = peak;
    said += fmt::format("  memory: {:.0f} MiB, of it activations {:.0f} MiB, planned\n", double(peak) / (1 << 20),
                        double(trainer.planned_bytes()) / (1 << 20)) +
            parts;

    // A large product y = x w^T of square matrices shows how fast the device multiplies.
    const std::vector<float> halves(side * side, 0.5f);
    const OwnedTensor x = make_tensor({side, side}, storage, device, halves),
                      w = make_tensor({side, side}, storage, device, halves),
                      y = make_tensor({side, side}, storage, device);
    const auto multiply = [&] { linear_forward(x.view, w.view, View{}, y.view); };
    Numbers multiplications;
    auto turn = [&] {
        trainer.train_step();  // not timed, because the peer (PyTorch) or the large product has filled the caches
        const double seconds = seconds_of([&] { trainer.train_step(); }, run_seconds);
        multiply();
        multiplications.push_back(seconds_of(multiply, product_seconds, device));
        return seconds;
    };
    // The floor is a lower bound of the time of a step: its multiply-adds at the speed of the large product.
    bench.measure(row, about, turn, [&](Json& whole) {
        const double step = whole["seconds"]["median"], attention = training.task->attention_multiply_adds(),
                     rate = std::pow(double(side), 3) / spread_of(multiplications).median,
                     seconds = (products + attention) / rate;
        whole["floor"] = {{"seconds", seconds},         {"share_of_step", seconds / step},
                          {"gflop", 2e-9 * products},   {"attention_gflop", 2e-9 * attention},
                          {"best_gflops", 2e-9 * rate}, {"reached_gflops", 2e-9 * (products + attention) / step}};
        said += fmt::format(
            "  floor {} ms, {:.0f} % of a step: {:.1f} GFLOP of products and {:.2f} of attention at the rate of a "
            "product of {} x {} x {}, {:.0f} GFLOP/s; a step reaches {:.0f}\n",
            figures(1e3 * seconds), 100 * seconds / step, 2e-9 * products, 2e-9 * attention, side, side, side,
            2e-9 * rate, 2e-9 * (products + attention) / step);
        return wrapped(said, 80) + '\n';
    });
}

RunCase train_case(Options& app) {
    auto o = std::make_shared<CaseOptions>();
    const Strings names = train_mark_names();
    app.value("--marks", o->marks, "NAME,...",
              fmt::format("what to measure: {} (default: {}; with --device cuda {})", fmt::join(names, ", "),
                          fmt::join(train_mark_names(Device::cpu), ", "),
                          fmt::join(train_mark_names(Device::cuda), ", ")))
        .list()
        .one_of(names);
    app.choice("--precision", o->precision, {"f32", "bf16", "both"},
               "f32, bf16 or both (default: f32; with --device cuda bf16)");
    app.flag("--no-graph", o->way.no_graph, "with --device cuda, run steps op by op, not as one graph");
    app.flag("--deterministic", o->way.deterministic,
             "with --device cuda, compute matrix products with this program's own kernels instead of cuBLAS");
    app.flag("--brief", o->way.brief, "run only a few steps, to try the bench: too few for a reliable number");
    return [o](Bench& bench) { run(bench, *o); };
}

}  // namespace masquerade
