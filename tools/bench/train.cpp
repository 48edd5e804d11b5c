// SPDX-License-Identifier: MIT
// ./bench train: full training steps, where their time goes, and how well the device is used.
#include "tools/bench/train.h"

#include <malloc.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <fstream>

#include "engine/base/memory.h"
#include "engine/base/wrap.h"
#include "engine/ops/ops.h"
#include "tools/bench/measure.h"
#include "tools/bench/train_ours.h"
#include "tools/bench/train_profile.h"

namespace masquerade {
namespace {

struct Options {
    std::vector<std::string> marks;
    std::string precision;
    bool brief = false, no_graph = false, deterministic = false;
};

// The most memory that is taken from here on: by the process, or of a GPU.
class MemoryMeter {
  public:
    explicit MemoryMeter(Device device) : device_(device) {
        malloc_trim(0);
        std::ofstream("/proc/self/clear_refs") << "5";  // the most that was resident is counted from here on
        before_ = taken();
    }
    std::int64_t bytes() const { return taken() - before_; }

  private:
    std::int64_t taken() const {
        return device_ == Device::cuda ? -std::int64_t(cuda_runtime().facts().bytes_free) : peak_resident_bytes();
    }

    Device device_;
    std::int64_t before_;
};

// y(S,S) = x(S,S) w(S,S)^T in one type, as fast as the device multiplies.
class LargeProduct {
  public:
    LargeProduct(std::int64_t side, DType type, Device device) : side_(side), type_(type), device_(device) {
        const std::vector<float> numbers(std::size_t(side * side), 0.5f);
        for (Buffer* block : {&x_, &w_, &y_}) {
            *block = Buffer(numbers.size() * bytes_of(type), device);
            write_numbers(view(*block), numbers.data());
        }
    }
    void run(double budget) {
        auto call = [&] { linear_forward(view(x_), view(w_), View{}, view(y_)); };
        call();
        runs_.push_back(seconds_of(call, budget, device_));
    }
    // Multiply-adds a second.
    double rate() const { return double(side_) * double(side_) * double(side_) / spread_of(runs_).median; }

  private:
    View view(const Buffer& block) const { return {block.data(), type_, device_, {side_, side_}, "large product"}; }

    std::int64_t side_;
    DType type_;
    Device device_;
    Buffer x_, w_, y_;
    std::vector<double> runs_;
};

// Computes ours without dropout, and says from which weights: the peer is asked to compute the same.
Json check(Bench& bench, const TrainWork& work, const SharedFolder& folder, Json& row) {
    OurTraining plain(work.mark, work.storage, bench.common.seed, false, bench.common.device);
    plain.graph = work.graph;
    Json about = work.mark.about();
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

// Steps taken apart; the multiply-adds of one.
MultiplyAdds profile(OurTraining& training, double budget, Json& row) {
    StepProfile profile;
    training.observe(&profile);
    training.waits = true;
    training.step();
    profile.clear();
    int steps = 0;
    double update = 0;
    const double start = steady_seconds();
    while (steps < 3 || steady_seconds() - start < budget) {
        training.step();
        update += training.update_seconds();
        steps++;
    }
    const double seconds = steady_seconds() - start;
    training.waits = false;
    training.ignore(&profile);
    row["profiled_step"] = seconds / steps;
    for (const StepPart& part : profile.parts(steps, seconds, update))
        row["parts"].push_back({{"name", part.name}, {"seconds", part.seconds}});
    return {profile.recorded.bf16 / steps, profile.recorded.f32 / steps};
}

// How far the step is from one that is nothing but products, each at the rate of a large one in its type; attention's count at
// the best rate.
Json floor_of(const MultiplyAdds& products, double attention, double step, double bf16_rate, double f32_rate) {
    const double work = products.bf16 + products.f32, best = std::max(bf16_rate, f32_rate);
    double seconds = attention / best;
    if (products.bf16 > 0) seconds += products.bf16 / bf16_rate;
    if (products.f32 > 0) seconds += products.f32 / f32_rate;
    return {{"seconds", seconds}, {"share_of_step", seconds / step}, {"gflop", 2e-9 * work},
            {"attention_gflop", 2e-9 * attention}, {"best_gflops", 2e-9 * best},
            {"reached_gflops", 2e-9 * (work + attention) / step}};
}

// For people: what the mark is, what ours computes and holds, the parts of a step, the floor.
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
        number("/parameters") / 1e6, number("/sentences"), number("/amount"), number("/check/loss"), number("/check/norm"),
        number("/check/next"), number("/peak_bytes") / (1 << 20), number("/activation_bytes") / (1 << 20));
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
        number("/floor/attention_gflop"), side, side, side, number("/floor/best_gflops"), number("/floor/reached_gflops"));
    return wrapped(out, 80) + '\n';
}

void run(Bench& bench, Options o) {
    const Device device = bench.common.device;
    if (o.precision.empty()) o.precision = device == Device::cuda ? "bf16" : "f32";
    if (o.marks.empty()) o.marks = default_train_marks(device);
    bench.begin();
    for (const std::string& mark : o.marks)
        for (DType storage : {DType::f32, DType::bf16}) {
            if (o.precision != "both" && o.precision != name_of(storage)) continue;
            TrainWork work{train_mark(mark, bench.common.seed), storage, !o.no_graph, o.deterministic};
            if (device == Device::cuda) work.side = 8192;
            if (o.brief) work.burst_seconds = work.profile_seconds = work.product_seconds = 0, work.side = 64;
            measure_training(bench, work);
        }
}

}  // namespace

// Ours takes its first steps before the peer starts: they take memory that the peer would hold.
void measure_training(Bench& bench, const TrainWork& work) {
    const TrainMark& mark = work.mark;
    const Device device = bench.common.device;
    const std::string precision = name_of(work.storage), name = mark.name + ", " + precision;
    Json row = {{"name", name}, {"mark", mark.name}, {"precision", precision}, {"amount", mark.tokens()}, {"unit", "tokens"},
                {"sentences", mark.sentences.size()}, {"sizes", mark.sizes()}};
    if (device == Device::cuda) {
        cuda_runtime().choose_products({false, work.deterministic});
        row["graph"] = work.graph;
        row["deterministic"] = work.deterministic;
    }
    bench.progress(name + ": without dropout");
    const SharedFolder folder;
    Json about = check(bench, work, folder, row);
    about["budget"] = work.burst_seconds;
    const MemoryMeter memory(device);
    OurTraining training(mark, work.storage, bench.common.seed, true, device);
    training.graph = work.graph;
    bench.progress(name + ": the first steps");
    training.step();
    malloc_trim(0);   // what the first step held without a plan
    training.step();  // the first step in planned memory
    bench.progress(name + ": where the time goes");
    const MultiplyAdds products = profile(training, work.profile_seconds, row);
    row["activation_bytes"] = training.activation_bytes();
    row["peak_bytes"] = memory.bytes();

    LargeProduct bf16(work.side, DType::bf16, device), f32(work.side, DType::f32, device);
    auto turn = [&] {
        training.step();  // meets the caches as another program left them
        const double seconds = seconds_of([&] { training.step(); }, work.burst_seconds);
        if (products.bf16 > 0) bf16.run(work.product_seconds);
        f32.run(work.product_seconds);
        return seconds;
    };
    bench.measure(row, about, {{"ours", turn}}, [&](Json& whole) {
        const double step = whole["seconds"]["median"], bf16_rate = products.bf16 > 0 ? bf16.rate() : 0;
        whole["floor"] = floor_of(products, training.attention_multiply_adds(), step, bf16_rate, f32.rate());
        return details(whole, work.side);
    });
}

RunCase train_case(CLI::App& app) {
    auto o = std::make_shared<Options>();
    app.add_option("--marks", o->marks,
                   fmt::format("what to measure: {} (default: {}; with --device cuda {})",
                               fmt::join(train_mark_names(), ", "), fmt::join(default_train_marks(Device::cpu), ", "),
                               fmt::join(default_train_marks(Device::cuda), ", ")))
        ->delimiter(',')
        ->check(CLI::IsMember(train_mark_names()))
        ->option_text("NAME,...");
    app.add_option("--precision", o->precision, "f32, bf16 or both (default: f32; with --device cuda bf16)")
        ->check(CLI::IsMember({"f32", "bf16", "both"}))
        ->option_text("NAME");
    app.add_flag("--no-graph", o->no_graph, "with --device cuda, steps op by op, not as one graph");
    app.add_flag("--deterministic", o->deterministic, "with --device cuda, products by the engine's own kernels");
    app.add_flag("--brief", o->brief, "a few steps: enough to try the bench, too few to believe a number");
    return [o](Bench& bench) { run(bench, *o); };
}

}  // namespace masquerade
