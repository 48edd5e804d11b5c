// SPDX-License-Identifier: MIT
#include "tokenizer/spacing.h"

#include <algorithm>

#include "tokenizer/characters.h"

namespace masquerade {

namespace {

// East Asian writing without spaces: ideographs, kana, full-width signs; not Hangul.
bool is_wide(char32_t c) {
    return c >= 0x2E80 &&
           (c < 0xA4D0 || (c >= 0xF900 && c < 0xFB00) || (c >= 0xFE30 && c < 0xFE70) ||
            (c >= 0xFF00 && c < 0xFFF0) || (c >= 0x1B000 && c < 0x1B300) || (c >= 0x20000 && c < 0x40000));
}

class Writer {
  public:
    explicit Writer(const std::vector<std::string>& never) : never_(never) {
        for (const std::string& text : never_) longest_never_ = std::max(longest_never_, text.size());
    }

    void write(const SpacedWord& before, SpacedWord& word, const SpacedWord& after) {
        if (word.alone() && !is_wide(word.first)) word.hold = hold_of({before, word, after, written_});
        if (!before.text.empty() && !closes(before, word)) {
            line += ' ';
            written_.spaces++;
            written_.url = false;
            tail_.clear();
        }
        line += word.text;
        note(word, before);
    }

    std::string line;

  private:
    // Whether there is no space between the two.
    bool closes(const SpacedWord& before, const SpacedWord& word) const {
        if (!before.alone() && !word.alone()) return false;
        bool joined = before.hold.right || word.hold.left || is_wide(before.last) || is_wide(word.first);
        return joined && !forbidden(before, word);
    }

    // Whether the words have to stay apart lest a token be found in them, or be missed.
    bool forbidden(const SpacedWord& before, const SpacedWord& word) const {
        if (before.kind == SpacedWord::Kind::guarded && is_word_character(word.first)) return true;
        if (word.kind == SpacedWord::Kind::guarded && is_word_character(before.last)) return true;
        if (never_.empty()) return false;
        std::string joined = tail_ + word.text.substr(0, longest_never_);
        return std::any_of(never_.begin(), never_.end(), [&](const std::string& text) {
            std::size_t from = tail_.size() - std::min(tail_.size(), text.size() - 1);
            return joined.find(text, from) < tail_.size();
        });
    }

    void note(const SpacedWord& word, const SpacedWord& before) {
        Written& w = written_;
        if (is_wide(word.first))
            w.ideographs++;
        else if (word.letters() && !is_digit(word.first))
            w.latin++;
        switch (word.sign()) {
            case '"':
            case U'“':
            case U'”':
            case U'„': w.double_quote = word.hold.right && !word.hold.left; break;
            case '\'':
            case '`':
            case U'‘':
            case U'’':
            case U'‚':
                if (word.hold.left != word.hold.right) w.single_quote = word.hold.right;
                break;
            case '/': w.url |= before.sign() == '/'; break;
        }
        if (never_.empty()) return;
        tail_ += word.text;
        if (tail_.size() >= longest_never_) tail_.erase(0, tail_.size() - longest_never_ + 1);
    }

    const std::vector<std::string>& never_;
    std::size_t longest_never_ = 0;
    Written written_;
    std::string tail_;  // what was written since the last space, as far as it may be part of a text of never_
};

}  // namespace

bool SpacedWord::number() const { return !text.empty() && std::all_of(text.begin(), text.end(), is_digit); }

std::string with_spaces(std::vector<SpacedWord> words, const std::vector<std::string>& never) {
    Writer writer(never);
    const SpacedWord none;
    for (std::size_t i = 0; i < words.size(); i++)
        writer.write(i > 0 ? words[i - 1] : none, words[i], i + 1 < words.size() ? words[i + 1] : none);
    return std::move(writer.line);
}

}  // namespace masquerade
