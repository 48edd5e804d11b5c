// SPDX-License-Identifier: MIT
#include "tools/bench/train_rivals.h"

#include <cmath>

#include "tools/bench/measure.h"

namespace masquerade {
namespace {

using Json = nlohmann::ordered_json;

// How far two programs that do the same may differ: by the order of their sums, or by bf16's eight bits.
bool agree(double ours, double theirs, double tolerance) {
    return std::fabs(ours - theirs) <= tolerance * std::max(1.0, std::fabs(ours));
}

}  // namespace

Json json_of_runs(const std::vector<double>& runs, double tokens) {
    if (runs.empty()) return {};
    const Spread s = spread_of(runs);
    return {{"seconds", {{"median", s.median}, {"least", s.least}, {"most", s.most}}},
            {"tokens_per_second", tokens / s.median},
            {"runs", runs}};
}

void TrainRivals::prepare(const nlohmann::json& start) {
    if (what_.pythons.empty()) return;
    TrainPeers peers(what_.pythons, what_.all_pythons, what_.compiled, what_.variant, start, threads());
    for (const PeerWork& work : works()) {
        choose(peers, work);
        if (rivals_.empty()) return;  // the note says why
    }
    notes.insert(notes.end(), peers.failures.begin(), peers.failures.end());
    for (Rival& rival : rivals_) {
        progress_("starting the peer, " + rival.choice.work.form);
        or_drop(rival, [&] { rival.child = peers.start(rival.choice, rival.first_loss); });
    }
}

std::vector<PeerWork> TrainRivals::works() const {
    const bool bf16 = what_.storage == DType::bf16;
    const std::string precision = bf16 ? "autocast" : "f32";
    std::vector<PeerWork> works = {{what_.mark.univae ? "split" : "bert", precision}};
    if (what_.mark.univae) works.push_back({"joint", precision});
    if (bf16) works.push_back({works[0].form, "bf16"});
    return works;
}

// The first work is searched in full, the others with its Python and allocator.
void TrainRivals::choose(TrainPeers& peers, const PeerWork& work) {
    const PeerChoice* like = rivals_.empty() ? nullptr : &rivals_.front().choice;
    const std::string why = failure_of([&] {
        rivals_.push_back({peers.choose(work, like, progress_), nullptr, {}});
    });
    if (!why.empty()) notes.push_back(why);
}

template <class Ask>
void TrainRivals::or_drop(Rival& rival, Ask ask) {
    const std::string why = failure_of(ask);
    if (why.empty()) return;
    notes.push_back(text(rival.choice.work.form, ' ', rival.choice.work.precision, ": ", why));
    rival.child.reset();
}

void TrainRivals::run() {
    for (Rival& rival : rivals_)
        if (rival.child) or_drop(rival, [&] { run(rival); });
}

void TrainRivals::run(Rival& rival) {
    const nlohmann::json answer =
        rival.child->peer.ask({{"do", "run"}, {"seconds", what_.burst_seconds}}, peer_patience);
    rival.runs.push_back(answer.at("seconds"));
    rival.faults += answer.at("faults").get<double>() / what_.repeats;
}

void TrainRivals::measure(Floor& floor) {
    for (Rival& rival : rivals_)
        if (rival.child) return or_drop(rival, [&] { ask_products(*rival.child, floor); });
}

// Where the factors differ in type the peer's are of the narrower: it has no other product. Nor has it one of
// bf16 factors into an f32 matrix: there our time stands alone.
void TrainRivals::ask_products(TrainPeer& peer, Floor& floor) {
    nlohmann::json list = nlohmann::json::array();
    std::vector<FloorProduct*> asked;
    for (FloorProduct& p : floor.products) {
        const bool bf16 = p.kind.a == DType::bf16 || p.kind.b == DType::bf16;
        if (bf16 && p.kind.c != DType::bf16) continue;
        list.push_back({p.kind.m, p.kind.n, p.kind.k, p.kind.order, bf16 ? "bf16" : "f32", p.kind.add});
        asked.push_back(&p);
    }
    const nlohmann::json answer = peer.peer.ask(
        {{"do", "products"}, {"products", list}, {"seconds", what_.product_seconds}}, peer_patience);
    for (std::size_t i = 0; i < asked.size(); i++) asked[i]->peer_runs.push_back(answer.at("seconds").at(i));
}

Json TrainRivals::describe(const Json& ours, std::int64_t parameters) {
    Json all = Json::array();
    for (Rival& rival : rivals_)
        if (rival.child) or_drop(rival, [&] { all.push_back(json_of(rival, ours, parameters)); });
    return all;
}

Json TrainRivals::chosen() const {
    Json all = Json::array();
    for (const Rival& rival : rivals_) all.push_back(json_of(rival.choice));
    return all;
}

Json TrainRivals::json_of(const PeerChoice& c) {
    Json json = {{"form", c.work.form},
                 {"precision", c.work.precision},
                 {"python", c.python},
                 {"version", c.version},
                 {"slow_blas", c.slow_blas},
                 {"variant", c.variant},
                 {"settings", masquerade::describe(c.variant)}};
    for (const TriedVariant& tried : c.search.tried) {
        Json one = {{"settings", masquerade::describe(tried.variant)}};
        if (tried.failed.empty())
            one["seconds"] = tried.seconds;
        else
            one["failed"] = tried.failed;
        json["tried"].push_back(one);
    }
    return json;
}

Json TrainRivals::json_of(Rival& rival, const Json& ours, std::int64_t parameters) {
    const PeerChoice& c = rival.choice;
    Json json = json_of(c);
    json.update(json_of_runs(rival.runs, what_.mark.tokens()));
    json["ratio"] = json["seconds"]["median"].get<double>() / ours["seconds"]["median"].get<double>();
    json["faults_per_step"] = rival.faults;
    json["peak_bytes"] = rival.child->peer.ask({{"do", "memory"}}, peer_patience).at("bytes");
    json["first_loss"] = rival.first_loss;
    json["check"] = c.check;
    json["agrees"] = agrees(rival, ours, parameters);
    return json;
}

bool TrainRivals::agrees(const Rival& rival, const Json& ours, std::int64_t parameters) const {
    const PeerChoice& c = rival.choice;
    auto close = [&](const char* number, double tolerance) {
        return agree(ours["check"].at(number), c.check.at(number), tolerance);
    };
    const bool whole = c.work.precision == "f32", dropout = what_.mark.model.backbone.dropout > 0;
    if (!close("loss", whole ? 1e-5 : 5e-3) || !close("norm", whole ? 1e-3 : 5e-2) ||
        !close("next", whole ? 1e-4 : 1e-2) || c.check.at("parameters").get<std::int64_t>() != parameters)
        return false;
    // The loss that was measured, compiled or not; the reference's counts padding.
    const double tolerance = dropout ? 2e-2 : whole ? 1e-5 : 5e-3;
    return c.work.form == "joint" || agree(ours["first_loss"], rival.first_loss, tolerance);
}

}  // namespace masquerade
