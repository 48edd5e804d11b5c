// SPDX-License-Identifier: MIT
// Reads text: one sentence per line, or source<TAB>target per line. Invalid bytes (not UTF-8, or NUL) are dropped and
// overlong sentences are cut; a warning gives the numbers of dropped bytes and cut sentences. It is an error if a file
// cannot be read, has no sentences, or has more than 1 % invalid bytes.
#pragma once
#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/error.h"
#include "input/input.h"
#include "input/lists.h"

namespace masquerade {

// Largest number of bytes of a sentence. A longer sentence is cut, but never inside a code point.
constexpr std::size_t longest_sentence = 10000;

// Counts of what was read from a file or stream. `lines` includes empty lines.
struct TextCounts {
    std::uint64_t lines = 0, bytes = 0;
    std::uint64_t invalid_bytes = 0;  // not UTF-8, or NUL
    std::uint64_t cut = 0;            // sentences that were cut
    std::uint64_t halves = 0;         // in a file of pairs: skipped lines, which lack a source or a target
    std::uint64_t further = 0;        // in a file of pairs: lines with more than two columns; only two are read
};

struct Text {
    Strings source, target;  // target: empty if the text has no pairs, else as long as `source`
    TextCounts counts;
    std::uint64_t hash = 0;  // FNV-1a of the file's bytes
    std::string warning;     // one line that says what was dropped or cut; "" if nothing was
};

// Reads the sentences of a file and logs a warning if text was dropped or cut. Blank lines are skipped. If at least
// half of the other lines contain a tab, the file is read as pairs: lines that lack a source or a target are skipped,
// and columns after the second are ignored. Throws BadInput if the file cannot be read, has no sentences, or has more
// than 1 % invalid bytes.
Text read_text(const std::string& path, std::size_t longest = longest_sentence);

// Like read_text(), but reads from memory and does not log the warning. `name` names the text in messages. If `pairs`
// is given, it says whether the lines are pairs.
Text parse_text(std::string_view bytes, const std::string& name, std::size_t longest = longest_sentence,
                std::optional<bool> pairs = {});

// Reads one line, without its line end, as read_text() does. Returns false if the line is skipped. Adds to `counts`
// what was dropped or cut.
bool read_line(std::string_view line, bool pairs, std::size_t longest, TextCounts& counts, std::string& source,
               std::string& target);
// Throws BadInput if more than 1 % of the bytes were invalid. Returns one line that says what was dropped or cut; "" if
// nothing was.
std::string warning_about(const TextCounts& counts, const std::string& name, std::size_t longest = longest_sentence);

// Reads a stream line by line, for programs that write one output line per input line. Empty lines are not skipped.
class LineReader {
  public:
    LineReader(std::istream& in, std::string name) : in_(in), name_(std::move(name)) {}
    bool next(std::string& line);  // sets `line` to the next line; returns false at the end
    void finish() const;           // logs the warning; throws BadInput if more than 1 % of the bytes were invalid
    const TextCounts& counts() const { return counts_; }

  private:
    std::istream& in_;
    std::string name_;
    TextCounts counts_;
};

// Returns the line without a carriage return at its end and without invalid bytes, cut to at most `longest` bytes.
// Adds the invalid bytes and the cut to `counts`.
std::string clean_line(std::string_view line, std::size_t longest, TextCounts& counts);

// Replaces each run of ASCII white space by one space, and removes white space at both ends.
std::string collapse_space(std::string_view line);

// Returns the bytes of a file of any size. Throws BadInput if the file does not exist, is a folder or cannot be read.
inline std::string read_bytes(const std::string& path) { return read_input<BadInput>(path, SIZE_MAX - 1); }

}  // namespace masquerade
