// SPDX-License-Identifier: MIT
// From a line of text to normalised words, exactly as BERT's reference tokenizer does it
// (google-research/bert, tokenization.py): clean, set ideographs apart, split at white space; in lower case
// fold, decompose (NFD) and strip marks; split at punctuation. One pass, one code point at a time.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/characters.h"

namespace masquerade {

// for (Words words(line, characters); words.next();) use(words.text());
class Words {
  public:
    // Spans cost time: ask for them where they are needed. The characters, and the line, must outlive the
    // object.
    explicit Words(const Characters& characters, bool with_spans = false)
        : characters_(characters), with_spans_(with_spans) {}
    Words(std::string_view line, const Characters& characters, bool with_spans = false)
        : Words(characters, with_spans) {
        begin(line);
    }

    // Starts on a line. Its memory is kept from line to line.
    void begin(std::string_view line) {
        if (characters_.replaces()) characters_.replace(line, replaced_, sources_);
        line_ = characters_.replaces() ? replaced_ : line;
        go_to(0, false);
    }

    // Moves to the next word; false at the end of the line.
    bool next();

    const std::string& text() const { return text_; }  // never empty, valid UTF-8
    int length() const { return length_; }             // in code points of text()

    // One per code point of text(): the character it came from, and the stripped marks that follow it.
    // A Hangul syllable becomes 2 or 3 code points, which share its span.
    const std::vector<Span>& spans() const { return spans_; }

    // ---- for readers that take simple words themselves, between two calls of next() ----

    // The line with its characters replaced, and the place in it where the next word is looked for.
    std::string_view line() const { return line_; }
    std::size_t at() const { return at_; }

    // Goes on at another place, where no word is cut in two; after_cased: whether the last character before it
    // that is not Case_Ignorable is cased, which Final_Sigma asks, and no space is between.
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
    std::string replaced_;       // what line_ shows where characters are replaced
    std::vector<Span> sources_;  // of its bytes; empty where nothing is replaced
    std::size_t at_ = 0;         // next byte of the line
    bool after_cased_ = false;
    std::string text_;
    int length_ = 0;
    std::vector<Span> spans_;
    std::size_t run_begin_ = 0;  // in text_: the nonstarters at its end, and how many they are
    int run_length_ = 0;
};

// A text and, for each of its bytes, the bytes [begin, end) of the line it came from, which never go back.
struct Normalised {
    std::string text;
    std::vector<Span> spans;
};

// A line cleaned, with spaces around its ideographs, lower-cased and stripped as the options ask, punctuation
// still where it was. White space is one " " for each character of it.
Normalised normalise(std::string_view line, const Characters& characters);

}  // namespace masquerade
