// SPDX-License-Identifier: MIT
// Models that are tables. The logits of the next token depend on the last two tokens, by a hash with the number of the
// table. The tables have the same bits as those of tests/golden/search/table.py. The table of a source has the number
// of the source's line.
#pragma once
#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

#include "doctest/doctest.h"
#include "models/writing/search.h"

namespace masquerade::toy {

// SplitMix64 (Steele et al. 2014).
inline std::uint64_t mixed(std::uint64_t x) {
    x += 0x9E3779B97F4A7C15u;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}

class Tables : public NextToken {
  public:
    // `sources` are the sources of the search; their lines select the tables. `before` is the token before the first
    // token of a source.
    Tables(int V, const std::vector<SearchSource>& sources, int before = 1)
        : V_(V), sources_(sources), before_(before) {}

    int vocabulary() const override { return V_; }

    float logit(std::uint32_t table, int a, int b, int c) const {
        const std::uint64_t entry = std::uint64_t((a * V_ + b) * V_ + c);
        return float(double(mixed(std::uint64_t(table) << 32 | entry) >> 40) / (1 << 24) * 6 - 3);
    }
    std::vector<double> log_p(std::uint32_t table, int a, int b) const {
        std::vector<double> x;
        double sum = 0;
        for (int c = 0; c < V_; c++) x.push_back(logit(table, a, b, c)), sum += std::exp(x.back());
        for (double& v : x) v -= std::log(sum);
        return x;
    }

    const float* step(const std::vector<Row>& rows) override {
        steps++;
        most_rows = std::max(most_rows, rows.size());
        std::vector<State> now;
        logits_.assign(rows.size() * std::size_t(V_), 0);
        for (std::size_t i = 0; i < rows.size(); i++) {
            const Row& row = rows[i];
            REQUIRE((i == 0 || rows[i - 1].source <= row.source));
            State state{row.source, before_, row.token};
            if (steps == 1) {
                REQUIRE(row.parent == -1);
                REQUIRE(row.token == sources_.at(std::size_t(row.source)).begin);
            } else {
                const State& from = last_.at(std::size_t(row.parent));
                REQUIRE(from.source == row.source);
                state.a = from.b;
            }
            now.push_back(state);
            for (int c = 0; c < V_; c++)
                logits_[i * std::size_t(V_) + std::size_t(c)] =
                    logit(sources_[std::size_t(row.source)].line, state.a, state.b, c);
        }
        last_ = now;
        return logits_.data();
    }

    int steps = 0;
    std::size_t most_rows = 0;

  private:
    struct State {
        int source, a, b;  // a and b: the last two tokens
    };
    int V_;
    std::vector<SearchSource> sources_;
    int before_;
    std::vector<State> last_;
    std::vector<float> logits_;
};

// A model with the same logits after every prefix.
class Fixed : public NextToken {
  public:
    explicit Fixed(std::vector<float> logits) : logits_(std::move(logits)) {}
    int vocabulary() const override { return int(logits_.size()); }
    const float* step(const std::vector<Row>& rows) override {
        all_.clear();
        for (std::size_t i = 0; i < rows.size(); i++) all_.insert(all_.end(), logits_.begin(), logits_.end());
        return all_.data();
    }

  private:
    std::vector<float> logits_, all_;
};

// Returns a source for each of `count` tables. A source begins with token 0, and its texts end with token 1.
inline std::vector<SearchSource> sources(int count, std::uint32_t first = 0) {
    std::vector<SearchSource> all(static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < all.size(); i++) {
        all[i].line = first + std::uint32_t(i);
        all[i].ends = {1};
    }
    return all;
}

inline std::vector<std::vector<Hypothesis>> run(int V, const std::vector<SearchSource>& from,
                                                const SearchOptions& options, std::uint64_t seed = 1) {
    Tables model(V, from);
    return search(model, from, options, seed);
}

inline bool same(const Hypothesis& a, const Hypothesis& b) {
    return a.tokens == b.tokens && a.score == b.score && a.ended == b.ended;
}
inline bool same(const std::vector<std::vector<Hypothesis>>& a, const std::vector<std::vector<Hypothesis>>& b) {
    auto list = [](const auto& x, const auto& y) {
        return std::equal(x.begin(), x.end(), y.begin(), y.end(),
                          [](const Hypothesis& p, const Hypothesis& q) { return same(p, q); });
    };
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), list);
}

}  // namespace masquerade::toy
