// SPDX-License-Identifier: MIT
#include "tokenizer/characters.h"

#include <algorithm>

#include "input/utf8.h"
#include "tokenizer/canonical.h"
#include "tokenizer/characters_table.h"
#include "tokenizer/table_rows.h"

namespace masquerade {

Characters::Characters(const NormaliseOptions& options)
    : lower_(options.lower), digits_alone_(options.single_digits), replaced_(options.replace) {
    set_flags(options);
    set_results(options);
    table_.share_equal_blocks();  // saves memory: hundreds of blocks have only ideographs, with equal entries
    set_ascii();
}

// The flags in characters_table.h have the values of Character::Flag, so they are not converted.
void Characters::set_flags(const NormaliseOptions& options) {
    const bool google = options.rules == Rules::google;
    std::uint32_t used = Character::space | Character::punctuation, for_sigma = 0;
    if (options.split_ideographs) used |= Character::ideograph;
    if (options.strips()) used |= Character::mark | Character::nonstarter;
    if (google && options.lower) for_sigma = Character::cased | Character::ignorable;
    auto set = [&](char32_t first, char32_t last, std::uint32_t flags) {
        const bool removed = options.clean && (flags & Character::drop);
        flags &= for_sigma | (removed ? std::uint32_t{Character::drop} : used);
        for (char32_t c = first; c <= last; c++) table_.at(c).flags = flags & 0x7FF;
    };
    unicode::each_range(unicode::flags, set);
    if (!google) unicode::each_range(unicode::hugging_face_flags, set);
    for (char32_t c = '0'; options.single_digits && c <= '9'; c++) table_.at(c).flags |= Character::punctuation;
}

// Sets what each code point becomes. If the options say so, the code point is first converted to lower case, and then
// decomposed without its marks; the other order would give the same results.
void Characters::set_results(const NormaliseOptions& options) {
    const bool hugging_face = options.rules == Rules::hugging_face;
    unicode::Map lowered, stripped;
    if (options.lower) unicode::add(unicode::lower, lowered);
    if (options.lower && hugging_face) unicode::add(unicode::hugging_face_lower, lowered);
    if (options.strips()) {
        stripped = canonical_decompositions();
        for (auto& [c, parts] : stripped)
            parts.erase(std::remove_if(parts.begin(), parts.end(),
                                       [&](char32_t part) { return (*this)[part].is(Character::mark); }),
                        parts.end());
        if (hugging_face) unicode::add(unicode::hugging_face_strip, stripped);
    }
    for (const auto& [c, result] : stripped)
        if (lowered.count(c) == 0) set_result(c, result);
    for (const auto& [c, small] : lowered) {
        std::u32string result;
        for (char32_t l : small) {
            auto found = stripped.find(l);
            if (found != stripped.end())
                result += found->second;
            else if (!(*this)[l].is(Character::mark))
                result += l;
        }
        set_result(c, result);
    }
    if (options.strips())
        for (char32_t i = 0; i < hangul::syllables; i++) table_.at(hangul::syllable + i).flags |= Character::syllable;
    if (options.lower && options.rules == Rules::google) table_.at(0x3A3).flags |= Character::sigma;
}

void Characters::set_result(char32_t c, const std::u32string& result) {
    Character& what = table_.at(c);
    if (what.is(Character::drop) || what.is(Character::mark) || what.is(Character::space)) return;
    std::uint32_t flags = what.flags & ~std::uint32_t(Character::punctuation);
    for (char32_t r : result) flags |= (*this)[r].flags & Character::punctuation;
    if (result.empty()) {
        flags |= Character::drop;
    } else if (result.size() == 1) {
        what.to = result[0] & 0x1FFFFF;
    } else {
        flags |= Character::expands;
        what.to = pool_.size() & 0x1FFFFF;
        pool_.insert(pool_.end(), result.begin(), result.end());
        pool_.push_back(0);
    }
    what.flags = flags & 0x7FF;
}

void Characters::set_ascii() {
    for (char32_t c = 0; c < 128; c++) {
        Character what = (*this)[c];
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        ascii_[c] = what.is(Character::drop)    ? dropped
                    : what.is(Character::space) ? space
                    : what.is(Character::alone) ? alone
                    : plain                     ? letter
                                                : other;
        if (ascii_[c] == letter) letters_[c] = char(what.to != 0 ? what.to : c);
    }
}

void Characters::replace(std::string_view line, std::string& text, std::vector<Span>& sources) const {
    text.clear();
    sources.clear();
    for (std::size_t at = 0, next; at < line.size(); at = next) {
        const CodePoint c = decode_utf8(line, at);
        next = at + c.step();
        // Drops bytes that are not UTF-8: if an empty replacement joined two such bytes, they could form a character.
        if (c.length == 0) continue;
        const auto found = replaced_.find(c.value);
        text += found != replaced_.end() ? found->second : line.substr(at, next - at);
        sources.resize(text.size(), {int(at), int(next)});
    }
}

bool is_word_character(char32_t c) {
    static const auto ranges = [] {
        std::vector<std::pair<char32_t, char32_t>> all;  // last and first code point of each range
        unicode::each_range(unicode::word_characters, [&](char32_t first, char32_t last, char32_t) {
            all.push_back({last, first});
        });
        return all;
    }();
    auto range = std::lower_bound(ranges.begin(), ranges.end(), std::make_pair(c, char32_t(0)));
    return range != ranges.end() && range->second <= c;
}

}  // namespace masquerade
