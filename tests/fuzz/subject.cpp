// SPDX-License-Identifier: MIT
#include "tests/fuzz/subject.h"

#include <iterator>
#include <sstream>

#include "input/utf8.h"

namespace masquerade::fuzz {

namespace {

std::vector<std::string> split(const std::string& text) {
    std::istringstream stream(text);
    return {std::istream_iterator<std::string>(stream), {}};
}

const std::vector<std::string> words = split(
    "un want run the hello world cl sep mask don 2024 14 3 ab abc no e ' \" ... σας σ Σα 中文 한 각 カタ "
    "naïve "
    "electric electricelectric abcdefghijklmnopqrstuvwxyzabcdefghijklmn");

const std::vector<std::string> continuations = split("want wa ed ing s ning 14 ς σας 文 ## # ll 한 opqrstuvwxyz");

Vocabulary make_vocabulary() {
    std::vector<std::string> tokens(special_tokens, special_tokens + 5);
    for (const char* token : {"", "##", "###", "\u2028", "##\u2028", "[unused1]", "<x>", "<spaced>", "Añ"})
        tokens.push_back(token);
    for (const std::string& word : words) tokens.push_back(word);
    for (const std::string& word : continuations) tokens.push_back("##" + word);
    for (const Block& block : blocks())
        for (char32_t c = block.first; c <= block.last; c++) {
            std::string token;
            append_utf8(token, c);
            tokens.push_back(token);
            tokens.push_back("##" + token);
        }
    return Vocabulary(std::move(tokens));
}

const Vocabulary& vocabulary() {
    static const Vocabulary all = make_vocabulary();
    return all;
}

// Returns special tokens, as a model has them, and unusual added tokens.
std::vector<AddedToken> odd_tokens() {
    auto token = [](const char* text) {
        AddedToken added;
        added.text = text;
        added.id = vocabulary().id(text);
        return added;
    };
    std::vector<AddedToken> all = {token("[CLS]"), token("[SEP]"),    token("[MASK]"), token("[unused1]"),
                                   token("<x>"),   token("<spaced>"), token("Añ")};
    all[2].strip_left = true;
    all[3].special = false;
    all[4].single_word = true;
    all[5].strip_left = all[5].strip_right = true;
    all[6].special = false;
    all[6].normalised = true;
    return all;
}

constexpr std::size_t variants = 4;  // for each combination of rules, lower-casing and stripping

std::unique_ptr<Subject> make_subject(std::size_t number) {
    WordPiece::Options options;
    std::size_t variant = number % variants, base = number / variants;
    options.rules = base % 2 == 0 ? Rules::google : Rules::hugging_face;
    options.lower = base / 2 % 2 == 0;
    if (base / 4 > 0) options.strip_accents = base / 4 == 1;
    options.unknown = (variant + base) % 2 == 0 ? Unknown::word : Unknown::character;
    options.max_word = variant == 1 ? 5 : variant == 2 ? 1 << 30 : 200;
    options.single_digits = variant == 1;
    options.recognise_special = variant >= 2;
    options.clean = !(variant == 1 && base % 3 == 0);
    options.split_ideographs = !(variant == 3 && base % 3 == 1);
    if (variant == 3)
        options.replace = {{0x2014, "--"}, {0x2026, "..."}, {0x201C, "\""}, {0x300C, ""}, {U'Љ', "Σé 中"}};
    return std::make_unique<Subject>(options, variant == 2 ? odd_tokens() : std::vector<AddedToken>());
}

}  // namespace

const std::vector<Block>& blocks() {
    static const std::vector<Block> all = {
        {0x21, 0x7E},       {0xA1, 0x17F},      {0x300, 0x345},     {0x391, 0x3C9},     {0x400, 0x45F},
        {0x5D0, 0x5EA},     {0x621, 0x652},     {0x900, 0x97F},     {0xE01, 0xE5B},     {0x1100, 0x1112},
        {0x1161, 0x1175},   {0x11A8, 0x11C2},   {0x1B40, 0x1B45},   {0x2010, 0x2027},   {0x2030, 0x205E},
        {0x2200, 0x2265},   {0x2E80, 0x2E84},   {0x3001, 0x3030},   {0x3041, 0x30FF},   {0x3400, 0x3407},
        {0x4E00, 0x4E3F},   {0xAC00, 0xAC1F},   {0xE000, 0xE003},   {0xF900, 0xF907},   {0xFE0E, 0xFE0F},
        {0xFF01, 0xFF1F},   {0xFF66, 0xFF9F},   {0x1D165, 0x1D172}, {0x1F1E6, 0x1F1FF}, {0x1F3FB, 0x1F3FF},
        {0x1F600, 0x1F60F}, {0x20000, 0x20003}, {0x2B820, 0x2B823}, {0x2B920, 0x2B923}, {0x2F800, 0x2F807}};
    return all;
}

const std::vector<std::string>& fragments() {
    static const std::vector<std::string> all = [] {
        std::vector<std::string> made = words;
        made.insert(made.end(), continuations.begin(), continuations.end());
        for (const std::string& fragment :
             split("[CLS] [SEP] [PAD] [UNK] [MASK] [mask] [unused1] <x> <spaced> Añ an\u0303 ΣΑΣ Σ σΣ.Σ İ ß ŉ "
                   "ﬁ Ǆ "
                   "\u212A \u212B ﷺ ３．１４ 3.14 1,000 10:30 a.m. o'clock students' -- … — “ ” 「 」 "
                   "👨‍👩‍👧 👍🏽 🇩🇪 ❤️ "
                   "e\u0301 e\u0301\u0323 \u1161\u11A8 각\u0301 ｶﾞ が か\u3099 豈 \u2260 =\u0338 \u0344 \u1FEF "
                   "\u037E"))
            made.push_back(fragment);
        return made;
    }();
    return all;
}

Subject::Subject(WordPiece::Options options, std::vector<AddedToken> added)
    : tokenizer(vocabulary(), options, added), odd_tokens(!added.empty()) {}

std::size_t subject_count() { return 2 * 2 * 3 * variants; }

const Subject& subject(std::size_t number) {
    static std::vector<std::unique_ptr<const Subject>> all(subject_count());
    std::unique_ptr<const Subject>& made = all[number % all.size()];
    if (!made) made = make_subject(number % all.size());
    return *made;
}

}  // namespace masquerade::fuzz
