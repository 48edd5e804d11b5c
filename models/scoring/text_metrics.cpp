// SPDX-License-Identifier: MIT
#include "models/scoring/text_metrics.h"

#include <algorithm>
#include <set>
#include <unordered_map>

#include "engine/base/error.h"
#include "input/utf8.h"
#include "tokenizer/characters.h"

namespace masquerade {
namespace {

void replace_all(std::u32string& line, std::u32string_view what, std::u32string_view by) {
    for (std::size_t at = 0; (at = line.find(what, at)) != line.npos; at += by.size())
        line.replace(at, what.size(), by);
}

bool is_digit(char32_t c) { return c >= '0' && c <= '9'; }
bool is_stop(char32_t c) { return c == '.' || c == ','; }

// Whether c is ASCII punctuation other than apostrophe, comma, hyphen and full stop.
bool is_set_apart(char32_t c) {
    return (c >= '!' && c <= '&') || (c >= '(' && c <= '+') || c == '/' || (c >= ':' && c <= '@') ||
           (c >= '[' && c <= '`') || (c >= '{' && c <= '~');
}

// Finds pairs of neighbouring characters a, b for which meant(a, b) is true. Puts a space between a and b, and another
// space before a (if `before`) or after b. Searches from left to right; as with the matches of a regular expression, a
// character belongs to at most one pair.
template <class Meant>
std::u32string spaced(const std::u32string& line, bool before, Meant meant) {
    std::u32string result;
    for (std::size_t i = 0; i < line.size(); i++) {
        if (i + 1 == line.size() || !meant(line[i], line[i + 1])) {
            result += line[i];
            continue;
        }
        if (before) result += U' ';
        result += {line[i], U' ', line[i + 1]};
        if (!before) result += U' ';
        i++;
    }
    return result;
}

// Cuts the line into the parts whose characters c all satisfy belongs(c). All other characters are separators.
template <class Belongs>
Strings runs(const std::u32string& line, Belongs belongs) {
    Strings all;
    bool inside = false;
    for (char32_t c : line) {
        const bool was_inside = inside;
        inside = belongs(c);
        if (inside && !was_inside) all.emplace_back();
        if (inside) append_utf8(all.back(), c);
    }
    return all;
}

Strings between_spaces(const std::u32string& line) {
    return runs(line, [](char32_t c) { return !is_white_space(c); });
}

// Cuts a line into tokens. A token is the number of a word or, if `units` is characters, a code point that is not white
// space. Words are numbered in the order in which they first occur.
struct Cutter {
    TextUnits units;
    Strings (*words)(std::string_view line);
    std::unordered_map<std::string, int> numbers = {};

    Tokens operator()(const std::string& line) {
        Tokens tokens;
        if (units == TextUnits::words)
            for (const std::string& word : words(line))
                tokens.push_back(numbers.try_emplace(word, numbers.size()).first->second);
        else
            for (char32_t c : characters_of(line)) tokens.push_back(c);
        return tokens;
    }
};

void check_pairs(const char* measure, const Strings& references, const Strings& hypotheses) {
    if (references.size() != hypotheses.size())
        throw Error(measure, ": ", references.size(), " references but ", hypotheses.size(),
                    " hypotheses; one of each is a pair");
}

long ngram_count(const Tokens& tokens, int n) { return std::max(0l, long(tokens.size()) - n + 1); }

double ratio(double part, double whole) { return whole > 0 ? part / whole : 0; }

Overlap overlap(double matched, double reference, double hypothesis) {
    const double precision = ratio(matched, hypothesis), recall = ratio(matched, reference);
    return {precision, recall, ratio(2 * precision * recall, precision + recall)};
}

// Adds one pair's share to `mean`. After a call for each of the `pairs` pairs, `mean` is their mean, in percent.
void add(Overlap& mean, const Overlap& one, std::size_t pairs) {
    const double share = 100.0 / pairs;
    mean.precision += share * one.precision;
    mean.recall += share * one.recall;
    mean.f1 += share * one.f1;
}

bool repeats(const std::u32string& characters) {
    static const Characters kinds{NormaliseOptions()};
    std::set<char32_t> met;
    for (char32_t c : characters)
        if (!kinds[c].is(Character::punctuation) && !met.insert(c).second) return true;
    return false;
}

}  // namespace

bool is_white_space(char32_t c) {
    return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 || c == 0x1680 ||
           (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

std::u32string characters_of(std::string_view line) {
    std::u32string characters;
    for (char32_t c : code_points(line))
        if (!is_white_space(c)) characters += c;
    return characters;
}

Strings words_13a(std::string_view line) {
    std::u32string text = code_points(line);
    while (!text.empty() && is_white_space(text.back())) text.pop_back();
    const std::pair<const char32_t*, const char32_t*> marks[] = {{U"<skipped>", U""}, {U"-\n", U""},    {U"\n", U" "},
                                                                 {U"&quot;", U"\""},  {U"&amp;", U"&"}, {U"&lt;", U"<"},
                                                                 {U"&gt;", U">"}};
    for (const auto& [what, by] : marks) replace_all(text, what, by);
    std::u32string apart = U" ";
    for (char32_t c : text) is_set_apart(c) ? apart += {U' ', c, U' '} : apart += c;
    apart += U' ';
    text = spaced(apart, false, [](char32_t a, char32_t b) { return !is_digit(a) && is_stop(b); });
    text = spaced(text, true, [](char32_t a, char32_t b) { return is_stop(a) && !is_digit(b); });
    text = spaced(text, false, [](char32_t a, char32_t b) { return is_digit(a) && b == '-'; });
    return between_spaces(text);
}

Strings words_of(std::string_view line) { return between_spaces(code_points(line)); }

Strings rouge_words(std::string_view line) {
    std::u32string lowered;
    for (char32_t c : code_points(line)) {
        if (c >= 'A' && c <= 'Z') c += 'a' - 'A';
        // Besides A-Z, only two code points have a lower-case form that contains a letter a-z.
        if (c == 0x212A) c = 'k';                    // the Kelvin sign
        if (c == 0x130) lowered += U'i', c = 0x307;  // I with a dot above becomes i and a combining mark
        lowered += c;
    }
    return runs(lowered, [](char32_t c) { return is_digit(c) || (c >= 'a' && c <= 'z'); });
}

Bleu bleu(const Strings& references, const Strings& hypotheses, TextUnits units) {
    check_pairs("bleu", references, hypotheses);
    Cutter cut{units, words_13a};
    Texts r, h;
    for (const std::string& line : references) r.push_back(cut(line));
    for (const std::string& line : hypotheses) h.push_back(cut(line));
    return bleu(r, h, true);
}

Rouge rouge(const Strings& references, const Strings& hypotheses, TextUnits units) {
    check_pairs("rouge", references, hypotheses);
    Cutter cut{units, rouge_words};
    Rouge mean;
    for (std::size_t i = 0; i < references.size(); i++) {
        const Tokens r = cut(references[i]), h = cut(hypotheses[i]);
        auto of_ngrams = [&](int n) {
            return overlap(shared(ngrams(h, n), ngrams(r, n)), ngram_count(r, n), ngram_count(h, n));
        };
        add(mean.rouge1, of_ngrams(1), references.size());
        add(mean.rouge2, of_ngrams(2), references.size());
        add(mean.rougeL, overlap(longest_common(r, h), r.size(), h.size()), references.size());
    }
    return mean;
}

Form form(const Strings& references, const Strings& hypotheses) {
    check_pairs("form", references, hypotheses);
    double exact = 0, same = 0, without = 0, ratios = 0, compared = 0;
    for (std::size_t i = 0; i < references.size(); i++) {
        const std::u32string r = characters_of(references[i]), h = characters_of(hypotheses[i]);
        exact += references[i] == hypotheses[i];
        same += r.size() == h.size();
        without += !repeats(h);
        if (r.empty()) continue;
        ratios += double(h.size()) / r.size();
        compared++;
    }
    const double pairs = references.size();
    return {100 * ratio(exact, pairs), 100 * ratio(same, pairs), 100 * ratio(without, pairs), ratio(ratios, compared)};
}

}  // namespace masquerade
