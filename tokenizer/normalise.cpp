// SPDX-License-Identifier: MIT
#include "tokenizer/normalise.h"

#include "input/utf8.h"
#include "tokenizer/canonical.h"

namespace masquerade {

namespace {

constexpr char32_t small_sigma = 0x3C3, final_sigma = 0x3C2;

bool is_ascii(std::string_view line) {
    unsigned char bits = 0;
    for (char c : line) bits |= (unsigned char)c;
    return bits < 0x80;
}

}  // namespace

bool Words::next() {
    text_.clear();
    spans_.clear();
    length_ = 0;
    bool alone = false;  // whether the word is one character that is always a word by itself, such as a comma
    while (at_ < line_.size()) {
        if (!alone && take_letters()) continue;
        CodePoint c = decode_utf8(line_, at_);
        if (c.length == 0) {
            at_++;
            continue;
        }
        Character what = characters_[c.value];
        const Span span = with_spans_ ? source(at_, at_ + c.length) : Span{};
        if (what.is(Character::drop)) {
            at_ += c.length;
        } else if (what.is(Character::space)) {
            after_cased_ = false;
            if (length_ > 0) break;
            at_ += c.length;
        } else if (what.is(Character::mark)) {
            at_ += c.length;
            if (with_spans_ && length_ > 0) spans_.back().end = span.end;
            if (!what.is(Character::nonstarter)) sort_run();
        } else {
            bool single = what.is(Character::alone);
            if (alone || (single && length_ > 0)) break;
            alone = single;
            at_ += c.length;
            append_result(c.value, what, span);
            if (!what.is(Character::ignorable)) after_cased_ = what.is(Character::cased);
        }
    }
    sort_run();
    return length_ > 0;
}

// Appends the ASCII letters and digits at this position to the word. Returns false if there are none.
bool Words::take_letters() {
    if (characters_.kind(line_[at_]) != Characters::letter) return false;
    sort_run();
    std::size_t begin = at_;
    for (; at_ < line_.size() && characters_.kind(line_[at_]) == Characters::letter; at_++)
        text_ += characters_.letter_of(line_[at_]);
    length_ += at_ - begin;
    if (with_spans_)
        for (std::size_t i = begin; i < at_; i++) spans_.push_back(source(i, i + 1));
    after_cased_ = line_[at_ - 1] > '9';
    return true;
}

void Words::append_result(char32_t c, Character what, Span span) {
    auto put = [&](char32_t to) {
        if (!characters_[to].is(Character::nonstarter)) {
            sort_run();
        } else if (run_length_++ == 0) {
            run_begin_ = text_.size();
        }
        append_utf8(text_, to);
        length_++;
        if (with_spans_) spans_.push_back(span);
    };
    if (what.is(Character::syllable)) {
        hangul::decompose(c, put);
    } else if (what.is(Character::expands)) {
        for (const char32_t* to = characters_.expansion(what); *to != 0; to++) put(*to);
    } else if (what.is(Character::sigma)) {
        put(sigma_is_final(at_) ? final_sigma : small_sigma);
    } else {
        put(what.to != 0 ? char32_t(what.to) : c);
    }
}

// Unicode's condition Final_Sigma: a cased character precedes the sigma, and no cased character follows it.
// Case_Ignorable characters are skipped on both sides, and so are characters that normalisation drops. `after` is the
// offset behind the sigma.
bool Words::sigma_is_final(std::size_t after) const {
    if (!after_cased_) return false;
    for (CodePoint c; after < line_.size(); after += c.step()) {
        c = decode_utf8(line_, after);
        if (c.length == 0) continue;
        Character what = characters_[c.value];
        if (!what.is(Character::drop) && !what.is(Character::ignorable)) return !what.is(Character::cased);
    }
    return true;
}

// Sorts the nonstarters (characters with a nonzero combining class) at the end of the word by combining class, which
// is Unicode's canonical order. Their spans are not reordered.
void Words::sort_run() {
    if (run_length_ > 1) {
        std::u32string run = code_points(std::string_view(text_).substr(run_begin_));
        sort_by_class(run.data(), run.data() + run.size());
        text_.replace(run_begin_, text_.npos, to_utf8(run));
    }
    run_length_ = 0;
}

// The class Words skips the text between words. This function reads that text again, because the spaces must be kept.
Normalised normalise(std::string_view line, const Characters& characters) {
    Normalised result;
    if (!characters.replaces() && is_ascii(line)) {
        result.text.resize(line.size());
        result.spans.resize(line.size());
        std::size_t size = 0;
        for (std::size_t at = 0; at < line.size(); at++) {
            Characters::Kind kind = characters.kind(line[at]);
            char letter = characters.letter_of(line[at]);
            result.text[size] = kind == Characters::space ? ' ' : letter != 0 ? letter : line[at];
            result.spans[size] = {int(at), int(at) + 1};
            size += kind != Characters::dropped;
        }
        result.text.resize(size);
        result.spans.resize(size);
        return result;
    }
    Words words(line, characters, true);
    auto append = [&](std::string_view bytes, Span span) {
        result.text += bytes;
        result.spans.insert(result.spans.end(), bytes.size(), span);
    };
    for (std::size_t at = 0;; at = words.at()) {
        bool more = words.next(), ideograph = false;
        while (at < words.line().size()) {
            CodePoint c = decode_utf8(words.line(), at);
            std::size_t end = at + c.step();
            Character what = characters[c.value];
            if (c.length > 0 && !what.is(Character::drop) && !what.is(Character::mark)) {
                ideograph = what.is(Character::ideograph);
                if (!what.is(Character::space)) break;
                append(" ", words.source(at, end));
            }
            at = end;
        }
        if (!more) return result;
        Span first = words.spans().front(), last = words.spans().back();
        if (ideograph) append(" ", {first.begin, first.begin});
        std::size_t next = 0;
        for (Span span : words.spans()) {
            std::size_t begin = next;
            next += decode_utf8(words.text(), begin).length;
            append(std::string_view(words.text()).substr(begin, next - begin), span);
        }
        if (ideograph) append(" ", {last.end, last.end});
    }
}

}  // namespace masquerade
