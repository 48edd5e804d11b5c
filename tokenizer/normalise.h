// SPDX-License-Identifier: MIT
// From a line of text to normalised words, exactly as BERT's reference tokenizer does it
// (google-research/bert, tokenization.py): clean, set ideographs apart, split at white space; in lower case
// fold, decompose (NFD) and strip marks; split at punctuation. One pass, one code point at a time.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace masquerade {

class Unicode;
struct Character;

struct NormaliseOptions {
    bool lower = true;           // lower-case, decompose, strip accents; false: characters stay as they are
    bool single_digits = false;  // every digit 0-9 a word by itself
};

// Bytes [begin, end) of the original line.
struct Span {
    int begin, end;
};

// for (Words words(line, options); words.next();) use(words.text());
class Words {
  public:
    // The line must outlive the object. Spans cost time: ask for them where they are needed.
    Words(std::string_view line, NormaliseOptions options, bool with_spans = false);

    // Moves to the next word; false at the end of the line.
    bool next();

    const std::string& text() const { return text_; }  // never empty, valid UTF-8
    int length() const { return length_; }             // in code points of text()

    // One per code point of text(): the character it came from, and the stripped marks that follow it.
    // A Hangul syllable becomes 2 or 3 code points, which share its span.
    const std::vector<Span>& spans() const { return spans_; }

  private:
    bool take_letters();
    void append(char32_t c, Span span);
    void append_lowered(char32_t c, Character what, Span span);
    bool sigma_is_final(std::size_t after) const;
    void sort_run();

    std::string_view line_;
    NormaliseOptions options_;
    bool with_spans_;
    const Unicode& unicode_;
    std::size_t at_ = 0;        // next byte of the line
    bool after_cased_ = false;  // the last character that is not ignorable was cased: Final_Sigma asks
    std::string text_;
    int length_ = 0;
    std::vector<Span> spans_;
    std::size_t run_begin_ = 0;  // in text_: the nonstarters at its end, and how many they are
    int run_length_ = 0;
};

// Whether a character is always a word by itself: punctuation and ideographs.
bool stands_alone(char32_t c);

}  // namespace masquerade
