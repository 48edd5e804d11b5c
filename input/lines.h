// SPDX-License-Identifier: MIT
// Splits text files into lines, for all code that reads lines. Line ends (LF or CR LF) are removed. A byte order mark,
// which some programs on Windows write at the beginning of a file, is removed, too.
#pragma once
#include <string_view>

namespace masquerade {

inline std::string_view without_mark(std::string_view text) {
    return text.substr(text.substr(0, 3) == "\xEF\xBB\xBF" ? 3 : 0);
}
inline std::string_view without_return(std::string_view line) {
    return line.substr(0, line.size() - (!line.empty() && line.back() == '\r'));
}

// Iterates over the lines of a text. The text must outlive the lines.
class TextLines {
  public:
    explicit TextLines(std::string_view text) : rest_(without_mark(text)) {}
    // Sets `line` to the next line. Returns false at the end of the text. Text after the last line end is a line, too.
    bool next(std::string_view& line) {
        if (rest_.empty()) return false;
        const std::size_t end = rest_.find('\n');
        line = without_return(rest_.substr(0, end));
        rest_.remove_prefix(end == rest_.npos ? rest_.size() : end + 1);
        number_++;
        return true;
    }
    int number() const { return number_; }  // number of the line that the latest next() returned, from 1

  private:
    std::string_view rest_;
    int number_ = 0;
};

}  // namespace masquerade
