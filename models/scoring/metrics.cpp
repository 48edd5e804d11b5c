// SPDX-License-Identifier: MIT
#include "models/scoring/metrics.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "engine/base/error.h"

namespace masquerade {

NgramCounts ngrams(const Tokens& tokens, int n) {
    NgramCounts counts;
    for (std::size_t i = 0; i + std::size_t(n) <= tokens.size(); i++)
        counts[Tokens(tokens.begin() + std::ptrdiff_t(i), tokens.begin() + std::ptrdiff_t(i) + n)]++;
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

Closeness compare(const std::vector<Tokens>& references, const std::vector<Tokens>& hypotheses) {
    if (references.size() != hypotheses.size())
        throw Error(text("compare: ", references.size(), " references but ", hypotheses.size(), " hypotheses"));
    if (references.empty()) return {};
    double equal = 0, met = 0, reference_tokens = 0, hypothesis_tokens = 0;
    double matched[4] = {}, proposed[4] = {};
    for (std::size_t i = 0; i < references.size(); i++) {
        const Tokens &r = references[i], &h = hypotheses[i];
        equal += r == h;
        for (std::size_t k = 0; k < std::min(r.size(), h.size()); k++) met += r[k] == h[k];
        reference_tokens += double(r.size());
        hypothesis_tokens += double(h.size());
        for (int n = 1; n <= 4; n++) {
            proposed[n - 1] += std::max(0.0, double(h.size()) - n + 1);
            matched[n - 1] += shared(ngrams(h, n), ngrams(r, n));
        }
    }
    Closeness c;
    c.exact = equal / double(references.size());
    c.token_accuracy = reference_tokens > 0 ? met / reference_tokens : 0;
    double log_precision = 0;
    for (int n = 0; n < 4; n++) {
        if (matched[n] == 0) return c;  // BLEU without smoothing is 0
        log_precision += std::log(matched[n] / proposed[n]) / 4;
    }
    double brevity = std::min(0.0, 1 - reference_tokens / hypothesis_tokens);
    c.bleu4 = 100 * std::exp(log_precision + brevity);
    return c;
}

double distinct(const std::vector<Tokens>& corpus, int n) {
    std::set<Tokens> different;
    double all = 0;
    for (const Tokens& tokens : corpus)
        for (const auto& [gram, count] : ngrams(tokens, n)) {
            different.insert(gram);
            all += count;
        }
    return all > 0 ? double(different.size()) / all : 0;
}

}  // namespace masquerade
