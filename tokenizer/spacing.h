// SPDX-License-Identifier: MIT
// The spaces that encoding lost. Between two words of letters there was one, or they would have been one
// word. Punctuation and ideographs are words with or without spaces beside them: a table of rules guesses what
// writers of English, of Chinese, of file names, versions and addresses would have done.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace masquerade {

class Spacing {
  public:
    // split_digits: the tokenizer makes numbers words by themselves, so that there may be no space between
    // letters and digits, either. never: texts that may not arise from words written without a space.
    explicit Spacing(bool split_digits = false, std::vector<std::string> never = {});

    // The kind of a word: an ordinary one, one character that is always a word by itself, or a token
    // that is not recognised where letters or digits touch it.
    enum class Kind : char { ordinary, alone, guarded };

    // The next word, piece by piece: open(), append() what continues it, close().
    bool is_open() const { return open_; }
    void open(std::string_view piece);
    void append(std::string_view piece) { at(1).text += piece; }
    const std::string& text() { return at(1).text; }  // of the open word

    // Ends the open word. Appends to `line` the word before it, whose spaces are now certain.
    void close(Kind kind, std::string& line);

    // Appends the last word, and starts afresh.
    void finish(std::string& line);

    // The sides of a sign at which there is no space.
    struct Hold {
        bool left = false, right = false;
    };

    // As the rules see it.
    struct Word {
        std::string text;
        char32_t first = 0, last = 0;  // its outer characters; 0: no word, it is past an end of the line
        Kind kind = Kind::ordinary;
        Hold hold;

        bool alone() const { return kind == Kind::alone; }
        char32_t sign() const { return alone() ? first : 0; }
        bool letters() const { return first != 0 && !alone(); }  // or digits
        bool number() const;                                     // digits 0-9
    };

    // Facts about the text that was written so far.
    struct Written {
        int spaces = 0, ideographs = 0, latin = 0;        // counted
        bool double_quote = false, single_quote = false;  // open
        bool url = false;                                 // since the last space

        bool chinese() const { return ideographs > latin; }
    };

    // A sign, what stands beside it, and what was written up to `before`.
    struct Place {
        const Word &before, &sign, &after;
        const Written& written;
    };

  private:
    void write(std::string& line);
    bool closes(const Word& before, const Word& word) const;
    bool forbidden(const Word& before, const Word& word) const;
    void note(const Word& word, const Word& before);

    // -1: what was written last; 0: what is to be written next; 1: the open word, or the one just closed.
    Word& at(int k) { return words_[(turn_ + unsigned(k)) % 4]; }

    Word words_[4];
    unsigned turn_ = 0;
    bool open_ = false;
    Written written_;
    bool split_digits_;
    std::vector<std::string> never_;
    std::size_t longest_never_ = 0;
    std::string tail_;  // what was written since the last space, as far as it may be part of one of them
};

// The rules (spacing_rules.cpp): how a sign holds on, and whether words with a number in them are one.
Spacing::Hold hold_of(const Spacing::Place& place);
bool joins_number(const Spacing::Word& before, const Spacing::Word& word, const Spacing::Written& written);

inline bool is_digit(char32_t c) { return c >= '0' && c <= '9'; }

// East Asian writing without spaces: ideographs, kana, full-width signs; not Hangul.
bool is_wide(char32_t c);

}  // namespace masquerade
