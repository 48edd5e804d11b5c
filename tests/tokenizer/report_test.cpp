// SPDX-License-Identifier: MIT
#include "tokenizer/report.h"

#include <algorithm>
#include <cstdint>

#include "doctest/doctest.h"
#include "input/utf8.h"
#include "tokenizer/trainer.h"

using namespace masquerade;

namespace {

std::string report_on(const std::vector<std::string>& lines, const WordPiece& tokenizer, int most = 20) {
    WordCounts words(tokenizer);
    for (const std::string& line : lines) words.add(line);
    return report(words, tokenizer, most);
}

// Returns the first column of a row of the table, without spaces.
std::string row(const std::string& report, const std::string& name) {
    const std::size_t begin = report.find_first_not_of(' ', report.find(name) + name.size());
    return report.substr(begin, report.find_first_of(" \n", begin) - begin);
}

// Formats a number with commas: 1,234,567.
std::string grouped(std::size_t n) {
    std::string digits = std::to_string(n);
    for (std::size_t i = digits.size(); i > 3; i -= 3) digits.insert(i - 3, ",");
    return digits;
}

WordPiece small(WordPiece::Options options = {}) {
    return WordPiece(Vocabulary{{"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "##b", "ab", "7", ",", "中", "##c",
                                 "[unused1]"}},
                     options);
}

const std::vector<std::string> lines{"Ab abb, a7 abc", "", "中 x 中文, xx", "x a\u0301b"};

}  // namespace

TEST_CASE("a report's tokens are those of encoding, under any options") {
    // Random characters: ASCII, characters that the normaliser changes, and all of Unicode.
    std::uint64_t state = 3;
    auto draw = [&](std::uint64_t below) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        return (state >> 33) % below;
    };
    const char32_t odd[] = {0x0,    0xB,    0x85,   0xA0,   0xAD,   0x300,  0x301,  0x345,   0x37E,   0x3A3,   0x3C2,
                            0x130,  0x1FEF, 0x200D, 0x2028, 0x2260, 0x3000, 0x302E, 0x1B44,  0xAC01,  0xF900,  0xFE0F,
                            0xFFFD, 0xE000, 0x4E2D, 0x2014, 0x0B57, 0x1734, 0x166D, 0x2B820, 0x2F800, 0x1F3FB, 0x1D165};
    std::vector<std::string> text;
    for (int n = 0; n < 1500; n++) {
        std::string line;
        for (std::uint64_t i = draw(30); i > 0; i--) {
            std::uint64_t kind = draw(8);
            char32_t c = kind < 4   ? char32_t(32 + draw(95))
                         : kind < 6 ? odd[draw(std::size(odd))]
                         : kind < 7 ? char32_t(0xA0 + draw(0x500))
                                    : char32_t(draw(0x110000));
            if (c < 0xD800 || c > 0xDFFF) append_utf8(line, c);
        }
        text.push_back(line);
    }
    for (int bits = 0; bits < 32; bits++) {
        CAPTURE(bits);
        WordPiece::Options options;
        options.lower = bits & 1;
        if (bits & 2) options.strip_accents = !options.lower;
        options.clean = bits & 4;
        options.split_ideographs = bits & 8;
        options.rules = bits & 16 ? Rules::hugging_face : Rules::google;
        options.max_word = bits % 5 == 0 ? 3 : 200;
        WordCounts words(options);
        for (const std::string& line : text) words.add(line);
        TrainerOptions training;
        training.min_count = 3;
        WordPiece tokenizer(train_vocabulary(words, 600, training), options);
        const std::string r = report_on(text, tokenizer);
        std::vector<int> ids;
        Encoder encoder(tokenizer);
        for (const std::string& line : text) encoder.append(line, ids);
        CHECK(row(r, "\ntokens ") == grouped(ids.size()));
        const auto unknown = std::count(ids.begin(), ids.end(), tokenizer.vocabulary().unk());
        CHECK(r.find("%   " + grouped(std::size_t(unknown)) + " words") != r.npos);
        std::sort(ids.begin(), ids.end());
        const auto used = std::unique(ids.begin(), ids.end()) - ids.begin() - (unknown > 0);
        const std::string usable = std::to_string(tokenizer.vocabulary().size() - 5);
        CHECK(r.find("%   " + std::to_string(used) + " of " + usable) != r.npos);
    }
}

TEST_CASE("special tokens in the text are text, unless the tokenizer recognises them") {
    WordPiece::Options options;
    const std::string r = report_on({"[MASK] a"}, small(options));
    CHECK(row(r, "\nwords ") == "4");
    CHECK(row(r, "\ntokens ") == "4");
    CHECK(r.find("%   3 words") != r.npos);
    options.recognise_special = true;
    const std::string recognised = report_on({"[MASK] a"}, small(options));
    CHECK(row(recognised, "\nwords ") == "2");
    CHECK(row(recognised, "\ntokens ") == "2");
    CHECK(recognised.find("%   0 words") != recognised.npos);
}

TEST_CASE("an added token counts as one word, and its characters are covered") {
    const WordPiece::Options options;
    const Vocabulary vocabulary(Strings{"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "##b", "new york", "<u>"});
    std::vector<AddedToken> added = {{"new york", 7, false}, {"<u>", 8, false}};
    added[0].beyond = added[1].beyond = true;
    const WordPiece tokenizer(vocabulary, options, added);
    std::string text;
    for (int line = 0; line < 20000; line++) text += "<u>ab new york\n";
    WordCounts words(tokenizer);
    words.add_text(text, 3);
    const std::string r = report(words, tokenizer);
    CHECK(row(r, "\nwords ") == "60,000");
    CHECK(row(r, "\ntokens ") == "80,000");
    CHECK(row(r, "\ncharacters ") == "240,000");
    CHECK(row(r, "words of one token") == "66.67");
    CHECK(row(r, "words with [UNK]") == "0.00");
    CHECK(row(r, "characters covered") == "100.00");
    CHECK(row(r, "vocabulary used") == "100.00");
}

TEST_CASE("characters are replaced once") {
    WordPiece::Options options;
    options.replace = {{'x', "a"}, {'a', ","}};
    CHECK(row(report_on({"xx x"}, small(options)), "words with [UNK]") == "50.00");  // aa is no word, a is one
}

TEST_CASE("the printed report has narrow lines, and says what cannot be seen") {
    std::vector<std::string> odd;
    for (int i = 0; i < 30; i++) {
        odd.push_back("word" + std::to_string(i) + std::string(std::size_t(3 * i), 'z'));
        odd.push_back(i % 2 ? "文本中" : "\U0001F600\U0001F601");
        std::string c;
        append_utf8(c, 0x4E10 + char32_t(i));
        odd.push_back(c);
    }
    WordPiece::Options options;
    options.lower = options.clean = false;
    odd.push_back("\u0301\u0302 \u0301 \u0302 \u0301 q\u200Dq \u200D \u0007");
    WordCounts words(options);
    for (int n = 0; n < 1234; n++)
        for (const std::string& line : odd) words.add(line);
    std::string out = report(words, small(options), 100);
    REQUIRE(!out.empty());
    CHECK(out.back() == '\n');
    for (std::size_t begin = 0, end; begin < out.size(); begin = end + 1) {
        end = out.find('\n', begin);
        int columns = 0;
        for (std::size_t i = begin; i < end;) {
            CodePoint c = decode_utf8(out, i);
            REQUIRE(c.length > 0);
            columns += c.value < 0x1100 || c.value == U'…' ? 1 : 2;
            i += c.length;
        }
        CHECK(columns <= 80);
        if (end > begin) CHECK(out[end - 1] != ' ');
    }
    auto has = [&](const char* part) { return out.find(part) != std::string::npos; };
    CHECK(has("112,294"));             // number of lines
    CHECK(has("18,510  U+6587 文"));   // a character, with its count
    CHECK(has(" 3,702  U+0301\n"));    // a mark alone, or at the start of a word
    CHECK(has(" 1,234  qU+200Dq\n"));  // the joiner is escaped, because it would be invisible
    CHECK(has(" 1,234  word9zzzzzzzzzzzzzzzzzzz…\n"));
    CHECK(!has("\u0007"));
    CHECK(has("words with [UNK]"));
    CHECK(report_on({}, small()).find("nan") == std::string::npos);
}

TEST_CASE("a report counts what there is") {
    // The pieces: ab | ab ##b | , | [UNK] for a7 | ab ##c || 中 | x | 中 | 文 | , | xx || x | ab. The character c is
    // covered by ##c.
    const std::string table = R"(
lines                                       4
words                                      13   9 different
tokens                                     15
characters                                 21   without white space
bytes                                      36
tokens per word                         1.154
bytes per token                          2.40
words of one token                    46.15 %
words with [UNK]                      38.46 %   5 words
characters covered                    76.19 %   all but 5
vocabulary used                       62.50 %   5 of 8 tokens
)";
    CHECK("\n" + report_on(lines, small(), 0) == table);
    CHECK("\n" + report_on(lines, small()) == table + R"(
words with [UNK], the most frequent first:
           2  x
           1  a7
           1  xx
           1  文

characters that are not covered:
           4  U+0078 x
           1  U+6587 文
)");
}
