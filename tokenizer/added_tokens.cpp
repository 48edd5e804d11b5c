// SPDX-License-Identifier: MIT
#include "tokenizer/added_tokens.h"

#include <algorithm>

#include "input/utf8.h"

namespace masquerade {

namespace {

// Whether the character has Unicode's White_Space property.
bool is_white_space(char32_t c) {
    return (c >= 9 && c <= 13) || c == ' ' || c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) ||
           c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

bool word_touches(std::string_view text, std::size_t begin, std::size_t end) {
    auto is_word = [](CodePoint c) { return c.length > 0 && is_word_character(c.value); };
    return (begin > 0 && is_word(code_point_before(text, begin))) ||
           (end < text.size() && is_word(decode_utf8(text, end)));
}

// Returns the offset at which the white space before byte `at` begins, but not less than `from`.
std::size_t white_space_before(std::string_view text, std::size_t at, std::size_t from) {
    while (at > from) {
        CodePoint c = code_point_before(text, at);
        if (c.length == 0 || !is_white_space(c.value)) break;
        at -= c.length;
    }
    return at;
}

std::size_t white_space_after(std::string_view text, std::size_t at) {
    while (at < text.size()) {
        CodePoint c = decode_utf8(text, at);
        if (c.length == 0 || !is_white_space(c.value)) break;
        at += c.length;
    }
    return at;
}

// Returns the line without the bytes that are not UTF-8, and the position in the line of each remaining byte.
Normalised valid_part(std::string_view line) {
    Normalised valid;
    for (std::size_t at = 0; at < line.size();) {
        const CodePoint c = decode_utf8(line, at);
        for (std::size_t i = at; i < at + c.length; i++) {
            valid.text += line[i];
            valid.spans.push_back({int(i), int(i) + 1});
        }
        at += c.step();
    }
    return valid;
}

}  // namespace

std::vector<AddedToken> special_added(const Vocabulary& vocabulary) {
    std::vector<AddedToken> all;
    for (const char* token : special_tokens)
        if (const int id = vocabulary.id(token); id >= 0) all.push_back({token, id});
    return all;
}

AddedTokens::AddedTokens(std::vector<AddedToken> tokens, const Characters& characters, bool special)
    : tokens_(std::move(tokens)), special_(special) {
    Strings forms;
    for (const AddedToken& token : tokens_) {
        if (!is_utf8(token.text)) throw TokenizerError("the added token with id ", token.id, " is not UTF-8");
        if (token.id < 0)
            throw TokenizerError("the added token ", token.text, " has the id ", token.id, ", expected 0 or more");
        if (token.normalised && !characters_) characters_ = std::make_shared<const Characters>(characters);
        forms.push_back(token.normalised ? normalise(token.text, characters).text : token.text);
    }
    exact_ = make_set(forms, false);
    normalised_ = make_set(forms, true);
}

// Builds the set of the tokens whose flag `normalised` has the given value; forms[i] is the text by which
// token i is found. If several tokens have equal forms, the first token wins: a trie keeps the last of equal entries,
// so the tokens are added in reverse order. (In Hugging Face's library, any of the tokens may win.)
AddedTokens::Set AddedTokens::make_set(const Strings& forms, bool normalised) const {
    Set set;
    std::vector<Trie::Entry> entries;
    bool any = false;  // whether at least one token of the set can be found (special ones only if special_ is true)
    for (std::size_t i = tokens_.size(); i-- > 0;) {
        if (tokens_[i].normalised != normalised || forms[i].empty()) continue;
        entries.push_back({forms[i], int(i)});
        any |= special_ || !tokens_[i].special;
    }
    if (!any) return set;
    for (const Trie::Entry& entry : entries) {
        bool& is_first = set.is_first[(unsigned char)entry.first[0]];
        if (!is_first) set.firsts += entry.first[0];
        is_first = true;
    }
    set.trie = Trie(entries);
    return set;
}

// Returns the offset of the first byte, at or after `from`, with which a token of the set can begin; text.size() if no
// such byte follows.
std::size_t AddedTokens::Set::candidate(std::string_view text, std::size_t from) const {
    if (firsts.empty()) return text.size();
    if (firsts.size() == 1) return std::min(text.find(firsts[0], from), text.size());
    while (from < text.size() && !is_first[(unsigned char)text[from]]) from++;
    return from;
}

bool AddedTokens::may_hold(std::string_view line) const {
    return (!normalised_.firsts.empty() && !line.empty()) || exact_.candidate(line, 0) < line.size();
}

// Calls emit(begin, end, id) for each token in a text, which must be valid UTF-8. The longest match at a position is
// rejected if its token is special and special_ is false, or if its token has single_word and a word character is next
// to the match. After a rejected match, neither a shorter token at this position nor a token that begins inside the
// match is tried.
template <class Emit>
void AddedTokens::find(const Set& set, std::string_view text, Emit emit) const {
    // last: end of the latest token, including the white space that strip_right adds to it; taken: the largest end of
    // all tokens so far
    std::size_t taken = 0, last = 0;
    for (std::size_t at = set.candidate(text, 0); at < text.size(); at = set.candidate(text, at)) {
        Trie::Match match = set.trie.longest(text.substr(at));
        if (match.length == 0) {
            at++;
            continue;
        }
        const AddedToken& token = tokens_[match.value];
        std::size_t begin = at, end = at + match.length;
        at = end;
        if (token.special && !special_) continue;
        if (token.single_word && word_touches(text, begin, end)) continue;
        if (token.strip_right) end = end < taken ? taken : white_space_after(text, end);
        if (token.strip_left) begin = std::max(white_space_before(text, begin, taken), last);
        if (begin >= end) continue;  // earlier tokens include all bytes of this match
        last = end;
        emit(std::max(begin, taken), std::max(end, taken), token.id);
        taken = std::max(end, taken);
    }
}

std::vector<AddedTokens::Part> AddedTokens::split(std::string_view line) const {
    std::vector<Part> parts;
    // Appends the parts of line[begin, end). searched.text is the text to search: this range of the line, its valid
    // UTF-8, or its normalised form. searched.spans[i] gives the bytes, counted from `begin`, from which byte i of the
    // text comes. If the text is the range itself, searched.spans is empty.
    auto append_parts = [&](const Set& set, const Normalised& searched, int begin, int end) {
        int next = begin;  // end of the latest part
        auto text_until = [&](int to) {
            if (next < to) parts.push_back({next, to, -1});
            next = std::max(next, to);
        };
        find(set, searched.text, [&](std::size_t from, std::size_t to, int id) {
            Span span{0, 0};
            if (from < to && searched.spans.empty()) span = {int(from), int(to)};
            if (from < to && !searched.spans.empty()) span = {searched.spans[from].begin, searched.spans[to - 1].end};
            text_until(begin + span.begin);
            parts.push_back({next, std::max(begin + span.end, next), id});
            next = parts.back().end;
        });
        text_until(end);
    };
    if (!may_hold(line)) {
        if (!line.empty()) parts.push_back({0, int(line.size()), -1});
        return parts;
    }
    append_parts(exact_, is_utf8(line) ? Normalised{std::string(line), {}} : valid_part(line), 0, int(line.size()));
    if (normalised_.firsts.empty()) return parts;

    const std::vector<Part> exact = std::move(parts);
    parts.clear();
    for (const Part& part : exact) {
        std::string_view text = line.substr(part.begin, part.end - part.begin);
        if (part.id >= 0)
            parts.push_back(part);
        else
            append_parts(normalised_, normalise(text, *characters_), part.begin, part.end);
    }
    return parts;
}

}  // namespace masquerade
