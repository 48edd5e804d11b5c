// SPDX-License-Identifier: MIT
#include "tools/bench/table.h"

#include <cstdint>

#include "tools/bench/measure.h"

namespace masquerade {
namespace {

constexpr const char* our_columns = "{:<22}{:>7}{:>14}{:>8}";
constexpr const char* peer_columns = "{:>8}{:>13}{:>7}";

// Median, and least - most.
struct Cells {
    std::string median, range;
};

Cells cells(const Row& row, const std::vector<double>& runs) {
    const Spread seconds = spread_of(runs);
    const Spread s = row.bytes > 0 ? rate_of(row.bytes / 1e6, seconds)
                                   : Spread{1e3 * seconds.median, 1e3 * seconds.least, 1e3 * seconds.most};
    return {figures(s.median), figures(s.least) + " - " + figures(s.most)};
}

double ratio(const Row& row) { return spread_of(row.peer).median / spread_of(row.ours).median; }

nlohmann::ordered_json json_of(const Row& row, const std::vector<double>& runs) {
    const Spread seconds = spread_of(runs);
    nlohmann::ordered_json out = {
        {"seconds", {{"median", seconds.median}, {"least", seconds.least}, {"most", seconds.most}}},
        {"runs", runs}};
    if (row.bytes > 0) out["mb_per_second"] = row.bytes / 1e6 / seconds.median;
    if (row.tokens > 0) out["million_tokens_per_second"] = row.tokens / 1e6 / seconds.median;
    return out;
}

}  // namespace

std::string table_head(bool with_peer) {
    const std::string names = fmt::format(our_columns, "", "MB/s", "range", "Mtok/s");
    if (!with_peer) return names + '\n';
    return fmt::format(our_columns, "", "ours", "", "") + fmt::format("{:>8}\n", "peer") + names +
           fmt::format(peer_columns, "MB/s", "range", "ratio") + '\n';
}

std::string table_line(const Row& row) {
    Cells ours = cells(row, row.ours);
    std::string tokens =
        row.tokens > 0 ? figures(row.tokens / 1e6 / spread_of(row.ours).median) : std::string("-");
    std::string label = row.bytes > 0 ? row.label : row.label + ", ms";
    std::string line = fmt::format(our_columns, label, ours.median, ours.range, tokens);
    if (!row.peer.empty()) {
        Cells peer = cells(row, row.peer);
        line += fmt::format(peer_columns, peer.median, peer.range, figures(ratio(row)));
    }
    return line + '\n';
}

nlohmann::ordered_json json_of(const Row& row) {
    nlohmann::ordered_json out = {
        {"name", row.key}, {"bytes", std::int64_t(row.bytes)}, {"tokens", std::int64_t(row.tokens)}};
    out["ours"] = json_of(row, row.ours);
    if (!row.peer.empty()) {
        out["peer"] = json_of(row, row.peer);
        out["ratio"] = ratio(row);
    }
    return out;
}

}  // namespace masquerade
