// SPDX-License-Identifier: MIT
#include "models/scoring/metrics.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "engine/base/error.h"
#include "engine/base/random.h"

namespace masquerade {

NgramCounts ngrams(const Tokens& tokens, int n) {
    NgramCounts counts;
    for (int i = 0; i + n <= int(tokens.size()); i++) counts[Tokens(tokens.begin() + i, tokens.begin() + i + n)]++;
    return counts;
}

int shared(const NgramCounts& a, const NgramCounts& b) {
    int sum = 0;
    for (const auto& [gram, count] : a) {
        auto found = b.find(gram);
        if (found != b.end()) sum += std::min(count, found->second);
    }
    return sum;
}

Bleu bleu(const Texts& references, const Texts& hypotheses, bool smoothed) {
    Bleu b;
    std::array<double, 4> matched{}, proposed{};
    for (std::size_t i = 0; i < references.size(); i++) {
        const Tokens &r = references[i], &h = hypotheses[i];
        b.reference_tokens += r.size();
        b.hypothesis_tokens += h.size();
        for (int n = 1; n <= 4; n++) {
            matched[n - 1] += shared(ngrams(h, n), ngrams(r, n));
            proposed[n - 1] += std::max(0.0, h.size() + 1.0 - n);
        }
    }
    const double reference = b.reference_tokens, hypothesis = b.hypothesis_tokens;
    b.brevity = hypothesis >= reference ? 1 : hypothesis > 0 ? std::exp(1 - reference / hypothesis) : 0;
    if (matched[0] == 0) return b;  // if no token matches, no n-gram matches
    double share = 1, log_precision = 0;
    for (std::size_t n = 0; n < 4; n++) {
        // If the hypotheses have no (n+1)-grams, the score stays 0. It also stays 0 if no (n+1)-gram matches and there
        // is no smoothing. The precisions of the order n + 1 and of all higher orders then stay 0, too.
        if (proposed[n] == 0 || (matched[n] == 0 && !smoothed)) return b;
        if (matched[n] == 0) matched[n] = share /= 2;
        b.precision[n] = 100 * matched[n] / proposed[n];
        log_precision += std::log(b.precision[n]) / 4;
    }
    b.score = b.brevity * std::exp(log_precision);
    return b;
}

int longest_common(const Tokens& a, const Tokens& b) {
    std::vector<int> row(b.size() + 1);  // row[k]: the result for the tokens of `a` so far and the first k tokens of b
    for (int token : a) {
        int corner = 0;
        for (std::size_t k = 0; k < b.size(); k++)
            corner = std::exchange(row[k + 1], token == b[k] ? corner + 1 : std::max(row[k], row[k + 1]));
    }
    return row.back();
}

namespace {

// Returns the Levenshtein distance, the smallest number of insertions, deletions and replacements of tokens that turn a
// into b.
int edits(const Tokens& a, const Tokens& b) {
    std::vector<int> row(b.size() + 1);
    std::iota(row.begin(), row.end(), 0);
    for (std::size_t i = 0; i < a.size(); i++) {
        int corner = std::exchange(row[0], int(i) + 1);
        for (std::size_t k = 0; k < b.size(); k++)
            corner = std::exchange(row[k + 1], std::min({corner + (a[i] != b[k]), row[k] + 1, row[k + 1] + 1}));
    }
    return row.back();
}

double f1(double shared, double a, double b) { return a + b == 0 ? 1 : 2 * shared / (a + b); }

constexpr int content = -1;
Tokens form_of(const Tokens& tokens, const FrequentTokens& frequent) {
    Tokens form;
    for (int t : tokens)
        if (frequent.count(t))
            form.push_back(t);
        else if (form.empty() || form.back() != content)
            form.push_back(content);
    return form;
}

}  // namespace

Closeness compare(const Texts& references, const Texts& hypotheses) {
    if (references.size() != hypotheses.size())
        throw Error("compare: ", references.size(), " references but ", hypotheses.size(), " hypotheses");
    if (references.empty()) return {};
    double equal = 0, met = 0, tokens = 0, changed = 0;
    for (std::size_t i = 0; i < references.size(); i++) {
        const Tokens &r = references[i], &h = hypotheses[i];
        equal += r == h;
        for (std::size_t k = 0; k < std::min(r.size(), h.size()); k++) met += r[k] == h[k];
        tokens += r.size();
        changed += edits(r, h);
    }
    return {equal / references.size(), tokens > 0 ? met / tokens : 0, bleu(references, hypotheses, false).score,
            tokens > 0 ? changed / tokens : 0};
}

double distinct(const Texts& corpus, int n) {
    std::set<Tokens> different;
    double all = 0;
    for (const Tokens& tokens : corpus)
        for (const auto& [gram, count] : ngrams(tokens, n)) {
            different.insert(gram);
            all += count;
        }
    return all > 0 ? different.size() / all : 0;
}

FrequentTokens most_frequent(const std::vector<Sentence>& sentences, int count) {
    std::map<int, long> counts;
    for (const Sentence& s : sentences)
        for (std::size_t i = 1; i + 1 < s.ids.size(); i++) counts[s.ids[i]]++;
    std::vector<std::pair<long, int>> order;
    for (const auto& [token, n] : counts) order.emplace_back(-n, token);
    std::sort(order.begin(), order.end());
    FrequentTokens frequent;
    if (int(order.size()) > count) order.resize(count);
    for (const auto& [n, token] : order) frequent.insert(token);
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
    return f1(longest_common(x, y), x.size(), y.size());
}

Interval bootstrap(const Numbers& values, std::uint64_t seed, const Numbers& counts) {
    constexpr int draws = 1000;
    const std::uint32_t n = values.size();
    if (n == 0) return {};
    const auto mean = [&](auto index) {
        double sum = 0, count = 0;
        for (std::uint32_t i = 0; i < n; i++) {
            const std::uint32_t at = index(i);
            sum += values[at];
            count += counts.empty() ? 1 : counts[at];
        }
        return sum / count;
    };
    const double all = mean([](std::uint32_t i) { return i; });
    if (!std::isfinite(all)) return {all, all, all};
    Numbers means;
    Sequence random(seed, "bootstrap");
    for (int d = 0; d < draws; d++)
        if (const double m = mean([&](std::uint32_t) { return random.below(n); }); std::isfinite(m)) means.push_back(m);
    std::sort(means.begin(), means.end());
    const std::size_t rank = means.size() / 40;
    return {all, means[rank], means[means.size() - 1 - rank]};
}

}  // namespace masquerade
