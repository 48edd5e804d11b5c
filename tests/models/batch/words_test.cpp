// SPDX-License-Identifier: MIT
// Tests that documents of a batch are shown in words, with what they predict below.
#include <doctest/doctest.h>

#include <sstream>

#include "models/batch/words.h"

using namespace masquerade;

namespace {

const Vocabulary vocabulary({"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "longer", "wörld"});

Example row_of(const std::vector<int>& ids) {
    Example e;
    for (std::size_t i = 0; i < ids.size(); i++) e.rows.push(ids[i], 0, int(i), 0);
    e.document = {int(ids.size()), 0};
    return e;
}

}  // namespace

TEST_CASE("batch in words: labels stand below their rows, ids above the vocabulary are numbers") {
    Example one = row_of({2, 5, 4, 3}), other = row_of({2, 7, 3});
    one.labels.push(0, 5);
    one.labels.push(2, 6);
    other.labels.push(1, 8 + 12);
    const Batch b = pack({one, other, one}, 16);
    CHECK(batch_in_words(b, vocabulary, 80) ==
          "  document 1\n"
          "    reads    [CLS] a [MASK] [SEP]\n"
          "    predicts a       longer\n"
          "  document 2\n"
          "    reads    [CLS] wörld [SEP]\n"
          "    predicts       12\n");
}

TEST_CASE("batch in words: an encoder, and words to insert") {
    Example e = row_of({2, 5, 3});
    e.source = row_of({2, 6, 3}).rows;
    for (int row : {0, 1}) e.labels.push(row, 0);
    for (int token : {5, 6, 7, 5}) e.labels.choices.push(token, 0.25);
    e.labels.choices.begin.push_back(4);
    e.labels.choices.push(3, 1);
    e.labels.choices.begin.push_back(5);
    CHECK(batch_in_words(pack({e}, 1), vocabulary, 80) ==
          "  document 1\n"
          "    encoder  [CLS] longer [SEP]\n"
          "    decoder  [CLS]               a      [SEP]\n"
          "    predicts +a/longer/wörld/... +[SEP]\n");
}

TEST_CASE("batch in words: long documents are wrapped and shown up to their 60th row") {
    Example e = row_of(std::vector<int>(100, 6));
    e.labels.push(3, 7);
    e.labels.push(99, 5);
    const std::string words = batch_in_words(pack({e}, 1), vocabulary, 40);
    std::istringstream lines(words);
    int tokens = 0, predicted = 0;
    for (std::string line; std::getline(lines, line);) {
        CHECK(line.size() <= 40 + 1);  // an umlaut has two bytes
        std::istringstream all(line);
        for (std::string word; all >> word;) tokens += word == "longer", predicted += word == "wörld" || word == "a";
    }
    CHECK(tokens == 60);
    CHECK(predicted == 1);
    CHECK(words.find("... (40 more)") != words.npos);
}
