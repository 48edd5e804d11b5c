// SPDX-License-Identifier: MIT
// Tests that a search finds the same, bit for bit, from shortlists as from all logits, with every option.
#include "engine/base/error.h"
#include "models/writing/token_scores.h"
#include "tests/models/writing/choose_token.h"
#include "tests/models/writing/search_toy.h"

using namespace masquerade;

namespace {

// A model that gives shortlists of the logits of another model, as if those were on a device.
class Listing : public NextToken {
  public:
    explicit Listing(NextToken& model) : model_(model) {}
    int vocabulary() const override { return model_.vocabulary(); }
    const float* step(const std::vector<Row>& rows) override {
        full_steps++;
        return model_.step(rows);
    }
    const Shortlists* shortlists(const std::vector<Row>& rows, int width) override {
        listed_steps++;
        CHECK(width < vocabulary());
        logits_ = model_.step(rows);
        lists_.prepare(int(rows.size()), width, vocabulary(), Device::cpu);
        lists_.compute({const_cast<float*>(logits_),
                        DType::f32,
                        Device::cpu,
                        {std::int64_t(rows.size()), vocabulary()},
                        "logits"});
        lists_.read();
        return &lists_;
    }
    const float* logits() override {
        too_short++;
        return logits_;
    }
    int full_steps = 0, listed_steps = 0, too_short = 0;

  private:
    NextToken& model_;
    const float* logits_ = nullptr;
    Shortlists lists_;
};

// Another model whose logits are changed by `change`.
class Changed : public NextToken {
  public:
    Changed(int V, const std::vector<SearchSource>& sources, std::function<float(float, int)> change)
        : model_(V, sources), change_(std::move(change)) {}
    int vocabulary() const override { return model_.vocabulary(); }
    const float* step(const std::vector<Row>& rows) override {
        const float* from = model_.step(rows);
        logits_.assign(from, from + rows.size() * std::size_t(vocabulary()));
        for (std::size_t i = 0; i < logits_.size(); i++) logits_[i] = change_(logits_[i], int(i) % vocabulary());
        return logits_.data();
    }

  private:
    toy::Tables model_;
    std::function<float(float, int)> change_;
    std::vector<float> logits_;
};

struct Found {
    std::vector<Hypotheses> hypotheses;
    int full_steps, listed_steps, too_short;
};

constexpr int V = 1100;  // two parts of logits

Found check_same(const std::vector<SearchSource>& from, const SearchOptions& options,
                 const std::function<float(float, int)>& change) {
    Changed model(V, from, change), again(V, from, change);
    Listing listing(again);
    const std::vector<Hypotheses> all = search(model, from, options, 3), listed = search(listing, from, options, 3);
    CHECK(toy::same(all, listed));
    return {listed, listing.full_steps, listing.listed_steps, listing.too_short};
}

using Change = std::function<void(SearchOptions&, std::vector<SearchSource>&)>;
struct Named {
    std::string name;
    Change change;
};

// Each is combined with each of the rules.
const Named searches[] = {
    {"greedy", [](SearchOptions&, auto&) {}},
    {"2 beams", [](SearchOptions& o, auto&) { o.beams = 2; }},
    {"4 beams, n-best",
     [](SearchOptions& o, auto&) {
         o.beams = o.n_best = 4;
         o.length_penalty = 0.4;
     }},
    {"bert4keras",
     [](SearchOptions& o, auto&) {
         o.beams = 3;
         o.bert4keras = true;
     }},
    {"greedy bert4keras", [](SearchOptions& o, auto&) { o.bert4keras = true; }},
    {"top-k 1", [](SearchOptions& o, auto&) { o = drawing(1, 1, 1), o.samples = 2; }},
    {"top-k 5", [](SearchOptions& o, auto&) { o = drawing(1.3, 5, 1), o.samples = 3; }},
    {"top-k and top-p", [](SearchOptions& o, auto&) { o = drawing(0.7, 40, 0.8), o.samples = 2; }},
};
const Named rules[] = {
    {"none", [](SearchOptions&, auto&) {}},
    {"penalty", [](SearchOptions& o, auto&) { o.repetition_penalty = 1.2; }},
    {"high penalty", [](SearchOptions& o, auto&) { o.repetition_penalty = 50; }},
    {"no token twice", [](SearchOptions& o, auto&) { o.no_repeat_ngram = 1; }},
    {"no pair twice", [](SearchOptions& o, auto&) { o.no_repeat_ngram = 2; }},
    {"forbidden",
     [](SearchOptions& o, auto&) {
         o.forbidden = {0, 3, 7, 1025};
     }},
    {"minimum", [](SearchOptions& o, auto&) { o.minimum = 5; }},
    {"several ends",
     [](SearchOptions& o, std::vector<SearchSource>& from) {
         o.minimum = 2;
         for (std::size_t i = 0; i < from.size(); i++)
             for (int token = 0; token < 3 + int(i); token++) from[i].ends.push_back(11 * token);
     }},
    {"begin is an end",
     [](SearchOptions& o, std::vector<SearchSource>& from) {
         o.repetition_penalty = 2, o.no_repeat_ngram = 1;
         for (SearchSource& s : from) s.begin = 1;
     }},
    {"all",
     [](SearchOptions& o, std::vector<SearchSource>& from) {
         o.repetition_penalty = 1.1, o.no_repeat_ngram = 2, o.forbidden = {5, 6}, o.minimum = 3;
         from[0].maximum = 4;
     }},
};

float same(float x, int) { return x; }
float coarse(float x, int) { return std::round(2 * x) / 2; }           // many logits are equal
float level(float, int) { return 0; }                                  // all logits are equal
float few(float x, int token) { return token % 100 ? -INFINITY : x; }  // eleven tokens are possible
float high(float x, int token) { return token < 30 ? x + 20 : x; }     // the best tokens are always among the first 30
float listed(float x, int token) { return token < 17 ? x + 20 : x; }   // a greedy search lists the first 17

}  // namespace

TEST_CASE("search: shortlists give the bits of all logits, with every option") {
    for (const auto change : {same, coarse, level})
        for (const Named& kind : searches)
            for (const Named& rule : rules) {
                INFO(kind.name, ", ", rule.name);
                std::vector<SearchSource> from = toy::sources(6);
                SearchOptions options;
                kind.change(options, from);
                rule.change(options, from);
                options.maximum = 9;
                const Found found = check_same(from, options, change);
                CHECK(found.full_steps == 0);
                CHECK(found.listed_steps > (change == level ? 0 : 1));
                if (change == same) CHECK(found.too_short == 0);
            }
}

TEST_CASE("search: a shortlist that is too short is replaced by all logits") {
    for (const Named& kind : searches) {
        INFO(kind.name);
        std::vector<SearchSource> from = toy::sources(6);
        SearchOptions options;
        kind.change(options, from);
        options.maximum = 9;
        CHECK(check_same(from, options, few).too_short == 0);  // a list with minus infinity has all that are possible
        for (int token = 0; token < 30; token++) options.forbidden.push_back(token);
        CHECK(check_same(from, options, high).too_short > 0);
        for (int token = 30; token < V; token++) options.forbidden.push_back(token);
        for (const Hypotheses& list : check_same(from, options, same).hypotheses)
            for (const Hypothesis& h : list) CHECK((h.tokens.empty() && !h.ended));
    }
}

// Token 900 has the logit 2, all others have 1. The first list holds token 900 and the tokens 0 to 15, which are
// forbidden. After the first step, the penalty lowers token 900 to 1, as good as the last listed token, but token 16
// comes first.
TEST_CASE("search: a listed token that is only as good as the last listed one is not taken for certain") {
    SearchOptions options;
    options.maximum = 3;
    options.repetition_penalty = 2;
    std::vector<SearchSource> from = toy::sources(2);
    for (SearchSource& s : from) s.ends = {1099};
    for (int token = 0; token < 16; token++) options.forbidden.push_back(token);
    const Found found = check_same(from, options, [](float, int token) { return token == 900 ? 2.0f : 1.0f; });
    for (const Hypotheses& list : found.hypotheses) CHECK(list.at(0).tokens == Tokens{900, 16, 17});
    CHECK(found.too_short > 0);
}

// After 17 steps, all listed tokens are penalised. Other tokens are then better, and only all logits show them.
TEST_CASE("search: a shortlist of tokens that were all written is replaced by all logits") {
    SearchOptions options;
    options.maximum = 30;
    options.repetition_penalty = 50;
    options.forbidden = {1};
    CHECK(check_same(toy::sources(3), options, listed).too_short > 0);
}

TEST_CASE("search: no shortlist where it could not be exact, or would be long") {
    const auto from = toy::sources(3);
    auto steps = [&](const SearchOptions& options) {
        const Found found = check_same(from, options, same);
        CHECK((found.full_steps > 0) != (found.listed_steps > 0));
        return found.listed_steps;
    };
    SearchOptions options;
    options.maximum = 4;
    CHECK(steps(options) > 0);
    options.repetition_penalty = 0.9;
    CHECK(steps(options) == 0);
    CHECK(steps(drawing(1, 0, 1)) == 0);
    CHECK(steps(drawing(1, 0, 0.9)) == 0);
    CHECK(steps(drawing(1, 240, 1)) > 0);
    CHECK(steps(drawing(1, 241, 1)) == 0);
    for (int size : {17, 18}) {
        toy::Tables model(size, from);
        Listing listing(model);
        CHECK(toy::same(search(listing, from, SearchOptions(), 1), toy::run(size, from, SearchOptions())));
        CHECK((listing.listed_steps > 0) == (size == 18));
    }
}

TEST_CASE("search: scores of shortlists, from models with other numbers of tokens") {
    TokenScores scores;
    for (int size : {40, 18, 40}) {
        std::vector<float> logits;
        for (int token = 0; token < size; token++) logits.push_back(float(token));
        Shortlists lists;
        lists.prepare(1, 3, size, Device::cpu);
        lists.compute({logits.data(), DType::f32, Device::cpu, {1, size}, "logits"});
        lists.read();
        scores.read(lists, 0, size);
        CHECK(scores.size() == size);
        REQUIRE(scores.best(3).size() == 3);
        CHECK(scores.certain());
        for (int i = 0; i < 3; i++) CHECK(scores.best(3)[std::size_t(i)].id == size - 1 - i);
        CHECK(scores.best(4).size() == 3);
        CHECK_FALSE(scores.certain());
    }
}

TEST_CASE("search: shortlists of logits that say nothing are refused with the same message") {
    for (float odd : {NAN, -NAN, INFINITY, -INFINITY})
        for (bool everywhere : {true, false}) {
            const auto change = [&](float x, int token) { return everywhere || token == 1050 ? odd : x; };
            std::string messages[2];
            for (bool listed : {false, true}) {
                const auto from = toy::sources(2, 5);
                Changed model(V, from, change);
                Listing listing(model);
                try {
                    search(listed ? static_cast<NextToken&>(listing) : model, from, SearchOptions(), 1);
                } catch (const Error& error) {
                    messages[listed] = error.what();
                }
                CHECK(listing.listed_steps >= int(listed));
            }
            CHECK(messages[0] == messages[1]);
            CHECK((messages[0].find("line 5, step 0, hold NaN or infinity") != std::string::npos) ==
                  (everywhere || odd != -INFINITY));
        }
}
