// SPDX-License-Identifier: MIT
// Compares the rows of tokens that a new model takes over with rows that are computed by hand.
#include "models/runs/hugging_face/token_choice.h"

#include "doctest/doctest.h"
#include "tests/models/runs/hugging_face.h"
#include "tests/train/files.h"

using namespace masquerade;

namespace {

Strings tokens_of(const Vocabulary& v) {
    Strings tokens;
    for (int id = 0; id < v.size(); id++) tokens.push_back(v.token(id));
    return tokens;
}

std::vector<double> chosen(const TokenChoice& choice, const std::vector<double>& from, int rows, int columns) {
    choice.check(rows, 0);
    REQUIRE(int(from.size()) == rows * columns);
    return choose_rows(choice, from, rows);
}

}  // namespace

TEST_CASE("token choice: kept rows, then means of kept rows, then [UNK]'s") {
    const std::vector<double> table = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};  // rows (0,1) (2,3) (4,5) (6,7) (8,9)
    CHECK(chosen({}, table, 5, 2) == table);
    CHECK(chosen({{0, 4, 2}, {}, -1}, table, 5, 2) == std::vector<double>{0, 1, 8, 9, 4, 5});
    // The ids refer to the reduced table: 1 is the old 4, and 2 is the old 2.
    CHECK(chosen({{0, 4, 2}, {{1, 2}, {2, 2, 2, 0}, {1}, {}}, 2}, table, 5, 2) ==
          std::vector<double>{0, 1, 8, 9, 4, 5, 6, 7, 3, 4, 8, 9, 4, 5});
    // All rows are kept, and two rows are added.
    CHECK(chosen({{}, {{3, 4}, {}}, 1}, table, 5, 2) == std::vector<double>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 7, 8, 2, 3});
    CHECK(chosen({{0, 2}, {{0, 1}}, -1}, {1, 2, 4}, 3, 1) == std::vector<double>{1, 4, 2.5});
}

TEST_CASE("token choice: what cannot be chosen") {
    auto said = [](const TokenChoice& choice) { return message_of<BadInput>([&] { choice.check(5, 0); }); };
    CHECK_SAYS(said({{0, 5}, {}, -1}), "token 1 is to be token 5 of the model, which has 0 to 4");
    CHECK_SAYS(said({{0, -1}, {}, -1}), "token 1 is to be token -1 of the model");
    CHECK_SAYS(said({{3, 0}, {}, -1}),
               "token 0 is to be token 3 of the model; it must stay [PAD], token 0: put that first");
    CHECK_SAYS(said({{0, 4}, {std::vector<int>{2}}, -1}),
               "token 2 is to be made of token 2; of 0 to 1, the kept ones, is expected");
    CHECK_SAYS(said({{0, 4}, {{0}, {}}, 2}),
               "token 3 is made of no others, and starts as [UNK], but that is token 2 of 0 to 1");
    CHECK(said({{}, {std::vector<int>{4}}, 1}) == "");
}

TEST_CASE("token choice: bert4keras' simplified vocabulary") {
    const Vocabulary v(Strings{"[PAD]", "[unused1]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "##b", "中", "##中",
                               "中文", "..", "ab"});
    ChosenTokens usual = simplified_tokens(v);
    CHECK(tokens_of(usual.vocabulary) == Strings{"[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "##b", "中", "ab"});
    CHECK(usual.choice.keep == std::vector<int>{0, 2, 3, 4, 6, 7, 8, 12});
    CHECK(usual.choice.unk == 1);
    CHECK(tokens_of(simplified_tokens(v, {"[PAD]", "[MASK]", "[UNK]"}).vocabulary) ==
          Strings{"[PAD]", "[MASK]", "[UNK]", "a", "##b", "中", "ab"});
}

TEST_CASE("token choice: a wanted vocabulary, new tokens as the mean of their pieces") {
    const WordPiece model(Vocabulary(Strings{"[PAD]", "[UNK]", "[CLS]", "a", "b", "##b", "c", "##c"}));
    ChosenTokens c =
        wanted_tokens(model, Vocabulary(Strings{"[PAD]", "b", "[UNK]", "a", "##b", "abb", "##ab", "x", "ac"}));
    CHECK(c.choice.keep == std::vector<int>{0, 4, 1, 3, 5});
    CHECK(c.choice.unk == 2);
    REQUIRE(c.choice.compounds.size() == 4);
    // abb is the mean of a ##b ##b, ##ab of a ##b, and ac of a ##c. x is unknown. ##c is not kept.
    CHECK(chosen(c.choice, {0, 1, 2, 10, 20, 40, 3, 4}, 8, 1) == std::vector<double>{0, 20, 1, 10, 40, 30, 25, 1, 10});
    CHECK_SAYS(message_of<BadInput>([&] {
                   wanted_tokens(model, Vocabulary(Strings{"[PAD]", "new", "a"}));
               }),
               "line 3 of the wanted vocabulary is \"a\", a token of the model, after the new token \"new\" "
               "in line 2");
    CHECK(tokens_of(first_tokens(model.vocabulary(), 3)) == Strings{"[PAD]", "[UNK]", "[CLS]"});
    CHECK(first_tokens(model.vocabulary(), 30).size() == 8);
}

TEST_CASE("token choice: a folder loaded with fewer and with more tokens") {
    const std::string folder = golden_folder("roformer_narrow");
    const LoadedModel whole(folder);
    TokenChoice choice;
    choice.keep = {0, 1, 7, 9};
    choice.compounds = {{2, 3, 3, 3}, {}};
    choice.unk = 1;
    const LoadedModel model(folder, DType::f32, choice);
    CHECK(model.backbone.options.vocabulary == 6);
    const float *all = whole.master("embedding.token.weight").as<float>(),
                *all_bias = whole.master("head.bias").as<float>();
    const float *some = model.master("embedding.token.weight").as<float>(),
                *bias = model.master("head.bias").as<float>();
    const int E = 10;
    auto expected = [](const float* x, int row, int columns, int i) {
        const int old[] = {0, 1, 7, 9, -1, 1};
        if (row != 4) return x[old[row] * columns + i];
        return float((double(x[7 * columns + i]) + 3 * double(x[9 * columns + i])) / 4);
    };
    for (int row = 0; row < 6; row++) {
        CHECK(bias[row] == expected(all_bias, row, 1, 0));
        for (int i = 0; i < E; i++) CHECK(some[row * E + i] == expected(all, row, E, i));
    }
    for (const Tensor& t : model.parameters.all()) {
        if (t.path == "embedding.token.weight" || t.path == "head.bias") continue;
        const View a = model.master(t.path), b = whole.master(t.path);
        CHECK(std::memcmp(a.data, b.data, a.bytes()) == 0);
    }
    choice.keep[0] = 3;
    CHECK_SAYS(message_of<BadInput>([&] { LoadedModel(folder, DType::f32, choice); }), "it must stay [PAD], token 0");
}
