// SPDX-License-Identifier: MIT
#include "data/text.h"

#include <doctest/doctest.h>

#include <sstream>

#include "engine/base/error.h"
#include "engine/base/random.h"
#include "tests/folder.h"

namespace masquerade {
namespace {

using Lines = std::vector<std::string>;

std::string cleaned(std::string_view line, std::size_t longest = 1000) {
    TextCounts counts;
    return clean_line(line, longest, counts);
}

std::uint64_t invalid(std::string_view line) {
    TextCounts counts;
    clean_line(line, 1000, counts);
    return counts.invalid_bytes;
}

// Adds so much good text that the bad bytes are less than one in a hundred.
std::string padded(const std::string& bytes) {
    std::string text;
    for (int i = 0; i < 100; i++) text += "a plain line\n";
    return text + bytes;
}

std::string message_of(const std::string& bytes) {
    try {
        parse_text(bytes, "x.txt");
    } catch (const BadInput& e) {
        return e.what();
    }
    return "";
}

}  // namespace

TEST_CASE("text: sentences, white space kept, blank lines and carriage returns gone") {
    Text text = parse_text("\xEF\xBB\xBF one two\r\n\n \t\r\nthree  four ", "x");
    CHECK(text.source == Lines{" one two", "three  four "});
    CHECK(text.target.empty());
    CHECK(text.counts.lines == 4);
    CHECK(text.counts.bytes == 30);
    CHECK(text.warning.empty());
    CHECK(text.hash == hash_of("\xEF\xBB\xBF one two\r\n\n \t\r\nthree  four "));
}

TEST_CASE("text: pairs, with a further column and lines that lack a half") {
    Text text = parse_text("a\tb\nc d\te f\tg\n\nalone\n\tx\ny\t \nh\ti\r\n", "x");
    CHECK(text.source == Lines{"a", "c d", "h"});
    CHECK(text.target == Lines{"b", "e f", "i"});
    CHECK(text.counts.halves == 3);
    CHECK(text.counts.further == 1);
    CHECK(text.warning == "x: 3 lines without both a source and a target skipped, 1 line cut after the second column");
}

TEST_CASE("text: a tab in few lines is white space") {
    Text text = parse_text("a\tb\nc\nd\n", "x");
    CHECK(text.source == Lines{"a\tb", "c", "d"});
    CHECK(text.target.empty());
    CHECK(text.counts.halves == 0);
}

TEST_CASE("text: what is not UTF-8 is dropped, byte by byte") {
    for (const char* good : {"z", "\xC2\x80", "\xDF\xBF", "\xE0\xA0\x80", "\xED\x9F\xBF", "\xEE\x80\x80",
                             "\xEF\xBF\xBF", "\xF0\x90\x80\x80", "\xF4\x8F\xBF\xBF"}) {
        CHECK(cleaned(good) == good);
        CHECK(invalid(good) == 0);
    }
    CHECK(cleaned("a\xC1\xBF"
                  "b") == "ab");  // an overlong encoding
    CHECK(cleaned("a\xE0\x9F\xBF"
                  "b") == "ab");  // an overlong encoding
    CHECK(cleaned("a\xED\xA0\x80"
                  "b") == "ab");  // a surrogate
    CHECK(cleaned("a\xF0\x8F\xBF\xBF"
                  "b") == "ab");  // an overlong encoding
    CHECK(cleaned("a\xF4\x90\x80\x80"
                  "b") == "ab");  // above U+10FFFF
    CHECK(cleaned("a\xFF\xF8\x80"
                  "b") == "ab");
    CHECK(cleaned("a\xE2\x82"
                  "b") == "ab");  // the last byte of a character is missing
    CHECK(cleaned("a\xE2\x82\xAC\xE2\x82") == "a\xE2\x82\xAC");
    CHECK(cleaned(std::string_view("a\0b", 3)) == "ab");  // zero bytes, which are frequent in UTF-16
    CHECK(invalid("a\xED\xA0\x80"
                  "b\xFF") == 4);
}

TEST_CASE("text: a long sentence is cut between code points, each half of a pair by itself") {
    CHECK(cleaned("abc", 3) == "abc");
    CHECK(cleaned("abcd", 3) == "abc");
    CHECK(cleaned("ab\xC3\xA9z", 3) == "ab");
    Text text = parse_text("123456\t1234567\nab\tabcd\n", "x", 4);
    CHECK(text.source == Lines{"1234", "ab"});
    CHECK(text.target == Lines{"1234", "abcd"});
    CHECK(text.warning == "x: 2 sentences cut to 4 bytes");
}

TEST_CASE("text: up to one invalid byte in a hundred is a warning, more is an error") {
    std::string line(98, 'a');
    Text text = parse_text(line + "\xFF\n", "x");  // 1 of 100 bytes is invalid
    CHECK(text.source == Lines{line});
    CHECK(text.warning == "x: 1 invalid byte dropped");
    CHECK_THROWS_AS(parse_text(line.substr(1) + "\xFF\n", "x"), BadInput);  // 1 of 99 bytes is invalid
    CHECK(message_of(std::string("h\0i\0\n\0", 6)).find("3 of 6 bytes are not UTF-8") != std::string::npos);
    CHECK(parse_text(padded("\xFF\xFE\n\xFF"), "x").source.size() == 100);  // lines without any valid byte are dropped
}

TEST_CASE("text: files that cannot be read, or hold no sentence") {
    TemporaryFolder folder;
    CHECK_THROWS_AS(read_text(folder.path), BadInput);
    CHECK_THROWS_AS(read_text(folder.path + "/none"), BadInput);
    CHECK_THROWS_AS(read_text(folder.write("empty", "")), BadInput);
    CHECK_THROWS_AS(read_text(folder.write("blank", "\xEF\xBB\xBF\n \n\r\n")), BadInput);
    CHECK(message_of("\n\n").find("x.txt is empty: no sentence in 2 lines") == 0);
    CHECK(message_of("\tx\n\ty\n\n")
              .find("x.txt: none of 2 lines with a tab has both a source before it and a target behind it") == 0);
    CHECK(message_of("a\t \n").find("x.txt: none of 1 line with a tab") == 0);
    CHECK(read_text(folder.write("good", "a b\nc")).source == Lines{"a b", "c"});
    std::string large(300000, 'a');  // larger than the smallest buffer of read_whole(), 64 KiB
    CHECK(read_bytes(folder.write("large", large)) == large);
}

TEST_CASE("text: a stream keeps every line") {
    std::istringstream in(
        "\xEF\xBB\xBF"
        "a\r\n\n b\tc\n\n" +
        std::string(200, 'x') + "\xFF\nlast");
    LineReader reader(in, "standard input");
    Lines lines;
    for (std::string line; reader.next(line);) lines.push_back(line);
    CHECK(lines == Lines{"a", "", " b\tc", "", std::string(200, 'x'), "last"});
    CHECK(reader.counts().lines == 6);
    CHECK(reader.counts().bytes == 219);
    CHECK(reader.counts().invalid_bytes == 1);
    std::istringstream bad("a\xFF\n");
    LineReader worse(bad, "standard input");
    std::string line;
    CHECK(worse.next(line));
    CHECK(line == "a");
    CHECK_FALSE(worse.next(line));
    CHECK_THROWS_AS(worse.finish(), BadInput);
}

TEST_CASE("text: white space collapses") {
    CHECK(collapse_space(" \ta \n b\vc\f\r") == "a b c");
    CHECK(collapse_space(" \t") == "");
    CHECK(collapse_space("\xC2\xA0"
                         "a") ==
          "\xC2\xA0"
          "a");
}

}  // namespace masquerade
