// SPDX-License-Identifier: MIT
// How well a vocabulary fits a text.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "tokenizer/word_counts.h"
#include "tokenizer/wordpiece.h"

namespace masquerade {

struct TextReport {
    struct Item {
        std::string text;
        std::int64_t count;
    };

    // Words are those of the normaliser, so punctuation marks and ideographs count; characters are those of
    // the words, so white space does not; bytes are those of the lines, without line feeds. No [CLS] or [SEP]
    // is added, and what looks like one in the text is text.
    std::int64_t lines = 0, bytes = 0, words = 0, different_words = 0, characters = 0, tokens = 0;
    std::int64_t letter_words = 0, letter_tokens = 0;  // words of letters only: no digit, symbol, punctuation
    std::int64_t whole_words = 0;                      // that are one token, and not [UNK]
    std::int64_t unknown_words = 0;                    // with [UNK] among their tokens
    std::int64_t covered_characters = 0;               // that are a token, with "##" or without
    int vocabulary = 0, used = 0;                      // tokens but the special ones, and those that occur

    // The most frequent first, equal ones in the order of their strings.
    std::vector<Item> unknown;    // words
    std::vector<Item> uncovered;  // characters

    // 0 where there is nothing to divide by.
    double tokens_per_word() const { return ratio(tokens, words); }  // fertility
    double tokens_per_letter_word() const { return ratio(letter_tokens, letter_words); }
    double tokens_per_line() const { return ratio(tokens, lines); }
    double bytes_per_token() const { return ratio(bytes, tokens); }
    double whole_share() const { return ratio(whole_words, words); }
    double unknown_share() const { return ratio(unknown_words, words); }
    double coverage() const { return ratio(covered_characters, characters); }
    double used_share() const { return ratio(used, vocabulary); }

  private:
    static double ratio(std::int64_t a, std::int64_t b) { return b == 0 ? 0 : double(a) / double(b); }
};

// The words must be counted with the tokenizer's own NormaliseOptions: WordCounts words(tokenizer.options()).
// At most `most` unknown words, and as many characters.
TextReport report(const WordCounts& words, const WordPiece& tokenizer, int most = 20);

// Lines of at most 80 columns, each ended by a line feed.
std::string format(const TextReport& report);

}  // namespace masquerade
