// SPDX-License-Identifier: MIT
// Splits a line of text into normalised words. With the default options, the words are exactly those of BERT's
// reference tokenizer (google-research/bert, tokenization.py), which drops control characters other than tab, LF and
// CR, isolates ideographs, splits at white space, converts to lower case, decomposes (NFD), strips marks, and splits at
// punctuation. This code does all of it in one pass, one code point at a time.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/characters.h"

namespace masquerade {

// Iterates over the normalised words of a line: for (Words words(line, characters); words.next();) use(words.text());
class Words {
  public:
    // with_spans: whether to compute spans(), which costs time. `characters` and the line must outlive this object.
    explicit Words(const Characters& characters, bool with_spans = false)
        : characters_(characters), with_spans_(with_spans) {}
    Words(std::string_view line, const Characters& characters, bool with_spans = false)
        : Words(characters, with_spans) {
        begin(line);
    }

    // Begins a new line, and reuses the memory of the previous line.
    void begin(std::string_view line) {
        if (characters_.replaces()) characters_.replace(line, replaced_, sources_);
        line_ = characters_.replaces() ? replaced_ : line;
        go_to(0, false);
    }

    // Moves to the next word. Returns false at the end of the line.
    bool next();

    const std::string& text() const { return text_; }  // the current word: not empty, valid UTF-8
    int length() const { return length_; }             // number of code points in text()

    // One span per code point of text(): the bytes of the original character and of the stripped marks that follow it.
    // If a character becomes several code points, they have the same span: a Hangul syllable, for example, becomes 2 or
    // 3 code points.
    const std::vector<Span>& spans() const { return spans_; }

    // The functions below are for callers that read some words without next(), because that is faster for simple words.

    // The line after replacements, and the offset in this line at which next() continues.
    std::string_view line() const { return line_; }
    std::size_t at() const { return at_; }

    // Continues at another offset, which must not be inside a word. `after_cased` is for Unicode's Final_Sigma rule: it
    // says whether the character before the offset is cased. Characters that are Case_Ignorable or that normalisation
    // drops are skipped to find this character. At the beginning of a line, after_cased is false.
    void go_to(std::size_t at, bool after_cased) {
        at_ = at;
        after_cased_ = after_cased;
    }
    bool after_cased() const { return after_cased_; }

    // Returns the bytes of the original line from which bytes [begin, end) of line() come.
    Span source(std::size_t begin, std::size_t end) const {
        return sources_.empty() ? Span{int(begin), int(end)} : Span{sources_[begin].begin, sources_[end - 1].end};
    }

  private:
    bool take_letters();
    void append_result(char32_t c, Character what, Span span);
    bool sigma_is_final(std::size_t after) const;
    void sort_run();

    const Characters& characters_;
    bool with_spans_;
    std::string_view line_;
    std::string replaced_;       // the line after replacements, if the options have any; line_ is then a view of it
    std::vector<Span> sources_;  // original position of each byte of replaced_; empty without replacements
    std::size_t at_ = 0;         // offset of the next byte of line_
    bool after_cased_ = false;
    std::string text_;
    int length_ = 0;
    std::vector<Span> spans_;
    // The offset of the nonstarters (characters with a nonzero combining class) at the end of text_, and their number.
    std::size_t run_begin_ = 0;
    int run_length_ = 0;
};

// A normalised text. Byte i of `text` comes from the range spans[i] of the line. The ranges are in ascending order.
struct Normalised {
    std::string text;
    std::vector<Span> spans;
};

// Normalises a line without splitting it at punctuation: cleans it, puts spaces around ideographs, lower-cases it and
// strips marks, all as the options say. Each white-space character becomes one space.
Normalised normalise(std::string_view line, const Characters& characters);

}  // namespace masquerade
