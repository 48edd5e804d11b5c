// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cstdint>
#include <set>

#include "doctest/doctest.h"
#include "input/utf8.h"
#include "tokenizer/canonical.h"
#include "tokenizer/wordpiece.h"

using namespace masquerade;

namespace {

// Lines that decoding must restore exactly.
const std::vector<std::string> restored = {
    "hello, world! how are you?",
    "it's the students' room, don't you think; they'll say \"yes\" (or \"no\").",
    "pi is 3.14, at 10:30 on may 1, 1955 for $1,000.50 or 50%",
    "a well-known e-mail, and/or a list: [one], {two}; mail me@home.org #1",
    "at 9 a.m. the u.s. team won... this'll do at 5 o'clock",
    "“quoted” text — no, “really”… ‘single’, and it’s",
    "you can say 'please' in german, or `eager'",
    "„guten tag“, sagte er, nachmittags geht’s",
    "price € 5 😀 fine",
    // Versions, names, paths, addresses.
    "python 3 needs c++, gtk+ 3.0",
    "node.js 18.2.1 and main()",
    "www.debian.org, https://x.org/a/b/ for more, to/from a/b",
    "foo::bar of snake_case with key=value, p < 5",
    "r & b, this & that, `code`, *",
    // Hyphens and dashes.
    "post-war, a python-based 64-bit do-it-yourself x86-64 thing",
    "parser library - development files",
    "tools for utf-8 - documentation",
    "a -- b, 1939–45",
    // Chinese.
    "你好，世界！今天是2024年5月1日。",
    "他说：“中文abc混排，3.14%。”",
    "方法:取水样(n=12),以p<0.05为界.结果:a组高于b组",
    "コーヒー と紅茶",
    "안녕 세계",
};

// Characters for random lines: many of them are punctuation, and one is an ideograph only by the rules of google.
const std::u32string pool = U"aabbcsstxio0159.,:;!?'\"`-–—/\\()[]{}<>=+*&^%$#@~|_    中时天小，。（）カ가😀“”\U0002B8B0";

// Returns a vocabulary with every character of the lines and of the pool: alone, and as a continuation ("##").
Vocabulary of_characters(std::vector<std::string> lines, const WordPiece::Options& options,
                         const std::vector<std::string>& more = {}) {
    std::set<std::string> characters;
    Characters table(options);
    std::string of_pool;
    for (char32_t c : pool) append_utf8(of_pool, c);
    lines.push_back(of_pool);
    for (const std::string& line : lines)
        for (Words word(line, table); word.next();)
            for (std::size_t i = 0; i < word.text().size();) {
                std::size_t length = decode_utf8(word.text(), i).length;
                characters.insert(word.text().substr(i, length));
                i += length;
            }
    std::vector<std::string> tokens(special_tokens, special_tokens + 5);
    for (const std::string& c : characters) {
        tokens.push_back(c);
        tokens.push_back("##" + c);
    }
    tokens.insert(tokens.end(), more.begin(), more.end());
    return Vocabulary(tokens);
}

WordPiece make(WordPiece::Options options = {}) { return WordPiece(of_characters(restored, options), options); }

std::string round(const WordPiece& tokenizer, const std::string& line) {
    std::vector<int> ids = tokenizer.encode(line);
    CAPTURE(line);
    REQUIRE(std::count(ids.begin(), ids.end(), tokenizer.vocabulary().unk()) == 0);
    CHECK(tokenizer.encode(tokenizer.decode(ids)) == ids);
    return tokenizer.decode(ids);
}

struct Random {
    std::uint64_t state;
    std::size_t below(std::size_t n) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        return std::size_t(state >> 33) % n;
    }
};

// Returns a random line of characters and white space, with many punctuation characters.
std::string random_line(Random& random, const std::vector<std::string>& extra = {}) {
    std::string line;
    for (std::size_t n = 1 + random.below(25); n > 0; n--) {
        append_utf8(line, pool[random.below(pool.size())]);
        if (!extra.empty() && random.below(6) == 0) line += extra[random.below(extra.size())];
    }
    return line;
}

}  // namespace

TEST_CASE("decoding restores what a writer would write") {
    WordPiece::Options cased;
    cased.lower = false;
    WordPiece tokenizer = make(cased);
    for (const std::string& line : restored) CHECK(round(tokenizer, line) == line);
    CHECK(round(tokenizer, "  hello ,world !  ") == "hello, world!");
    CHECK(round(tokenizer, "( a+ + ) , 1 , 000 or may 1,1955") == "(a++), 1,000 or may 1, 1955");
    CHECK(round(tokenizer, "") == "");
    CHECK(tokenizer.decode({}) == "");
}

namespace {

struct Script {
    const char *language, *text;  // text: in NFC, which lower-case encoding does not change
};
const Script scripts[] = {{"Korean", "한글 문장을 씁니다. 값이, 없다"},
                          {"Tamil", "கொடு போ கௌ"},
                          {"Bengali", "লোক মৌমাছি"},
                          {"Malayalam", "കൊടി തോട"},
                          {"Oriya", "କୋ କୌ"},
                          {"Sinhala", "කො"},
                          {"Balinese", "ᬆ ᬈ"},
                          {"Grantha", "𑍋 𑍌"},
                          {"Tirhuta", "𑒼"},
                          {"English", "plain words"},
                          {"Russian", "простои текст"},
                          {"Japanese", "カタカナ と漢字"}};

std::vector<std::string> script_lines() {
    std::vector<std::string> lines;
    for (const Script& script : scripts) lines.push_back(script.text);
    return lines;
}

}  // namespace

TEST_CASE("decoding: what encoding decomposed is composed again, in every script, by either rules") {
    for (Rules rules : {Rules::google, Rules::hugging_face}) {
        WordPiece::Options options;
        options.rules = rules;
        const WordPiece tokenizer(of_characters(script_lines(), options), options);
        for (const Script& script : scripts) {
            CAPTURE(std::string(script.language));
            const std::vector<int> ids = tokenizer.encode(script.text);
            REQUIRE(std::count(ids.begin(), ids.end(), tokenizer.vocabulary().unk()) == 0);
            const std::string text = tokenizer.decode(ids);
            CHECK(tokenizer.encode(text) == ids);
            CHECK(text == script.text);
            CHECK(tokenizer.spelled(text, tokenizer.encode_pieces(text)) == text);
        }
    }
    const WordPiece tokenizer(of_characters(script_lines(), {}), {});
    CHECK(round(tokenizer, "한글 문장을 씁니다.") == "한글 문장을 씁니다.");
    CHECK(round(tokenizer, "கொடு") == "கொடு");
    // Also decodes pieces that encoding never gives: after [UNK], and without the beginning of a word.
    const Vocabulary& v = tokenizer.vocabulary();
    std::vector<int> ids = {v.unk(), v.id("##ᄀ"), v.id("##ᅳ"), v.id("##ᆯ")};
    CHECK(tokenizer.decode(ids) == "[UNK]글");
    ids.erase(ids.begin());
    CHECK(tokenizer.decode(ids) == "##글");
}

TEST_CASE("decoding: text that encoding does not decompose stays as it was written") {
    WordPiece::Options cased;
    cased.lower = false;
    const std::vector<std::string> lines = {"한글",       "\u1112\u1161\u11ab", "caf\u00e9",
                                            "cafe\u0301", "a\u2260b",           "a =\u0338 b"};
    const WordPiece tokenizer(of_characters(lines, cased), cased);
    for (const std::string& line : lines) {
        const std::vector<int> ids = tokenizer.encode(line);
        REQUIRE(std::count(ids.begin(), ids.end(), tokenizer.vocabulary().unk()) == 0);
        CHECK(tokenizer.encode(tokenizer.decode(ids)) == ids);
    }
    for (std::size_t i = 0; i < 5; i++) CHECK(round(tokenizer, lines[i]) == lines[i]);
    // Lower-casing alone does not decompose characters, but stripping alone does.
    cased.strip_accents = true;
    const WordPiece strips(of_characters(lines, cased), cased);
    CHECK(round(strips, lines[1]) == "한");
    // Decoding never makes a character that is replaced in encoding, or a character that is a token.
    WordPiece::Options replaces;
    replaces.replace = {{U'한', "x"}};
    const WordPiece other(of_characters({lines[1], "x"}, {}), replaces);
    CHECK(round(other, lines[1]) == lines[1]);
    Vocabulary with_token = of_characters({lines[1]}, {}, {"한"});
    AddedToken token{"한", with_token.id("한")};
    token.special = false;
    const WordPiece recognises(with_token, {}, {token});
    CHECK(round(recognises, lines[1]) == lines[1]);
    CHECK(round(recognises, "한") == "한");
}

TEST_CASE("decoding: numbers of single digits are put together") {
    WordPiece::Options options;
    options.single_digits = true;
    WordPiece tokenizer = make(options);
    for (std::string line : {"may 1, 1955: $1,000.50", "1939–45 at 10:30"}) CHECK(round(tokenizer, line) == line);
    CHECK(round(tokenizer, "19 39 a1") == "1939 a 1");
    options.recognise_special = true;
    Vocabulary vocabulary({"[UNK]", "1", "2", "12"});
    WordPiece recognising(vocabulary, options, {{"12", 3}});
    CHECK(recognising.decode({1, 2, 1}) == "1 2 1");
}

TEST_CASE("decoding special tokens: [UNK] and [MASK] are words, the others end one and leave no trace") {
    WordPiece tokenizer = make();
    const Vocabulary& v = tokenizer.vocabulary();
    std::vector<int> ids{v.cls()};
    for (int id : tokenizer.encode("hello, ")) ids.push_back(id);
    for (int id : {v.mask(), v.unk(), v.id("##s"), v.sep(), v.id("!"), v.pad()}) ids.push_back(id);
    CHECK(tokenizer.decode(ids) == "hello, [MASK] [UNK]s!");
    CHECK(tokenizer.decode({v.id("##e"), v.id("##r"), v.sep(), v.id("##e")}) == "##er ##e");
    CHECK_THROWS_AS(tokenizer.decode({v.size()}), TokenizerError);
    CHECK_THROWS_AS(tokenizer.decode({-1}), TokenizerError);
}

TEST_CASE("decoding: added tokens that are special are silent, the others words") {
    WordPiece::Options options;
    std::vector<std::string> more{"<s>", "new_thing"};
    Vocabulary vocabulary = of_characters(restored, options, more);
    AddedToken start, thing;
    start.text = more[0];
    start.id = vocabulary.id(more[0]);
    thing.text = more[1];
    thing.id = vocabulary.id(more[1]);
    thing.special = false;
    WordPiece tokenizer(vocabulary, options, {start, thing});
    CHECK(tokenizer.decode({start.id, thing.id, vocabulary.id("."), start.id}) == "new_thing.");
}

TEST_CASE("encoding what was decoded gives the same ids") {
    Random random{3};
    for (int variant = 0; variant < 16; variant++) {
        WordPiece::Options options;
        options.lower = variant & 1;
        options.split_ideographs = !(variant & 2);
        options.single_digits = variant & 8;
        options.rules = variant & 4 ? Rules::hugging_face : Rules::google;
        WordPiece tokenizer = make(options);
        CAPTURE(variant);
        for (const std::string& line : restored) round(tokenizer, line);
        round(tokenizer, "中 文 \U0002B8B0 \U0002B8B0 a");
        for (int n = 0; n < 1500; n++) round(tokenizer, random_line(random));
    }
}

TEST_CASE("encoding what was decoded: no token is found that was not there, and none is lost") {
    WordPiece::Options options;
    options.lower = false;
    options.recognise_special = true;
    std::vector<std::string> more{".ab", "c++", "(s)", "<b>", "中天"};
    Vocabulary vocabulary = of_characters(restored, options, more);
    std::vector<AddedToken> added;
    for (const std::string& text : more) {
        AddedToken token;
        token.text = text;
        token.id = vocabulary.id(text);
        token.special = false;
        token.single_word = text == "<b>";
        token.normalised = text == "c++";
        added.push_back(token);
    }
    WordPiece tokenizer(vocabulary, options, added);
    auto decode = [&](const std::vector<int>& ids) { return tokenizer.decode(ids); };
    CHECK(decode(tokenizer.encode("a( s)")) == "a (s )");
    CHECK(decode(tokenizer.encode("a(s)")) == "a (s)");
    CHECK(decode(tokenizer.encode("中 天")) == "中 天");
    more.push_back("( s)");
    more.push_back(" <b> ");
    Random random{9};
    for (int n = 0; n < 20000; n++) {
        std::vector<int> ids = tokenizer.encode(random_line(random, more));
        CAPTURE(decode(ids));
        CHECK(tokenizer.encode(decode(ids)) == ids);
    }
}

TEST_CASE("encoding what was decoded: added tokens that are not special are found without being asked for") {
    WordPiece::Options options;
    Vocabulary vocabulary = of_characters(restored, options, {"c++"});
    AddedToken token{"c++", vocabulary.id("c++")};
    token.special = false;
    WordPiece tokenizer(vocabulary, options, {token});
    std::vector<int> apart = tokenizer.encode("c + +"), one = tokenizer.encode("c++");
    REQUIRE(one == std::vector<int>{token.id});
    REQUIRE(apart.size() == 3);
    CHECK(tokenizer.encode(tokenizer.decode(apart)) == apart);
    CHECK(tokenizer.encode(tokenizer.decode(one)) == one);
}

TEST_CASE("decoding one word of very many pieces") {
    WordPiece tokenizer = make();
    const Vocabulary& v = tokenizer.vocabulary();
    std::vector<int> ids(300000, v.id("##o"));
    ids.insert(ids.begin(), {v.id("("), v.id("o")});
    ids.push_back(v.id(")"));
    CHECK(tokenizer.decode(ids) == "(" + std::string(300001, 'o') + ")");
}

TEST_CASE("a line is spelled as it is normalised, with its spaces") {
    WordPiece tokenizer = make();
    auto spelled = [&](std::string_view line) { return tokenizer.spelled(line, tokenizer.encode_pieces(line)); };
    CHECK(spelled("  Héllo ,\tworld\u3000! ") == "hello , world !");
    CHECK(spelled("x\u200B你 好") == "x你 好");
    CHECK(spelled("a☂ b") == "[UNK] b");
    CHECK(spelled("it's\xFF\xE3\x80 on") == "it's on");
    CHECK(spelled("") == "");
}

TEST_CASE("a line is read as decoding writes it, whatever the vocabulary knows of it") {
    Random random{5};
    for (int variant = 0; variant < 16; variant++) {
        WordPiece::Options options;
        options.lower = variant & 1;
        options.split_ideographs = !(variant & 2);
        options.single_digits = variant & 8;
        options.rules = variant & 4 ? Rules::hugging_face : Rules::google;
        if (variant == 5) options.replace = {{U'a', "b"}, {U'b', "ac"}};
        const WordPiece all = make(options);
        std::vector<std::string> some(special_tokens, special_tokens + 5);
        for (int id = 5; id < all.vocabulary().size(); id++)
            if (id % 3) some.push_back(all.vocabulary().token(id));
        const WordPiece few(Vocabulary(some), options), none(Vocabulary({"[UNK]"}), options);
        CAPTURE(variant);
        const auto check = [&](const std::string& line) {
            CAPTURE(line);
            const std::string read = all.decode(all.encode(line));
            CHECK(all.reading(line) == read);
            CHECK(few.reading(line) == read);
            CHECK(none.reading(line) == read);
        };
        for (const std::string& line : restored) check(line);
        for (int n = 0; n < 300; n++) check(random_line(random));
    }
    const WordPiece none(Vocabulary({"[UNK]"}), {});
    CHECK(none.reading("Die ÖSTERREICHER grüßen, (sehr) .") == "die osterreicher grußen, (sehr).");
    CHECK(none.reading("Ёлка в Йошкар-Оле") == "елка в иошкар-оле");
    CHECK(none.reading("Ο ΟΔΥΣΣΕΑΣ, Tiếng  Việt") == "ο οδυσσεας, tieng viet");
    CHECK(none.reading("") == "");
}
