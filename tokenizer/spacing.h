// SPDX-License-Identifier: MIT
// The spaces that encoding lost. Between two words of letters there was one, or they would have been one
// word. Punctuation and ideographs are words with or without spaces beside them: there, rules guess what
// writers of English, of Chinese, of file names, versions and addresses would have done. What has no rule is
// a word among others.
#pragma once
#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace masquerade {

class Spacing {
  public:
    // How many words the rules look ahead.
    static constexpr int ahead = 2;

    // split_digits: the tokenizer makes numbers words by themselves, so that there may be no space between
    // letters and digits, either. never: texts that may not arise from words written without a space.
    explicit Spacing(bool split_digits = false, std::vector<std::string> never = {});

    // What is known of a word: an ordinary one, one character that is always a word by itself, or a token
    // that is not recognised where letters or digits touch it.
    enum class Kind : char { ordinary, alone, guarded };

    // The next word, piece by piece: open(), append() what continues it, close().
    bool is_open() const { return open_; }
    void open(std::string_view piece);
    void append(std::string_view piece) { at(waiting_).text += piece; }
    const std::string& text() const { return at(waiting_).text; }  // of the open word

    // Ends the open word. Appends to `line` the words whose spaces are now certain: all but the last `ahead`.
    void close(Kind kind, std::string& line);

    // Appends the rest, and starts afresh.
    void finish(std::string& line);

    // A character that decides about the gaps at its sides closes those on which it holds. Ideographs hold on
    // both sides, except against one that is firm.
    struct Hold {
        bool left = false, right = false, firm = false;
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
        bool letter() const { return letters() && text.size() == 1; }
        bool number() const;  // digits 0-9
        bool is(std::string_view other) const { return text == other; }
    };

    // A sign with its neighbours, for the rules.
    struct Place {
        const Word &before2, &before, &sign, &after, &after2;
    };

    // What was written, all up to `before`.
    struct Written {
        int spaces = 0, ideographs = 0, latin = 0;  // counted
        bool stopped = false;                       // a full stop ended a sentence
        bool wide_stops = false;                    // a full-width comma or full stop was met
        // Open quotes, by the sign that opened them.
        bool straight = false, single = false, backtick = false, low = false, single_low = false,
             curly = false;
        bool dunder = false;  // within "__main__"

        // Since the last space.
        int words = 0;
        bool dotted = false, hyphened = false, backslash = false, url = false;

        bool chinese() const { return ideographs > latin; }
    };

  private:
    Word& at(int k) { return words_[unsigned(next_ + k) % words_.size()]; }
    const Word& at(int k) const { return words_[unsigned(next_ + k) % words_.size()]; }
    void write_next(std::string& line);
    bool closes(const Word& before, const Word& word) const;
    bool forbidden(const Word& before, const Word& word) const;
    void note(const Word& word, const Word& before);

    std::array<Word, 8> words_;  // a ring
    unsigned next_ = 0;          // the next to be written
    int waiting_ = 0;            // complete ones
    bool open_ = false;
    Written written_;
    bool split_digits_;
    std::vector<std::string> never_;
    std::size_t longest_never_ = 0;
    std::string tail_;  // what was written since the last space, as far as it may be part of one of them
};

// ---- the rules ----

using SpacingRule = Spacing::Hold(const Spacing::Place&, Spacing::Written&);

SpacingRule sign_rule;                                                 // whatever the sign
SpacingRule quote_rule, single_quote_rule, bracket_rule, symbol_rule;  // spacing_signs.cpp
SpacingRule stop_rule, comma_rule, colon_rule, slash_rule;             // spacing_stops.cpp
SpacingRule hyphen_rule;                                               // spacing_hyphen.cpp

namespace spacing {

constexpr Spacing::Hold nothing{}, left{true, false}, right{false, true}, both{true, true};
constexpr Spacing::Hold firm{false, false, true}, firm_left{true, false, true};

inline bool is_digit(char32_t c) { return c >= '0' && c <= '9'; }
inline bool one_of(char32_t c, std::u32string_view set) { return c != 0 && set.find(c) != set.npos; }

// East Asian writing without spaces: ideographs, kana, full-width signs; not Hangul.
bool is_wide(char32_t c);

template <std::size_t n>
bool one_of(const std::string& word, const std::string_view (&table)[n]) {
    for (std::string_view entry : table)
        if (entry == word) return true;
    return false;
}

}  // namespace spacing

}  // namespace masquerade
