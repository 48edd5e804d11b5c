// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>

#include "engine/base/log.h"
#include "tools/bench/decode.h"
#include "tools/bench/measure.h"
#include "tools/bench/progress.h"

namespace masquerade {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* columns = "{:<16}{:>9}{:>12}{:>14}{:>8}{:>13}{:>8}\n";
constexpr double run_seconds = 0.2;

// Of pairs of runs that followed one another.
double median_ratio(const std::vector<double>& others, const std::vector<double>& ours) {
    std::vector<double> ratios;
    for (std::size_t i = 0; i < std::min(others.size(), ours.size()); i++)
        ratios.push_back(others[i] / ours[i]);
    return spread_of(ratios).median;
}

Json json_of_runs(const std::vector<double>& runs, const std::vector<double>& ours, int sources) {
    return {{"seconds", spread_of(runs).median},
            {"runs", runs},
            {"sentences_per_second", sources / spread_of(runs).median},
            {"ratio", median_ratio(runs, ours)}};
}

}  // namespace

bool UniLmWriting::knows(const std::string& model) {
    const std::vector<std::string>& names = beam_mark_names();
    return std::find(names.begin(), names.end(), model) != names.end();
}

Json UniLmWriting::peer() const { return peer_ ? Json(peer_->version()) : Json(); }

void UniLmWriting::head() {
    if (started_) return;
    started_ = true;
    if (a_.peer != "none") try {
            peer_ = std::make_unique<GeneratePeer>(a_.peer, common_.device);
        } catch (const PeerError& error) {
            log_line("note: ", error.what(), "; no peer (--peer PYTHON names one with transformers)");
        } catch (const Stopped&) {  // the loops that follow ask, too
        }
    if (!a_.table) return;
    if (peer_) fmt::print("peer        {}\n", peer_->version());
    fmt::print(fmt::runtime(columns), fmt::format("beam {}, f32", a_.beams), "sources", "sent/s", "uncached",
               "ratio", "generate", "ratio");
}

template <class Ask>
void UniLmWriting::with_peer(Ask ask) {
    if (!peer_) return;
    try {
        const std::string why = failure_of(ask);
        if (why.empty()) return;
        log_line("note: ", why);
        peer_.reset();
    } catch (const Stopped&) {
        peer_.reset();
    }
}

void UniLmWriting::measure(const std::string& model, const FoundRow& found) {
    head();
    for (int sources : a_.sources) {
        if (stop_requested()) return;
        BeamSizes sizes = beam_mark(model);
        sizes.sources = sources;
        sizes.beams = a_.beams;
        BeamWork work(sizes, common_.device, common_.seed);
        const Json row = measure(model, work);
        if (a_.table) print(row);
        found(row);
    }
}

Json UniLmWriting::measure(const std::string& model, BeamWork& work) {
    const int n = work.sizes.sources;
    auto progress = [&](const std::string& what) {
        show_progress(fmt::format("{}, {}: {}", model, n, what));
    };
    progress("the same bits with and without a cache");
    const Written written = work.with_cache();
    const bool same_bits = !a_.uncached || same(written, work.without_cache());
    const std::string differs = text(model, ": with a cache another target is written, or another score");
    if (!same_bits && common_.device == Device::cpu) throw Error(differs);
    if (!same_bits) log_line("warning: ", differs);
    Json row = {{"model", model},
                {"sources", n},
                {"beams", work.sizes.beams},
                {"source_tokens", work.sizes.source_tokens},
                {"target_tokens", work.sizes.target_tokens}};
    with_peer([&] {
        progress("generate, its ways");
        row["peer"] = peer_->load(work, run_seconds);
        row["peer"].update(peer_->compare(written));
    });
    std::vector<double> ours, uncached, theirs;
    for (int i = 0; i == 0 || (i < a_.repeats && !stop_requested()); i++) {
        progress(fmt::format("{} of {}", i + 1, a_.repeats));
        ours.push_back(seconds_of([&] { work.with_cache(); }));
        if (a_.uncached) uncached.push_back(seconds_of([&] { work.without_cache(); }));
        with_peer([&] { theirs.push_back(peer_->run()); });
    }
    show_progress("");
    row["seconds"] = spread_of(ours).median;
    row["runs"] = ours;
    row["sentences_per_second"] = n / spread_of(ours).median;
    if (a_.uncached) row["uncached"] = json_of_runs(uncached, ours, n);
    if (a_.uncached) row["uncached"]["same_bits"] = same_bits;
    if (theirs.empty())
        row.erase("peer");
    else
        row["peer"].update(json_of_runs(theirs, ours, n));
    return row;
}

void UniLmWriting::print(const Json& row) {
    auto rate = [](const Json& of) { return figures(of.at("sentences_per_second").get<double>()); };
    std::string beside[4];  // rate and ratio of both
    const char* const others[] = {"uncached", "peer"};
    for (std::size_t i = 0; i < 2; i++)
        if (row.contains(others[i])) {
            beside[2 * i] = rate(row.at(others[i]));
            beside[2 * i + 1] = figures(row.at(others[i]).at("ratio").get<double>());
        }
    fmt::print(fmt::runtime(columns), row.at("model").get<std::string>(), row.at("sources").get<int>(),
               rate(row), beside[0], beside[1], beside[2], beside[3]);
    std::fflush(stdout);
    if (!row.contains("peer")) return;
    const int same = row.at("peer").at("same_targets").get<int>(), all = row.at("sources").get<int>();
    const Json& error = row.at("peer").at("score_error");
    if (same < all || (error.is_number() && error.get<double>() > 1e-5))
        log_line("note: generate writes ", same, " of ", all,
                 " targets as ours does; scores of the best differ by up to ", error.dump());
}

}  // namespace masquerade
