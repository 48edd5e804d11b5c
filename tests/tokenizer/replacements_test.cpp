// SPDX-License-Identifier: MIT
#include "tokenizer/replacements.h"

#include "doctest/doctest.h"
#include "tests/folder.h"
#include "tokenizer/vocabulary.h"

using namespace masquerade;

namespace {

Replacements read(const std::string& text) {
    TemporaryFolder folder;
    return read_replacements(folder.write("replacements", text));
}

}  // namespace

TEST_CASE("replacements are read from a file") {
    CHECK(read("\u201C\t\"\n\n\u2026\t...\r\n\u00AD\t\n") ==
          Replacements{{U'\u201C', U"\""}, {U'\u2026', U"..."}, {U'\u00AD', U""}});
    CHECK(read("").empty());
    for (const char* wrong : {"ab\tc\n", "a\n", "\xFFz\tc", "a\t\xFF"})
        CHECK_THROWS_WITH_AS(read(std::string("x\ty\n") + wrong), doctest::Contains("line 2"),
                             TokenizerError);
    CHECK_THROWS_WITH_AS(read_replacements("/nowhere/at/all"), doctest::Contains("cannot open"),
                         TokenizerError);
}

TEST_CASE("ASCII punctuation replaces each character once, by ASCII") {
    Replacements all = ascii_punctuation();
    for (std::size_t i = 0; i < all.size(); i++) {
        CHECK(all[i].first > 0x7F);
        for (char32_t c : all[i].second) CHECK(c < 0x80);
        for (std::size_t j = 0; j < i; j++) CHECK(all[i].first != all[j].first);
    }
}
