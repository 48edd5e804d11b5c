// SPDX-License-Identifier: MIT
// Compares masks in words with rules for pairs of tokens, and tests that wrong words are refused.
#include <doctest/doctest.h>

#include "engine/base/error.h"
#include "engine/base/random.h"
#include "engine/ops/visible.h"
#include "models/masks/words.h"

#include <algorithm>
#include <cstdlib>
#include <tuple>

using namespace masquerade;

namespace {

// A token of a document with n tokens in A and m in B: whether it is in B, and its place in its part.
struct Token {
    bool b;
    int place, n, m;
};

// Checks for every pair of tokens in random documents that the graph shows the key to the query exactly once if sees()
// is true for the pair, and otherwise never.
template <class F>
void expect(const std::string& words, F sees) {
    CAPTURE(words);
    Sequence random(3, "words");
    const MaskWords mask(words);
    for (int round = 0; round < 20; round++) {
        Documents documents;
        std::vector<std::pair<int, Token>> tokens;  // with the number of their document
        for (int d = 0; d < 3; d++) {
            const int n = int(random.below(6)), m = int(random.below(6));
            documents.push_back({n, m});
            for (int i = 0; i < n + m; i++) tokens.push_back({d, {i >= n, i >= n ? i - n : i, n, m}});
        }
        const SegmentGraph graph = mask(documents);
        REQUIRE(graph.documents == 3);
        for (int i = 0; i < int(tokens.size()); i++)
            for (int j = 0; j < int(tokens.size()); j++) {
                int times = 0, rows = 0;
                for (const QuerySegment& q : graph.queries) {
                    if (i < q.begin || i >= q.end) continue;
                    rows++;
                    CHECK(q.document == tokens[std::size_t(i)].first);
                    for (int v = q.sees_begin; v < q.sees_end; v++) {
                        const KeySegment& key = graph.keys[std::size_t(graph.sees[std::size_t(v)])];
                        if (j >= key.begin && j < key.end) times += visible(graph, q, i, graph.sees[std::size_t(v)], j);
                    }
                }
                CAPTURE(i);
                CAPTURE(j);
                REQUIRE(rows == 1);
                const auto& [document, from] = tokens[std::size_t(i)];
                const auto& [other, to] = tokens[std::size_t(j)];
                REQUIRE(times == int(document == other && sees(from, to)));
            }
    }
}

template <class F>
void refused(const char* why, F f) {
    CHECK_THROWS_WITH_AS(f(), doctest::Contains(why), BadUsage);
}

int far(const Token& i, const Token& j) { return std::abs(i.place - j.place); }

}  // namespace

TEST_CASE("mask in words: what each rule, slice and window lets a token see") {
    expect("AB strict-causal", [](Token i, Token j) { return (j.b ? j.n : 0) + j.place < (i.b ? i.n : 0) + i.place; });
    expect("A full; B none sees A", [](Token i, Token j) { return !j.b || (!i.b && !j.b); });
    expect("A anticausal sees B[0]; B anticausal sees A[-1]", [](Token i, Token j) {
        return i.b == j.b ? j.place >= i.place : i.b ? j.place == j.n - 1 : j.place == 0;
    });
    expect("A causal sees B[1:]; B strict-causal sees A[1:-1], A[0]", [](Token i, Token j) {
        if (i.b == j.b) return i.b ? j.place < i.place : j.place <= i.place;
        return i.b ? j.place == 0 || (j.place >= 1 && j.place < j.n - 1) : j.place >= 1;
    });
    expect("B full sees A[:2]; A none sees B[-2]", [](Token i, Token j) {
        if (i.b == j.b) return i.b;
        return i.b ? j.place < 2 : j.place == j.m - 2;
    });
    expect("A full window=2 dilation=2; B causal window=1 stride=3 globals=1 sees A", [](Token i, Token j) {
        if (i.b != j.b) return i.b;
        if (!i.b) return far(i, j) <= 4 && far(i, j) % 2 == 0;
        return j.place <= i.place && (far(i, j) <= 1 || far(i, j) % 3 == 0 || i.place == 0 || j.place == 0);
    });
    expect("A full window=1 globals=1 sees B[1:3]; B causal window=1 sees A[:3], A[1], A[-1]", [](Token i, Token j) {
        if (i.b != j.b) return i.b ? j.place < 3 || j.place == j.n - 1 : j.place == 1 || j.place == 2;
        return i.b ? j.place <= i.place && far(i, j) <= 1 : far(i, j) <= 1 || i.place == 0 || j.place == 0;
    });
    expect("A full window=32768 dilation=32768 sees B; B causal window=999999 dilation=2", [](Token i, Token j) {
        if (i.b != j.b) return !i.b;
        return i.b ? j.place <= i.place && far(i, j) % 2 == 0 : j.place == i.place;
    });
}

TEST_CASE("mask in words: a table says which rows see which, of shorter documents its corner") {
    const std::vector<std::string> table = {"10110", "01001", "11010", "00111", "10001"};
    const auto bit = [&](int i, int j) { return table[std::size_t(i)][std::size_t(j)] == '1'; };
    expect("A rows=10110/01001/11010/00111/10001; B causal sees A[0]", [&](Token i, Token j) {
        if (i.b != j.b) return i.b && j.place == 0;
        return i.b ? j.place <= i.place : bit(i.place, j.place);
    });
    expect("A causal; B rows=10110/01001/11010/00111/10001 sees A", [&](Token i, Token j) {
        if (i.b != j.b) return i.b;
        return i.b ? bit(i.place, j.place) : j.place <= i.place;
    });
    std::vector<std::vector<bool>> sees(5, std::vector<bool>(5));
    for (int i = 0; i < 5; i++)
        for (int j = 0; j < 5; j++) sees[std::size_t(i)][std::size_t(j)] = bit(i, j);
    CHECK(words_of_table(sees) == "AB rows=10110/01001/11010/00111/10001");
    CHECK(seen_cells(words_of_table(sees), 3, 2) == sees);
    refused("5 rows and 4 columns", [&] { sees[2].pop_back(), words_of_table(sees); });
    refused("without rows", [] { words_of_table({}); });

    const MaskWords mask("AB rows=10/11");
    refused("3 rows of part AB, but the table rows= has 2", [&] { mask({{2, 1}}); });
    const SegmentGraph padded = mask({{1, 1}, {3, 0}}, 1);  // the last document is padding
    REQUIRE(padded.queries.size() == 2);
    const QuerySegment& inert = padded.queries[1];
    const int key = padded.sees[std::size_t(inert.sees_begin)];
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) CHECK(visible(padded, inert, 2 + i, key, 2 + j) == (i < 2 && j <= i));
    refused("see later rows", [] { MaskWords("AB rows=10/11").written(1, true); });
}

TEST_CASE("mask in words: a slice that ends before it begins is empty") {
    for (int source = 0; source < 6; source++) {
        const MaskWords::Written slice = MaskWords("A full; B causal sees A[2:-2]").written(source, false);
        CHECK(slice.to - slice.from == std::max(0, source - 4));
    }
}

TEST_CASE("mask in words: as cross-attention, rows of B see what the words say of A") {
    const Documents documents = {{4, 2}, {0, 3}, {1, 1}, {5, 0}, {3, 2}};
    for (const auto& [words, from, to] :
         {std::tuple("B causal sees A", 0, 9), std::tuple("A none; B causal window=1 sees A[1:3]", 1, 3),
          std::tuple("A causal; B full", 0, 0)}) {
        const SegmentGraph graph = MaskWords(words).cross(documents);
        std::vector<std::vector<int>> expected, found;
        int key = 0, row = 0;
        for (const Document& d : documents) {
            for (int t = 0; t < d.target; t++) {
                expected.emplace_back();
                for (int j = from; j < std::min(to, d.source); j++) expected.back().push_back(key + j);
            }
            key += d.source;
        }
        for (const QuerySegment& q : graph.queries)
            for (; row < q.end; row++) {
                found.emplace_back();
                for (int v = q.sees_begin; v < q.sees_end; v++)
                    each_run(graph, q, row, graph.sees[std::size_t(v)], [&](int begin, int end) {
                        for (int j = begin; j < end; j++) found.back().push_back(j);
                    });
            }
        CHECK(found == expected);
    }
}

TEST_CASE("mask in words: two stacks heed their own part, and refuse what they cannot be") {
    const std::string words = "A full window=1; B causal sees A | layers 0:1: A causal | layers 1: B causal sees A[0]";
    const LayerMasks encoder(words, 3, StackRows::encoder), decoder(words, 2, StackRows::decoder);
    CHECK(encoder.of_layers() == std::vector<int>{1, 0, 0});
    CHECK(decoder.of_layers() == std::vector<int>{0, 1});
    CHECK(LayerMasks("A causal", 2, StackRows::decoder).of_layers() == std::vector<int>{-1, -1});
    for (const auto& [range, layers] : {std::pair("-1:", std::vector<int>{-1, -1, 0}),
                                        {":2", {0, 0, -1}},
                                        {":-1:", {0, 0, -1}},
                                        {"-16:32", {0, 0, 0}},
                                        {"2:1", {-1, -1, -1}}})
        CHECK(LayerMasks(text("layers ", range, " A causal"), 3).of_layers() == layers);
    for (const auto& [wrong, why] : {std::pair("AB full", "not AB"), std::pair("A full sees B; B causal", "A sees B"),
                                     std::pair("A full; B causal window=2 over=all sees A", "over its own rows alone")})
        refused(why, [&, text = wrong] { LayerMasks(text, 2, StackRows::encoder); });
}

TEST_CASE("mask in words: a range of layers that no stack has is refused") {
    const std::string words = "A full | layers 2:4: A causal | layers -1:: A none";
    expect_layers("mask", "", {2});
    expect_layers("mask", words, {3});
    expect_layers("mask", words, {2, 3});
    expect_layers("mask", words, {3, 2});
    for (const std::vector<int>& layers : {std::vector<int>{2}, {1, 2}})
        CHECK_THROWS_WITH_AS(expect_layers("mask", words, layers),
                             ("mask \"" + words + "\": \"layers 2:4\" names no layer; the layers are 0 to 1").c_str(),
                             BadUsage);
}

TEST_CASE("mask in words: a word that says nothing is refused by its name") {
    const std::pair<const char*, const char*> wrong[] = {
        {"", "expected parts"},
        {"A full;;B causal", "\"\" is no part"},
        {"C full", "\"C\" is no part"},
        {"A", "\"\" is no rule"},
        {"A ful", "\"ful\" is no rule; expected full, causal"},
        {"A full; A causal", "each once"},
        {"AB full; B causal", "each once"},
        {"B causal; AB full", "each once"},
        {"A full; B causal sees", "nothing follows \"sees\""},
        {"A full; B causal sees B", "\"B\" is not of the other part"},
        {"AB full sees A", "\"A\" is not of the other part"},
        {"AB full sees -", "\"-\" is not of the other part"},
        {"AB full sees -[0]", "\"-[0]\" is not of the other part"},
        {"A full; B causal sees A[", "is no slice"},
        {"A full; B causal sees A[]", "\"\" is no place"},
        {"A full; B causal sees A[x]", "\"x\" is no place"},
        {"A full; B causal sees A[1:y]", "\"y\" is no place"},
        {"A full; B causal see A", "\"see\" is neither"},
        {"A full window=-1", "\"-1\" is no number for window"},
        {"A full dilation=0", "\"0\" is no number for dilation"},
        {"A full window=", "\"\" is no number for window"},
        {"A full; B causal sees A[-99999999999999999999]", "\"-99999999999999999999\" is no place"},
        {"A full; B causal sees A[-9223372036854775808:]", "\"-9223372036854775808\" is no place"},
        {"A full; B causal sees A[4294967296]", "\"4294967296\" is no place"},
        {"A full; B causal sees A[1000000]", "\"1000000\" is no place"},
        {"A full; B causal sees A[0x1]", "\"0x1\" is no place"},
        {"A full window=1000000", "\"1000000\" is no number for window"},
        {"A full window=4294967297", "\"4294967297\" is no number for window"},
        {"A full window=50000 dilation=50000", "reaches 2500000000 rows to either side; expected at most 1073741824"},
        {"A full dilation=999999 window=999999", "window=999999 dilation=999999 reaches 999998000001 rows"},
        {"A causal window 3", "\"window\" has no number; expected window=3"},
        {"A causal dilation", "\"dilation\" has no number; expected dilation=N"},
        {"A causal stride=3", "\"stride=3\" has no effect without window=; add window=N"},
        {"A rows=", "\"rows=\" has no rows"},
        {"A rows=10", "\"rows=\" has 1 rows, and one of them is \"10\"; expected 1 digits"},
        {"A rows=10/1", "one of them is \"1\"; expected 2 digits"},
        {"A rows=10/1x", "one of them is \"1x\"; expected 2 digits"},
        {"A full; B causal over=all sees A", "\"over=all\" has no effect without window="},
    };
    for (const auto& [given, why] : wrong) {
        const char* words = given;
        CAPTURE(words);
        CHECK_THROWS_WITH_AS(MaskWords{words}, doctest::Contains(why), BadUsage);
    }
    CHECK_THROWS_WITH_AS(MaskWords("A full")({{3, 2}}), doctest::Contains("2 rows of part B, which is not named"),
                         BadUsage);
    CHECK_NOTHROW(MaskWords("A full")({{3, 0}}));
}
