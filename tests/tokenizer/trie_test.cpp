// SPDX-License-Identifier: MIT
#include "tokenizer/trie.h"

#include <cstdint>
#include <string>
#include <unordered_map>

#include "doctest/doctest.h"

using namespace masquerade;

TEST_CASE("the longest of the strings that begin a text") {
    Trie trie({{"a", 0}, {"abc", 1}, {"b", 2}, {"", 3}, {"\xFF", 4}, {"abc", 5}});
    auto longest = [&](std::string_view text) {
        Trie::Match match = trie.longest(text);
        return std::pair(match.length, match.value);
    };
    CHECK(longest("abcd") == std::pair(3, 5));  // if a string occurs twice, the last one counts
    CHECK(longest("abd") == std::pair(1, 0));
    CHECK(longest("ab") == std::pair(1, 0));
    CHECK(longest("\xFF\xFF") == std::pair(1, 4));
    CHECK(longest("cab") == std::pair(0, -1));
    CHECK(longest("") == std::pair(0, -1));
    CHECK(longest(std::string_view("\0a", 2)) == std::pair(0, -1));
    CHECK(Trie({}).longest("a").length == 0);
}

TEST_CASE("a trie agrees with a map on thousands of random strings") {
    std::uint64_t state = 7;
    auto draw = [&](std::uint64_t below) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        return (state >> 33) % below;
    };
    auto random = [&](std::uint64_t letters) {
        std::string s;
        for (std::uint64_t n = 1 + draw(6); n > 0; n--) s += char(draw(letters) * 255 / (letters - 1));
        return s;
    };
    for (std::uint64_t letters : {2, 5, 256}) {
        std::unordered_map<std::string, int> map;
        while (map.size() < (letters == 2 ? 60 : 3000)) map.emplace(random(letters), int(map.size()));
        std::vector<Trie::Entry> entries(map.begin(), map.end());
        Trie trie(entries);
        for (int i = 0; i < 20000; i++) {
            std::string text = random(letters) + random(letters);
            Trie::Match expected;
            for (int n = 1; n <= int(text.size()); n++)
                if (auto found = map.find(text.substr(0, std::size_t(n))); found != map.end())
                    expected = {n, found->second};
            Trie::Match match = trie.longest(text);
            REQUIRE(match.length == expected.length);
            REQUIRE(match.value == expected.value);
        }
    }
}
