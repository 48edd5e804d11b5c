// SPDX-License-Identifier: MIT
// Parses ranges of indices, written as slices in Python: "2:6", "-16:", ":32" and ":". A negative number counts from
// the end.
#pragma once
#include <algorithm>
#include <optional>
#include <string>

#include "input/number.h"

namespace masquerade {

struct IndexRange {
    static constexpr int whole = 0x7fffffff;
    // The range has the items from `from` to before `to`. A negative index counts from the end. to = whole: all items
    // from `from` on.
    int from = 0, to = whole;

    // In a list of `length` items, begin() is the index of the first item of the range, and end() is the index after
    // the last item. Both are clipped to [0, length], as in Python.
    int begin(int length) const { return clipped(from, length); }
    int end(int length) const { return clipped(to, length); }

  private:
    static int clipped(int index, int length) { return std::clamp(index < 0 ? index + length : index, 0, length); }
};

// Reads a range such as "2:6", whose numbers must lie between -most and most. If `single` is true, one number without a
// colon is accepted, too: "0" is the first item, and "-1" the last. Returns nullopt if the text is valid. Otherwise,
// leaves `range` unchanged and returns the part of the text that is wrong: "x" for "2:x", or the whole text if it has
// no colon.
inline std::optional<std::string> read_range(const std::string& text, IndexRange& range, int most,
                                             bool single = false) {
    const std::size_t colon = text.find(':');
    const bool one = colon == text.npos;
    if (one && !single) return text;
    IndexRange read;
    const std::string from = text.substr(0, colon), to = one ? "" : text.substr(colon + 1);
    const auto wrong = [&](const std::string& number, int& index) {
        return !read_number(number, index) || index < -most || index > most;
    };
    if ((one || !from.empty()) && wrong(from, read.from)) return from;
    if (!to.empty() && wrong(to, read.to)) return to;
    if (one && read.from != -1) read.to = read.from + 1;
    range = read;
    return std::nullopt;
}

}  // namespace masquerade
