// SPDX-License-Identifier: MIT
// Compares scores of texts with sacrebleu and rouge-score (tests/golden/text_metrics), and with counts by hand.
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "doctest/doctest.h"
#include "engine/base/error.h"
#include "models/scoring/metrics.h"
#include "models/scoring/text_metrics.h"

using namespace masquerade;
using nlohmann::json;

namespace {

json golden() {
    std::ifstream file("tests/golden/text_metrics/golden.json");
    return json::parse(file);
}

// Returns whether the relative difference is at most 1e-9. Only 0 is close to 0, and nothing is close to NaN.
bool close(const json& expected, double found) {
    const double x = expected.get<double>();
    return std::abs(found - x) <= 1e-9 * std::abs(x);
}

void check_bleu(const json& expected, const Bleu& found) {
    CHECK(close(expected["score"], found.score));
    for (std::size_t n = 0; n < 4; n++) CHECK(close(expected["precisions"][n], found.precision[n]));
    CHECK(close(expected["brevity"], found.brevity));
    CHECK(expected["hypothesis"].get<long>() == found.hypothesis_tokens);
    CHECK(expected["reference"].get<long>() == found.reference_tokens);
}

void check_rouge(const json& expected, const Rouge& found) {
    const Overlap kinds[] = {found.rouge1, found.rouge2, found.rougeL};
    for (std::size_t k = 0; k < 3; k++) {
        CHECK(close(expected[k][0], kinds[k].precision / 100));
        CHECK(close(expected[k][1], kinds[k].recall / 100));
        CHECK(close(expected[k][2], kinds[k].f1 / 100));
    }
}

std::string joined(const std::vector<std::string>& words) {
    std::string line;
    for (const std::string& word : words) line += (line.empty() ? "" : " ") + word;
    return line;
}

}  // namespace

TEST_CASE("text metrics: lines are cut as sacrebleu and rouge-score cut them") {
    const json all = golden()["words"];
    REQUIRE(all.size() > 150);
    for (const json& line : all) {
        const std::string text = line[0];
        CAPTURE(text);
        CHECK(joined(words_13a(text)) == line[1].get<std::string>());
        CHECK(joined(rouge_words(text)) == line[2].get<std::string>());
    }
    CHECK(characters_of(" 春\u3000a\tb ") == U"春ab");
    // Invalid bytes are dropped.
    CHECK(words_13a("na\xC3me \xFF") == std::vector<std::string>{"name"});
    CHECK(characters_of("\xE6\x98") == U"");
}

TEST_CASE("text metrics: scores are those of sacrebleu and rouge-score") {
    const json all = golden();
    int scored = 0, smoothed = 0, brief = 0;
    for (const json& expected : all["sets"]) {
        const std::size_t begin = expected["range"][0], end = expected["range"][1];
        CAPTURE(begin);
        CAPTURE(end);
        Strings references, hypotheses;
        for (std::size_t i = begin; i < end; i++) {
            references.push_back(all["pairs"][i][0]);
            hypotheses.push_back(all["pairs"][i][1]);
        }
        const Bleu found = bleu(references, hypotheses, TextUnits::words);
        check_bleu(expected["13a"], found);
        check_bleu(expected["char"], bleu(references, hypotheses, TextUnits::characters));
        check_rouge(expected["rouge"]["words"], rouge(references, hypotheses, TextUnits::words));
        check_rouge(expected["rouge"]["characters"], rouge(references, hypotheses, TextUnits::characters));
        scored += found.score > 0 && found.score < 99;
        brief += found.score > 0 && found.brevity < 1;
        smoothed += found.precision[3] > 0 && found.precision[3] * double(found.hypothesis_tokens) < 100;
    }
    CHECK(all["pairs"].size() >= 120);
    CHECK(scored >= 30);  // enough pairs for a meaningful comparison
    CHECK(brief >= 10);
    CHECK(smoothed >= 10);
    CHECK_FALSE(close(1.0, NAN));
    CHECK_FALSE(close(0.0, NAN));
}

// Reference: the cat sat on the mat. Hypothesis: the the cat on mat.
TEST_CASE("text metrics: BLEU and ROUGE counted by hand") {
    const Strings r = {"the cat sat on the mat"}, h = {"the the cat on mat"};
    const Bleu b = bleu(r, h, TextUnits::words);
    CHECK(b.precision[0] == doctest::Approx(100));               // matches: the the cat on mat
    CHECK(b.precision[1] == doctest::Approx(100 * 1.0 / 4));     // match: the cat
    CHECK(b.precision[2] == doctest::Approx(100 * 0.5 / 3));     // no match: counted as half a match
    CHECK(b.precision[3] == doctest::Approx(100 * 0.25 / 2));    // again no match: counted as a quarter
    CHECK(b.brevity == doctest::Approx(std::exp(1 - 6.0 / 5)));  // 5 words instead of 6
    CHECK(b.score == doctest::Approx(100 * b.brevity * std::pow(1.0 * (1.0 / 4) * (0.5 / 3) * (0.25 / 2), 0.25)));
    const Rouge p = rouge(r, h, TextUnits::words);
    CHECK(p.rouge1.precision == doctest::Approx(100));
    CHECK(p.rouge1.recall == doctest::Approx(100 * 5.0 / 6));
    CHECK(p.rouge1.f1 == doctest::Approx(100 * 10.0 / 11));
    CHECK(p.rouge2.precision == doctest::Approx(100 * 1.0 / 4));
    CHECK(p.rouge2.recall == doctest::Approx(100 * 1.0 / 5));
    CHECK(p.rougeL.precision == doctest::Approx(100 * 4.0 / 5));  // matches: the cat on mat
    CHECK(p.rougeL.recall == doctest::Approx(100 * 4.0 / 6));
    // Counts are clipped: only one of three "the" is in the reference. The hypothesis is not shorter than the
    // reference.
    CHECK(bleu({"the cat"}, {"the the the"}, TextUnits::words).precision[0] == doctest::Approx(100.0 / 3));
    CHECK(bleu({"the cat"}, {"the the the"}, TextUnits::words).brevity == 1);
    // The score of a corpus is not the mean of its lines. For BLEU, the total lengths give one penalty. ROUGE is a mean
    // over pairs.
    const Strings two = {"a b c d e", "f"}, short_and_long = {"a b c d", "f g"};
    CHECK(bleu(two, short_and_long, TextUnits::words).brevity == 1);
    CHECK(rouge(two, short_and_long, TextUnits::words).rouge1.precision == doctest::Approx((100 + 50) / 2.0));
}

TEST_CASE("text metrics: BLEU of tokens and BLEU of strings are one where nothing is smoothed") {
    const Strings r = {"abcdefgh", "xyz", "aabbaabb"}, h = {"abcdeegh", "xz", "aabbaaab"};
    std::vector<Tokens> references, hypotheses;
    for (const std::string& line : r) references.emplace_back(line.begin(), line.end());
    for (const std::string& line : h) hypotheses.emplace_back(line.begin(), line.end());
    const double score = compare(references, hypotheses).bleu4;
    CHECK(score > 50);
    CHECK(score < 95);
    CHECK(score == doctest::Approx(bleu(r, h, TextUnits::characters).score).epsilon(1e-12));
    CHECK(compare({{1, 2, 3}}, {{1, 2, 3}}).bleu4 == 0);  // no stretch of four tokens
}

TEST_CASE("text metrics: the form of lines") {
    const Strings r = {"春风又绿江南岸", "人面桃花相映红", "日，月，星", "", "ab cd"};
    const Strings h = {"春风又绿江南岸", "人人桃花相映", "天，地，人", "天", "ab  cd "};
    const Form f = form(r, h);
    CHECK(f.exact == doctest::Approx(100 * 1.0 / 5));
    CHECK(f.same_length == doctest::Approx(100 * 3.0 / 5));      // lines 1, 3 and 5
    CHECK(f.without_repeats == doctest::Approx(100 * 4.0 / 5));  // all but line 2; commas may be repeated
    CHECK(f.length_ratio == doctest::Approx((1 + 6.0 / 7 + 1 + 1) / 4));
    CHECK(form({"aa"}, {"aa"}).without_repeats == 0);
    CHECK(form({""}, {""}).exact == 100);
}

TEST_CASE("text metrics: no pairs are zeros, unequal numbers of lines an error") {
    CHECK(bleu({}, {}, TextUnits::words).score == 0);
    CHECK(rouge({}, {}, TextUnits::words).rougeL.f1 == 0);
    CHECK(form({}, {}).exact == 0);
    CHECK(form({}, {}).length_ratio == 0);
    CHECK_THROWS_AS(bleu({"a"}, {}, TextUnits::words), Error);
    CHECK_THROWS_AS(rouge({}, {"a"}, TextUnits::words), Error);
    CHECK_THROWS_AS(form({}, {"a"}), Error);
}
