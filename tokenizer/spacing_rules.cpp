// SPDX-License-Identifier: MIT
// The rules for spaces beside a sign. docs/results/tokenizer.md gives what each rule is worth.
#include "tokenizer/spacing.h"

namespace masquerade {

namespace {

using Place = SignPlace;

// The words after an apostrophe: it's, we'll, o'clock.
constexpr std::string_view contracted[] = {"s", "t", "d", "m", "ll", "re", "ve", "clock"};

// The words after a full stop within a name: wikipedia.org, node.js, index.html.
constexpr std::string_view extensions[] = {"org",  "com",  "net", "io", "fm", "js", "py",
                                           "pl",   "pm",   "rb",  "el", "h",  "sh", "html",
                                           "json", "conf", "yml", "md", "txt"};

// The words after the dash in the titles of a catalogue: NAME OF A THING - PART OF IT.
constexpr std::string_view parts[] = {
    "common",        "core",    "data",    "devel",   "development", "doc",       "docs",
    "documentation", "feature", "header",  "headers", "library",     "libraries", "metapackage",
    "node",          "python",  "python3", "runtime", "rust",        "shared",    "utilities"};

template <std::size_t n>
bool one_of(std::string_view word, const std::string_view (&list)[n]) {
    for (std::string_view entry : list)
        if (entry == word) return true;
    return false;
}

// The conditions of the rules.

bool always(const Place&) { return true; }

bool second(const Place& p) { return p.before.sign() == p.sign.first; }
bool doubled(const Place& p) { return second(p) || p.after.sign() == p.sign.first; }
bool in_chinese(const Place& p) { return p.written.chinese(); }
bool single_in_chinese(const Place& p) { return in_chinese(p) && !doubled(p); }

bool after_word(const Place& p) { return p.before.letters(); }
bool words_around(const Place& p) { return p.before.letters() && p.after.letters(); }
bool letters_around(const Place& p) {
    return words_around(p) && p.before.text.size() == 1 && p.after.text.size() == 1;
}
bool digits_around(const Place& p) {
    bool thousands = p.after.number() && p.after.text.size() == 3;  // 1,000, but: may 1, 1955
    return is_digit(p.before.last) && is_digit(p.after.first) && (p.sign.first != ',' || thousands);
}

bool contraction(const Place& p) { return after_word(p) && one_of(p.after.text, contracted); }
bool single_open(const Place& p) { return p.written.single_quote; }
bool double_open(const Place& p) { return p.written.double_quote; }
// Not the students' room, nor 5' 10.
bool opens(const Place& p) {
    return p.after.first != 0 && !(after_word(p) && (!p.after.letters() || p.before.last == 's'));
}

bool call(const Place& p) { return after_word(p) && p.after.sign() == ')'; }
bool name(const Place& p) {
    return words_around(p) && (one_of(p.after.text, extensions) || p.before.text == "www");
}
bool address_ends(const Place& p) { return p.written.url && p.after.text == "for"; }
bool dash(const Place& p) {
    return words_around(p) && p.written.spaces >= 1 && p.written.spaces <= 11 && one_of(p.after.text, parts);
}

struct Rule {
    std::u32string_view signs;
    bool (*fits)(const Place&);
    Hold hold;
};
constexpr Hold none{}, left{true, false}, right{false, true}, both{true, true};

// The first row that fits decides. A sign without a row is a word among others.
constexpr Rule rules[] = {
    {U"#$%&'()*+,-./:;<=>@[\\^_`{|}", in_chinese, both},
    {U"\"~", single_in_chinese, both},  // but: 好," "真

    {U"'’", contraction, both},   // it's
    {U"'’`", single_open, left},  // 'please', `eager'
    {U"'", opens, right},         // say 'please'
    {U"\"“", double_open, left},  // "so", „so“

    {U".,:–", digits_around, both},  // 3.14, 1,000, 10:30, 1939–45
    {U".", letters_around, both},    // a.m.
    {U".", name, both},              // node.js, www.debian.org
    {U":", doubled, both},           // foo::bar
    {U"/", address_ends, left},      // see https://x.org/ for more
    {U"(", call, both},              // main()

    {U"+", second, left},          // c++
    {U"+", after_word, left},      // gtk+
    {U"-", second, left},          // a -- b
    {U"-", dash, none},            // parser library - development files
    {U"-@=", words_around, both},  // well-known, me@home.org, key=value

    {U".,:;!?…%‰)]}'’”", always, left},
    {U"([{\"“„‘‚`+#$@¿¡", always, right},
    {U"/_^·‐‑", always, both},
};

}  // namespace

Hold hold_of(const Place& place) {
    for (const Rule& rule : rules)
        if (rule.signs.find(place.sign.first) != rule.signs.npos && rule.fits(place)) return rule.hold;
    return none;
}

}  // namespace masquerade
