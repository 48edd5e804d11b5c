// SPDX-License-Identifier: MIT
#include "models/writing/length_table.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <sstream>

#include "engine/base/error.h"
#include "engine/base/printable.h"

namespace masquerade {

double LengthTable::count(int source, int target) const {
    const auto row = counts_.find(source);
    if (row == counts_.end()) return 1;
    const auto found = row->second.find(target);
    return found == row->second.end() ? 1 : double(found->second) + 1;
}

double LengthTable::log_p(int source, int target, Range range) const {
    double sum = 0;
    for (int n = range.least; n <= range.most; n++) sum += count(source, n);
    return std::log(count(source, target) / sum);
}

std::vector<int> LengthTable::best(int source, int count, Range range) const {
    std::vector<int> all(std::max(0, range.most - range.least + 1));
    std::iota(all.begin(), all.end(), range.least);
    std::stable_sort(all.begin(), all.end(),
                     [&](int a, int b) { return this->count(source, a) > this->count(source, b); });
    all.resize(std::min(all.size(), std::size_t(count)));
    return all;
}

int LengthTable::draw(int source, double u, Range range) const {
    double left = 0;
    for (int n = range.least; n <= range.most; n++) left += u * count(source, n);
    for (int n = range.least; n < range.most; n++)
        if ((left -= count(source, n)) < 0) return n;
    return range.most;
}

std::string LengthTable::lines() const {
    std::string all;
    for (const auto& [source, row] : counts_)
        for (const auto& [target, times] : row) all += text(source, '\t', target, '\t', times, '\n');
    return all;
}

LengthTable LengthTable::read(const std::string& lines, const std::string& name) {
    LengthTable table;
    std::istringstream stream(lines);
    int number = 0;
    for (std::string line; std::getline(stream, line);) {
        number++;
        std::istringstream words(line);
        int source = 0, target = 0;
        std::int64_t times = 0;
        if (!(words >> source >> target >> times) || source < 0 || target < 0 || times < 1 || !(words >> std::ws).eof())
            throw BadInput(
                text(name, ":", number,
                     ": expected three numbers (tokens of a source, tokens of a target, how often), found \"",
                     printable(line), "\""));
        table.counts_[source][target] = times;
    }
    return table;
}

}  // namespace masquerade
