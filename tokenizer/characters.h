// SPDX-License-Identifier: MIT
// The class Characters: a table of what normalisation with the given options does to each code point. A lookup takes
// two loads and needs no Unicode library. The data is in characters_table.h, which tools/unicode/make_table.py
// generates.
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

// Two tokenizers differ for some characters: BERT's reference (google-research/bert, tokenization.py) and Hugging
// Face's fast tokenizer. Rules says which of the two to follow. Hugging Face's has older tables of marks and
// punctuation, drops private-use characters, has no final sigma, and does not treat U+2B820-2B91F as ideographs.
enum class Rules { google, hugging_face };

struct NormaliseOptions {
    bool lower = true;                  // lower-case
    std::optional<bool> strip_accents;  // decompose (NFD) and drop marks; if not set, `lower` decides
    bool clean = true;                  // drop control and format characters
    bool split_ideographs = true;       // each ideograph is a word
    bool single_digits = false;         // each digit 0-9 is a word
    Rules rules = Rules::google;
    std::map<char32_t, std::string> replace;  // character -> text; replaced before all other steps

    bool strips() const { return strip_accents.value_or(lower); }
};

// Bytes [begin, end) of the original line.
struct Span {
    int begin, end;
};

// The table entry of one code point, in 32 bits.
struct Character {
    enum Flag : std::uint32_t {
        drop = 1,          // removed from the text
        space = 2,         // separates words
        ideograph = 4,     // always a word by itself
        punctuation = 8,   // always a word by itself, because it becomes punctuation
        mark = 16,         // category Mn, stripped
        cased = 32,        // has case and is not Case_Ignorable
        ignorable = 64,    // Case_Ignorable: the final-sigma rule skips it
        nonstarter = 128,  // it or its whole decomposition has a nonzero combining class
        expands = 256,     // becomes several code points: `to` is their index in a pool
        syllable = 512,    // Hangul, decomposed by arithmetic
        sigma = 1024,      // U+03A3, if it has a special form at the end of a word
        alone = ideograph | punctuation,
    };
    std::uint32_t to : 21, flags : 11;  // `to`: the resulting code point; 0: unchanged
    bool is(Flag flag) const { return flags & flag; }
};

class Characters {
  public:
    explicit Characters(const NormaliseOptions& options);

    Character operator[](char32_t c) const { return table_[block_of_[c >> 8] * 256u + (c & 0xFF)]; }

    // The expansion of a character that has the flag `expands`: 2 or 3 code points, then 0.
    const char32_t* expansion(Character c) const { return &pool_[c.to]; }

    // The kind of a byte; `other` for bytes that are not ASCII.
    enum Kind : char { other, letter, space, alone, dropped };  // letter includes digits
    Kind kind(char byte) const { return Kind(ascii_[(unsigned char)byte]); }

    // For an ASCII letter or digit, returns the byte, in lower case if the options say so. Returns 0 for other bytes.
    char letter_of(char byte) const { return letters_[(unsigned char)byte]; }

    bool lowers() const { return lower_; }
    bool digits_alone() const { return digits_alone_; }

    // replace() applies the replacements of the options to a line. sources[i] is the range of the line from which byte
    // i of the text comes.
    bool replaces() const { return !replaced_.empty(); }
    void replace(std::string_view line, std::string& text, std::vector<Span>& sources) const;

  private:
    Character& make(char32_t c);  // returns the entry of c; makes its block if there is none
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

// Whether the character is a letter, mark, digit or connector (\w in Unicode regular expressions).
bool is_word_character(char32_t c);

// The Unicode version of the tables.
const char* unicode_version();

}  // namespace masquerade
