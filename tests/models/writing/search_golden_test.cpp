// SPDX-License-Identifier: MIT
// Compares with what others find in the same tables: generate() of Hugging Face's transformers, and bert4keras' rules
// restated in Python. The files and the scripts that made them: tests/golden/search.
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

// The options of a case, by the names of generate().
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

// The transitions that the score sums over. If two sequences have the same ones, as 0646 and 6064 may have in
// a cycle, rounding decides which comes first.
std::multiset<std::string> transitions(const std::string& tokens) {
    const std::string all = "10" + tokens;
    std::multiset<std::string> found;
    for (std::size_t i = 0; i + 3 <= all.size(); i++) found.insert(all.substr(i, 3));
    return found;
}

// Every hypothesis of every table: how many differ from "tokens score"; the largest
// difference of a score, relative above 1, in `worst`.
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
            if (!(line >> score)) continue;  // a greedy search of transformers tells none
            // theirs are f32
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
