// SPDX-License-Identifier: MIT
#include "tokenizer/word_counts.h"

#include <algorithm>
#include <cstdint>
#include <map>

#include "doctest/doctest.h"
#include "tokenizer/trainer.h"

using namespace masquerade;

namespace {

using Counts = std::map<std::string, std::int64_t>;

Counts counts_of(const WordCounts& words) {
    Counts counts;
    words.each(
        [&](std::string_view word, std::int64_t count) { CHECK(counts.try_emplace(std::string(word), count).second); });
    CHECK(counts.size() == words.different());
    return counts;
}

// Returns lines with many different words, empty lines, and a line that is longer than the part that a thread reads at
// a time.
std::vector<std::string> text(int lines) {
    std::vector<std::string> all;
    std::uint64_t state = 7;
    for (int n = 0; n < lines; n++) {
        std::string line;
        for (int words = n % 97 == 0 ? 0 : n == lines / 2 ? 60'000 : 9; words > 0; words--) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            std::uint64_t kind = state >> 33;
            line += kind % 5 == 0 ? "Word" : kind % 5 == 1 ? "é" : "the";
            line += std::to_string(kind % (1 + kind % 7000)) + (kind % 11 == 0 ? "，中" : " ");
        }
        all.push_back(line);
    }
    return all;
}

std::string joined(const std::vector<std::string>& lines, const char* end) {
    std::string all;
    for (const std::string& line : lines) all += line + end;
    return all;
}

}  // namespace

TEST_CASE("words are counted as the normaliser finds them") {
    WordCounts words;
    words.add("The cat, the CAT");
    words.add("");
    words.add("猫猫\xFF cat");
    CHECK(counts_of(words) == Counts{{"the", 2}, {"cat", 3}, {",", 1}, {"猫", 2}});
    CHECK(words.words() == 8);
    CHECK(words.lines() == 3);
    CHECK(words.bytes() == 16 + 11);
    NormaliseOptions cased;
    cased.lower = false;
    WordCounts upper(cased);
    upper.add("Cat cat");
    CHECK(counts_of(upper) == Counts{{"Cat", 1}, {"cat", 1}});
}

TEST_CASE("counts depend on neither threads nor order nor chunks") {
    std::vector<std::string> lines = text(6000);
    WordCounts one;
    for (const std::string& line : lines) one.add(line);
    const Counts expected = counts_of(one);
    REQUIRE(expected.size() > 3000);
    const Vocabulary vocabulary = train_vocabulary(one, 900);

    auto check = [&](const WordCounts& words) {
        CHECK(counts_of(words) == expected);
        CHECK(words.lines() == one.lines());
        CHECK(words.words() == one.words());
        CHECK(words.bytes() == one.bytes());
        CHECK(train_vocabulary(words, 900).lines() == vocabulary.lines());
    };
    for (int threads : {1, 2, 5}) {
        CAPTURE(threads);
        WordCounts in_chunks, as_text, no_end;
        std::vector<std::string> mixed = lines;
        std::reverse(mixed.begin(), mixed.end());
        std::rotate(mixed.begin(), mixed.begin() + 1234, mixed.end());
        for (std::size_t i = 0; i < mixed.size(); i += 1777) {
            const auto end = mixed.begin() + std::ptrdiff_t(std::min(i + 1777, mixed.size()));
            in_chunks.add_text(joined({mixed.begin() + std::ptrdiff_t(i), end}, "\n"), threads);
        }
        check(in_chunks);
        as_text.add_text(joined(lines, "\n"), threads);
        check(as_text);
        std::string unended = joined(lines, "\n");
        unended.pop_back();
        no_end.add_text(unended, threads);
        check(no_end);
    }
}

TEST_CASE("text ends its lines at LF, wherever its parts are cut") {
    // The line feeds are next to, at and far from multiples of 64 KiB.
    for (std::size_t length : {1u, 2u, 3u, 65534u, 65535u, 65536u, 65537u, 131071u, 200000u}) {
        CAPTURE(length);
        std::string text;
        int lines = 0;
        for (; text.size() < 500'000; lines++) text += std::string(length - 1, 'a') + "\n";
        for (int threads : {1, 3}) {
            WordCounts words;
            words.add_text(text, threads);
            CHECK(words.lines() == lines);
            CHECK(words.bytes() == std::int64_t(text.size()) - lines);
            CHECK(words.words() == (length > 1 ? lines : 0));
            CHECK(words.different() == (length > 1 ? 1 : 0));
        }
    }
    WordCounts empty;
    empty.add_text("", 4);
    CHECK(empty.lines() == 0);
    empty.add_text("\n\n", 4);
    CHECK(empty.lines() == 2);
}
