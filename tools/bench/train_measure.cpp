// SPDX-License-Identifier: MIT
#include "tools/bench/train_measure.h"

#include <fmt/format.h>

#include <optional>

#include "tools/bench/measure.h"
#include "tools/bench/memory.h"
#include "tools/bench/session.h"
#include "tools/bench/train_ours.h"
#include "tools/bench/train_profile.h"

namespace masquerade {
namespace {

struct Steps {
    double seconds = 0, faults = 0;  // of one
};

// The runs of one program: the spread of their seconds, tokens a second.
Json json_of_runs(const std::vector<double>& runs, double tokens) {
    const Spread s = spread_of(runs);
    return {{"seconds", {{"median", s.median}, {"least", s.least}, {"most", s.most}}},
            {"tokens_per_second", tokens / s.median}, {"runs", runs}};
}

class Measurement {
  public:
    explicit Measurement(const TrainMeasurement& what) : what_(what), mark_(what.mark) {}

    Json run() {
        json_ = {{"mark", mark_.name}, {"precision", name_of(what_.storage)}, {"device", name_of(what_.device)},
                 {"sizes", mark_.sizes()}, {"sentences", mark_.sentences.size()}, {"tokens", mark_.tokens()},
                 {"complete", false}};
        try {
            measure();
            json_["complete"] = true;
        } catch (const Stopped&) {
        }
        json_["notes"] = Json::array();
        show_progress("");
        return json_;
    }

  private:
    // Ours is measured before another program starts: the first steps take memory that it would hold, and what is known of
    // ours is not lost to it.
    void measure() {
        if (what_.device == Device::cuda) {
            cuda_runtime().choose_products({false, what_.deterministic});
            json_["graph"] = what_.graph;
            json_["deterministic"] = what_.deterministic;
        }
        progress("ours without dropout");
        auto plain = std::make_unique<OurTraining>(mark_, what_.storage, what_.seed, false, what_.device);
        plain->use_graph(what_.graph);
        const SharedFile weights = [&] {
            const OnHost all = plain->weights();
            return SharedFile({static_cast<const char*>(all.view().data), all.view().bytes()});
        }();
        Json start = check(*plain, weights.path());
        plain.reset();
        forget_peak();
        std::optional<DeviceMemoryMeter> memory;
        if (what_.device == Device::cuda) memory.emplace();
        OurTraining training(mark_, what_.storage, what_.seed, true, what_.device);
        StepProfile profile(what_.device);
        training.use_graph(what_.graph);
        training.observe(&profile);
        progress("ours: the first steps");
        const double first_loss = training.step();
        training.step();  // the first step in planned memory
        progress("ours: where the time goes");
        run_profile(training, profile);
        Json& ours = json_["ours"];
        ours["first_loss"] = first_loss;
        ours["activation_bytes"] = training.activation_bytes();
        ours["peak_bytes"] = memory ? std::int64_t(memory->peak_bytes()) : peak_resident_bytes();
        memory.reset();
        Floor floor{floor_products(profile, what_.floor_side), training.attention_multiply_adds()};
        progress("ours alone");
        ours.update(json_of_runs({burst(training).seconds}, mark_.tokens()));
        what_.keep(json_);
        start["so_far"] = json_;
        for (const FloorProduct& p : floor.products) start["products"].push_back(json_of(p));
        start["run_seconds"] = {what_.burst_seconds, what_.product_seconds};
        what_.start(start);
        in_turns(training, floor);
        describe_floor(floor);
    }

    void progress(const std::string& line) const {
        if (stop_requested()) throw Stopped{};
        show_progress(fmt::format("{} {}: {}", mark_.name, name_of(what_.storage), line));
    }

    // What ours computes without dropout, and from which weights: what another program is asked to compute, too.
    Json check(OurTraining& plain, const std::string& weights) {
        Json batch = mark_.batch();
        batch["noise"] = plain.noise();
        const double loss = plain.step(), norm = plain.norm(), next = plain.loss();
        json_["parameters"] = plain.parameters();
        json_["ours"]["check"] = {{"loss", loss}, {"norm", norm}, {"next", next}};
        return {{"device", name_of(what_.device)}, {"sizes", mark_.sizes()}, {"batch", batch},
                {"rule", mark_.optimiser()},
                {"weights", {{"file", weights}, {"tensors", plain.weight_places()}}}};
    }

    Steps burst(OurTraining& training) const {
        training.step();  // meets the caches as another program left them
        const std::int64_t faults = minor_faults();
        const double start = steady_seconds();
        int steps = 0;
        while (steps < 2 || steady_seconds() - start < what_.burst_seconds) training.step(), steps++;
        const double passed = steady_seconds() - start;
        return {passed / steps, double(minor_faults() - faults) / steps};
    }

    // Steps of ours, what the other program does in its turn, and the products alone.
    void in_turns(OurTraining& training, Floor& floor) {
        std::vector<double> runs;
        double faults = 0;
        for (int i = 0; i < what_.repeats; i++) {
            progress(fmt::format("{} of {}", i + 1, what_.repeats));
            const Steps ours = burst(training);
            runs.push_back(ours.seconds);
            faults += ours.faults / what_.repeats;
            const Json theirs = what_.turn();
            run_products(floor);
            for (std::size_t p = 0; theirs.contains("products") && p < floor.products.size(); p++)
                if (const Json& seconds = theirs["products"].at(p); !seconds.is_null())
                    floor.products[p].peer_runs.push_back(seconds);
            json_["ours"].update(json_of_runs(runs, mark_.tokens()));
            json_["ours"]["faults_per_step"] = faults;
        }
    }

    void run_profile(OurTraining& training, StepProfile& profile) {
        training.step();
        training.wait_for_parts(true);
        const double start = steady_seconds();
        while (profile.steps < 3 || steady_seconds() - start < what_.profile_seconds) {
            profile.start();
            training.step();
            profile.finish(training.update_seconds());
        }
        training.wait_for_parts(false);
        training.ignore(&profile);  // from here on a step on a device is one graph
        Json& parts = json_["parts"];
        for (const StepPart& part : parts_of(profile))
            parts.push_back({{"name", part.name}, {"seconds", part.seconds}});
        for (const auto& [op, time] : profile.ops)
            json_["ops"][op] = {{"calls", time.calls / profile.steps},
                                {"forward", time.forward / double(profile.steps)},
                                {"backward", time.backward / double(profile.steps)},
                                {"products", time.products / double(profile.steps)}};
        json_["profiled_step"] = profile.seconds / double(profile.steps);
    }

    void run_products(Floor& floor) {
        for (FloorProduct& p : floor.products) {
            if (stop_requested()) throw Stopped{};
            p.our_runs.push_back(seconds_alone(p.kind, what_.product_seconds, what_.device));
        }
    }

    void describe_floor(Floor& floor) {
        for (FloorProduct& p : floor.products) p.settle();
        const double step = json_["ours"]["seconds"]["median"],
                     work = floor.multiply_adds() + floor.attention;
        Json& json = json_["floor"];
        json = {{"seconds", floor.seconds()}, {"share_of_step", floor.seconds() / step},
                {"products_seconds", floor.products_seconds()},
                {"attention_seconds", floor.attention_seconds()}, {"gflop", 2e-9 * floor.multiply_adds()},
                {"attention_gflop", 2e-9 * floor.attention}, {"best_gflops", 2e-9 * floor.best_rate()},
                {"reached_gflops", 2e-9 * work / step}};
        for (const FloorProduct& p : floor.products) json["products"].push_back(json_of(p));
    }

    static Json json_of(const FloorProduct& p) {
        const ProductKind& k = p.kind;
        Json json = {{"m", k.m}, {"n", k.n}, {"k", k.k}, {"order", k.order},
                     {"type", text(name_of(k.a), ' ', name_of(k.b), " -> ", name_of(k.c))}, {"add", k.add},
                     {"count", p.count}, {"ours", p.ours}};
        if (p.in_step > 0) json["in_step"] = p.in_step;
        if (p.peer > 0) json["peer"] = p.peer;
        return json;
    }

    const TrainMeasurement& what_;
    const TrainMark& mark_;
    Json json_;
};

}  // namespace

Json measure_training(const TrainMeasurement& what) { return Measurement(what).run(); }

}  // namespace masquerade
