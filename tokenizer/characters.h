// SPDX-License-Identifier: MIT
// The effect of the given options on each code point, as a table of two stages: two loads a code point, no
// Unicode library. The facts are characters_table.h, written by tools/unicode/make_table.py.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace masquerade {

// Whose tokenizer to agree with where they differ: BERT's reference (google-research/bert, tokenization.py),
// or Hugging Face's fast one, with its older tables of marks and punctuation, private-use characters dropped,
// no final sigma, and U+2B820-2B91F that are not taken for ideographs.
enum class Rules { google, hugging_face };

struct NormaliseOptions {
    bool lower = true;                  // lower-case
    std::optional<bool> strip_accents;  // decompose (NFD) and drop the marks; not given: as `lower`
    bool clean = true;                  // drop control and format characters
    bool split_ideographs = true;       // every ideograph a word by itself
    bool single_digits = false;         // every digit 0-9 a word by itself
    Rules rules = Rules::google;
    std::map<char32_t, std::string> replace;  // before anything else, all at once: a character, its text

    bool strips() const { return strip_accents.value_or(lower); }
};

// Bytes [begin, end) of the original line.
struct Span {
    int begin, end;
};

// One code point, in 32 bits.
struct Character {
    enum Flag : std::uint32_t {
        drop = 1,          // removed from the text
        space = 2,         // separates words
        ideograph = 4,     // a word by itself
        punctuation = 8,   // what it becomes is a word by itself
        mark = 16,         // stripped (category Mn)
        cased = 32,        // has case, and is not ignorable
        ignorable = 64,    // Unicode's Case_Ignorable: a final sigma looks past it
        nonstarter = 128,  // it, or all it decomposes to, has a canonical combining class but 0
        expands = 256,     // becomes several code points: `to` is their place in a pool
        syllable = 512,    // Hangul, decomposed by arithmetic
        sigma = 1024,      // U+03A3 where the last one of a word has a form of its own
        alone = ideograph | punctuation,
    };
    std::uint32_t to : 21, flags : 11;  // to: what it becomes; 0: itself
    bool is(Flag flag) const { return flags & flag; }
};

class Characters {
  public:
    explicit Characters(const NormaliseOptions& options);

    Character operator[](char32_t c) const { return table_[block_of_[c >> 8] * 256u + (c & 0xFF)]; }

    // The expansion of a character that `expands`: 2 or 3 code points, then 0.
    const char32_t* expansion(Character c) const { return &pool_[c.to]; }

    // The kind of a byte of ASCII where a word may begin.
    enum Kind : char { other, letter, space, alone, dropped };  // letter: also digits; other: all else
    Kind kind(char byte) const { return Kind(ascii_[(unsigned char)byte]); }

    // A letter's or digit's lower-case form, if the options ask for it; 0 for every other byte.
    char letter_of(char byte) const { return letters_[(unsigned char)byte]; }

    bool lowers() const { return lower_; }
    bool digits_alone() const { return digits_alone_; }

    // The line with its characters replaced as the options say, and for each of its bytes the bytes of the line it
    // came from.
    bool replaces() const { return !replaced_.empty(); }
    void replace(std::string_view line, std::string& text, std::vector<Span>& sources) const;

  private:
    Character& make(char32_t c);  // its entry, in a block of its own
    void set_flags(const NormaliseOptions& options);
    void set_results(const NormaliseOptions& options);
    void set_result(char32_t c, const std::u32string& result);
    void share_equal_blocks();
    void set_ascii();

    bool lower_, digits_alone_;
    std::map<char32_t, std::string> replaced_;
    std::vector<Character> table_;         // blocks of 256 code points
    std::vector<std::uint16_t> block_of_;  // 0: the block in which nothing changes
    std::vector<char32_t> pool_;
    std::array<char, 256> ascii_{}, letters_{};
};

// Whether words are made of it: letters, marks, digits, connectors (\w of Unicode's regular expressions).
bool is_word_character(char32_t c);

// The Unicode version of the tables.
const char* unicode_version();

}  // namespace masquerade
