// SPDX-License-Identifier: MIT
// The class Characters: a table of what normalisation with the given options does to each code point. It needs no
// Unicode library. The data is in characters_table.h, which tools/unicode/make_table.py generates.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/code_point_table.h"

namespace masquerade {

// The tokenizer whose results are reproduced: google is BERT's reference (google-research/bert, tokenization.py),
// hugging_face is Hugging Face's fast tokenizer. The two differ in a few characters. Hugging Face's tokenizer has older
// tables of marks, punctuation and format characters, and a newer table of lower case. It drops private-use characters,
// has no special lower-case form of a sigma at the end of a word, and does not treat U+2B820 to U+2B91F as ideographs.
enum class Rules { google, hugging_face };

struct NormaliseOptions {
    bool lower = true;                       // convert to lower case
    std::optional<bool> strip_accents = {};  // decompose (NFD) and drop marks (category Mn); not set: same as `lower`
    bool clean = true;                       // drop control and format characters
    bool split_ideographs = true;            // each ideograph is a word by itself
    bool single_digits = false;              // each digit 0-9 is a word by itself
    Rules rules = Rules::google;
    std::map<char32_t, std::string> replace = {};  // character -> text that replaces it before all other steps

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
        punctuation = 8,   // always a word by itself: punctuation after normalisation, or a digit with single_digits
        mark = 16,         // category Mn; removed, because accents are stripped
        cased = 32,        // has upper or lower case and is not Case_Ignorable
        ignorable = 64,    // Case_Ignorable: the final-sigma rule skips it
        nonstarter = 128,  // all characters of its decomposition have a nonzero combining class
        expands = 256,     // becomes several code points: see Characters::expansion()
        syllable = 512,    // Hangul syllable; decomposed by arithmetic, not by a table
        sigma = 1024,      // U+03A3 (capital sigma), if it is lower-cased differently at the end of a word
        alone = ideograph | punctuation,
    };
    // to: the code point that this one becomes; 0 if it is unchanged. With `expands`, an index into Characters::pool_.
    std::uint32_t to : 21, flags : 11;
    bool is(Flag flag) const { return flags & flag; }
};

class Characters {
  public:
    explicit Characters(const NormaliseOptions& options);

    Character operator[](char32_t c) const { return table_[c]; }

    // Returns the code points that a character with the flag `expands` becomes: 2 or 3 code points, then 0.
    const char32_t* expansion(Character c) const { return &pool_[c.to]; }

    // The kind of a byte. `other`: not ASCII, or a control character that is kept. `alone`: always a word by itself.
    enum Kind : char { other, letter, space, alone, dropped };  // letter includes digits, unless they are `alone`
    Kind kind(char byte) const { return Kind(ascii_[(unsigned char)byte]); }

    // Returns a byte of kind `letter`, in lower case if the options say so; 0 if the byte is of another kind.
    char letter_of(char byte) const { return letters_[(unsigned char)byte]; }

    bool lowers() const { return lower_; }
    bool digits_alone() const { return digits_alone_; }

    // replaces(): whether the options have replacements. replace() sets `text` to the line after these replacements,
    // without the bytes of the line that are not UTF-8. Byte i of `text` comes from one character of the line, whose
    // range of bytes is sources[i].
    bool replaces() const { return !replaced_.empty(); }
    void replace(std::string_view line, std::string& text, std::vector<Span>& sources) const;

  private:
    void set_flags(const NormaliseOptions& options);
    void set_results(const NormaliseOptions& options);
    void set_result(char32_t c, const std::u32string& result);
    void set_ascii();

    bool lower_, digits_alone_;
    std::map<char32_t, std::string> replaced_;
    CodePointTable<Character> table_;
    std::vector<char32_t> pool_;
    std::array<char, 256> ascii_{}, letters_{};
};

// Whether the character is a word character (\w in Unicode regular expressions), such as a letter, mark, digit or
// underscore.
bool is_word_character(char32_t c);

}  // namespace masquerade
