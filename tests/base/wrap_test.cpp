// SPDX-License-Identifier: MIT
// Tests that lines for a narrow terminal are broken between words, and that nothing is lost.
#include <doctest/doctest.h>

#include "engine/base/wrap.h"

using namespace masquerade;

TEST_CASE("wrap: what fits stays as it is") {
    for (const char* text : {"", "\n", "a", "  a  b\n\n    c d\n", "ab cd ef"}) CHECK(wrapped(text, 8) == text);
}

TEST_CASE("wrap: a line goes on between words, two columns deeper") {
    CHECK(wrapped("ab cd ef", 7) == "ab cd\n  ef");
    CHECK(wrapped("ab cd ef\ngh", 5) == "ab cd\n  ef\ngh");
    CHECK(wrapped("  = ab cd ef gh\n", 9) == "  = ab cd\n    ef gh\n");
    CHECK(wrapped("ab   cd", 6) == "ab\n  cd");
    CHECK(wrapped("  ab cd", 6, 0) == "  ab\n  cd");
}

TEST_CASE("wrap: a word longer than the line stays whole, and the first word where it is") {
    CHECK(wrapped("abcdefgh", 4) == "abcdefgh");
    CHECK(wrapped("    abcdefgh ij", 6) == "    abcdefgh\n      ij");
}

TEST_CASE("wrap: characters are counted, not bytes") {
    CHECK(wrapped("äö üß", 5) == "äö üß");
    CHECK(wrapped("äö üß", 4) == "äö\n  üß");
}
