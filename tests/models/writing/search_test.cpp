// SPDX-License-Identifier: MIT
// Tests searches over tables that are so small that every sequence can be scored: beam search against all sequences,
// greedy search, and batches.
#include "engine/base/error.h"
#include "engine/ops/cpu/parallel.h"
#include "models/writing/cached_writer.h"
#include "tests/models/writing/choose_token.h"
#include "tests/models/writing/search_toy.h"

using namespace masquerade;

namespace {

// Returns every sequence of at most `maximum` tokens, the best one first.
std::vector<Hypothesis> all_of(const toy::Tables& model, std::uint32_t table, int maximum, double alpha) {
    std::vector<Hypothesis> all;
    std::function<void(std::vector<int>, double)> grow = [&](std::vector<int> tokens, double sum) {
        const int n = int(tokens.size());
        const std::vector<double> log_p = model.log_p(table,
                                                      n > 1    ? tokens[std::size_t(n) - 2]
                                                      : n == 1 ? 0
                                                               : 1,
                                                      n > 0 ? tokens.back() : 0);
        for (int c = 0; c < model.vocabulary(); c++) {
            const double total = sum + log_p[std::size_t(c)];
            const double norm = std::pow(n + 1.0, alpha);
            std::vector<int> longer = tokens;
            if (c == 1) {
                all.push_back({tokens, total / norm, true});
                continue;
            }
            longer.push_back(c);
            if (n + 1 == maximum)
                all.push_back({longer, total / norm, false});
            else
                grow(longer, total);
        }
    };
    grow({}, 0);
    std::sort(all.begin(), all.end(), [](const Hypothesis& a, const Hypothesis& b) { return a.score > b.score; });
    return all;
}

}  // namespace

TEST_CASE("search: beams that hold every prefix find every sequence, in the order of a full enumeration") {
    const int V = 6, maximum = 4;
    const auto from = toy::sources(4);
    for (double alpha : {-1.0, 0.0, 0.6, 1.0, 2.0}) {
        CAPTURE(alpha);
        SearchOptions options;
        options.beams = options.n_best = 6 * 6 * 6 * 6;
        options.length_penalty = alpha;
        options.maximum = maximum;
        const auto found = toy::run(V, from, options);
        const toy::Tables model(V, from);
        for (std::size_t s = 0; s < from.size(); s++) {
            const auto expected = all_of(model, from[s].line, maximum, alpha);
            REQUIRE(found[s].size() == expected.size());
            double worst = 0;
            int different = 0;
            for (std::size_t i = 0; i < expected.size(); i++) {
                const double error = std::abs(found[s][i].score - expected[i].score);
                if (!(error <= worst)) worst = error;
                const bool tie = (i > 0 && expected[i - 1].score - expected[i].score < 1e-6) ||
                                 (i + 1 < expected.size() && expected[i].score - expected[i + 1].score < 1e-6);
                if (!tie && (found[s][i].tokens != expected[i].tokens || found[s][i].ended != expected[i].ended))
                    different++;
            }
            CHECK(worst < 2e-6);
            CHECK(different == 0);
        }
    }
}

TEST_CASE("search: one beam takes the most likely token until it is an end") {
    const int V = 7, maximum = 9;
    const auto from = toy::sources(40);
    const toy::Tables model(V, from);
    SearchOptions options;
    options.maximum = maximum;
    const auto found = toy::run(V, from, options);
    int ended = 0;
    for (std::size_t s = 0; s < from.size(); s++) {
        std::vector<int> tokens;
        int a = 1, b = 0;
        double sum = 0;
        bool end = false;
        while (!end && int(tokens.size()) < maximum) {
            const auto log_p = model.log_p(from[s].line, a, b);
            const int best = int(std::max_element(log_p.begin(), log_p.end()) - log_p.begin());
            sum += log_p[std::size_t(best)];
            a = b, b = best;
            end = best == 1;
            if (!end) tokens.push_back(best);
        }
        REQUIRE(found[s].size() == 1);
        CHECK(found[s][0].tokens == tokens);
        CHECK(found[s][0].ended == end);
        CHECK(std::abs(found[s][0].score - sum / double(int(tokens.size()) + end)) < 1e-6);
        ended += end;
    }
    CHECK(ended > 5);
    CHECK(ended < 35);
}

namespace {

// Returns a set of options for each kind of search.
std::vector<SearchOptions> kinds() {
    std::vector<SearchOptions> all(6);
    for (SearchOptions& o : all) o.maximum = 10;
    all[1].beams = all[1].n_best = 4;
    all[2].beams = all[2].n_best = 4;
    all[2].repetition_penalty = 1.3, all[2].no_repeat_ngram = 2, all[2].minimum = 3;
    all[3].beams = 4, all[3].bert4keras = true;
    all[4].samples = 5;
    all[5] = drawing(0.8, 4, 0.9), all[5].samples = 3;
    return all;
}

}  // namespace

TEST_CASE("search: a source finds the same in every batch, in every order, with any number of threads") {
    const int V = 700;  // so large that several threads share the rows
    const auto from = toy::sources(30);
    const int before = threads();
    for (const SearchOptions& options : kinds()) {
        CAPTURE(&options - kinds().data());
        set_threads(1);
        const auto expected = toy::run(V, from, options, 7);
        set_threads(3);
        CHECK(toy::same(toy::run(V, from, options, 7), expected));
        set_threads(before);
        for (std::size_t s = 0; s < from.size(); s++)
            CHECK(toy::same(toy::run(V, {from[s]}, options, 7), {expected[s]}));
        auto reversed = from;
        std::reverse(reversed.begin(), reversed.end());
        auto found = toy::run(V, reversed, options, 7);
        std::reverse(found.begin(), found.end());
        CHECK(toy::same(found, expected));
    }
}

TEST_CASE("search: finished sources leave the batch, and each has its own maximum") {
    auto from = toy::sources(60);
    for (std::size_t s = 0; s < from.size(); s++) from[s].maximum = 1 + int(s) % 7;
    SearchOptions options;
    options.beams = options.n_best = 3;
    toy::Tables model(7, from);
    const auto found = search(model, from, options, 1);
    CHECK(model.steps == 7);
    CHECK(model.most_rows < 60 * 3);  // some sources end before others have three beams
    for (std::size_t s = 0; s < from.size(); s++)
        for (const Hypothesis& h : found[s]) CHECK(int(h.tokens.size()) + h.ended <= from[s].maximum);
    CHECK(search(model, {}, options, 1).empty());
}

TEST_CASE("search: at most 64 sources are searched together, and fewer if each has many hypotheses") {
    const auto from = toy::sources(130);
    for (int samples : {1, 64, 200, 10000}) {
        SearchOptions options;
        options.samples = samples;
        options.maximum = 1;
        std::size_t next = 0, most = 0;
        std::optional<toy::Tables> model;
        struct Reader : NextToken {
            std::optional<toy::Tables>& tables;
            explicit Reader(std::optional<toy::Tables>& t) : tables(t) {}
            int vocabulary() const override { return 7; }
            const float* step(const std::vector<Row>& rows) override { return tables->step(rows); }
        } reader(model);
        write_targets(reader, from, options, 1, [&](std::size_t first, std::size_t count, int rows) {
            CHECK(first == next);
            CHECK(rows == int(count) * samples);
            next += count, most = std::max(most, count);
            model.emplace(7, std::vector<SearchSource>(from.begin() + int(first), from.begin() + int(first + count)));
        });
        CHECK(next == from.size());
        CHECK(most == std::size_t(samples <= 64 ? 64 : samples == 200 ? 20 : 1));
    }
}

TEST_CASE("search: bert4keras adds 1e-12 to a probability before the logarithm") {
    toy::Fixed model({100, 0, 0});
    SearchOptions options;
    options.forbidden = {0};  // the other tokens have p = e^-100
    options.maximum = 1;
    CHECK(std::abs(search(model, toy::sources(1), options, 1)[0][0].score + 100) < 1e-4);
    options.bert4keras = true;
    CHECK(std::abs(search(model, toy::sources(1), options, 1)[0][0].score - std::log(1e-12)) < 1e-4);
}

namespace {

// A model for which all tokens are equally likely.
class Level : public NextToken {
  public:
    explicit Level(int V) : V_(V) {}
    int vocabulary() const override { return V_; }
    const float* step(const std::vector<Row>& rows) override {
        seen.push_back(rows);
        logits_.assign(rows.size() * std::size_t(V_), value);
        return logits_.data();
    }
    std::vector<std::vector<Row>> seen;
    float value = 0.5f;

  private:
    int V_;
    std::vector<float> logits_;
};

}  // namespace

TEST_CASE("search: equal scores go to the better beam, then to the smaller token") {
    for (int V : {5, 64, 65, 200}) {
        CAPTURE(V);
        Level model(V);
        SearchOptions options;
        options.beams = options.n_best = 3;
        options.maximum = 3;
        std::vector<SearchSource> from(1);
        const auto found = search(model, from, options, 1)[0];
        REQUIRE(found.size() == 3);
        CHECK(found[0].tokens == std::vector<int>{0, 0, 0});
        CHECK(found[1].tokens == std::vector<int>{0, 0, 1});
        CHECK(found[2].tokens == std::vector<int>{0, 0, 2});
        CHECK(std::abs(found[0].score + std::log(double(V))) < 1e-6);
        REQUIRE(model.seen.size() == 3);
        // In the third step, all beams continue the first hypothesis, with the tokens 0, 1 and 2.
        for (int beam = 0; beam < 3; beam++) {
            const NextToken::Row& row = model.seen[2][std::size_t(beam)];
            CHECK(row.parent == 0);
            CHECK(row.token == beam);
        }
    }
}

TEST_CASE("search: what contradicts itself is refused, and so are logits that say nothing") {
    const auto from = toy::sources(2);
    auto refused = [&](auto change, const char* word, std::vector<SearchSource> of) {
        SearchOptions options;
        change(options, of);
        Level model(7);
        INFO(word);
        try {
            search(model, of, options, 1);
            FAIL_CHECK("was taken");
        } catch (const Error& error) {
            CHECK(std::string(error.what()).find(word) != std::string::npos);
        }
    };
    using O = SearchOptions;
    using S = std::vector<SearchSource>;
    refused([](O& o, S&) { o.beams = 0; }, "beams", from);
    refused([](O& o, S&) { o.n_best = 2; }, "n_best", from);
    refused([](O& o, S&) { o.length_penalty = NAN; }, "length_penalty", from);
    refused([](O& o, S&) { o.repetition_penalty = 0; }, "repetition_penalty", from);
    refused([](O& o, S&) { o.samples = 2, o.temperature = 0; }, "temperature", from);
    refused([](O& o, S&) { o.samples = 2, o.beams = 2; }, "beams", from);
    refused([](O& o, S&) { o = drawing(1, 0, 1.5); }, "top_p", from);
    refused([](O& o, S&) { o.bert4keras = true, o.beams = o.n_best = 2; }, "bert4keras", from);
    refused([](O& o, S&) { o.forbidden = {7}; }, "forbidden", from);
    refused([](O& o, S&) { o.maximum = 0; }, "maximum", from);
    refused([](O&, S& s) { s[1].begin = -1; }, "begin", from);
    for (float value : {NAN, INFINITY, -INFINITY}) {
        Level model(7);
        model.value = value;
        CHECK_THROWS_AS(search(model, from, SearchOptions(), 1), Error);
    }
}
