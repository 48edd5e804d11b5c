// SPDX-License-Identifier: MIT
// Probes: classifiers that predict labels from vectors, trained on some lines and tested on the others.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "data/sentences.h"

namespace masquerade {

struct LabelledSplit {
    std::vector<std::size_t> train, test;
    std::vector<int> labels;  // labels of all lines, 0 .. classes-1
    int classes = 0;
};
// Every fifth line is a test line. Training uses at most `most` of the other lines per label, chosen at random by
// (seed, draw); 0: all.
LabelledSplit split_labels(const std::vector<std::string>& labels, int most, std::uint64_t seed,
                           std::uint32_t draw = 0);

// The three classifiers return their accuracy on the test lines, 0..1.

// Logistic regression on standardised numbers, 300 steps of Adam, with a penalty of |w|^2 / 1000.
double linear_probe(const std::vector<std::vector<double>>& vectors, const LabelledSplit& split);
// Predicts the majority label of the `neighbours` nearest training lines by cosine similarity. Ties go to the label of
// the nearer lines.
double nearest_neighbours(const std::vector<std::vector<double>>& vectors, const LabelledSplit& split, int neighbours);
// Multinomial naive Bayes over tokens with add-one smoothing: a bag-of-words baseline.        McCallum & Nigam 1998
double naive_bayes(const std::vector<Sentence>& sentences, const LabelledSplit& split);

// Normalised mutual information, 0..1, of the labels and as many k-means clusters (20 rounds), over all lines: their
// mutual information divided by the mean of their entropies.
double cluster_information(const std::vector<std::vector<double>>& vectors, const LabelledSplit& split,
                           std::uint64_t seed);

}  // namespace masquerade
