// SPDX-License-Identifier: MIT
#include "models/scoring/overlap.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "engine/base/random.h"
#include "models/scoring/metrics.h"

namespace masquerade {
namespace {

double f1(double shared, double a, double b) { return a + b == 0 ? 1 : 2 * shared / (a + b); }

constexpr int content = -1;
Tokens form_of(const Tokens& tokens, const FrequentTokens& frequent) {
    Tokens form;
    for (int t : tokens)
        if (frequent.count(t)) form.push_back(t);
        else if (form.empty() || form.back() != content) form.push_back(content);
    return form;
}

}  // namespace

FrequentTokens most_frequent(const std::vector<Sentence>& sentences, int count) {
    std::map<int, long> counts;
    for (const Sentence& s : sentences)
        for (std::size_t i = 1; i + 1 < s.ids.size(); i++) counts[s.ids[i]]++;
    std::vector<std::pair<long, int>> order;
    for (const auto& [token, n] : counts) order.emplace_back(-n, token);
    std::sort(order.begin(), order.end());
    FrequentTokens frequent;
    for (std::size_t i = 0; i < order.size() && i < std::size_t(count); i++) frequent.insert(order[i].second);
    return frequent;
}

double content_overlap(const Tokens& a, const Tokens& b, const FrequentTokens& frequent) {
    std::map<int, int> left;
    int in_a = 0, in_b = 0, shared = 0;
    for (int t : a)
        if (!frequent.count(t)) left[t]++, in_a++;
    for (int t : b)
        if (!frequent.count(t)) shared += left[t]-- > 0, in_b++;
    return f1(shared, in_a, in_b);
}

double form_overlap(const Tokens& a, const Tokens& b, const FrequentTokens& frequent) {
    const Tokens x = form_of(a, frequent), y = form_of(b, frequent);
    return f1(longest_common(x, y), double(x.size()), double(y.size()));
}

Interval bootstrap(const std::vector<double>& values, std::uint64_t seed) {
    constexpr int draws = 1000;
    const auto n = std::uint32_t(values.size());
    if (n == 0) return {};
    std::vector<double> means;
    Sequence random(seed, "bootstrap");
    for (int d = 0; d < draws; d++) {
        double sum = 0;
        for (std::uint32_t i = 0; i < n; i++) sum += values[random.below(n)];
        means.push_back(sum / n);
    }
    std::sort(means.begin(), means.end());
    return {std::accumulate(values.begin(), values.end(), 0.0) / n, means[draws / 40], means[draws - 1 - draws / 40]};
}

}  // namespace masquerade
