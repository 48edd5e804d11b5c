// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>

#include "doctest/doctest.h"
#include "engine/base/random.h"
#include "models/scoring/sample_quality.h"

using namespace masquerade;

namespace {

using Lines = std::vector<std::vector<int>>;

Lines babble(int count, int words, std::uint64_t seed) {
    Sequence random(seed, "babble");
    Lines lines(static_cast<std::size_t>(count));
    for (std::vector<int>& line : lines)
        for (std::uint32_t n = random.below(9); n > 0; n--) line.push_back(int(random.below(std::uint32_t(words))));
    return lines;
}

// Finds the longest match by trying all stretches of all lines.
std::size_t longest_match(const Lines& training, const std::vector<int>& line) {
    std::size_t most = 0;
    for (std::size_t first = 0; first < line.size(); first++)
        for (std::size_t n = 1; first + n <= line.size(); n++)
            for (const std::vector<int>& t : training) {
                auto begin = line.begin() + std::ptrdiff_t(first), end = begin + std::ptrdiff_t(n);
                if (std::search(t.begin(), t.end(), begin, end) != t.end()) most = std::max(most, n);
            }
    return most;
}

}  // namespace

TEST_CASE("sample quality: the longest run shared with the training text is that of trying everything") {
    for (int words : {2, 4, 30}) {
        CAPTURE(words);
        const Lines training = babble(60, words, 1), lines = babble(200, words + 2, 2);
        TrainingRuns runs(training);
        std::size_t all = 0;
        for (const std::vector<int>& line : lines) {
            CHECK(runs.longest(line) == longest_match(training, line));
            all += runs.longest(line);
        }
        CHECK(all > 150);
        for (const std::vector<int>& line : training) CHECK(runs.longest(line) == line.size());
    }
    CHECK(TrainingRuns({}).longest({1, 2}) == 0);
    CHECK(TrainingRuns({{1, 2}, {3, 4}}).longest({2, 3}) == 1);  // a match does not continue in the next line
    CHECK(TrainingRuns({{}, {5}}).longest({}) == 0);
}

TEST_CASE("sample quality: every number of a set counted by hand") {
    const std::vector<std::string> training = {"Reading files", "reading big files", "writing files"};
    SampleQuality quality(training);
    const std::vector<std::string> samples = {"reading  FILES", "big files", "writing big files now", "big files", ""};
    TextQuality q = quality.measure(samples, 5);
    CHECK(q.copied == doctest::Approx(1.0 / 5));
    CHECK(q.match == doctest::Approx((1 + 1 + 0.5 + 1) / 4));
    CHECK(q.repeated == doctest::Approx(1.0 / 5));
    CHECK(q.length == doctest::Approx(10.0 / 5));
    REQUIRE(q.lengths.size() == 4);  // lengths of 0, 1, 2-3 and 4-7 words
    for (auto [bin, share] : {std::pair(0, 0.2), {1, 0.0}, {2, 0.6}, {3, 0.2}})
        CHECK(q.lengths[std::size_t(bin)] == doctest::Approx(share));
    CHECK(q.distinct1 == doctest::Approx(5.0 / 10));  // different words: reading files big writing now
    // Different pairs: reading files, big files, writing big, files now.
    CHECK(q.distinct2 == doctest::Approx(4.0 / 6));
    CHECK(q.perplexity.unknown == doctest::Approx(5.0 / 10));  // unknown words: big, big, big, writing, now
    // The number of compared samples changes only the measures that depend on it.
    TextQuality first = quality.measure(samples, 2);
    CHECK(first.distinct1 == doctest::Approx(3.0 / 4));
    CHECK(first.distinct2 == doctest::Approx(2.0 / 2));
    CHECK(first.repeated == 0);
    CHECK(first.copied == q.copied);
    CHECK(first.length == q.length);
    CHECK(first.match == q.match);
    CHECK(first.perplexity.all == q.perplexity.all);
    // A text is likely under its own model. If there are no samples, all measures are 0, not NaN.
    CHECK(quality.measure(training, 3).perplexity.all < q.perplexity.all);
    CHECK(quality.measure(training, 3).copied == 1);
    TextQuality none = quality.measure({}, 0);
    CHECK(none.perplexity.all == 0);
    CHECK(none.match == 0);
    CHECK(none.repeated == 0);
}

TEST_CASE(
    "sample quality: the reverse perplexity is that of a model of the samples, and high where they leave something out") {
    const std::vector<std::string> all = {"read big files", "read big files", "write small names", "write small names"};
    SampleQuality quality(all);
    CHECK(quality.reverse_perplexity(all, all) == doctest::Approx(quality.measure(all, 4).perplexity.all));
    const std::vector<std::string> half = {all[0], all[0], all[0], all[0]};
    CHECK(quality.measure(half, 4).perplexity.all < 1.5 * quality.measure(all, 4).perplexity.all);
    CHECK(quality.reverse_perplexity(half, all) > 3 * quality.reverse_perplexity(all, all));
}

TEST_CASE("sample quality: copies are found in whatever order the training text has") {
    SampleQuality quality({"a b c", "a b", "a"});
    CHECK(quality.measure({"a", "a b", "a b c", "b"}, 4).copied == 0.75);
}

TEST_CASE("sample quality: words are the same whatever wrote them") {
    SampleQuality quality({"naïve files", "naive files", "10 % of (files)"});
    TextQuality a = quality.measure({"Naïve files", "10% of (files)"}, 2),
                b = quality.measure({"naive  FILES", "10 % of ( files )"}, 2);
    CHECK(a.copied == 1);
    CHECK(b.copied == 1);
    CHECK(a.perplexity.all == b.perplexity.all);
}
