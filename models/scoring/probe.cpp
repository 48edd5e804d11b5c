// SPDX-License-Identifier: MIT
#include "models/scoring/probe.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "engine/base/error.h"
#include "engine/base/shuffle.h"

namespace masquerade {
namespace {

using Vectors = std::vector<std::vector<double>>;
using Numbers = std::vector<double>;

double dot(const Numbers& a, const Numbers& b) { return std::inner_product(a.begin(), a.end(), b.begin(), 0.0); }

int largest(const Numbers& scores) { return int(std::max_element(scores.begin(), scores.end()) - scores.begin()); }

// Standardises every dimension to mean 0 and variance 1 over the training lines, and appends a 1 to each vector, whose
// weight is the bias.
Vectors standardised(const Vectors& all, const LabelledSplit& split) {
    const std::size_t D = all[0].size();
    Numbers mean(D, 0), deviation(D, 0);
    for (std::size_t i : split.train)
        for (std::size_t d = 0; d < D; d++) mean[d] += all[i][d] / double(split.train.size());
    for (std::size_t i : split.train)
        for (std::size_t d = 0; d < D; d++)
            deviation[d] += std::pow(all[i][d] - mean[d], 2) / double(split.train.size());
    Vectors x = all;
    for (Numbers& row : x) {
        for (std::size_t d = 0; d < D; d++) row[d] = (row[d] - mean[d]) / std::sqrt(deviation[d] + 1e-9);
        row.push_back(1);
    }
    return x;
}

template <class Guess>
double share_right(const LabelledSplit& split, Guess guess) {
    double right = 0;
    for (std::size_t i : split.test) right += guess(i) == split.labels[i];
    return right / double(split.test.size());
}

}  // namespace

LabelledSplit split_labels(const std::vector<std::string>& labels, int most, std::uint64_t seed, std::uint32_t draw) {
    LabelledSplit split;
    std::map<std::string, int> numbers;
    std::vector<std::vector<std::size_t>> of_class;
    for (std::size_t i = 0; i < labels.size(); i++) {
        const int label = numbers.emplace(labels[i], int(numbers.size())).first->second;
        split.labels.push_back(label);
        of_class.resize(numbers.size());
        (i % 5 == 4 ? split.test : of_class[std::size_t(label)]).push_back(i);
    }
    split.classes = int(numbers.size());
    Sequence random(seed, "labels", draw);
    for (std::vector<std::size_t>& lines : of_class) {
        shuffle(lines, random);
        if (most > 0 && lines.size() > std::size_t(most)) lines.resize(std::size_t(most));
        split.train.insert(split.train.end(), lines.begin(), lines.end());
    }
    if (split.classes < 2 || split.test.empty() || split.train.empty())
        throw BadInput(
            text("labels need two classes and five lines at least, found ", split.classes, " and ", labels.size()));
    return split;
}

double linear_probe(const Vectors& vectors, const LabelledSplit& split) {
    const Vectors x = standardised(vectors, split);
    const std::size_t D = x[0].size(), C = std::size_t(split.classes);
    Vectors w(C, Numbers(D, 0)), m = w, v = w;
    Numbers scores(C);
    const auto score = [&](std::size_t i) {
        for (std::size_t c = 0; c < C; c++) scores[c] = dot(w[c], x[i]);
    };
    for (int step = 1; step <= 300; step++) {
        Vectors g(C, Numbers(D, 0));
        for (std::size_t i : split.train) {
            score(i);
            const double top = *std::max_element(scores.begin(), scores.end());
            double sum = 0;
            for (double& s : scores) sum += s = std::exp(s - top);
            for (std::size_t c = 0; c < C; c++) {
                const double error = (scores[c] / sum - (int(c) == split.labels[i])) / double(split.train.size());
                for (std::size_t d = 0; d < D; d++) g[c][d] += error * x[i][d];
            }
        }
        const double rate = 0.1 * std::sqrt(1 - std::pow(0.999, step)) / (1 - std::pow(0.9, step));
        for (std::size_t c = 0; c < C; c++)
            for (std::size_t d = 0; d < D; d++) {
                const double slope = g[c][d] + 2e-3 * w[c][d];
                m[c][d] = 0.9 * m[c][d] + 0.1 * slope;
                v[c][d] = 0.999 * v[c][d] + 0.001 * slope * slope;
                w[c][d] -= rate * m[c][d] / (std::sqrt(v[c][d]) + 1e-8);
            }
    }
    return share_right(split, [&](std::size_t i) { return score(i), largest(scores); });
}

double nearest_neighbours(const Vectors& vectors, const LabelledSplit& split, int neighbours) {
    Numbers norms;
    for (const Numbers& x : vectors) norms.push_back(std::sqrt(dot(x, x)) + 1e-12);
    return share_right(split, [&](std::size_t i) {
        std::vector<std::pair<double, std::size_t>> near;
        for (std::size_t t : split.train) near.emplace_back(-dot(vectors[i], vectors[t]) / norms[t], t);
        const std::size_t k = std::min(near.size(), std::size_t(neighbours));
        std::partial_sort(near.begin(), near.begin() + std::ptrdiff_t(k), near.end());
        Numbers votes(std::size_t(split.classes), 0);
        for (std::size_t n = 0; n < k; n++)
            votes[std::size_t(split.labels[near[n].second])] += 1 + 1e-6 * std::ldexp(1.0, -int(n));
        return largest(votes);
    });
}

double naive_bayes(const std::vector<Sentence>& sentences, const LabelledSplit& split) {
    const std::size_t C = std::size_t(split.classes);
    std::vector<std::map<int, double>> counts(C);
    Numbers totals(C, 0), lines(C, 0);
    std::map<int, bool> known;
    for (std::size_t i : split.train) {
        lines[std::size_t(split.labels[i])]++;
        for (int token : sentences[i].ids)
            counts[std::size_t(split.labels[i])][token]++, totals[std::size_t(split.labels[i])]++, known[token] = true;
    }
    return share_right(split, [&](std::size_t i) {
        Numbers scores;
        for (std::size_t c = 0; c < C; c++) {
            scores.push_back(std::log((lines[c] + 1) / double(split.train.size() + C)));
            for (int token : sentences[i].ids) {
                const auto found = counts[c].find(token);
                scores.back() +=
                    std::log(((found == counts[c].end() ? 0 : found->second) + 1) / (totals[c] + double(known.size())));
            }
        }
        return largest(scores);
    });
}

double cluster_information(const Vectors& vectors, const LabelledSplit& split, std::uint64_t seed) {
    const std::size_t n = vectors.size(), C = std::size_t(split.classes);
    Vectors centres;
    for (std::size_t i : drawn(n, n, Sequence(seed, "clusters")))  // the first C different vectors in a random order
        if (centres.size() < C && std::find(centres.begin(), centres.end(), vectors[i]) == centres.end())
            centres.push_back(vectors[i]);
    std::vector<std::size_t> cluster(n, 0);
    for (int round = 0; round < 20; round++) {
        Vectors sums(centres.size(), Numbers(vectors[0].size(), 0));
        Numbers counts(centres.size(), 0);
        for (std::size_t i = 0; i < n; i++) {
            Numbers nearness;
            for (const Numbers& centre : centres) nearness.push_back(dot(vectors[i], centre) - dot(centre, centre) / 2);
            cluster[i] = std::size_t(largest(nearness));
            counts[cluster[i]]++;
            for (std::size_t d = 0; d < sums[0].size(); d++) sums[cluster[i]][d] += vectors[i][d];
        }
        for (std::size_t c = 0; c < centres.size(); c++)
            for (std::size_t d = 0; d < sums[0].size() && counts[c] > 0; d++) centres[c][d] = sums[c][d] / counts[c];
    }
    std::map<std::pair<std::size_t, int>, double> both;
    std::map<std::size_t, double> of_cluster;
    std::map<int, double> of_label;
    for (std::size_t i = 0; i < n; i++) {
        const double share = 1 / double(n);
        both[{cluster[i], split.labels[i]}] += share, of_cluster[cluster[i]] += share,
            of_label[split.labels[i]] += share;
    }
    double shared = 0, entropy = 0;
    for (const auto& [pair, p] : both) shared += p * std::log(p / (of_cluster[pair.first] * of_label[pair.second]));
    for (const auto& [c, p] : of_cluster) entropy -= p * std::log(p) / 2;
    for (const auto& [l, p] : of_label) entropy -= p * std::log(p) / 2;
    return entropy > 0 ? shared / entropy : 0;
}

}  // namespace masquerade
