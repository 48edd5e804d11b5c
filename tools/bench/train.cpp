// SPDX-License-Identifier: MIT
// ./bench train: measures full training steps, where their time goes, and how well they use the device.
#include <malloc.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <fstream>
#include <memory>

#include "engine/base/memory.h"
#include "engine/base/wrap.h"
#include "engine/ops/ops.h"
#include "tools/bench/bench.h"
#include "tools/bench/measure.h"
#include "tools/bench/train.h"

namespace masquerade {
namespace {

struct CaseOptions {
    std::vector<std::string> marks;
    std::string precision;
    TrainWay way;
    bool no_graph = false;
};

// Returns a number of bytes. The difference between two calls is the memory that was taken in between. On the CPU, the
// number is the peak memory of the process since forget_peak(); on a GPU, it is minus the free memory.
std::int64_t memory_taken(Device device) {
    return device == Device::cuda ? -std::int64_t(cuda_runtime().facts().bytes_free) : peak_resident_bytes();
}
void forget_peak() {
    malloc_trim(0);
    std::ofstream("/proc/self/clear_refs") << "5";
}

// A large product y = x w^T of square matrices in one type. It shows how fast the device multiplies.
struct LargeProduct {
    const std::int64_t side;
    const DType type;
    const Device device;
    Buffer x = filled(), w = filled(), y = filled();
    std::vector<double> runs = {};

    void run(double budget) {
        auto call = [&] { linear_forward(view(x), view(w), View{}, view(y)); };
        call();
        runs.push_back(seconds_of(call, budget, device));
    }
    // Returns the median speed, in multiply-adds per second.
    double rate() const { return double(side) * double(side) * double(side) / spread_of(runs).median; }
    View view(const Buffer& block) const { return {block.data(), type, device, {side, side}, "large product"}; }
    Buffer filled() const {
        const std::vector<float> numbers(std::size_t(side * side), 0.5f);
        Buffer block(numbers.size() * bytes_of(type), device);
        write_numbers(view(block), numbers.data());
        return block;
    }
};

// Computes a step without dropout, and adds its results to the row; the peer (PyTorch) must reproduce them. Returns
// what the peer needs for this: the batch, the optimiser's settings, the noise and, with --turns, the weights.
Json check(Bench& bench, const TrainMark& mark, DType storage, bool graph, const SharedFolder& folder, Json& row) {
    OurTraining plain(mark, storage, bench.common.seed, false, bench.common.device);
    plain.graph = graph;
    Json about = mark.about();
    if (bench.options.turns) {
        const OnHost all = plain.weights();
        about["weights"] = folder.write("weights", {static_cast<const char*>(all.view().data), all.view().bytes()});
        about["places"] = plain.weight_places();
    }
    about["noise"] = plain.noise();
    const double loss = plain.step(), norm = plain.norm(), next = plain.loss();
    row["parameters"] = plain.parameters();
    row["check"] = {{"loss", loss}, {"norm", norm}, {"next", next}};
    return about;
}

// Measures how long each op of a step takes, and adds the times to the row, longest first. Returns the multiply-adds
// of the linear layers and losses in one step.
double profile(OurTraining& training, double budget, Json& row) {
    StepProfile profile;
    training.waits = true;
    training.step();
    training.observe(&profile);
    int steps = 0;
    double update = 0;
    const double start = steady_seconds();
    while (steps < 3 || steady_seconds() - start < budget) {
        training.step();
        update += training.update_seconds();
        steps++;
    }
    double rest = steady_seconds() - start;
    training.waits = false;
    training.ignore(&profile);
    row["profiled_step"] = rest / steps;
    std::vector<std::pair<double, std::string>> parts = {{update, "optimiser"}};
    for (const auto& [op, share] : profile.shares()) parts.emplace_back(share.forward + share.backward, op);
    for (const auto& part : parts) rest -= part.first;
    std::sort(parts.rbegin(), parts.rend());
    parts.emplace_back(rest, "rest");
    for (const auto& [seconds, name] : parts) row["parts"].push_back({{"name", name}, {"seconds", seconds / steps}});
    return profile.multiply_adds / steps;
}

// Returns, as JSON, a lower bound of the time of a step: the time that its multiply-adds would take at `rate`, the
// speed of the large product in multiply-adds per second. `products` counts those of linear layers and losses,
// `attention` those of attention. `step` is the measured seconds of a step.
Json floor_of(double products, double attention, double step, double rate) {
    const double work = products + attention;
    return {{"seconds", work / rate},     {"share_of_step", work / rate / step},
            {"gflop", 2e-9 * products},   {"attention_gflop", 2e-9 * attention},
            {"best_gflops", 2e-9 * rate}, {"reached_gflops", 2e-9 * work / step}};
}

// Formats the row as text: sizes of the mark, results without dropout, memory, times of the parts of a step, and the
// lower bound of the time of a step. `side` is the number of rows of the large product.
std::string details(const Json& row, std::int64_t side) {
    auto number = [&](const char* place) { return row.at(Json::json_pointer(place)).get<double>(); };
    const double latents = number("/sizes/latent_layers"), step = number("/profiled_step");
    std::string out = fmt::format(
        "  {} layers, width {}, {} heads, inner {}, vocabulary {}{}; {:.2f} M parameters; {} sentences, {} tokens\n"
        "  without dropout: loss {:.5f}, norm {:.5f}, after an update {:.5f}\n"
        "  memory: {:.0f} MiB, of it activations {:.0f} MiB, planned\n",
        number("/sizes/layers"), number("/sizes/width"), number("/sizes/heads"), number("/sizes/inner"),
        number("/sizes/vocabulary"),
        latents > 0 ? fmt::format(", {} latents of {}", latents, number("/sizes/latent_size")) : "",
        number("/parameters") / 1e6, number("/sentences"), number("/amount"), number("/check/loss"),
        number("/check/norm"), number("/check/next"), number("/peak_bytes") / (1 << 20),
        number("/activation_bytes") / (1 << 20));
    out += fmt::format("  of a step, which took {} ms taken apart\n", figures(1e3 * step));
    for (const Json& part : row["parts"]) {
        const double seconds = part["seconds"];
        out += fmt::format("  {:<18}{:>9} ms{:>7.1f} %\n", part["name"].get<std::string>(), figures(1e3 * seconds),
                           100 * seconds / step);
    }
    out += fmt::format(
        "  floor {} ms, {:.0f} % of a step: {:.1f} GFLOP of products and {:.2f} of attention at the rate of a product of "
        "{} x {} x {}, {:.0f} GFLOP/s; a step reaches {:.0f}\n",
        figures(1e3 * number("/floor/seconds")), 100 * number("/floor/share_of_step"), number("/floor/gflop"),
        number("/floor/attention_gflop"), side, side, side, number("/floor/best_gflops"),
        number("/floor/reached_gflops"));
    return wrapped(out, 80) + '\n';
}

void run(Bench& bench, CaseOptions o) {
    const Device device = bench.common.device;
    if (o.precision.empty()) o.precision = device == Device::cuda ? "bf16" : "f32";
    if (o.marks.empty()) o.marks = train_mark_names(device);
    o.way.graph = !o.no_graph;
    bench.begin();
    for (const std::string& mark : o.marks)
        for (DType storage : {DType::f32, DType::bf16})
            if (o.precision == "both" || o.precision == name_of(storage))
                measure_training(bench, train_mark(mark, bench.common.seed), storage, o.way);
}

}  // namespace

// This engine's first steps run before the peer (PyTorch) starts, because the unplanned first step needs memory that
// the peer will occupy.
void measure_training(Bench& bench, const TrainMark& mark, DType storage, const TrainWay& way) {
    const Device device = bench.common.device;
    const std::string precision = name_of(storage), name = mark.name + ", " + precision;
    const std::int64_t side = way.brief ? 64 : device == Device::cuda ? 8192 : 2048;  // rows of the large product
    const double run_seconds = way.brief ? 0 : 1, product_seconds = 0.1 * run_seconds;
    Json row = {{"name", name},           {"mark", mark.name},
                {"precision", precision}, {"amount", mark.tokens()},
                {"unit", "tokens"},       {"sentences", mark.sentences.size()},
                {"sizes", mark.sizes()}};
    if (device == Device::cuda) {
        cuda_runtime().choose_products({false, way.deterministic});
        row["graph"] = way.graph;
        row["deterministic"] = way.deterministic;
    }
    bench.progress(name + ": without dropout");
    const SharedFolder folder;
    Json about = check(bench, mark, storage, way.graph, folder, row);
    about["budget"] = run_seconds;
    forget_peak();
    const std::int64_t before = memory_taken(device);
    OurTraining training(mark, storage, bench.common.seed, true, device);
    training.graph = way.graph;
    bench.progress(name + ": the first steps");
    training.step();
    malloc_trim(0);   // returns the memory of the first, unplanned step to the system
    training.step();  // the first step that runs in planned memory
    bench.progress(name + ": where the time goes");
    const double products = profile(training, 1.5 * run_seconds, row);
    row["activation_bytes"] = training.activation_bytes();
    row["peak_bytes"] = memory_taken(device) - before;

    LargeProduct large{side, storage, device};
    auto turn = [&] {
        training.step();  // not timed, because the peer (PyTorch) has filled the caches with its own data
        const double seconds = seconds_of([&] { training.step(); }, run_seconds);
        large.run(product_seconds);
        return seconds;
    };
    bench.measure(row, about, turn, [&](Json& whole) {
        const double step = whole["seconds"]["median"];
        whole["floor"] = floor_of(products, training.attention_multiply_adds(), step, large.rate());
        return details(whole, side);
    });
}

RunCase train_case(Options& app) {
    auto o = std::make_shared<CaseOptions>();
    const std::vector<std::string> names = train_mark_names();
    app.value("--marks", o->marks, "NAME,...",
              fmt::format("what to measure: {} (default: {}; with --device cuda {})", fmt::join(names, ", "),
                          fmt::join(train_mark_names(Device::cpu), ", "),
                          fmt::join(train_mark_names(Device::cuda), ", ")))
        .list()
        .one_of(names);
    app.choice("--precision", o->precision, {"f32", "bf16", "both"},
               "f32, bf16 or both (default: f32; with --device cuda bf16)");
    app.flag("--no-graph", o->no_graph, "with --device cuda, run steps op by op, not as one graph");
    app.flag("--deterministic", o->way.deterministic, "with --device cuda, use the engine's own kernels for products");
    app.flag("--brief", o->way.brief, "run only a few steps, to try the bench: too few for a reliable number");
    return [o](Bench& bench) { run(bench, *o); };
}

}  // namespace masquerade
