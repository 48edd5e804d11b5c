// SPDX-License-Identifier: MIT
// Reading text: one sentence a line, or source<TAB>target a line. What is not UTF-8 is dropped and what is
// too long is cut, both counted; an error is only what cannot be read, is empty after that, or holds more
// than 1 % invalid bytes.
#pragma once
#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/error.h"
#include "input/input.h"

namespace masquerade {

// Bytes of a sentence; a longer one is cut, between two code points.
constexpr std::size_t longest_sentence = 10000;

// Counts of the file or stream. Lines are the lines of the file, empty lines included.
struct TextCounts {
    std::uint64_t lines = 0, bytes = 0;
    std::uint64_t invalid_bytes = 0;  // not UTF-8, or zero
    std::uint64_t cut = 0;            // sentences that were too long
    std::uint64_t halves = 0;         // lines of a pair file without a source or without a target
    std::uint64_t further = 0;        // pairs with a column after the target, which is not read
};

struct Text {
    std::vector<std::string> source, target;  // target is empty, or as long as source
    TextCounts counts;
    std::uint64_t hash = 0;  // FNV-1a of the file's bytes
    std::string warning;     // one line about what was dropped or cut; empty when nothing was
};

// The sentences of a file; a warning is logged. Lines of nothing but white space are skipped. The file
// holds pairs when at least half of its other lines have a tab: lines that lack a source or a target are
// then skipped, and columns after the second are not read. Throws BadInput.
Text read_text(const std::string& path, std::size_t longest = longest_sentence);

// The same from memory, without logging; `name` is for messages.
Text parse_text(std::string_view bytes, const std::string& name, std::size_t longest = longest_sentence);

// A stream line by line, for programs whose output lines match their input lines: empty lines are lines too.
class LineReader {
  public:
    LineReader(std::istream& in, std::string name, std::size_t longest = longest_sentence);
    bool next(std::string& line);  // false at the end
    void finish() const;           // logs the warning; throws BadInput when too much was invalid
    const TextCounts& counts() const { return counts_; }

  private:
    std::istream& in_;
    std::string name_;
    std::size_t longest_;
    TextCounts counts_;
};

// A line without its carriage return, without invalid bytes and cut to `longest` bytes.
std::string clean_line(std::string_view line, std::size_t longest, TextCounts& counts);

// White space (ASCII) collapsed to single spaces, none at the ends.
std::string collapse_space(std::string_view line);

// A file's bytes, however many. Throws BadInput when it is not there, is a directory or cannot be read.
inline std::string read_bytes(const std::string& path) { return read_input<BadInput>(path, SIZE_MAX - 1); }

}  // namespace masquerade
