// SPDX-License-Identifier: MIT
#include "tokenizer/normalise.h"

#include <algorithm>
#include <array>

#include "tokenizer/unicode.h"
#include "tokenizer/utf8.h"

namespace masquerade {

namespace {

using Ascii = std::array<char, 256>;

// What letters and digits of ASCII become; 0 for every other byte.
Ascii make_ascii(bool lower, bool digits) {
    Ascii map{};
    for (int c = 'a'; c <= 'z'; c++) {
        map[std::size_t(c)] = char(c);
        map[std::size_t(c - 32)] = char(lower ? c : c - 32);
    }
    for (int c = '0'; digits && c <= '9'; c++) map[std::size_t(c)] = char(c);
    return map;
}

const Ascii& ascii_map(NormaliseOptions options) {
    static const Ascii maps[2][2] = {{make_ascii(false, false), make_ascii(false, true)},
                                     {make_ascii(true, false), make_ascii(true, true)}};
    return maps[options.lower][!options.single_digits];
}

bool is_digit(char32_t c) { return c >= '0' && c <= '9'; }

constexpr char32_t capital_sigma = 0x3A3, small_sigma = 0x3C3, final_sigma = 0x3C2;
constexpr char32_t first_syllable = 0xAC00, last_syllable = 0xD7A3;  // Hangul

}  // namespace

Words::Words(std::string_view line, NormaliseOptions options, bool with_spans)
    : line_(line), options_(options), with_spans_(with_spans), unicode_(Unicode::data()) {
    text_.reserve(64);
}

bool Words::next() {
    text_.clear();
    spans_.clear();
    length_ = 0;
    bool alone = false;  // the word is one character that stands alone; only its marks may still follow
    while (at_ < line_.size()) {
        if (!alone && take_letters()) continue;
        CodePoint c = decode_utf8(line_, at_);
        if (c.length == 0) {
            at_++;
            continue;
        }
        Character what = unicode_[c.value];
        Span span{int(at_), int(at_) + c.length};
        if (what.is(Character::drop)) {
            at_ += std::size_t(c.length);
        } else if (what.is(Character::space)) {
            after_cased_ = false;
            if (length_ > 0) break;
            at_ += std::size_t(c.length);
        } else if (options_.lower && what.is(Character::mark)) {
            at_ += std::size_t(c.length);
            if (with_spans_ && length_ > 0) spans_.back().end = span.end;
            if (!what.is(Character::nonstarter)) sort_run();
        } else {
            bool single = what.is(options_.lower ? Character::alone_lowered : Character::alone) ||
                          (options_.single_digits && is_digit(c.value));
            if (alone || (single && length_ > 0)) break;
            alone = single;
            at_ += std::size_t(c.length);
            if (options_.lower)
                append_lowered(c.value, what, span);
            else
                append(c.value, span);
            if (!what.is(Character::ignorable)) after_cased_ = what.is(Character::cased);
        }
    }
    sort_run();
    return length_ > 0;
}

// The letters and digits of ASCII that come next, in one go; false if there are none.
bool Words::take_letters() {
    const Ascii& map = ascii_map(options_);
    if (map[(unsigned char)line_[at_]] == 0) return false;
    sort_run();
    std::size_t begin = at_;
    for (; at_ < line_.size(); at_++) {
        char letter = map[(unsigned char)line_[at_]];
        if (letter == 0) break;
        text_ += letter;
    }
    length_ += int(at_ - begin);
    if (with_spans_)
        for (std::size_t i = begin; i < at_; i++) spans_.push_back({int(i), int(i) + 1});
    after_cased_ = !is_digit((unsigned char)line_[at_ - 1]);
    return true;
}

void Words::append_lowered(char32_t c, Character what, Span span) {
    auto put = [&](char32_t to) {
        if (!unicode_[to].is(Character::nonstarter)) {
            sort_run();
        } else if (run_length_++ == 0) {
            run_begin_ = text_.size();
        }
        append(to, span);
    };
    if (c >= first_syllable && c <= last_syllable) {
        // The Unicode Standard, section 3.12: 21 vowels, 27 final consonants or none.
        char32_t s = c - first_syllable;
        put(0x1100 + s / (21 * 28));
        put(0x1161 + s / 28 % 21);
        if (s % 28 != 0) put(0x11A7 + s % 28);
    } else if (what.is(Character::expands)) {
        for (const char32_t* to = unicode_.expansion(what); *to != 0; to++) put(*to);
    } else if (c == capital_sigma) {
        put(sigma_is_final(at_) ? final_sigma : small_sigma);
    } else {
        put(what.to != 0 ? char32_t(what.to) : c);
    }
}

void Words::append(char32_t c, Span span) {
    append_utf8(text_, c);
    length_++;
    if (with_spans_) spans_.push_back(span);
}

// Unicode's Final_Sigma: a cased character before, none after, ignorable ones not counted.
bool Words::sigma_is_final(std::size_t after) const {
    if (!after_cased_) return false;
    for (CodePoint c; after < line_.size(); after += std::size_t(std::max(c.length, 1))) {
        c = decode_utf8(line_, after);
        if (c.length == 0) continue;
        Character what = unicode_[c.value];
        if (!what.is(Character::drop) && !what.is(Character::ignorable)) return !what.is(Character::cased);
    }
    return true;
}

// Canonical order: the nonstarters of a run, sorted by class. They keep the run's spans in the order of the
// line.
void Words::sort_run() {
    if (run_length_ > 1) {
        std::u32string run;
        for (std::size_t i = run_begin_; i < text_.size();) {
            CodePoint c = decode_utf8(text_, i);
            run += c.value;
            i += std::size_t(c.length);
        }
        std::stable_sort(run.begin(), run.end(), [](char32_t a, char32_t b) {
            return Unicode::combining_class(a) < Unicode::combining_class(b);
        });
        text_.resize(run_begin_);
        for (char32_t c : run) append_utf8(text_, c);
    }
    run_length_ = 0;
}

bool stands_alone(char32_t c) { return Unicode::data()[c].is(Character::alone); }

}  // namespace masquerade
