// SPDX-License-Identifier: MIT
#include "data/text.h"

#include <algorithm>
#include <cstdio>
#include <iostream>

#include "engine/base/log.h"
#include "engine/base/random.h"
#include "input/lines.h"
#include "input/utf8.h"

namespace masquerade {
namespace {

bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

bool is_blank(std::string_view line) { return std::all_of(line.begin(), line.end(), is_space); }

// Returns the number of bytes of the first code point in `rest`; 0 if the bytes are not UTF-8 or are a NUL byte. NUL
// bytes count as invalid, because they reveal files that are not UTF-8 text: almost every UTF-16 file has many.
std::size_t code_point_bytes(std::string_view rest) { return rest[0] == 0 ? 0 : decode_utf8(rest, 0).length; }

// Splits `rest` at the first `end`: returns the part before it, and removes this part and the `end` from `rest`. If
// there is no `end`, returns all of `rest`, and makes `rest` empty.
std::string_view take(std::string_view& rest, char end) {
    std::size_t at = rest.find(end);
    std::string_view part = rest.substr(0, at);
    rest.remove_prefix(at == rest.npos ? rest.size() : at + 1);
    return part;
}

void log_warning(const std::string& warning) {
    if (!warning.empty()) log_line("warning: ", warning);
}

bool holds_pairs(std::string_view bytes) {
    std::uint64_t lines = 0, tabs = 0;
    TextLines all(bytes);
    for (std::string_view line; all.next(line);) {
        if (is_blank(line)) continue;
        lines++;
        tabs += line.find('\t') != line.npos;
    }
    return tabs > 0 && 2 * tabs >= lines;
}

}  // namespace

std::string clean_line(std::string_view line, std::size_t longest, TextCounts& counts) {
    line = without_return(line);
    if (line.size() <= longest && is_utf8(line) && line.find('\0') == line.npos)
        return std::string(line);  // true for almost all lines
    std::string kept;
    bool cut = false;
    while (!line.empty()) {
        std::size_t length = code_point_bytes(line);
        if (length == 0) counts.invalid_bytes++;
        cut = cut || kept.size() + length > longest;
        if (!cut) kept.append(line.substr(0, length));
        line.remove_prefix(length == 0 ? 1 : length);
    }
    counts.cut += cut;
    return kept;
}

std::string collapse_space(std::string_view line) {
    std::string kept;
    for (char c : line) {
        if (!is_space(c))
            kept += c;
        else if (!kept.empty() && kept.back() != ' ')
            kept += ' ';
    }
    if (!kept.empty() && kept.back() == ' ') kept.pop_back();
    return kept;
}

std::string warning_about(const TextCounts& counts, const std::string& name, std::size_t longest) {
    if (counts.invalid_bytes * 100 > counts.bytes)
        throw BadInput(
            name, ": ", counts.invalid_bytes, " of ", counts.bytes,
            " bytes are not UTF-8, or NUL (at most 1 % may be); iconv -t UTF-8 converts it, tr -d '\\0' removes NUL");
    std::string what;
    auto add = [&](std::uint64_t count, const char* noun, const std::string& fate) {
        if (count == 0) return;
        what += text(what.empty() ? ": " : ", ", count, ' ', noun, count == 1 ? " " : "s ", fate);
    };
    add(counts.invalid_bytes, "invalid byte", "dropped");
    add(counts.cut, "sentence", text("cut to ", longest, " bytes"));
    add(counts.halves, "line", "without both a source and a target skipped");
    add(counts.further, "line", "cut after the second column");
    return what.empty() ? what : name + what;
}

bool read_line(std::string_view line, bool pairs, std::size_t longest, TextCounts& counts, std::string& source,
               std::string& target) {
    counts.lines++;
    if (is_blank(line)) return false;
    source = clean_line(pairs ? take(line, '\t') : line, longest, counts);
    target = clean_line(pairs ? take(line, '\t') : "", longest, counts);
    if (is_blank(source) || (pairs && is_blank(target))) {
        counts.halves += pairs;
        return false;
    }
    counts.further += pairs && !is_blank(line);
    return true;
}

Text parse_text(std::string_view bytes, const std::string& name, std::size_t longest, std::optional<bool> known) {
    Text result;
    TextCounts& counts = result.counts;
    counts.bytes = bytes.size();
    result.hash = hash_of(bytes);
    const bool pairs = known ? *known : holds_pairs(bytes);
    TextLines lines(bytes);
    std::string source, target;
    for (std::string_view line; lines.next(line);) {
        if (!read_line(line, pairs, longest, counts, source, target)) continue;
        result.source.push_back(std::move(source));
        if (pairs) result.target.push_back(std::move(target));
    }
    result.warning = warning_about(counts, name, longest);
    if (result.source.empty() && counts.halves > 0)
        throw BadInput(
            name, ": none of ", counts.halves, counts.halves == 1 ? " line" : " lines",
            " with a tab has both a source before it and a target behind it; source<TAB>target is expected on every line");
    if (result.source.empty())
        throw BadInput(name, " is empty: no sentence in ", counts.lines,
                       " lines; one sentence a line, or source<TAB>target, is expected");
    return result;
}

Text read_text(const std::string& path, std::size_t longest) {
    Text result = parse_text(read_bytes(path), path, longest);
    log_warning(result.warning);
    return result;
}

bool LineReader::next(std::string& line) {
    std::string raw;
    if (!std::getline(in_, raw)) {
        // std::cin reports a read error as the end of the file, so ask C's stdin, too.
        bool broken = in_.bad() || (&in_ == &std::cin && std::ferror(stdin));
        if (broken) throw BadInput(name_, " cannot be read");
        return false;
    }
    counts_.bytes += raw.size() + !in_.eof();
    line = clean_line(counts_.lines++ == 0 ? without_mark(raw) : raw, longest_sentence, counts_);
    return true;
}

void LineReader::finish() const { log_warning(warning_about(counts_, name_)); }

}  // namespace masquerade
