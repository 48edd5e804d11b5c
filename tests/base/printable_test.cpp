// SPDX-License-Identifier: MIT
#include "engine/base/printable.h"

#include <array>
#include <cstdio>
#include <vector>

#include "doctest/doctest.h"

using namespace masquerade;

namespace {

std::string repeated(const std::string& part, std::size_t times) {
    std::string all;
    for (; times > 0; times--) all += part;
    return all;
}

// Returns every string of one byte, every string of x and two more bytes, and every code point for which steers() is
// true, between letters.
std::vector<std::string> strange_words() {
    std::vector<std::string> all;
    for (int a = 0; a < 256; a++) {
        all.push_back({char(a)});
        for (int b = 0; b < 256; b++) all.push_back({'x', char(a), char(b)});
    }
    for (char32_t c = 0; c < 0x3000; c++) {
        std::string word = "a";
        append_utf8(word, c);
        if (steers(c)) all.push_back(word + "b");
    }
    for (const char* bytes : {"\xed\xa0\x80", "\xe0\x80\xaf", "\xf4\x90\x80\x80", "\xe2\x80", "\xf0\x9f\x98"})
        all.emplace_back(bytes);
    return all;
}

// Whether a terminal shows the text as one line, and no character of the text controls the terminal.
bool harmless(const std::string& line) {
    if (!is_utf8(line)) return false;
    bool steered = false;
    each_character(line, [&](char32_t c, std::string_view) { steered |= steers(c); });
    return !steered;
}

}  // namespace

TEST_CASE("printable: words from outside become one line that steers nothing") {
    CHECK(printable("a\nb\r\tc\x1b[31m\x7f") == "a\\nb\\r\\tc\\u001b[31m\\u007f");
    CHECK(printable("\xc2\x9b"
                    "31m é 中") == "\\u009b31m é 中");
    CHECK(printable("\xe2\x80\xae"
                    "fdp.exe \xe2\x81\xa6 \xe2\x80\xa8 \xd8\x9c") == "\\u202efdp.exe \\u2066 \\u2028 \\u061c");
    CHECK(printable("\xff\xc3(\xed\xa0\x80") == "\\xff\\xc3(\\xed\\xa0\\x80");
    CHECK(printable("می‌خواهم \\n") == "می‌خواهم \\n");  // U+200C is part of the spelling
    for (const std::string& word : strange_words()) {
        const std::string line = printable(word);
        CAPTURE(line);
        CHECK(harmless(line));
        CHECK(printable(line) == line);
        CHECK(harmless(letters(word)));
    }
    CHECK(printable_lines("a\x1b\n\nb\tc\n") == "a\\u001b\n\nb\\tc\n");
    CHECK(printable_lines("") == "");
    CHECK(letters("<b \"&'\n>") == "&lt;b &quot;&amp;'\\n&gt;");
}

TEST_CASE("printable: of long words the middle is left out, between code points") {
    CHECK(printable(repeated("a", 1000000)).size() < 4100);
    for (std::size_t size = 95; size < 110; size++) {
        const std::string line = printable(std::string(size, 'x') + repeated("中", 100), 100);
        CHECK(is_utf8(line));
        CHECK(line.find("\\x") == line.npos);
        CHECK(line.find(" ... ") != line.npos);
    }
    CHECK(printable(std::string(100, 'a'), 100) == std::string(100, 'a'));
}

TEST_CASE("printable: a shell reads a path back to its last byte") {
    CHECK(shell_word("runs/univae-000") == "runs/univae-000");
    CHECK(shell_word("my run") == "'my run'");
    CHECK(shell_word("it's") == "'it'\\''s'");
    CHECK(shell_word("-rf") == "./-rf");
    CHECK(shell_quoted("--steps") == "--steps");
    CHECK(shell_quoted("layers=2") == "layers=2");
    CHECK(shell_quoted("=ls") == "'=ls'");
    CHECK(shell_quoted("mask=A full") == "'mask=A full'");
    CHECK(shell_quoted("") == "''");
    CHECK(shell_word("a\n$(b)!") == "$'a\\x0a$(b)\\x21'");
    std::vector<std::string> words = {"",   "~",     "a b", "a'b\"c", "`id`", "$(id) $HOME !!", "a;b|c&d>e",
                                      "=x", "*?[a]", "#",   "{a,b}",  "\\",   "é 中",           "\n!\\'"};
    for (const std::string& word : strange_words())
        if (word.find('\0') == word.npos && word.size() != 3 && word != "-") words.push_back(word);
    std::string command = "exec bash --norc -c \"$(cat <<'END'\nprintf '%s\\0'";
    for (const std::string& word : words) {
        CHECK(harmless(shell_word(word)));
        command += ' ' + shell_word(word);
    }
    FILE* const shell = popen((command + "\nEND\n)\"").c_str(), "r");
    REQUIRE(shell != nullptr);
    std::string read;
    std::array<char, 4096> some{};
    while (const std::size_t n = std::fread(some.data(), 1, some.size(), shell)) read.append(some.data(), n);
    CHECK(pclose(shell) == 0);
    std::string expected;
    for (const std::string& word : words) expected += word + '\0';
    CHECK(read == expected);
}
