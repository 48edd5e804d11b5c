// SPDX-License-Identifier: MIT
// Compares the n-gram model with sums, with a computation by hand, with its definition in Python and with KenLM. Also
// tests the model of words, which uses it.
#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "doctest/doctest.h"
#include "engine/base/error.h"
#include "engine/base/random.h"
#include "models/scoring/ngram.h"
#include "models/scoring/word_model.h"

using namespace masquerade;
using nlohmann::json;

namespace {

using Lines = std::vector<std::vector<int>>;

// Returns sentences of up to 9 symbols below `vocabulary` - 1, so that the last symbol never occurs. Small symbols are
// more frequent.
Lines babble(int count, int vocabulary, std::uint64_t seed) {
    Sequence random(seed, "babble");
    Lines lines(static_cast<std::size_t>(count));
    for (std::vector<int>& line : lines)
        for (std::uint32_t n = random.below(10); n > 0; n--)
            line.push_back(int(random.below(1 + random.below(std::uint32_t(vocabulary - 1)))));
    return lines;
}

double sum_after(const Ngram& model, const std::vector<int>& context) {
    double sum = 0;
    for (int symbol = 0; symbol <= model.end(); symbol++) {
        double p = model.probability(context, symbol);
        CHECK(p > 0);
        sum += p;
    }
    return sum;
}

double worst(const json& golden, const std::vector<double>& found, double scale = 1) {
    REQUIRE(golden.size() == found.size());
    double most = 0;
    for (std::size_t i = 0; i < found.size(); i++) {
        double difference = std::abs(golden[i].get<double>() - found[i] * scale);
        if (!(difference <= most)) most = difference;  // also true for NaN
        if (std::isnan(most)) break;
    }
    return most;
}

}  // namespace

TEST_CASE("ngram: probabilities after every context sum to 1") {
    const int V = 12;
    const Lines lines = babble(300, V, 1);
    for (int order : {1, 2, 3, 5}) {
        CAPTURE(order);
        Ngram model(order, V, lines);
        // Contexts; some of them never occur.
        std::set<std::vector<int>> contexts = {{}, {V - 1}, {3, V - 1, 4}, {V + 1, V - 1}};
        for (const std::vector<int>& line : lines) {
            std::vector<int> marked = line;
            marked.insert(marked.begin(), model.begin());
            for (std::size_t i = 0; i < marked.size(); i++)
                for (std::size_t n = 1; n <= std::min<std::size_t>(i + 1, 6); n++)
                    contexts.insert(
                        {marked.begin() + std::ptrdiff_t(i + 1 - n), marked.begin() + std::ptrdiff_t(i + 1)});
        }
        REQUIRE(contexts.size() > 1000);
        for (const std::vector<int>& context : contexts) CHECK(std::abs(sum_after(model, context) - 1) < 1e-12);
    }
}

// The text has two sentences, "0 1" and "0 2", that is <s> 0 1 </s> and <s> 0 2 </s>. The discounts are the default
// ones, 0.5, 1 and 1.5, because nothing occurs four times.
TEST_CASE("ngram: a bigram model computed by hand") {
    Ngram model(2, 4, {{0, 1}, {0, 2}});
    const int end = model.end(), begin = model.begin();
    CHECK(end == 4);
    CHECK(begin == 5);
    for (int order : {1, 2}) CHECK(model.discounts(order) == Ngram::Discounts{0.5, 1, 1.5});
    // A unigram counts the different symbols that stand before a symbol: only <s> before 0, only 0 before 1 and before
    // 2, and 1 and 2 before </s>. So the counts are 1, 1, 1, 2, and the discounts 0.5, 0.5, 0.5, 1.
    const double gamma = 2.5 / 5, uniform = 1.0 / 5;
    const double p0 = 0.5 / 5 + gamma * uniform, p_end = 1.0 / 5 + gamma * uniform, p3 = gamma * uniform;
    CHECK(model.probability({}, 0) == doctest::Approx(p0).epsilon(1e-14));
    CHECK(model.probability({}, end) == doctest::Approx(p_end).epsilon(1e-14));
    CHECK(model.probability({}, 3) == doctest::Approx(p3).epsilon(1e-14));
    // <s> 0 occurs twice: (2 - 1) / 2. The weight of the lower order is 1 / 2.
    CHECK(model.probability({begin}, 0) == doctest::Approx(0.5 + 0.5 * p0).epsilon(1e-14));
    CHECK(model.probability({begin}, 3) == doctest::Approx(0.5 * p3).epsilon(1e-14));
    // 0 1 and 0 2 occur once each: (1 - 0.5) / 2. The weight of the lower order is 1 / 2. Longer contexts change
    // nothing.
    CHECK(model.probability({0}, 1) == doctest::Approx(0.25 + 0.5 * p0).epsilon(1e-14));
    CHECK(model.probability({begin, 3, 0}, 1) == model.probability({0}, 1));
    // After a symbol that never occurred, only the unigrams count.
    CHECK(model.probability({3}, 0) == model.probability({}, 0));
    std::vector<double> logs = model.log_probabilities({0, 1});
    REQUIRE(logs.size() == 3);
    CHECK(logs[2] == doctest::Approx(std::log(0.5 + 0.5 * p_end)).epsilon(1e-14));  // 1 </s> occurs once, out of one
}

TEST_CASE("ngram: the lowest order counts what stands before, a model of order 1 how often") {
    // 0 occurs six times, always after 1. 2 occurs three times: after 1, after 3 and at the beginning.
    const Lines lines = {{1, 0, 1, 0, 1, 0}, {1, 0, 1, 0, 1, 0}, {2}, {1, 2, 3, 2}};
    Ngram once(1, 4, lines), twice(2, 4, lines);
    CHECK(once.probability({}, 0) > once.probability({}, 2));
    CHECK(twice.probability({}, 0) < twice.probability({}, 2));
    CHECK(once.probability({1, 1, 1}, 0) == once.probability({}, 0));
}

TEST_CASE("ngram: an unseen context backs off to its end, an empty text to equal shares") {
    const Lines lines = babble(200, 10, 2);
    Ngram model(4, 10, lines);
    for (int symbol = 0; symbol <= model.end(); symbol++) {
        CHECK(model.probability({9, 1}, symbol) == model.probability({1}, symbol));
        CHECK(model.probability({1, 9}, symbol) == model.probability({}, symbol));
    }
    Ngram empty(3, 7, {});
    CHECK(empty.probability({}, 2) == 1.0 / 8);
    CHECK(empty.probability({empty.begin(), 3}, empty.end()) == 1.0 / 8);
    CHECK(sum_after(Ngram(3, 2, {{}}), {}) == doctest::Approx(1).epsilon(1e-14));  // a sentence without words
}

TEST_CASE("ngram: longer contexts tell more of a text that was learned") {
    const Lines lines = babble(400, 30, 3);
    double before = 1e9;
    for (int order = 1; order <= 4; order++) {
        Ngram model(order, 30, lines);
        double sum = 0;
        for (const auto& line : lines)
            for (double p : model.log_probabilities(line)) sum -= p;
        CHECK(sum < before);
        before = sum;
    }
}

TEST_CASE("ngram: symbols that are none are refused") {
    CHECK_THROWS_AS(Ngram(0, 4, {}), Error);
    CHECK_THROWS_AS(Ngram(2, 4, {{4}}), Error);
    Ngram model(2, 4, {{1}});
    CHECK_THROWS_AS(model.probability({}, model.begin()), Error);
    CHECK_THROWS_AS(model.probability({-1}, 0), Error);
    CHECK_THROWS_AS(model.log_probabilities({model.end()}), Error);
}

TEST_CASE("ngram: the definition in Python, and KenLM, say the same") {
    std::ifstream file("tests/golden/ngram/golden.json");
    const json golden = json::parse(file);
    WordTable table;
    Lines text, held_out;
    for (const std::string line : golden["text"]) text.push_back(table.read(line));
    const int words = table.size();
    for (const std::string line : golden["held_out"]) held_out.push_back(table.read(line));

    Lines hidden = held_out;  // words that are not in the text become one symbol, which is not in the text either
    for (auto& line : hidden)
        for (int& word : line) word = std::min(word, words);
    int natural = 0;
    for (const auto& [key, made] : golden["orders"].items()) {
        const std::string& order = key;
        CAPTURE(order);
        Ngram model(std::stoi(order), words + 1, text);
        for (int n = 1; n <= model.order(); n++)
            for (std::size_t k = 0; k < 3; k++) {
                const double expected = made["discounts"][std::size_t(n - 1)][k];
                CHECK(model.discounts(n)[k] == doctest::Approx(expected).epsilon(1e-13));
                natural += n > 1 && k == 0 && expected != 0.5;
            }
        for (std::size_t i = 0; i < hidden.size(); i++) {
            std::vector<double> logs = model.log_probabilities(hidden[i]);
            CHECK(worst(made["log_probabilities"][i], logs) < 1e-12);
            if (!golden["kenlm"].contains(order)) continue;
            CHECK(worst(golden["kenlm"][order][i], logs, 1 / std::log(10)) < 5e-7);  // KenLM computes in float
        }
    }
    CHECK(natural >= 3);  // number of orders whose discounts are not the default ones

    WordModel model(table, text);
    int known = 0;
    for (int word = 0; word < words; word++) known += model.known(word);
    CHECK(known == golden["words"]["known"].get<int>());
    std::vector<double> sums;
    for (const auto& line : held_out) {
        sums.push_back(0);
        for (double p : model.log_probabilities(line)) sums.back() += p;
    }
    CHECK(worst(golden["words"]["log_probabilities"], sums) < 1e-10);
    Perplexity found = perplexity(model, held_out);
    CHECK(worst(golden["words"]["perplexity"], {found.all, found.known, found.unknown}) < 1e-8);
}

TEST_CASE("word model: all words, known and unknown, and the line's end have probability 1 together") {
    // The words have only two letters, so that all spellings can be listed. Every third word of the text is a known
    // word.
    auto spell = [](int length, int bits) {
        std::string word;
        for (int i = 0; i < length; i++) word += bits >> i & 1 ? 'b' : 'a';
        return word;
    };
    WordTable table;
    Lines lines, spellings;
    for (int length = 1; length <= 5; length++)
        for (int bits = 0; bits < 1 << length; bits++) {
            std::string word = spell(length, bits);
            lines.push_back(table.read(word + (bits % 3 ? "" : " " + word)));
            spellings.emplace_back(word.begin(), word.end());
        }
    WordModel model(table, lines);
    Ngram spelling(WordModel::spelling_order, 256, spellings);
    double expected = std::exp(model.log_probabilities({})[0]);  // the end of the line
    // Sums of the spelling probabilities: of all listed words, and of the known words.
    double unknown = 0, spelled = 0, spelled_known = 0;
    for (int length = 1; length <= 12; length++)
        for (int bits = 0; bits < 1 << length; bits++) {
            std::string word = spell(length, bits);
            std::vector<int> line = table.read(word);
            double s = 0, p = std::exp(model.log_probabilities(line)[0]);
            for (double log : spelling.log_probabilities({word.begin(), word.end()})) s += log;
            spelled += std::exp(s);
            if (model.known(line[0])) spelled_known += std::exp(s);
            (model.known(line[0]) ? expected : unknown) += p;
        }
    // Unknown words share the probability that known words do not take, in proportion to their spelling probabilities.
    // Only words up to 12 letters are listed here.
    CHECK(spelled < 1);
    CHECK(unknown > 0.3);
    CHECK(unknown == doctest::Approx((1 - expected) * (spelled - spelled_known) / (1 - spelled_known)).epsilon(1e-12));
}

TEST_CASE("word model: invented words cost more than known ones, strange ones most") {
    WordTable table;
    Lines lines;
    for (const char* line : {"Reading files", "reading maps", "writing files", "writing maps", "readers of files",
                             "readings of maps", "writers of maps"})
        lines.push_back(table.read(line));
    WordModel model(table, lines);
    auto cost = [&](const char* line) { return perplexity(model, {table.read(line)}); };
    CHECK(cost("reading files").all < cost("writing reading").all);
    CHECK(cost("writing files").all < cost("writings files").all);
    CHECK(cost("writings files").all < cost("xqzjvkw files").all);
    CHECK(cost("writings files").known == cost("xqzjvkw files").known);
    CHECK(cost("writings files").unknown == 0.5);
    CHECK(cost("READING Files").unknown == 0);
    CHECK(std::isfinite(cost("").all));
    CHECK(perplexity(model, {}).all == 0);
}
