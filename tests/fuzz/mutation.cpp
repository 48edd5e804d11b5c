// SPDX-License-Identifier: MIT
#include "tests/fuzz/mutation.h"

#include <algorithm>
#include <iterator>

namespace masquerade::fuzz {
namespace {

const char* const numbers[] = {"0",
                               "-1",
                               "1",
                               "2",
                               "3",
                               "7",
                               "64",
                               "0.5",
                               "-0",
                               "1e300",
                               "1e999",
                               "1.0",
                               "2147483647",
                               "2147483648",
                               "4294967296",
                               "9223372036854775807",
                               "18446744073709551615",
                               "18446744073709551616",
                               "true",
                               "null",
                               "\"4\"",
                               "[]",
                               "{}"};
const char* const pieces[] = {
    "\"",       "{",    "}",        "[",    "]",       ":", ",", "\\",           "\n",  "\r", "\\u0000", "\\ud800",
    "\x1b[31m", "\xff", "\xc2\x9b", "null", "{\"a\":", "#", "=", "\xef\xbb\xbf", "NaN", "..", "/"};

bool is_number(char c) { return (c >= '0' && c <= '9') || c == '-' || c == '.'; }

// Replaces a number in the text at or after `at` by another number. If there is none, leaves the text as it is.
void replace_number(Grammar& random, std::string& bytes, std::size_t at) {
    const auto begin = std::find_if(bytes.begin() + std::ptrdiff_t(at), bytes.end(), is_number);
    const auto end = std::find_if_not(begin, bytes.end(), is_number);
    if (begin != end) bytes.replace(begin, end, numbers[random.below(std::size(numbers))]);
}

}  // namespace

std::string damaged(Grammar& random, std::string bytes, const std::string& other) {
    for (std::size_t n = 1 + random.below(4); n > 0; n--) {
        const std::size_t at = random.below(bytes.size() + 1);
        const std::size_t count = random.below(std::min<std::size_t>(bytes.size() - at, 40) + 1);
        switch (random.below(12)) {
            case 0:
                if (at < bytes.size()) bytes[at] = char(bytes[at] ^ (1 << random.below(8)));
                break;
            case 1:
                if (at < bytes.size()) bytes[at] = char(random.below(256));
                break;
            case 2: bytes.erase(at, count); break;
            case 3: bytes.insert(random.below(bytes.size() + 1), bytes.substr(at, count)); break;
            case 4:
                if (random.below(4) == 0) bytes.resize(at);
                break;
            case 5:
            case 6:
            case 7: replace_number(random, bytes, at); break;
            case 8: bytes.insert(at, pieces[random.below(std::size(pieces))]); break;
            case 9: bytes.replace(at, count, other.substr(random.below(other.size() + 1), 1 + random.below(60))); break;
            case 10:
                if (random.below(20) == 0) {
                    const char* open = random.below(2) == 0 ? "[" : "{\"a\":";
                    std::string nested;
                    for (std::size_t deep = random.below(200000); deep > 0; deep--) nested += open;
                    bytes.insert(at, nested);
                }
                break;
            case 11: bytes.insert(at, random.below(20) == 0 ? random.below(100000) : 1, char(random.below(256))); break;
        }
    }
    return bytes;
}

}  // namespace masquerade::fuzz
