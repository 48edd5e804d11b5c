// SPDX-License-Identifier: MIT
// Tests lines as token ids, and the order in which training reads them.
#include "data/sentences.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "engine/base/error.h"

using namespace masquerade;

namespace {

// Returns sentences of 3 to 7 tokens. Sentence i has the name i.
std::vector<Sentence> numbered(int count) {
    std::vector<Sentence> all(static_cast<std::size_t>(count));
    for (int i = 0; i < count; i++) {
        all[std::size_t(i)].ids.assign(std::size_t(3 + i % 5), 1);
        all[std::size_t(i)].name = i;
    }
    return all;
}

// Takes whole batches until there are at least `count` sentences, and returns their names in order. Checks every batch.
std::vector<int> next_names(SentenceSource& source, std::size_t count, std::size_t tokens) {
    std::vector<int> names;
    while (names.size() < count) {
        std::size_t used = 0;
        std::set<int> different;
        const std::vector<const Sentence*> batch = source.take(tokens);
        for (const Sentence* s : batch) {
            used += s->size();
            different.insert(s->name);
            names.push_back(s->name);
        }
        CHECK(different.size() == batch.size());
        CHECK((used <= tokens || batch.size() == 1));
    }
    CHECK(names.size() == count);
    return names;
}

}  // namespace

TEST_CASE("sentences: an epoch holds each once, the next in another order, a resumed one the same rest") {
    const std::vector<Sentence> all = numbered(40);
    std::vector<int> every;
    for (int i = 0; i < 40; i++) every.push_back(i);
    SentenceSource source(in_memory(all), 3);
    std::vector<std::vector<int>> epochs;
    for (int epoch = 0; epoch < 3; epoch++) {
        epochs.push_back(next_names(source, 40, 20));
        std::vector<int> sorted = epochs.back();
        std::sort(sorted.begin(), sorted.end());
        CHECK(sorted == every);
    }
    CHECK(epochs[0] != every);
    CHECK(epochs[0] != epochs[1]);
    CHECK(epochs[1] != epochs[2]);

    SentenceSource again(in_memory(all), 3), other(in_memory(all), 4);
    again.move_to({1, 10});
    const std::vector<int> rest = next_names(again, 30, 20);
    CHECK(rest == std::vector<int>(epochs[1].begin() + 10, epochs[1].end()));
    CHECK(next_names(other, 40, 20) != epochs[0]);
}

TEST_CASE("sentences: a batch is as full as it may be, ends with its epoch, and holds one sentence at least") {
    const std::vector<Sentence> all = numbered(5);  // 3 + 4 + 5 + 6 + 7 tokens
    SentenceSource source(in_memory(all), 1);
    CHECK(source.take(25).size() == 5);  // all of them fit exactly
    CHECK(source.take(1000).size() == 5);
    CHECK(source.take(24).size() == 4);
    CHECK(source.take(24).size() == 1);  // the last sentence of this epoch is a batch by itself
    CHECK(source.take(1).size() == 1);
}

TEST_CASE("sentences: what is lost of a line is its end, or a word") {
    const WordPiece tokenizer(Vocabulary({"[PAD]", "[UNK]", "[CLS]", "[SEP]", "red", "cup"}), {});
    const std::vector<Lost> lost =
        lost_in(tokenizer, {"red cup", "red cup red", "blue cup", "", "red cup red blue"}, 4);
    const bool ends[] = {false, true, false, false, true}, words[] = {false, false, true, false, false};
    for (std::size_t i = 0; i < 5; i++) {
        CHECK(lost[i].end == ends[i]);
        CHECK(lost[i].words == words[i]);
    }
}

TEST_CASE("sentences: lines that were cut and words that are unknown are counted, of sources and targets apart") {
    const WordPiece tokenizer(Vocabulary({"[PAD]", "[UNK]", "[CLS]", "[SEP]", "red", "##dish", "cup"}), {});
    const std::vector<Sentence> pairs = encode_pairs(tokenizer, {"reddish cup", "red", "blue blue cup red"},
                                                     {"cup cup cup", "cup cup red", "lamp"}, 5, 3);
    const auto counts_of = [&](const std::vector<Sentence>& some, bool targets) {
        return in_memory(some)->counts(tokenizer.vocabulary(), targets);
    };
    const ReadCounts sources = counts_of(pairs, false), targets = counts_of(pairs, true);
    CHECK(sources.lines == 3);
    CHECK(sources.cut == 1);
    CHECK(sources.words == 2 + 1 + 3);
    CHECK(sources.unknown == 2);
    CHECK(targets.cut == 2);
    CHECK(targets.words == 2 + 2 + 1);
    CHECK(targets.unknown == 1);
    CHECK(counts_of(encode_lines(tokenizer, {"red"}, 9), true).lines == 0);
}

TEST_CASE("sentences: a line that is too long keeps its [SEP], and every line is named by its number") {
    const WordPiece tokenizer(Vocabulary({"[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "b"}), {});
    const std::vector<Sentence> s = encode_lines(tokenizer, {"a b", "a a b b", "b"}, 4);
    REQUIRE(s.size() == 3);
    CHECK(s[0].ids == std::vector<int>{2, 4, 5, 3});  // exactly as long as allowed, so nothing is cut off
    CHECK(s[1].ids == std::vector<int>{2, 4, 4, 3});
    CHECK(s[2].ids == std::vector<int>{2, 5, 3});
    for (int i = 0; i < 3; i++) CHECK(s[std::size_t(i)].name == i);
    const std::vector<Sentence> pairs = encode_pairs(tokenizer, {"a", "b"}, {"b a b", "a"}, 4, 3);
    CHECK(pairs[0].target == std::vector<int>{5, 4, 3});
    CHECK(pairs[1].target == std::vector<int>{4, 3});
    CHECK(pairs[0].size() == 6);
    CHECK_THROWS_WITH_AS(encode_pairs(tokenizer, {"a", "b"}, {"a"}, 4, 3), "1 targets for 2 lines", Error);
}
