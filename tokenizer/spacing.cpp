// SPDX-License-Identifier: MIT
#include "tokenizer/spacing.h"

#include <algorithm>

#include "tokenizer/added_tokens.h"
#include "tokenizer/utf8.h"

namespace masquerade {

bool is_wide(char32_t c) {
    return c >= 0x2E80 &&
           (c < 0xA4D0 || (c >= 0xF900 && c < 0xFB00) || (c >= 0xFE30 && c < 0xFE70) ||
            (c >= 0xFF00 && c < 0xFFF0) || (c >= 0x1B000 && c < 0x1B300) || (c >= 0x20000 && c < 0x40000));
}

bool Spacing::Word::number() const {
    return !text.empty() && std::all_of(text.begin(), text.end(), is_digit);
}

Spacing::Spacing(bool split_digits, std::vector<std::string> never)
    : split_digits_(split_digits), never_(std::move(never)) {
    for (const std::string& text : never_) longest_never_ = std::max(longest_never_, text.size());
}

void Spacing::open(std::string_view piece) {
    at(1).text = piece;
    open_ = true;
}

void Spacing::close(Kind kind, std::string& line) {
    open_ = false;
    Word& word = at(1);
    word.kind = kind;
    word.first = word.last = decode_utf8(word.text, 0).value;
    if (kind != Kind::alone) {
        std::size_t last = word.text.size() - 1;
        while (last > 0 && !starts_code_point(word.text[last])) last--;
        word.last = decode_utf8(word.text, last).value;
    }
    write(line);
    turn_++;
}

void Spacing::finish(std::string& line) {
    at(1) = {};
    write(line);
    at(-1) = at(0) = {};
    written_ = {};
    tail_.clear();
}

void Spacing::write(std::string& line) {
    Word &before = at(-1), &word = at(0);
    if (word.text.empty()) return;
    word.hold = word.alone() && !is_wide(word.first) ? hold_of({before, word, at(1), written_}) : Hold{};
    if (!before.text.empty() && !closes(before, word)) {
        line += ' ';
        written_.spaces++;
        written_.url = false;
        tail_.clear();
    }
    line += word.text;
    note(word, before);
}

// Whether there is no space between the two.
bool Spacing::closes(const Word& before, const Word& word) const {
    bool joined = before.hold.right || word.hold.left || is_wide(before.last) || is_wide(word.first);
    if (!before.alone() && !word.alone()) joined = split_digits_ && joins_number(before, word, written_);
    return joined && !forbidden(before, word);
}

// Whether the words have to stay apart lest a token be found in them, or be missed.
bool Spacing::forbidden(const Word& before, const Word& word) const {
    if (before.kind == Kind::guarded && is_word_character(word.first)) return true;
    if (word.kind == Kind::guarded && is_word_character(before.last)) return true;
    if (never_.empty()) return false;
    std::string joined = tail_ + word.text.substr(0, longest_never_);
    return std::any_of(never_.begin(), never_.end(), [&](const std::string& text) {
        std::size_t from = tail_.size() - std::min(tail_.size(), text.size() - 1);
        return joined.find(text, from) < tail_.size();
    });
}

void Spacing::note(const Word& word, const Word& before) {
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

}  // namespace masquerade
