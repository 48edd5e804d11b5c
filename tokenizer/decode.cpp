// SPDX-License-Identifier: MIT
// The spaces that encoding lost. Between two words of letters there was one, or they would have been one
// word; beside punctuation and ideographs, which are words without spaces, the rules below guess as writers
// of English and Chinese would have it.
#include <algorithm>

#include "tokenizer/utf8.h"
#include "tokenizer/wordpiece.h"

namespace masquerade {

namespace {

bool one_of(char32_t c, std::u32string_view set) { return set.find(c) != set.npos; }

bool is_digit(char32_t c) { return c >= '0' && c <= '9'; }

// East Asian writing, which has no spaces; Hangul has them.
bool is_wide(char32_t c) { return c >= 0x2E80 && !(c >= 0xAC00 && c <= 0xD7FF); }

// What a rule may ask of a word: its outer characters, and whether it is punctuation or an ideograph. A
// special token reads as a word of letters.
struct Word {
    std::string text;
    char32_t first = 'x', last = 'x';
    bool alone = false;
};

Word make_word(std::string text) {
    Word word;
    for (std::size_t i = 0; i < text.size();) {
        CodePoint c = decode_utf8(text, i);
        if (i == 0) word.first = c.value;
        word.last = c.value;
        i += std::size_t(std::max(c.length, 1));
    }
    word.alone = stands_alone(word.first);
    word.text = std::move(text);
    return word;
}

// The rules look at most two words to the left and one to the right of the space in question.
class Speller {
  public:
    Speller(const std::vector<Word>& words, bool single_digits)
        : words_(words), single_digits_(single_digits) {}

    std::string spell() {
        std::string line;
        for (std::size_t i = 0; i < words_.size(); i++) {
            if (i > 0 && space_before(i)) line += ' ';
            line += words_[i].text;
            if (words_[i].first == '"') quoted_ = !quoted_;
        }
        return line;
    }

  private:
    // Whether a space goes between words i - 1 and i.
    bool space_before(std::size_t i) const {
        const Word &left = words_[i - 1], &right = words_[i];
        char32_t l = left.last, r = right.first;
        if (!left.alone && !right.alone) return !(single_digits_ && is_digit(l) && is_digit(r));
        if (is_wide(l) || is_wide(r)) return false;
        if (r == '"') return !quoted_ && !one_of(l, U"([{-/\u2013\u2014");
        if (l == '"' && quoted_) return false;
        if (one_of(r, U".,!?;:%)]}\u2019\u201D\u2026") || one_of(l, U"([{$#@\u2018\u201C")) return false;
        if (one_of(l, U"-/\u2013\u2014\u00B7") || one_of(r, U"-/\u2013\u2014\u00B7")) return false;
        if (one_of(l, U"'\u2019"))
            return !(letters(i - 2) && letters(i)) || (plural(i - 2) && !contraction(right.text));
        if (r == '\'') return !letters(i - 1) || !(letters(i + 1) || plural(i - 1));
        if (l == ',') return !(digit(i - 2) && digits(i) == 3);             // 1,000 but not "May 1, 1955"
        if (one_of(l, U".:") && digit(i - 2) && is_digit(r)) return false;  // 3.14, 10:30
        return !(l == '.' && initial(i - 2) && initial(i));                 // a.m.
    }

    // The end of "this'll", which is not the word after a plural's apostrophe.
    static bool contraction(const std::string& word) {
        return word == "s" || word == "d" || word == "ll" || word == "re" || word == "ve";
    }

    // Index past either end: no such word.
    bool letters(std::size_t i) const { return i < words_.size() && !words_[i].alone; }
    bool digit(std::size_t i) const { return i < words_.size() && is_digit(words_[i].last); }
    std::size_t digits(std::size_t i) const {  // in the number that begins with word i
        std::size_t count = 0;
        for (; digit(i); i++) {
            count += words_[i].text.size();
            if (!single_digits_) break;
        }
        return count;
    }
    bool initial(std::size_t i) const { return letters(i) && words_[i].text.size() == 1 && !digit(i); }
    bool plural(std::size_t i) const {
        return letters(i) && words_[i].text.size() > 1 && words_[i].last == 's';
    }

    const std::vector<Word>& words_;
    bool single_digits_;
    bool quoted_ = false;  // straight double quotes open and close in turn
};

}  // namespace

std::string WordPiece::decode(const std::vector<int>& ids) const {
    std::vector<Word> words;
    std::string word;
    auto end_word = [&] {
        if (!word.empty()) words.push_back(make_word(std::move(word)));
        word.clear();
    };
    for (int id : ids) {
        const std::string& token = vocabulary_.token(id);
        if (!word.empty() && continues(token)) {
            word.append(token, 2);
            continue;
        }
        end_word();
        if (vocabulary_.is_special(id)) {
            bool silent = id != vocabulary_.unk() && id != vocabulary_.mask();
            if (!silent) words.push_back({token});
        } else {
            word = token;
        }
    }
    end_word();
    return Speller(words, options_.single_digits).spell();
}

}  // namespace masquerade
