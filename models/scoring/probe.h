// SPDX-License-Identifier: MIT
// Labels from vectors: classifiers that are trained on some lines and tried on the others.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "data/sentences.h"

namespace masquerade {

struct LabelledSplit {
    std::vector<std::size_t> train, test;
    std::vector<int> labels;  // of all lines, 0 .. classes-1
    int classes = 0;
};
// Every fifth line is for the test; the others are trained on, or `most` of each label drawn by the seed and the draw.
// 0: all.
LabelledSplit split_labels(const std::vector<std::string>& labels, int most, std::uint64_t seed,
                           std::uint32_t draw = 0);

// Shares of the test that are right, 0..1.
// Logistic regression on standardised numbers, 300 steps of Adam, weights with a penalty of |w|^2 / 1000.
double linear_probe(const std::vector<std::vector<double>>& vectors, const LabelledSplit& split);
// The label of most of the `neighbours` nearest by the cosine; of equals that of the nearest.
double nearest_neighbours(const std::vector<std::vector<double>>& vectors, const LabelledSplit& split, int neighbours);
// Multinomial over tokens, one added to each count: what a bag of words tells without any model.  McCallum & Nigam 1998
double naive_bayes(const std::vector<Sentence>& sentences, const LabelledSplit& split);

// Mutual information of labels and as many clusters (k-means, 20 rounds), over the mean of their entropies; of all
// lines. 0..1
double cluster_information(const std::vector<std::vector<double>>& vectors, const LabelledSplit& split,
                           std::uint64_t seed);

}  // namespace masquerade
