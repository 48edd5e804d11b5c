// SPDX-License-Identifier: MIT
#include "tokenizer/spacing.h"

#include <algorithm>

#include "tokenizer/added_tokens.h"
#include "tokenizer/utf8.h"

namespace masquerade {

using namespace spacing;

namespace {

// Number and letters of a tokenizer that takes numbers for words: 1st, 3d, x86, mp3
constexpr std::string_view after_numbers[] = {"th", "st", "nd", "rd", "d", "k", "s", "x", "r", "n", "bit"};
constexpr std::string_view before_numbers[] = {"x",   "v",   "w",   "b",    "c",   "f",    "h",
                                               "k",   "l",   "p",   "r",    "u",   "mp",   "ipv",
                                               "amd", "deb", "hdf", "base", "utf", "mips", "win"};

}  // namespace

bool spacing::is_wide(char32_t c) {
    return c >= 0x2E80 &&
           (c < 0xA4D0 || (c >= 0xF900 && c < 0xFB00) || (c >= 0xFE30 && c < 0xFE70) ||
            (c >= 0xFF00 && c < 0xFFF0) || (c >= 0x1B000 && c < 0x1B300) || (c >= 0x20000 && c < 0x40000));
}

bool Spacing::Word::number() const {
    return is_digit(first) && is_digit(last) && std::all_of(text.begin(), text.end(), is_digit);
}

Spacing::Spacing(bool split_digits, std::vector<std::string> never)
    : split_digits_(split_digits), never_(std::move(never)) {
    for (const std::string& text : never_) longest_never_ = std::max(longest_never_, text.size());
}

void Spacing::open(std::string_view piece) {
    at(waiting_).text = piece;
    open_ = true;
}

void Spacing::close(Kind kind, std::string& line) {
    Word& word = at(waiting_++);
    open_ = false;
    word.kind = kind;
    word.hold = {};
    word.first = word.last = decode_utf8(word.text, 0).value;
    if (kind != Kind::alone) {
        std::size_t last = word.text.size() - 1;
        while (last > 0 && !starts_code_point(word.text[last])) last--;
        word.last = decode_utf8(word.text, last).value;
    }
    if (waiting_ > ahead) write_next(line);
}

void Spacing::finish(std::string& line) {
    auto forget = [](Word& word) {
        word.text.clear();
        word.first = word.last = 0;
        word.kind = Kind::ordinary;
        word.hold = {};
    };
    for (int k = 0; k < ahead; k++) forget(at(waiting_ + k));
    while (waiting_ > 0) write_next(line);
    for (int k = 1; k <= ahead; k++) forget(at(-k));
    written_ = {};
    tail_.clear();
}

void Spacing::write_next(std::string& line) {
    Word &before = at(-1), &word = at(0);
    if (word.alone() && !is_wide(word.first))
        word.hold = sign_rule({at(-2), before, word, at(1), at(2)}, written_);
    if (before.first != 0 && !closes(before, word)) {
        line += ' ';
        written_.spaces++;
        written_.words = 0;
        written_.dotted = written_.hyphened = written_.backslash = written_.url = false;
        tail_.clear();
    }
    line += word.text;
    note(word, before);
    next_++;
    waiting_--;
}

// Whether there is no space between the two.
bool Spacing::closes(const Word& before, const Word& word) const {
    if (!before.alone() && !word.alone()) {
        if (!split_digits_ || !(before.number() || word.number())) return false;
        bool joined = before.number() ? one_of(word.text, after_numbers)
                                      : one_of(before.text, before_numbers) || written_.chinese();
        return joined && !forbidden(before, word);
    }
    bool firm = before.hold.firm || word.hold.firm;
    bool wide = is_wide(before.last) || is_wide(word.first);
    return (before.hold.right || word.hold.left || (wide && !firm)) && !forbidden(before, word);
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
    w.words++;
    if (is_wide(word.first))
        w.ideographs++;
    else if (word.letters() && !is_digit(word.first))
        w.latin++;
    switch (word.sign()) {
        case '.':
            w.dotted |= w.words > 1;
            w.stopped |= word.hold.left && !word.hold.right;
            break;
        case '-': w.hyphened |= w.words > 1; break;
        case '\\': w.backslash = true; break;
        case '/': w.url |= before.sign() == '/' && w.words > 2; break;
        case U'，':
        case U'。': w.wide_stops = true;
    }
    if (never_.empty()) return;
    tail_ += word.text;
    if (tail_.size() >= longest_never_) tail_.erase(0, tail_.size() - longest_never_ + 1);
}

Spacing::Hold sign_rule(const Spacing::Place& place, Spacing::Written& written) {
    auto rule = [](char32_t sign) -> SpacingRule& {
        switch (sign) {
            case '"':
            case U'“':
            case U'”':
            case U'„':
            case U'‚':
            case U'‘': return quote_rule;
            case '\'':
            case U'’': return single_quote_rule;
            case '(':
            case ')':
            case '[':
            case ']':
            case '{':
            case '}': return bracket_rule;
            case '.': return stop_rule;
            case ',': return comma_rule;
            case ':': return colon_rule;
            case '/': return slash_rule;
            case '-': return hyphen_rule;
        }
        return symbol_rule;
    };
    char32_t sign = place.sign.first;
    Spacing::Hold hold = rule(sign)(place, written);
    // Chinese has no spaces beside a sign of ASCII either, but for those that come in pairs: 好," "真, ~ ~
    auto pair = [&] { return place.before.sign() == sign || place.after.sign() == sign; };
    bool tight = written.chinese() && sign < 0x80 && !hold.firm && !one_of(sign, U"!?]");
    if (tight && !(one_of(sign, U"\"~") && pair())) return both;
    return hold;
}

}  // namespace masquerade
