// SPDX-License-Identifier: MIT
#include "tokenizer/vocabulary.h"

#include "doctest/doctest.h"
#include "tests/folder.h"

using namespace masquerade;

namespace {

struct TemporaryFile : TemporaryFolder {
    std::string path() const { return file("vocab.txt"); }
    std::string write(const std::string& bytes) const { return TemporaryFolder::write("vocab.txt", bytes); }
};

}  // namespace

TEST_CASE("a vocabulary's lines end at LF alone") {
    TemporaryFile file;
    Vocabulary v = Vocabulary::load(file.write("[PAD]\r\n\u2028\n\na\u0085b\r\r\n##\u2028\n[UNK]"));
    REQUIRE(v.size() == 6);
    CHECK(v.token(0) == "[PAD]");
    CHECK(v.id("\u2028") == 1);
    CHECK(v.token(2) == "");
    CHECK(v.id("") == 2);
    CHECK(v.token(3) == "a\u0085b\r");
    CHECK(v.id("##\u2028") == 4);
    CHECK(v.pad() == 0);
    CHECK(v.unk() == 5);
    CHECK(v.mask() == -1);
    CHECK(v.id("b") == -1);
    CHECK(v.is_special(5));
    CHECK_FALSE(v.is_special(-1));
    CHECK_FALSE(v.is_special(1));
}

TEST_CASE("a byte order mark is no part of the first token") {
    TemporaryFile file;
    Vocabulary v = Vocabulary::load(file.write("\xEF\xBB\xBF[PAD]\n\xEF\xBB\xBF[UNK]\n"));
    CHECK(v.pad() == 0);
    CHECK(v.token(1) == "\xEF\xBB\xBF[UNK]");
}

TEST_CASE("of equal lines the last counts, and later ids do not shift") {
    Vocabulary v({"a", "b", "a", "c"});
    CHECK(v.id("a") == 2);
    CHECK(v.id("c") == 3);
    CHECK(v.token(0) == "a");
}

TEST_CASE("a saved vocabulary loads as it was") {
    TemporaryFile file;
    std::vector<std::string> tokens;
    for (int i = 0; i < 1000; i++) tokens.push_back(i == 500 ? "" : "token" + std::to_string(i * i));
    Vocabulary loaded = Vocabulary::load(file.write(Vocabulary(tokens).lines()));
    REQUIRE(loaded.size() == 1000);
    for (int i = 0; i < 1000; i++) CHECK(loaded.id(tokens[std::size_t(i)]) == i);
    Vocabulary copy = loaded;  // the copy has its own table
    loaded = Vocabulary();
    CHECK(copy.id("token81") == 9);
    CHECK(loaded.id("token81") == -1);
}

TEST_CASE("what is wrong with a vocabulary is said") {
    TemporaryFile file;
    CHECK_THROWS_WITH_AS(Vocabulary::load(file.path()), doctest::Contains("No such file"), TokenizerError);
    CHECK_THROWS_WITH_AS(Vocabulary::load(file.write("")), doctest::Contains("empty"), TokenizerError);
    CHECK_THROWS_AS(Vocabulary::load(std::filesystem::path(file.path()).parent_path().string()), TokenizerError);
    CHECK_THROWS_WITH_AS(Vocabulary({"a\nb"}).lines(), doctest::Contains("line feed"), TokenizerError);
    CHECK_THROWS_WITH_AS(Vocabulary({"a", "b"}).token(2), doctest::Contains("0 to 1"), TokenizerError);
    CHECK_THROWS_AS(Vocabulary({"a", "b"}).token(-1), TokenizerError);
}
