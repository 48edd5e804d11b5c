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
    const auto found = counts_.find({source, target});
    return found == counts_.end() ? 1 : double(found->second) + 1;
}

Numbers LengthTable::law(int source, LengthRange range) const {
    Numbers scores;
    for (int n = 0; n <= range.most; n++) scores.push_back(std::log(count(source, n)));
    return length_law(scores, range);
}

Numbers length_law(const Numbers& scores, LengthRange range) {
    Numbers law(range.most + 1, -INFINITY);
    const auto first = scores.begin() + range.least, end = scores.begin() + range.most + 1;
    const double largest = *std::max_element(first, end);
    double sum = 0;
    for (auto each = first; each < end; each++) sum += std::exp(*each - largest);
    std::transform(first, end, law.begin() + range.least, [&](double s) { return s - largest - std::log(sum); });
    return law;
}

std::vector<int> best_lengths(const Numbers& law, int count) {
    std::vector<int> all;
    for (int n = 0; n < int(law.size()); n++)
        if (law[n] > -INFINITY) all.push_back(n);
    std::stable_sort(all.begin(), all.end(), [&](int a, int b) { return law[a] > law[b]; });
    all.resize(std::min(all.size(), std::size_t(count)));
    return all;
}

int draw_length(const Numbers& law, double u) {
    for (int n = 0; n + 1 < int(law.size()); n++)
        if ((u -= std::exp(law[n])) < 0) return n;
    return int(law.size()) - 1;
}

std::string LengthTable::lines() const {
    std::string all;
    for (const auto& [lengths, times] : counts_) all += text(lengths.first, '\t', lengths.second, '\t', times, '\n');
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
            throw BadInput(name, ":", number,
                           ": expected three numbers (tokens of a source, tokens of a target, how often), found \"",
                           printable(line), "\"");
        table.counts_[{source, target}] = times;
    }
    return table;
}

}  // namespace masquerade
