// SPDX-License-Identifier: MIT
#include "models/scoring/probe.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "engine/base/error.h"
#include "engine/base/shuffle.h"

namespace masquerade {
namespace {

double dot(const Numbers& a, const Numbers& b) { return std::inner_product(a.begin(), a.end(), b.begin(), 0.0); }

int largest(const Numbers& scores) { return std::max_element(scores.begin(), scores.end()) - scores.begin(); }

// Standardises every dimension to mean 0 and variance 1 over the training lines. Appends a 1 to each vector; the weight
// of this 1 is the bias.
Vectors standardised(const Vectors& all, const LabelledSplit& split) {
    const std::size_t D = all[0].size();
    Numbers mean(D), deviation(D);
    for (std::size_t i : split.train)
        for (std::size_t d = 0; d < D; d++) mean[d] += all[i][d] / split.train.size();
    for (std::size_t i : split.train)
        for (std::size_t d = 0; d < D; d++) deviation[d] += std::pow(all[i][d] - mean[d], 2) / split.train.size();
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
    return right / split.test.size();
}

}  // namespace

LabelledSplit split_labels(const Strings& labels, int most, std::uint64_t seed, std::uint32_t draw) {
    LabelledSplit split;
    std::map<std::string, int> numbers;
    std::vector<std::vector<std::size_t>> of_class;
    for (std::size_t i = 0; i < labels.size(); i++) {
        const int label = numbers.emplace(labels[i], numbers.size()).first->second;
        split.labels.push_back(label);
        of_class.resize(numbers.size());
        (i % 5 == 4 ? split.test : of_class[label]).push_back(i);
    }
    split.classes = numbers.size();
    Sequence random(seed, "labels", draw);
    for (std::vector<std::size_t>& lines : of_class) {
        shuffle(lines, random);
        if (most > 0 && lines.size() > std::size_t(most)) lines.resize(most);
        split.train.insert(split.train.end(), lines.begin(), lines.end());
    }
    if (split.classes < 2 || split.test.empty() || split.train.empty())
        throw BadInput("labels need two classes and five lines at least, found ", split.classes, " and ",
                       labels.size());
    return split;
}

double linear_probe(const Vectors& vectors, const LabelledSplit& split) {
    const Vectors x = standardised(vectors, split);
    const std::size_t D = x[0].size(), C = split.classes;
    Vectors w(C, Numbers(D)), m = w, v = w;
    Numbers scores(C);
    const auto score = [&](std::size_t i) {
        for (std::size_t c = 0; c < C; c++) scores[c] = dot(w[c], x[i]);
    };
    for (int step = 1; step <= 300; step++) {
        Vectors g(C, Numbers(D));
        for (std::size_t i : split.train) {
            score(i);
            const double top = *std::max_element(scores.begin(), scores.end());
            double sum = 0;
            for (double& s : scores) sum += s = std::exp(s - top);
            for (std::size_t c = 0; c < C; c++) {
                const double error = (scores[c] / sum - (int(c) == split.labels[i])) / split.train.size();
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
        const int k = std::min(int(near.size()), neighbours);
        std::partial_sort(near.begin(), near.begin() + k, near.end());
        Numbers votes(split.classes);
        for (int n = 0; n < k; n++) votes[split.labels[near[n].second]] += 1 + 1e-6 * std::ldexp(1.0, -n);
        return largest(votes);
    });
}

double naive_bayes(const std::vector<Sentence>& sentences, const LabelledSplit& split) {
    const std::size_t C = split.classes;
    std::vector<std::map<int, double>> counts(C);
    Numbers totals(C), lines(C);
    std::set<int> known;
    for (std::size_t i : split.train) {
        const int label = split.labels[i];
        lines[label]++;
        totals[label] += sentences[i].ids.size();
        for (int token : sentences[i].ids) {
            counts[label][token]++;
            known.insert(token);
        }
    }
    return share_right(split, [&](std::size_t i) {
        Numbers scores;
        for (std::size_t c = 0; c < C; c++) {
            scores.push_back(std::log((lines[c] + 1) / (split.train.size() + C)));
            for (int token : sentences[i].ids)
                scores.back() += std::log((counts[c][token] + 1) / (totals[c] + known.size()));
        }
        return largest(scores);
    });
}

double cluster_information(const Vectors& vectors, const LabelledSplit& split, std::uint64_t seed) {
    const std::size_t n = vectors.size(), C = split.classes;
    Vectors centres;
    // The initial centres are different vectors, drawn at random.
    for (std::size_t i : drawn(n, n, Sequence(seed, "clusters")))
        if (centres.size() < C && std::find(centres.begin(), centres.end(), vectors[i]) == centres.end())
            centres.push_back(vectors[i]);
    std::vector<int> cluster(n);
    for (int round = 0; round < 20; round++) {
        Vectors sums(centres.size(), Numbers(vectors[0].size()));
        Numbers counts(centres.size());
        for (std::size_t i = 0; i < n; i++) {
            Numbers nearness;
            for (const Numbers& centre : centres) nearness.push_back(dot(vectors[i], centre) - dot(centre, centre) / 2);
            cluster[i] = largest(nearness);
            counts[cluster[i]]++;
            for (std::size_t d = 0; d < sums[0].size(); d++) sums[cluster[i]][d] += vectors[i][d];
        }
        for (std::size_t c = 0; c < centres.size(); c++)
            for (std::size_t d = 0; d < sums[0].size() && counts[c] > 0; d++) centres[c][d] = sums[c][d] / counts[c];
    }
    std::map<std::pair<int, int>, double> both;
    std::map<int, double> of_cluster, of_label;
    for (std::size_t i = 0; i < n; i++)
        for (double* share :
             {&both[{cluster[i], split.labels[i]}], &of_cluster[cluster[i]], &of_label[split.labels[i]]})
            *share += 1.0 / n;
    double shared = 0, entropy = 0;
    for (const auto& [pair, p] : both) shared += p * std::log(p / (of_cluster[pair.first] * of_label[pair.second]));
    for (const auto& shares : {of_cluster, of_label})
        for (const auto& [key, p] : shares) entropy -= p * std::log(p) / 2;
    return entropy > 0 ? shared / entropy : 0;
}

}  // namespace masquerade
