// SPDX-License-Identifier: MIT
#include "tokenizer/spacing.h"

#include <algorithm>
#include <iterator>
#include <sstream>
#include <unordered_set>

#include "tokenizer/characters.h"

namespace masquerade {

namespace {

// Facts about the text written so far.
struct Written {
    int spaces = 0, ideographs = 0, latin = 0;        // numbers of spaces, East Asian words (is_wide), words of letters
    bool double_quote = false, single_quote = false;  // whether a quotation is open
    bool url = false;                                 // whether "//" has occurred since the last space

    bool chinese() const { return ideographs > latin; }
};

// A sign (a punctuation mark or symbol), the words before and after it, and facts about the text up to and including
// `before`.
struct Place {
    const SpacedWord &before, &sign, &after;
    const Written& written;
};

// The rules for spaces next to a sign. docs/results/tokenizer.md shows how much each rule contributes.

using WordSet = std::unordered_set<std::string>;
WordSet words_of(const char* list) {
    std::istringstream words(list);
    return {std::istream_iterator<std::string>(words), {}};
}

// Words that follow an apostrophe, as in it's, we'll and o'clock.
const WordSet contracted = words_of("s t d m ll re ve clock");

// Words that follow a full stop inside a name, as in wikipedia.org, node.js and index.html.
const WordSet extensions = words_of("org com net io fm js py pl pm rb el h sh html json conf yml md txt");

// Words that follow a dash in the synopses of packages, as in "parser library - development files".
const WordSet parts = words_of(
    "common core data devel development doc docs documentation feature header headers library libraries metapackage node "
    "python python3 runtime rust shared utilities");

// The conditions of the rules. `second` means that the word before the sign is the same sign.

bool always(const Place&) { return true; }

bool second(const Place& p) { return p.before.sign() == p.sign.first; }
bool doubled(const Place& p) { return second(p) || p.after.sign() == p.sign.first; }
bool in_chinese(const Place& p) { return p.written.chinese(); }
bool single_in_chinese(const Place& p) { return in_chinese(p) && !doubled(p); }

bool after_word(const Place& p) { return p.before.letters(); }
bool words_around(const Place& p) { return p.before.letters() && p.after.letters(); }
bool letters_around(const Place& p) { return words_around(p) && p.before.text.size() == 1 && p.after.text.size() == 1; }
bool digits_around(const Place& p) {
    bool thousands = p.after.number() && p.after.text.size() == 3;  // true for "1,000", false for "may 1, 1955"
    return is_digit(p.before.last) && is_digit(p.after.first) && (p.sign.first != ',' || thousands);
}

bool contraction(const Place& p) { return after_word(p) && contracted.count(p.after.text) > 0; }
bool single_open(const Place& p) { return p.written.single_quote; }
bool double_open(const Place& p) { return p.written.double_quote; }
// Whether an apostrophe opens a quotation. An apostrophe does not open one at the end of the text, between a word and
// another sign (5', wide), or between a word that ends in s and a word (the students' room).
bool opens(const Place& p) {
    return p.after.first != 0 && !(after_word(p) && (!p.after.letters() || p.before.last == 's'));
}

bool call(const Place& p) { return after_word(p) && p.after.sign() == ')'; }
bool name(const Place& p) { return words_around(p) && (extensions.count(p.after.text) > 0 || p.before.text == "www"); }
bool address_ends(const Place& p) { return p.written.url && p.after.text == "for"; }
bool dash(const Place& p) {
    return words_around(p) && p.written.spaces >= 1 && p.written.spaces <= 11 && parts.count(p.after.text) > 0;
}

struct Rule {
    std::u32string_view signs;
    bool (*fits)(const Place&);
    Hold hold;
};
constexpr Hold none{}, left{true, false}, right{false, true}, both{true, true};

// A row matches if it lists the sign and its condition is true. The first matching row gives the sign its Hold (the
// sides without a space). A sign without a matching row has a space on both sides.
constexpr Rule rules[] = {
    {U"#$%&'()*+,-./:;<=>@[\\^_`{|}", in_chinese, both},
    {U"\"~", single_in_chinese, both},  // if two quotes follow each other, the space between them stays: 好," "真

    {U"'’", contraction, both},   // example: it's
    {U"'’`", single_open, left},  // example: 'please', `eager'
    {U"'", opens, right},         // example: say 'please'
    {U"\"“", double_open, left},  // example: "so", „so“

    {U".,:–", digits_around, both},  // example: 3.14, 1,000, 10:30, 1939–45
    {U".", letters_around, both},    // example: a.m.
    {U".", name, both},              // example: node.js, www.debian.org
    {U":", doubled, both},           // example: foo::bar
    {U"/", address_ends, left},      // example: see https://x.org/ for more
    {U"(", call, both},              // example: main()

    {U"+", second, left},          // example: c++
    {U"+", after_word, left},      // example: gtk+
    {U"-", second, left},          // example: a -- b
    {U"-", dash, none},            // example: parser library - development files
    {U"-@=", words_around, both},  // example: well-known, me@home.org, key=value

    {U".,:;!?…%‰)]}'’”", always, left},
    {U"([{\"“„‘‚`+#$@¿¡", always, right},
    {U"/_^·‐‑", always, both},
};

// Returns the sides of a sign on which the rules write no space.
Hold hold_of(const Place& place) {
    for (const Rule& rule : rules)
        if (rule.signs.find(place.sign.first) != rule.signs.npos && rule.fits(place)) return rule.hold;
    return none;
}

// Whether the character is in a block of East Asian characters that are written without spaces: ideographs, kana,
// bopomofo, CJK punctuation and symbols, full-width and half-width forms. Hangul syllables are not in these blocks, but
// some single Hangul letters and the script Yi are.
bool is_wide(char32_t c) {
    return c >= 0x2E80 &&
           (c < 0xA4D0 || (c >= 0xF900 && c < 0xFB00) || (c >= 0xFE30 && c < 0xFE70) || (c >= 0xFF00 && c < 0xFFF0) ||
            (c >= 0x1B000 && c < 0x1B300) || (c >= 0x20000 && c < 0x40000));
}

class Writer {
  public:
    explicit Writer(const Strings& never) : never_(never) {
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
    // Whether the two words are joined without a space.
    bool closes(const SpacedWord& before, const SpacedWord& word) const {
        if (!before.alone() && !word.alone()) return false;
        bool joined = before.hold.right || word.hold.left || is_wide(before.last) || is_wide(word.first);
        return joined && !forbidden(before, word);
    }

    // Whether the two words must have a space between them. If the space were missing, encoding would find a wrong
    // added token or miss an added token.
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

    const Strings& never_;
    std::size_t longest_never_ = 0;
    Written written_;
    std::string tail_;  // the last bytes written after the last space; a text of never_ may begin among these bytes
};

}  // namespace

bool SpacedWord::number() const { return !text.empty() && std::all_of(text.begin(), text.end(), is_digit); }

std::string with_spaces(std::vector<SpacedWord> words, const Strings& never) {
    Writer writer(never);
    const SpacedWord none;
    for (std::size_t i = 0; i < words.size(); i++)
        writer.write(i > 0 ? words[i - 1] : none, words[i], i + 1 < words.size() ? words[i + 1] : none);
    return std::move(writer.line);
}

}  // namespace masquerade
