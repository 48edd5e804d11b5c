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
          Replacements{{U'\u201C', "\""}, {U'\u2026', "..."}, {U'\u00AD', ""}});
    CHECK(read("").empty());
    for (const char* wrong : {"ab\tc\n", "a\n", "\xFFz\tc", "a\t\xFF"})
        CHECK_THROWS_WITH_AS(read(std::string("x\ty\n") + wrong), doctest::Contains("line 2"), TokenizerError);
    CHECK_THROWS_WITH_AS(read_replacements("/nowhere/at/all"), doctest::Contains("cannot open"), TokenizerError);
}

TEST_CASE("ASCII punctuation replaces what is beyond ASCII, by ASCII") {
    const Replacements all = ascii_punctuation();
    CHECK(all.size() == 22);
    CHECK(all.at(U'\u2014') == "--");
    for (const auto& [from, to] : all) {
        CHECK(from > 0x7F);
        for (char c : to) CHECK((c > ' ' && c < 0x7F));
    }
}
