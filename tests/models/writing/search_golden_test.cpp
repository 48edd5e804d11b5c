// SPDX-License-Identifier: MIT
// Compares searches with the results of other programs for the same tables: generate() of Hugging Face's transformers,
// and the rules of bert4keras, rewritten in Python. The files and the scripts that made them are in
// tests/golden/search.
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/models/writing/search_toy.h"

using namespace masquerade;
using nlohmann::json;

namespace {

constexpr int V = 7, end_token = 1;

json golden(const char* file) {
    std::ifstream in(std::string("tests/golden/search/") + file);
    REQUIRE(in.good());
    return json::parse(in);
}

std::string written(const Hypothesis& h) {
    std::string digits;
    for (int token : h.tokens) digits += char('0' + token);
    return h.ended ? digits + char('0' + end_token) : digits;
}

// Converts the options of a case, which have the names of generate().
SearchOptions options_of(const json& given) {
    SearchOptions o;
    const std::map<std::string, std::function<void(const json&)>> names = {
        {"num_beams", [&](const json& v) { o.beams = v; }},
        {"num_return_sequences", [&](const json& v) { o.n_best = v; }},
        {"length_penalty", [&](const json& v) { o.length_penalty = v; }},
        {"early_stopping", [&](const json& v) { CHECK(v == false); }},
        {"max_new_tokens", [&](const json& v) { o.maximum = v; }},
        {"min_new_tokens", [&](const json& v) { o.minimum = v; }},
        {"no_repeat_ngram_size", [&](const json& v) { o.no_repeat_ngram = v; }},
        {"repetition_penalty", [&](const json& v) { o.repetition_penalty = v; }},
        {"bad_words_ids",
         [&](const json& v) {
             for (const json& w : v) o.forbidden.push_back(w[0]);
         }},
        {"beams", [&](const json& v) { o.beams = v; }},
        {"maxlen", [&](const json& v) { o.maximum = v; }},
        {"minlen", [&](const json& v) { o.minimum = v; }},
    };
    for (const auto& [name, value] : given.items()) names.at(name)(value);
    return o;
}

// Returns the transitions over which the score sums. Two sequences may have the same transitions, such as 0646 and 6064
// in a cycle. Then rounding decides which comes first.
std::multiset<std::string> transitions(const std::string& tokens) {
    const std::string all = "10" + tokens;
    std::multiset<std::string> found;
    for (std::size_t i = 0; i + 3 <= all.size(); i++) found.insert(all.substr(i, 3));
    return found;
}

// Returns the number of hypotheses, over all tables, that differ from "tokens score". `worst` becomes the largest
// relative difference of a score (absolute below 1).
int differences(const json& answers, const std::vector<std::vector<Hypothesis>>& found, double& worst) {
    REQUIRE(answers.size() == found.size());
    int wrong = 0;
    for (std::size_t s = 0; s < found.size(); s++) {
        const json list = answers[s].is_array() ? answers[s] : json::array({answers[s]});
        if (list.size() != found[s].size()) {
            wrong++;
            continue;
        }
        for (std::size_t i = 0; i < list.size(); i++) {
            std::istringstream line(list[i].get<std::string>());
            std::string tokens;
            double score = 0;
            line >> tokens;
            wrong += tokens != written(found[s][i]) && transitions(tokens) != transitions(written(found[s][i]));
            if (!(line >> score)) continue;  // a greedy search of transformers reports no score
            // The other program computes in f32.
            const double error = std::abs(score - found[s][i].score) / std::max(1.0, std::abs(score));
            if (!(error <= worst)) worst = error;
        }
    }
    return wrong;
}

void compare(const char* file, std::size_t least_cases, bool bert4keras) {
    const json all = golden(file);
    CHECK(all["cases"].size() >= least_cases);
    for (const json& one : all["cases"]) {
        CAPTURE(one["options"].dump());
        SearchOptions options = options_of(one["options"]);
        options.bert4keras = bert4keras;
        auto from = toy::sources(int(one["found"].size()));
        toy::Tables model(V, from, end_token);
        double worst = 0;
        CHECK(differences(one["found"], search(model, from, options, 1), worst) == 0);
        CHECK(worst < 1e-5);
    }
}

}  // namespace

TEST_CASE("search: the tables are those of the script") {
    const json all = golden("beams.json");
    const toy::Tables model(V, {});
    for (int c = 0; c < 3; c++) CHECK(model.logit(0, 0, 0, c) == all["first_logits"][std::size_t(c)].get<float>());
}

TEST_CASE("search: sequences and scores of Hugging Face's generate, greedy and with beams") {
    compare("beams.json", 28, false);
}

TEST_CASE("search: bert4keras' beam search") { compare("bert4keras.json", 8, true); }
