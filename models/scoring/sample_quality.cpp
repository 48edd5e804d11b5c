// SPDX-License-Identifier: MIT
#include "models/scoring/sample_quality.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "engine/base/error.h"
#include "models/scoring/metrics.h"

namespace masquerade {
namespace {

constexpr int line_end = -1;

Texts read_all(WordTable& table, const Strings& lines) {
    Texts all;
    for (const std::string& line : lines) all.push_back(table.read(line));
    return all;
}

double words_per_line(const Texts& lines) {
    double sum = 0;
    for (const Tokens& line : lines) sum += line.size();
    return lines.empty() ? 0 : sum / lines.size();
}

}  // namespace

TrainingRuns::TrainingRuns(const Texts& lines) {
    for (const Tokens& line : lines) {
        text_.insert(text_.end(), line.begin(), line.end());
        text_.push_back(line_end);
    }
    if (text_.size() > UINT32_MAX)
        throw BadInput("the training text has ", text_.size(), " words and lines; at most ", UINT32_MAX,
                       " can be searched");
    places_.resize(text_.size());
    std::iota(places_.begin(), places_.end(), 0u);
    std::sort(places_.begin(), places_.end(), [&](std::uint32_t a, std::uint32_t b) {
        while (text_[a] == text_[b] && text_[a] != line_end) a++, b++;
        return text_[a] < text_[b];
    });
}

// Returns the length of the longest run (sequence of adjacent words) of the training text with which line[first ..]
// begins. In the sorted array places_, this run starts at one of the two elements between which line[first ..] belongs.
std::size_t TrainingRuns::longest_at(const Tokens& line, std::size_t first) const {
    auto shared = [&](std::uint32_t place) {
        std::size_t n = 0;
        while (first + n < line.size() && text_[place + n] == line[first + n]) n++;
        return n;
    };
    auto after = std::lower_bound(places_.begin(), places_.end(), first, [&](std::uint32_t place, std::size_t) {
        std::size_t n = shared(place);
        return first + n < line.size() && text_[place + n] < line[first + n];
    });
    std::size_t most = after != places_.end() ? shared(*after) : 0;
    return after != places_.begin() ? std::max(most, shared(*(after - 1))) : most;
}

std::size_t TrainingRuns::longest(const Tokens& line) const {
    std::size_t most = 0;
    for (std::size_t first = 0; first + most < line.size(); first++) most = std::max(most, longest_at(line, first));
    return most;
}

SampleQuality::SampleQuality(const Strings& training)
    : training_(read_all(table_, training)), model_(table_, training_), runs_(training_) {
    std::sort(training_.begin(), training_.end());
}

TextQuality SampleQuality::measure(const Strings& lines, std::size_t compared) {
    const Texts read = read_all(table_, lines);
    const Texts compared_lines(read.begin(), read.begin() + std::min(compared, read.size()));
    TextQuality q;
    q.perplexity = perplexity(model_, read);
    q.distinct1 = distinct(compared_lines, 1);
    q.distinct2 = distinct(compared_lines, 2);
    if (!compared_lines.empty())
        q.repeated =
            1 - double(std::set<Tokens>(compared_lines.begin(), compared_lines.end()).size()) / compared_lines.size();
    double copied = 0, matched = 0, not_empty = 0;
    for (const Tokens& line : read) {
        copied += std::binary_search(training_.begin(), training_.end(), line);
        std::size_t bin = 0;
        while (line.size() >> bin) bin++;
        q.lengths.resize(std::max(q.lengths.size(), bin + 1));
        q.lengths[bin] += 1.0 / read.size();
        if (line.empty()) continue;
        matched += double(runs_.longest(line)) / line.size();
        not_empty++;
    }
    if (!read.empty()) q.copied = copied / read.size();
    q.length = words_per_line(read);
    if (not_empty > 0) q.match = matched / not_empty;
    return q;
}

double SampleQuality::words(const Strings& lines) { return words_per_line(read_all(table_, lines)); }

double SampleQuality::reverse_perplexity(const Strings& lines, const Strings& others) {
    return perplexity(WordModel(table_, read_all(table_, lines)), read_all(table_, others)).all;
}

}  // namespace masquerade
