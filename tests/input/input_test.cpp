// SPDX-License-Identifier: MIT
#include "input/input.h"

#include <sys/stat.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "engine/base/log.h"
#include "engine/io/file.h"
#include "input/number.h"
#include "tests/train/files.h"

using namespace masquerade;
using nlohmann::json;

namespace {

std::string problem_of(const std::string& text) {
    json value;
    return parse_bounded(text, value);
}
std::string repeated(const std::string& part, std::size_t times) {
    std::string all;
    for (; times > 0; times--) all += part;
    return all;
}
std::string refusal(const std::string& path, std::size_t largest = largest_text) {
    return message_of<BadInput>([&] { read_input<BadInput>(path, largest); });
}

}  // namespace

TEST_CASE("input: JSON is read as the library reads it") {
    for (const char* text :
         {"7", "-7", "18446744073709551615", "0.5", "\"a\\u00e9\"", "null", "true", "[]", "{}",
          R"({"b":[1,[2,{"c":null}],[]],"a":{"b":{"a":"b"},"c":[{}]},"":[false,-1.5e3,"x"]})", "\xef\xbb\xbf[1]"}) {
        json value;
        CHECK(parse_bounded(text, value) == "");
        CHECK(value == json::parse(text));
    }
}

TEST_CASE("input: what is not JSON is refused with its place, however deep") {
    CHECK(problem_of("") == "is empty; JSON is expected");
    CHECK(problem_of(" \n") == "is empty; JSON is expected");
    CHECK(problem_of("{\"a\":") == "is not JSON: it ends in the middle, at byte 5 of the file");
    CHECK(problem_of("[1,,2]") == "is not JSON: byte 4 of the file cannot be read");
    CHECK(problem_of("[1] 2") == "is not JSON: byte 5 of the file cannot be read");
    CHECK(problem_of("[\"\xff\"]") == "is not JSON: byte 3 of the file cannot be read");
    using namespace std::string_literals;
    for (const std::string& after : {"\0"s, "\0\0 "s, "\0 {\"a\":"s})  // a zero byte does not end the text
        CHECK(problem_of("[1] " + after) == "is not JSON: byte 5 of the file cannot be read");
    CHECK(problem_of("[1\0]"s) == "is not JSON: byte 3 of the file cannot be read");
    CHECK(problem_of("[\"\\u0000\"]") == "");
    CHECK(problem_of("[1e999]") ==
          "is not JSON: the number before byte 7 of the file is larger than any that can be held");
    CHECK(problem_of("{\"a\":1,\"b\":{\"a\":2,\"a\":3}}") ==
          "has \"a\" twice in one object, at byte 21 of the file; each key once is expected");
    CHECK(problem_of(repeated("[", 64) + repeated("]", 64)) == "");
    for (const char* open : {"[", "{\"a\":", "[{\"a\":"})
        CHECK_SAYS(problem_of(repeated(open, 200000)), "nests lists and objects deeper than 64, at byte ");
    json value;
    CHECK_SAYS(parse_bounded(repeated("[", 65), value, 8), "at byte 73 of the file");
    CHECK_SAYS(parse_bounded("7\0"s, value, 8), "byte 10 of the file");
}

TEST_CASE("input: JSON of more values than are read is refused before it fills the memory") {
    json value;
    CHECK(parse_bounded("[1,[2,{\"a\":3}]]", value, 0, 6) == "");
    CHECK(parse_bounded("[1,[2,{\"a\":3}]]", value, 0, 5) ==
          "holds more than 5 values, the most that are read; is it another kind of file?");
    for (const char* part : {"0,", "[],", "\"\",", "{\"a\":0},", "[[0]],"})
        CHECK_SAYS(problem_of("[" + repeated(part, most_json + 1)), "holds more than 2000000 values");
    CHECK(problem_of("[" + repeated("0,", 1000000) + "0]") == "");
    CHECK(problem_of("[\"" + repeated("a", 30000000) + "\"]") == "");
}

TEST_CASE("input: names of files go into JSON and come back, whatever their bytes") {
    for (const std::string& name :
         {std::string("/a/b c.txt"), std::string("/caf\xC3\xA9"), std::string(""), std::string("100%41"),
          std::string("/caf\xE9 100%41.txt"), std::string("\xFF"), std::string("file:///a"),
          std::string("file://%zz\xFF%"), std::string("\xED\xA0\x80/\n")}) {
        const std::string text = json_name(name);
        CAPTURE(text);
        CHECK_NOTHROW(json(text).dump());
        CHECK(name_in_json(text) == name);
        CHECK(name_in_json(json::parse(json(text).dump()).get<std::string>()) == name);
    }
    CHECK(json_name("/caf\xC3\xA9 %") == "/caf\xC3\xA9 %");  // valid UTF-8 stays as it is
    CHECK(json_name("/caf\xE9 %.txt") == "file:///caf%E9%20%25.txt");
    CHECK(name_in_json("file:///%4") == "/%4");
}

TEST_CASE("input: a value is shown in a few words") {
    CHECK(in_words(json::parse("[[[1]],2]")) == "a list of 2");
    CHECK(in_words(json::parse(R"({"type":"Split"})")) == "an object of type \"Split\"");
    CHECK(in_words(json{{"a", 1}}) == "an object");
    CHECK(in_words(0.5) == "0.5");
    CHECK(in_words(repeated("a", 1000000)) == '"' + repeated("a", 57) + "...\"");
    CHECK(clipped(repeated("é", 40)) == repeated("é", 28) + "...");
    CHECK(clipped(repeated("a", 60)) == repeated("a", 60));
}

TEST_CASE("input: whoever asks hears of every file before it is read") {
    const TemporaryFolder folder;
    const std::string path = folder.write("file", "bytes");
    const auto nobody = std::exchange(before_reading, [&](const std::string& read) {
        if (read == path) throw std::runtime_error("it will be written over");
    });
    CHECK_THROWS_AS(read_input<BadInput>(path), std::runtime_error);
    CHECK_THROWS_AS(FileReader{path}, std::runtime_error);
    CHECK(read_input<BadInput>(folder.write("other", "x")) == "x");
    before_reading = nobody;
    CHECK(read_input<BadInput>(path) == "bytes");
}

TEST_CASE("input: files, pipes and what is neither") {
    const TemporaryFolder folder;
    const std::string bytes = repeated("0123456789", 30000) + std::string("\0\n", 2);
    CHECK(read_input<BadInput>(folder.write("file", bytes)) == bytes);
    CHECK(read_input<BadInput>(folder.write("empty", "")) == "");
    CHECK(refusal(folder.file("file"), bytes.size()) == "");
    CHECK_SAYS(refusal(folder.file("file"), bytes.size() - 1), "/file is larger than 300001 bytes");
    std::filesystem::resize_file(folder.file("empty"), std::uintmax_t(1) << 40);
    CHECK_SAYS(refusal(folder.file("empty")), "/empty is larger than 100000000 bytes");
    CHECK_SAYS(refusal(folder.file("none")), "No such file");
    CHECK_SAYS(refusal(folder.path), "Is a directory");
    CHECK_SAYS(refusal("/dev/zero"), "/dev/zero is a device; a file or a pipe is expected");

    const std::string pipe = folder.file("pipe");
    REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
    CHECK_SAYS(refusal(pipe), "/pipe is an empty pipe, into which nobody writes");
    std::fstream both(pipe);  // opens the pipe for reading and writing, and so does not wait for another process
    REQUIRE(both);
    std::thread writer([&] { std::ofstream(pipe, std::ios::binary) << bytes, both.close(); });
    CHECK(read_input<BadInput>(pipe) == bytes);
    writer.join();
}

TEST_CASE("input: a number is the whole text, and one that its type holds") {
    int whole = 7;
    for (const char* wrong : {"", " 1", "1 ", "1x", "0x1", "1.0", "1e2", "--1", "+-1", "+", "2147483648", "-2147483649",
                              "-99999999999999999999", "9223372036854775808"})
        CHECK_MESSAGE(!read_number(wrong, whole), wrong);
    CHECK(whole == 7);
    CHECK((read_number("+5", whole) && whole == 5));
    CHECK((read_number("-2147483648", whole) && whole == -2147483647 - 1));
    CHECK((read_number("010", whole) && whole == 10));
    std::uint64_t natural = 0;
    CHECK(!read_number("-1", natural));
    CHECK(!read_number("18446744073709551616", natural));
    CHECK((read_number("18446744073709551615", natural) && natural == UINT64_MAX));
    CHECK((read_number("ffffffffffffffff", natural, 16) && natural == UINT64_MAX));
    double real = 7;
    for (const char* wrong : {"", "nan", "inf", "-inf", "1e999", "1,5", "0x1p3", " 1"})
        CHECK_MESSAGE(!read_number(wrong, real), wrong);
    CHECK(real == 7);
    CHECK((read_number("-1.5e-3", real) && real == -1.5e-3));
}
