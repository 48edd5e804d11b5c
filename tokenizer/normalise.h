// SPDX-License-Identifier: MIT
// Splits a line of text into normalised words, exactly as BERT's reference tokenizer does (google-research/bert,
// tokenization.py): clean, isolate ideographs, split at white space; if lower-casing, fold case, decompose (NFD) and
// strip marks; split at punctuation. One pass, one code point at a time.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/characters.h"

namespace masquerade {

// for (Words words(line, characters); words.next();) use(words.text());
class Words {
  public:
    // Spans cost time, so ask for them only if needed. `characters` and the line must outlive this object.
    explicit Words(const Characters& characters, bool with_spans = false)
        : characters_(characters), with_spans_(with_spans) {}
    Words(std::string_view line, const Characters& characters, bool with_spans = false)
        : Words(characters, with_spans) {
        begin(line);
    }

    // Starts on a line. Memory is reused from line to line.
    void begin(std::string_view line) {
        if (characters_.replaces()) characters_.replace(line, replaced_, sources_);
        line_ = characters_.replaces() ? replaced_ : line;
        go_to(0, false);
    }

    // Moves to the next word; false at the end of the line.
    bool next();

    const std::string& text() const { return text_; }  // never empty, valid UTF-8
    int length() const { return length_; }             // in code points of text()

    // One span per code point of text(): its source character and the stripped marks that follow. A Hangul syllable
    // becomes 2 or 3 code points that share one span.
    const std::vector<Span>& spans() const { return spans_; }

    // For callers that read simple words themselves, between two calls of next():

    // The line after replacements, and the offset in it from which next() looks for a word.
    std::string_view line() const { return line_; }
    std::size_t at() const { return at_; }

    // Continues at another offset, which must not be inside a word. after_cased: whether the last character before the
    // offset that is not Case_Ignorable is cased, with no space after it, for the Final_Sigma rule.
    void go_to(std::size_t at, bool after_cased) {
        at_ = at;
        after_cased_ = after_cased;
    }
    bool after_cased() const { return after_cased_; }

    // The bytes of the original line that bytes [begin, end) of line() come from.
    Span source(std::size_t begin, std::size_t end) const {
        return sources_.empty() ? Span{int(begin), int(end)} : Span{sources_[begin].begin, sources_[end - 1].end};
    }

  private:
    bool take_letters();
    void append(char32_t c, Span span);
    void append_result(char32_t c, Character what, Span span);
    bool sigma_is_final(std::size_t after) const;
    void sort_run();

    const Characters& characters_;
    bool with_spans_;
    std::string_view line_;
    std::string replaced_;       // backs line_ if characters are replaced
    std::vector<Span> sources_;  // spans of the bytes of replaced_; empty if nothing is replaced
    std::size_t at_ = 0;         // next byte of the line
    bool after_cased_ = false;
    std::string text_;
    int length_ = 0;
    std::vector<Span> spans_;
    std::size_t run_begin_ = 0;  // offset in text_ and number of the nonstarters at its end
    int run_length_ = 0;
};

// A text and, for each of its bytes, the bytes [begin, end) of the line from which it comes. The spans are in ascending
// order.
struct Normalised {
    std::string text;
    std::vector<Span> spans;
};

// Normalises a line without splitting it at punctuation: cleaned, with spaces around ideographs, lower-cased and
// stripped as the options ask. Each white-space character becomes one space.
Normalised normalise(std::string_view line, const Characters& characters);

}  // namespace masquerade
