// SPDX-License-Identifier: MIT
#include "tools/bench/train_measure.h"

#include <fmt/format.h>

#include <cmath>
#include <optional>

#include "tools/bench/measure.h"
#include "tools/bench/memory.h"
#include "tools/bench/progress.h"
#include "tools/bench/train_floor.h"
#include "tools/bench/train_ours.h"
#include "tools/bench/train_peers.h"

namespace masquerade {
namespace {

using Json = nlohmann::ordered_json;

constexpr double burst_seconds = 1, profile_seconds = 1.5, product_seconds = 0.06;

Json json_of_runs(const std::vector<double>& runs, double tokens) {
    if (runs.empty()) return {};
    const Spread s = spread_of(runs);
    return {{"seconds", {{"median", s.median}, {"least", s.least}, {"most", s.most}}},
            {"tokens_per_second", tokens / s.median},
            {"runs", runs}};
}

// How far two programs that do the same may differ: by the order of their sums, or by bf16's eight bits.
bool agree(double ours, double theirs, double tolerance) {
    return std::fabs(ours - theirs) <= tolerance * std::max(1.0, std::fabs(ours));
}

struct Steps {
    double seconds = 0, faults = 0;  // of one
};

class Measurement {
  public:
    explicit Measurement(const TrainMeasurement& what)
        : what_(what), mark_(train_mark(what.mark, what.seed)) {}

    Json run() {
        json_ = {{"mark", mark_.name},
                 {"precision", name_of(what_.storage)},
                 {"sizes", mark_.sizes()},
                 {"sentences", mark_.sentences.size()},
                 {"tokens", mark_.tokens()}};
        json_["notes"] = Json::array();
        try {
            measure();
            json_["complete"] = true;
        } catch (const Stopped&) {
            json_["complete"] = false;
        }
        show_progress("");
        return json_;
    }

  private:
    // One of PyTorch's ways beside ours.
    struct Rival {
        PeerChoice choice;
        std::unique_ptr<TrainPeer> child;
        std::vector<double> runs;
        double faults = 0, first_loss = 0;
    };

    void measure() {
        prepare_peers();
        forget_peak();
        OurTraining training(mark_, what_.storage, what_.seed, true);
        StepProfile profile;
        training.observe(&profile);
        progress("ours: the first steps");
        const double first_loss = training.step();
        training.step();  // the first step in planned memory
        progress("ours: where the time goes");
        run_profile(training, profile);
        Json& ours = json_["ours"];
        ours["first_loss"] = first_loss;
        ours["activation_bytes"] = training.activation_bytes();
        ours["peak_bytes"] = peak_resident_bytes();
        Floor floor{floor_products(profile), training.attention_multiply_adds()};
        in_turns(training, floor);
        describe_rivals();
        describe_floor(floor);
    }

    void progress(const std::string& line) const {
        if (stop_requested()) throw Stopped{};
        show_progress(fmt::format("{} {}: {}", mark_.name, name_of(what_.storage), line));
    }

    // What ours computes without dropout; then the same numbers from each of the peer's forms.
    void prepare_peers() {
        progress("ours without dropout");
        OurTraining plain(mark_, what_.storage, what_.seed, false);
        const SharedFile weights(plain.weights());
        Json batch = mark_.batch();
        batch["noise"] = plain.noise();
        const Json places = {{"file", weights.path()}, {"tensors", plain.weight_places()}};
        const double loss = plain.step(), norm = plain.norm(), next = plain.loss();
        json_["parameters"] = plain.parameters();
        json_["ours"]["check"] = {{"loss", loss}, {"norm", norm}, {"next", next}};
        json_["peers"] = Json::array();
        if (what_.pythons.empty()) return;
        TrainPeers peers(
            what_.pythons, what_.all_pythons, what_.compiled,
            {{"sizes", mark_.sizes()}, {"batch", batch}, {"rule", mark_.optimiser()}, {"weights", places}},
            threads());
        for (const PeerWork& work : peer_works()) {
            choose(peers, work);
            if (rivals_.empty()) return;  // the note says why
        }
        for (const std::string& failure : peers.failures) note(failure);
        for (Rival& rival : rivals_) {
            progress("starting the peer, " + rival.choice.work.form);
            or_drop(rival, [&] { rival.child = peers.start(rival.choice, rival.first_loss); });
        }
    }

    std::vector<PeerWork> peer_works() const {
        const bool bf16 = what_.storage == DType::bf16;
        const std::string precision = bf16 ? "autocast" : "f32";
        std::vector<PeerWork> works = {{mark_.univae ? "split" : "bert", precision}};
        if (mark_.univae) works.push_back({"joint", precision});
        if (bf16) works.push_back({works[0].form, "bf16"});
        return works;
    }

    // The first work is searched in full, the others with its Python and allocator.
    void choose(TrainPeers& peers, const PeerWork& work) {
        try {
            const PeerChoice* like = rivals_.empty() ? nullptr : &rivals_.front().choice;
            rivals_.push_back(
                {peers.choose(work, like, [&](const std::string& line) { progress(line); }), nullptr, {}});
        } catch (const PeerError& error) {
            note(error.what());
        } catch (const nlohmann::json::exception& error) {
            note(text("the peer's answer is not what was asked for: ", error.what()));
        }
    }

    template <class Ask>
    void or_drop(Rival& rival, Ask ask) {
        std::string why;
        try {
            ask();
            return;
        } catch (const PeerError& error) {
            why = error.what();
        } catch (const nlohmann::json::exception& error) {
            why = text("the peer's answer is not what was asked for: ", error.what());
        }
        note(text(rival.choice.work.form, ' ', rival.choice.work.precision, ": ", why));
        rival.child.reset();
    }

    void note(const std::string& line) { json_["notes"].push_back(line); }

    Steps burst(OurTraining& training) const {
        training.step();  // meets the caches as another program left them
        const std::int64_t faults = minor_faults();
        const double start = steady_seconds();
        int steps = 0;
        while (steps < 2 || steady_seconds() - start < burst_seconds) training.step(), steps++;
        const double passed = steady_seconds() - start;
        return {passed / steps, double(minor_faults() - faults) / steps};
    }

    // Steps of ours, of each peer, and the products alone, by ours and by a peer.
    void in_turns(OurTraining& training, Floor& floor) {
        std::vector<double> runs;
        double faults = 0;
        for (int i = 0; i < what_.repeats; i++) {
            progress(fmt::format("{} of {}", i + 1, what_.repeats));
            const Steps ours = burst(training);
            runs.push_back(ours.seconds);
            faults += ours.faults / what_.repeats;
            for (Rival& rival : rivals_)
                if (rival.child) or_drop(rival, [&] { run_rival(rival); });
            run_products(floor);
            json_["ours"].update(json_of_runs(runs, mark_.tokens()));
            json_["ours"]["faults_per_step"] = faults;
        }
    }

    void run_rival(Rival& rival) {
        const nlohmann::json answer =
            rival.child->peer.ask({{"do", "run"}, {"seconds", burst_seconds}}, peer_patience);
        rival.runs.push_back(answer.at("seconds"));
        rival.faults += answer.at("faults").get<double>() / what_.repeats;
    }

    void describe_rivals() {
        for (Rival& rival : rivals_)
            if (rival.child) or_drop(rival, [&] { json_["peers"].push_back(json_of(rival)); });
    }

    Json json_of(Rival& rival) {
        const PeerChoice& c = rival.choice;
        Json json = {{"form", c.work.form},
                     {"precision", c.work.precision},
                     {"python", c.python},
                     {"version", c.version},
                     {"slow_blas", c.slow_blas},
                     {"variant", c.variant},
                     {"settings", describe(c.variant)}};
        json.update(json_of_runs(rival.runs, mark_.tokens()));
        json["ratio"] =
            json["seconds"]["median"].get<double>() / json_["ours"]["seconds"]["median"].get<double>();
        json["faults_per_step"] = rival.faults;
        json["peak_bytes"] = rival.child->peer.ask({{"do", "memory"}}, peer_patience).at("bytes");
        json["first_loss"] = rival.first_loss;
        json["check"] = c.check;
        const Json& ours = json_["ours"]["check"];
        auto close = [&](const char* number, double tolerance) {
            return agree(ours.at(number), c.check.at(number), tolerance);
        };
        const bool whole = c.work.precision == "f32", dropout = mark_.model.backbone.dropout > 0;
        json["agrees"] =
            close("loss", whole ? 1e-5 : 5e-3) && close("norm", whole ? 1e-3 : 5e-2) &&
            close("next", whole ? 1e-4 : 1e-2) &&
            c.check.at("parameters").get<std::int64_t>() == json_["parameters"].get<std::int64_t>();
        // The loss that was measured, compiled or not; the reference's counts padding.
        if (c.work.form != "joint" && !agree(json_["ours"]["first_loss"], rival.first_loss,
                                             dropout ? 2e-2
                                             : whole ? 1e-5
                                                     : 5e-3))
            json["agrees"] = false;
        for (const TriedVariant& tried : c.search.tried) {
            Json one = {{"settings", describe(tried.variant)}};
            if (tried.failed.empty())
                one["seconds"] = tried.seconds;
            else
                one["failed"] = tried.failed;
            json["tried"].push_back(one);
        }
        return json;
    }

    void run_profile(OurTraining& training, StepProfile& profile) {
        training.step();
        const double start = steady_seconds();
        while (profile.steps < 3 || steady_seconds() - start < profile_seconds) {
            profile.start();
            training.step();
            profile.finish(training.update_seconds());
        }
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
            p.our_runs.push_back(seconds_alone(p.kind, product_seconds));
        }
        for (Rival& rival : rivals_)
            if (rival.child) {
                or_drop(rival, [&] { ask_products(*rival.child, floor); });
                return;
            }
    }

    void describe_floor(Floor& floor) {
        for (FloorProduct& p : floor.products) p.settle();
        const double step = json_["ours"]["seconds"]["median"];
        Json& json = json_["floor"];
        json = {{"seconds", floor.seconds()},
                {"share_of_step", floor.seconds() / step},
                {"products_seconds", floor.products_seconds()},
                {"attention_seconds", floor.attention_seconds()},
                {"gflop", 2e-9 * floor.multiply_adds()},
                {"attention_gflop", 2e-9 * floor.attention},
                {"best_gflops", 2e-9 * floor.best_rate()}};
        for (const FloorProduct& p : floor.products) json["products"].push_back(json_of(p));
    }

    static Json json_of(const FloorProduct& p) {
        const ProductKind& k = p.kind;
        Json json = {{"m", k.m},
                     {"n", k.n},
                     {"k", k.k},
                     {"order", k.order},
                     {"type", text(name_of(k.a), ' ', name_of(k.b), " -> ", name_of(k.c))},
                     {"add", k.add},
                     {"count", p.count},
                     {"ours", p.ours},
                     {"in_step", p.in_step}};
        if (p.peer > 0) json["peer"] = p.peer;
        return json;
    }

    // Where the factors differ in type the peer's are of the narrower: it has no other product. Nor has it one of bf16
    // factors into an f32 matrix: there our time stands alone.
    static void ask_products(TrainPeer& peer, Floor& floor) {
        nlohmann::json list = nlohmann::json::array();
        std::vector<FloorProduct*> asked;
        for (FloorProduct& p : floor.products) {
            const bool bf16 = p.kind.a == DType::bf16 || p.kind.b == DType::bf16;
            if (bf16 && p.kind.c != DType::bf16) continue;
            list.push_back({p.kind.m, p.kind.n, p.kind.k, p.kind.order, bf16 ? "bf16" : "f32", p.kind.add});
            asked.push_back(&p);
        }
        const nlohmann::json answer = peer.peer.ask(
            {{"do", "products"}, {"products", list}, {"seconds", product_seconds}}, peer_patience);
        for (std::size_t i = 0; i < asked.size(); i++)
            asked[i]->peer_runs.push_back(answer.at("seconds").at(i));
    }

    const TrainMeasurement& what_;
    TrainMark mark_;
    std::vector<Rival> rivals_;
    Json json_;
};

}  // namespace

Json measure_training(const TrainMeasurement& what) { return Measurement(what).run(); }

}  // namespace masquerade
