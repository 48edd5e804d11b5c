// SPDX-License-Identifier: MIT
#include "tokenizer/decoder.h"

#include <algorithm>

#include "tokenizer/utf8.h"

namespace masquerade {

namespace {

// Texts that must not arise where a space is left out: the tokens that encoding would recognise. (A token with white
// space inside can arise whatever is done.)
std::vector<std::string> recognised(const WordPiece& tokenizer) {
    std::vector<std::string> texts;
    for (const AddedToken& token : tokenizer.added()) {
        if (!tokenizer.recognises(token)) continue;
        std::string text = token.normalised ? normalise(token.text, tokenizer.characters()).text : token.text;
        text.erase(std::remove(text.begin(), text.end(), ' '), text.end());
        if (!text.empty()) texts.push_back(std::move(text));
    }
    return texts;
}

bool is_digit_word(std::string_view word) { return is_digit(char32_t(word[0])); }

}  // namespace

Decoder::Decoder(const WordPiece& tokenizer, Options options)
    : tokenizer_(tokenizer),
      options_(options),
      spacing_(tokenizer.characters().digits_alone(), recognised(tokenizer)) {
    for (const AddedToken& token : tokenizer.added()) {
        if (token.special && !tokenizer.vocabulary().is_special(token.id)) more_special_.push_back(token.id);
        if (token.single_word && tokenizer.recognises(token)) single_words_.push_back(token.id);
    }
    std::sort(more_special_.begin(), more_special_.end());
    std::sort(single_words_.begin(), single_words_.end());
}

std::string Decoder::push(int id) {
    std::string text;
    push(id, text);
    return text;
}

std::string Decoder::finish() {
    std::string text;
    finish(text);
    return text;
}

void Decoder::push(int id, std::string& text) {
    const Vocabulary& vocabulary = tokenizer_.vocabulary();
    const std::string& token = vocabulary.token(id);
    bool special = is_special(id);
    if (special && options_.special != Special::written) {
        bool silent =
            options_.special == Special::dropped || (id != vocabulary.unk() && id != vocabulary.mask());
        if (silent) {
            if (options_.spaces == Spaces::restored) end_word(text);
            return;
        }
    }
    if (options_.spaces == Spaces::plain) return push_plain(token, text);
    if (spacing_.is_open()) {
        bool digits = tokenizer_.characters().digits_alone() && token.size() == 1 && is_digit_word(token) &&
                      is_digit_word(spacing_.text());
        if (continues(token)) return spacing_.append(std::string_view(token).substr(2));
        if (digits) return spacing_.append(token);
    }
    end_word(text);
    if (token.empty()) return;
    spacing_.open(token);
    standing_ = special;
    guarded_ = std::binary_search(single_words_.begin(), single_words_.end(), id);
}

void Decoder::finish(std::string& text) {
    end_word(text);
    spacing_.finish(text);
    begun_ = false;
}

bool Decoder::is_special(int id) const {
    return tokenizer_.vocabulary().is_special(id) ||
           std::binary_search(more_special_.begin(), more_special_.end(), id);
}

void Decoder::push_plain(const std::string& token, std::string& text) {
    bool joined = begun_ && continues(token);
    if (begun_ && !joined) text += ' ';
    text.append(token, joined ? 2 : 0);
    begun_ = true;
}

void Decoder::end_word(std::string& text) {
    if (!spacing_.is_open()) return;
    Spacing::Kind kind = guarded_ ? Spacing::Kind::guarded : Spacing::Kind::ordinary;
    if (!standing_ && !guarded_) {
        CodePoint c = decode_utf8(spacing_.text(), 0);
        bool one = std::size_t(c.length) == spacing_.text().size();
        bool digit = is_digit(c.value);
        if (one && !digit && tokenizer_.characters()[c.value].is(Character::alone))
            kind = Spacing::Kind::alone;
    }
    spacing_.close(kind, text);
}

std::string WordPiece::decode(const std::vector<int>& ids) const {
    Decoder decoder(*this);
    std::string text;
    text.reserve(5 * ids.size());
    for (int id : ids) decoder.push(id, text);
    decoder.finish(text);
    return text;
}

}  // namespace masquerade
