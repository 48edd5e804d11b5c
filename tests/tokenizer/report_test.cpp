// SPDX-License-Identifier: MIT
#include "tokenizer/report.h"

#include <algorithm>
#include <cstdint>

#include "doctest/doctest.h"
#include "tokenizer/trainer.h"
#include "tokenizer/utf8.h"

using namespace masquerade;

namespace {

using Items = std::vector<std::pair<std::string, std::int64_t>>;

Items pairs(const std::vector<TextReport::Item>& items) {
    Items all;
    for (const auto& [text, count] : items) all.push_back({text, count});
    return all;
}

TextReport report_on(const std::vector<std::string>& lines, const WordPiece& tokenizer, int most = 20) {
    WordCounts words(tokenizer.options());
    words.add(lines, 1);
    return report(words, tokenizer, most);
}

WordPiece small(WordPiece::Options options = {}) {
    return WordPiece(Vocabulary{{"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "##b", "ab", "7", ",",
                                 "中", "##c", "[unused1]"}},
                     options);
}

const std::vector<std::string> lines{"Ab abb, a7 abc", "", "中 x 中文, xx", "x a\u0301b"};

}  // namespace

TEST_CASE("a report counts what there is") {
    TextReport r = report_on(lines, small());
    CHECK(r.lines == 4);
    CHECK(r.bytes == 14 + 0 + 16 + 6);
    // ab | ab ##b | , | [UNK] for a7 | ab ##c || 中 | x | 中 | 文 | , | xx || x | ab
    CHECK(r.words == 13);
    CHECK(r.different_words == 9);
    CHECK(r.tokens == 15);
    CHECK(r.characters == 2 + 3 + 1 + 2 + 3 + 1 + 1 + 1 + 1 + 1 + 2 + 1 + 2);
    CHECK(r.covered_characters == r.characters - 5);  // x, x, x, x, 文; c is covered by ##c
    CHECK(r.letter_words == 10);                      // all but "," twice and a7
    CHECK(r.letter_tokens == 12);
    CHECK(r.whole_words == 6);
    CHECK(r.unknown_words == 5);
    CHECK(r.vocabulary == 8);
    CHECK(r.used == 5);
    CHECK(pairs(r.unknown) == Items{{"x", 2}, {"a7", 1}, {"xx", 1}, {"文", 1}});
    CHECK(pairs(r.uncovered) == Items{{"x", 4}, {"文", 1}});
    CHECK(r.tokens_per_word() == doctest::Approx(15.0 / 13));
    CHECK(r.tokens_per_letter_word() == doctest::Approx(12.0 / 10));
    CHECK(r.tokens_per_line() == doctest::Approx(15.0 / 4));
    CHECK(r.bytes_per_token() == doctest::Approx(36.0 / 15));
    CHECK(r.whole_share() == doctest::Approx(6.0 / 13));
    CHECK(r.unknown_share() == doctest::Approx(5.0 / 13));
    CHECK(r.coverage() == doctest::Approx(16.0 / 21));
    CHECK(r.used_share() == doctest::Approx(5.0 / 8));
    CHECK(pairs(report_on(lines, small(), 1).unknown) == Items{{"x", 2}});
    CHECK(pairs(report_on(lines, small(), 0).unknown).empty());
}

TEST_CASE("a report of the characters that are unknown") {
    WordPiece::Options options;
    options.unknown = Unknown::character;
    TextReport r = report_on(lines, small(options));
    CHECK(r.tokens == 15 + 1 + 1);  // a7 is a [UNK], xx is [UNK] twice
    CHECK(r.unknown_words == 5);
}

TEST_CASE("a report's tokens are those of encoding, under any options") {
    // Random characters, of ASCII, of those that are changed, and of all of Unicode.
    std::uint64_t state = 3;
    auto draw = [&](std::uint64_t below) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        return (state >> 33) % below;
    };
    const char32_t odd[] = {0x0,    0xB,    0x85,    0xA0,    0xAD,    0x300,  0x301,  0x345,  0x37E,
                            0x3A3,  0x3C2,  0x130,   0x1FEF,  0x200D,  0x2028, 0x2260, 0x3000, 0x302E,
                            0x1B44, 0xAC01, 0xF900,  0xFE0F,  0xFFFD,  0xE000, 0x4E2D, 0x2014, 0x0B57,
                            0x1734, 0x166D, 0x2B820, 0x2F800, 0x1F3FB, 0x1D165};
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
    for (int bits = 0; bits < 128; bits++) {
        CAPTURE(bits);
        WordPiece::Options options;
        options.lower = bits & 1;
        if (bits & 2) options.strip_accents = !options.lower;
        options.clean = bits & 4;
        options.split_ideographs = bits & 8;
        options.single_digits = bits & 16;
        options.rules = bits & 32 ? Rules::hugging_face : Rules::google;
        options.unknown = bits & 64 ? Unknown::character : Unknown::word;
        if (bits % 3 == 0) options.replace = {{U'a', U"b"}, {U'b', U"a\u0301. "}, {U'c', U""}};
        options.max_word = bits % 5 == 0 ? 3 : 200;
        TrainerOptions training{static_cast<NormaliseOptions>(options)};
        training.min_count = 3;
        WordPiece tokenizer(train_vocabulary(text, 600, training), options);
        TextReport r = report_on(text, tokenizer);
        std::vector<int> ids;
        Encoder encoder(tokenizer);
        for (const std::string& line : text) encoder.append(line, ids);
        CHECK(r.tokens == std::int64_t(ids.size()));
        std::int64_t unknown = std::count(ids.begin(), ids.end(), tokenizer.vocabulary().unk());
        if (options.unknown == Unknown::word) CHECK(r.unknown_words == unknown);
        std::sort(ids.begin(), ids.end());
        std::int64_t used = std::unique(ids.begin(), ids.end()) - ids.begin();
        CHECK(r.used == used - (unknown > 0));
    }
}

TEST_CASE("special tokens written in the text are text") {
    WordPiece::Options options;
    options.recognise_special = true;
    TextReport r = report_on({"[MASK] a"}, small(options));
    CHECK(r.words == 4);
    CHECK(r.tokens == 4);
    CHECK(r.unknown_words == 3);
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
    for (int n = 0; n < 1234; n++) words.add(odd, 1);
    std::string out = format(report(words, small(options), 100));
    REQUIRE(!out.empty());
    CHECK(out.back() == '\n');
    for (std::size_t begin = 0, end; begin < out.size(); begin = end + 1) {
        end = out.find('\n', begin);
        int columns = 0;
        for (std::size_t i = begin; i < end;) {
            CodePoint c = decode_utf8(out, i);
            REQUIRE(c.length > 0);
            columns += c.value < 0x1100 || c.value == U'…' ? 1 : 2;
            i += std::size_t(c.length);
        }
        CHECK(columns <= 80);
        if (end > begin) CHECK(out[end - 1] != ' ');
    }
    auto has = [&](const char* part) { return out.find(part) != std::string::npos; };
    CHECK(has("112,294"));           // lines
    CHECK(has("18,510  U+6587 文"));  // a character
    CHECK(has(" 3,702  U+0301\n"));  // a mark alone, or at the start of a word
    CHECK(has(" 1,234  qU+200Dq\n"));    // what joins the two cannot be seen
    CHECK(has(" 1,234  word9zzzzzzzzzzzzzzzzzzz…\n"));
    CHECK(!has("\u0007"));
    CHECK(has("words with [UNK]"));
    CHECK(format(TextReport()).find("nan") == std::string::npos);
}

TEST_CASE("a printed report") {
    CHECK(format(report_on(lines, small())) == std::string(R"(
lines                                       4
words                                      13   9 different
tokens                                     15
characters                                 21   without white space
bytes                                      36
tokens per word                         1.154   1.200 for words of letters
tokens per line                          3.75
bytes per token                          2.40
words of one token                    46.15 %
words with [UNK]                      38.46 %   5 words
characters covered                    76.19 %   all but 5
vocabulary used                       62.50 %   5 of 8 tokens

words with [UNK], the most frequent first:
           2  x
           1  a7
           1  xx
           1  文

characters that are not covered:
           4  U+0078 x
           1  U+6587 文
)")
                                                   .substr(1));
}
