// SPDX-License-Identifier: MIT
#include "tokenizer/batch.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <string>

#include "doctest/doctest.h"
#include "tokenizer/threads.h"

using namespace masquerade;

namespace {

const std::vector<std::string> tokens = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a",  "b",   "c",
                                         "##a",   "##b",   "##c",   "rain",  "wind",   "s",  "##s", ".",
                                         ",",     "中",    "文",    "e",     "ж",      "##ж"};

WordPiece tokenizer() { return WordPiece{Vocabulary(tokens)}; }

std::string show(const PackedBatch& batch) {
    std::string text;
    for (int b = 0; b < batch.size(); b++) {
        if (b > 0) text += " / ";
        for (int i = batch.starts[std::size_t(b)]; i < batch.starts[std::size_t(b) + 1]; i++) {
            text += text.empty() || text.back() == ' ' ? "" : " ";
            text += tokens[std::size_t(batch.ids[std::size_t(i)])];
            if (batch.types[std::size_t(i)] == 1) text += '\'';
        }
    }
    return text;
}

// Lines of words, most of them known, some very long, some empty.
std::vector<std::string> random_lines(std::size_t count, std::uint64_t seed) {
    std::vector<std::string> lines(count);
    auto below = [&](std::uint64_t n) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        return (seed >> 33) % n;
    };
    const char* pieces[] = {"rain", "winds", "a",  "bc", " ",  " ", " ",   ".",
                            ", ",   "中",    "文", "é",  "жж", "z", "\xFF"};
    for (std::string& line : lines)
        for (std::uint64_t n = below(20) == 0 ? 0 : below(20) == 0 ? 3000 : below(30); n > 0; n--)
            line += pieces[below(15)];
    return lines;
}

void check_equal(const PackedBatch& x, const PackedBatch& y) {
    CHECK(x.ids == y.ids);
    CHECK(x.types == y.types);
    CHECK(x.starts == y.starts);
    auto same = [](const Piece& p, const Piece& q) {
        return p.id == q.id && p.begin == q.begin && p.end == q.end && p.word == q.word;
    };
    CHECK(std::equal(x.pieces.begin(), x.pieces.end(), y.pieces.begin(), y.pieces.end(), same));
}

}  // namespace

TEST_CASE("batch: sequences one after another, with types") {
    WordPiece t = tokenizer();
    std::vector<std::string> lines = {"Rains.", "", "中文", "Wind"};
    CHECK(show(encode_batch(t, lines)) ==
          "[CLS] rain ##s . [SEP] / [CLS] [SEP] / [CLS] 中 文 [SEP] / [CLS] wind [SEP]");
    Frame bare;
    bare.special = false;
    PackedBatch batch = encode_batch(t, lines, bare);
    CHECK(show(batch) == "rain ##s . /  / 中 文 / wind");
    CHECK(batch.starts == std::vector<int>{0, 3, 3, 5, 6});
    CHECK(batch.positions() == std::vector<int>{0, 1, 2, 0, 1, 0});
    CHECK(encode_batch(t, std::vector<std::string>{}).starts == std::vector<int>{0});
    CHECK(encode_batch(t, std::vector<std::string>{}, {}, 4).size() == 0);
    CHECK(encode_batch(t, std::vector<const char*>{"a"}, {}, 0).ids == std::vector<int>{2, 5, 3});
}

TEST_CASE("batch: pairs") {
    WordPiece t = tokenizer();
    std::vector<std::string> sources = {"rain a", "a", ""};
    std::vector<std::string_view> targets = {"wind", "", ""};
    CHECK(show(encode_pairs(t, sources, targets)) ==
          "[CLS] rain a [SEP] wind' [SEP]' / [CLS] a [SEP] [SEP]' / [CLS] [SEP] [SEP]'");
    Frame frame;
    frame.max_length = 4;
    CHECK(show(encode_pairs(t, sources, targets, frame)) ==
          "[CLS] rain [SEP] [SEP]' / [CLS] a [SEP] [SEP]' / [CLS] [SEP] [SEP]'");
    frame.special = false;
    frame.max_length = 2;
    frame.cut_left = true;
    CHECK(show(encode_pairs(t, sources, targets, frame)) == "a wind' / a / ");
    targets.pop_back();
    CHECK_THROWS_WITH_AS(encode_pairs(t, sources, targets), doctest::Contains("3 texts with 2"),
                         TokenizerError);

    // One text and a pair go the same way.
    auto mixed = [&](std::size_t i) { return i == 0 ? Input{"a b", {}} : Input{"a", "b"}; };
    CHECK(show(encode_batch(t, 2, mixed)) == "[CLS] a b [SEP] / [CLS] a [SEP] b' [SEP]'");
}

TEST_CASE("batch: the rules of the tokenizer cut pairs") {
    std::vector<std::string> first = {"a a a"}, second = {"b b b"};
    Frame frame;
    frame.max_length = 6;
    WordPiece::Options options;
    CHECK(show(encode_pairs(WordPiece(Vocabulary(tokens), options), first, second, frame)) ==
          "[CLS] a a [SEP] b' [SEP]'");
    options.rules = Rules::hugging_face;
    CHECK(show(encode_pairs(WordPiece(Vocabulary(tokens), options), first, second, frame)) ==
          "[CLS] a [SEP] b' b' [SEP]'");
}

TEST_CASE("batch: pieces say where tokens come from, also what is cut") {
    std::vector<std::string> first = {"Rains e\u0301. a"}, second = {"中 winds"};
    Frame frame;
    frame.with_pieces = true;
    frame.max_length = 8;
    frame.cut_left = true;
    PackedBatch batch = encode_pairs(tokenizer(), first, second, frame);
    CHECK(show(batch) == "[CLS] e . a [SEP] wind' ##s' [SEP]'");
    std::string found;
    for (std::size_t i = 0; i < batch.ids.size(); i++) {
        const Piece& piece = batch.pieces[i];
        CHECK(piece.id == batch.ids[i]);
        const std::string& line = batch.types[i] == 0 ? first[0] : second[0];
        found += line.substr(std::size_t(piece.begin), std::size_t(piece.end - piece.begin)) + "@" +
                 std::to_string(piece.word) + " ";
    }
    CHECK(found == "@-1 e\u0301@1 .@2 a@3 @-1 wind@1 s@1 @-1 ");
}

TEST_CASE("batch: the same for any number of threads, and as one by one") {
    WordPiece t = tokenizer();
    std::vector<std::string> first = random_lines(1500, 1), second = random_lines(1500, 2);
    std::vector<int> ids, starts{0};
    for (const std::string& line : first) {
        ids.push_back(2);
        for (int id : t.encode(line)) ids.push_back(id);
        ids.push_back(3);
        starts.push_back(int(ids.size()));
    }
    std::size_t bytes = 0;
    for (const std::string& line : first) bytes += line.size();
    REQUIRE(bytes > 5 << 16);  // several chunks
    for (bool with_pieces : {false, true}) {
        Frame frame;
        frame.with_pieces = with_pieces;
        for (int threads : {1, 2, 3, 7, 64, 0}) {
            PackedBatch batch = encode_batch(t, first, frame, threads);
            CHECK(batch.ids == ids);
            CHECK(batch.starts == starts);
            CHECK(batch.types == std::vector<int>(ids.size(), 0));
        }
        frame.max_length = 20;
        PackedBatch cut = encode_batch(t, first, frame, 1);
        check_equal(cut, encode_batch(t, first, frame, 2));
        check_equal(cut, encode_batch(t, first, frame, 5));
        PackedBatch pairs = encode_pairs(t, first, second, frame, 1);
        check_equal(pairs, encode_pairs(t, first, second, frame, 2));
        check_equal(pairs, encode_pairs(t, first, second, frame, 5));
    }
}

TEST_CASE("batch: the first wrong input is named, whatever the threads") {
    WordPiece t = tokenizer();
    std::vector<std::string> lines(3000, std::string(300, ' ') + "a");
    std::vector<std::string> seconds(lines.size());
    seconds[1234] = seconds[2000] = seconds[700] = "a b c";
    Frame frame;
    frame.max_length = 5;
    frame.truncation = Truncation::only_first;
    for (int threads : {1, 2, 4})
        for (int repeat = 0; repeat < 5; repeat++)
            CHECK_THROWS_WITH_AS(encode_pairs(t, lines, seconds, frame, threads),
                                 doctest::Contains("input 701: cannot truncate 1 and 3 tokens"), TokenizerError);
    WordPiece bare(Vocabulary({"[UNK]", "a"}));
    CHECK_THROWS_WITH_AS(encode_batch(bare, lines), doctest::Contains("[CLS]"), TokenizerError);
    frame = {};
    frame.special = false;
    CHECK(encode_batch(bare, lines, frame, 2).ids.size() == 3000);
}

TEST_CASE("batch: what an input's function throws reaches the caller") {
    auto input = [](std::size_t i) -> Input {
        if (i == 5) throw std::length_error("five");
        return {"a", {}};
    };
    CHECK_THROWS_WITH_AS(encode_batch(tokenizer(), 10, input, {}, 2), "five", std::length_error);
}

TEST_CASE("threads: every item once, the lowest error") {
    for (int threads : {1, 2, 8}) {
        std::vector<int> seen(1000);
        std::atomic<int> workers{0};
        share_out(threads, seen.size(), [&] {
            workers++;
            return [&](std::size_t i) { seen[i]++; };
        });
        CHECK(seen == std::vector<int>(1000, 1));
        CHECK(workers == threads);
        for (int repeat = 0; repeat < 50; repeat++) {
            auto failing = [&] {
                return [&](std::size_t i) {
                    if (i >= 20 && i % 3 == 2) throw TokenizerError(std::to_string(i));
                };
            };
            CHECK_THROWS_WITH_AS(share_out(threads, seen.size(), failing), "20", TokenizerError);
        }
    }
    auto none = [](std::size_t) { FAIL("no work"); };
    share_out(4, 0, [&] { return none; });
    auto broken = [&]() -> decltype(none) { throw TokenizerError("no worker"); };
    CHECK_THROWS_WITH_AS(share_out(3, 10, broken), "no worker", TokenizerError);
}

TEST_CASE("code points of pieces") {
    std::string line =
        "\xFF"
        "éa 中\xE4\xB8 e\u0301\u0301 𝔘a";
    std::vector<Piece> pieces = tokenizer().encode_pieces(line), bytes = pieces;
    to_code_points(line, pieces);
    std::u32string points = U"éa 中 e\u0301\u0301 𝔘a";  // as Python decodes it, errors ignored
    std::vector<std::u32string> found;
    for (const Piece& piece : pieces)
        found.push_back(points.substr(std::size_t(piece.begin), std::size_t(piece.end - piece.begin)));
    CHECK(found == std::vector<std::u32string>{U"é", U"a", U"中", U"e\u0301\u0301", U"𝔘a"});

    std::vector<Piece> special = {
        {2, 0, 0, -1}, bytes[2], {3, 0, 0, -1}, bytes[0], bytes[4]};  // in any order
    to_code_points(line, special);
    CHECK(special[0].end == 0);
    CHECK(special[1].begin == 3);
    CHECK(special[1].end == 4);
    CHECK(special[3].begin == 0);
    CHECK(special[3].end == 1);
    CHECK(special[4].begin == pieces[4].begin);
    CHECK(special[4].end == int(points.size()));
}
