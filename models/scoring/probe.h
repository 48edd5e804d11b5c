// SPDX-License-Identifier: MIT
// Probes: simple classifiers that predict the label of a line from a vector, such as the line's latent. They are
// trained on some lines and tested on other lines. Their accuracy shows what the vectors contain about the labels.
#pragma once
#include "data/sentences.h"

namespace masquerade {

struct LabelledSplit {
    std::vector<std::size_t> train, test;  // indices of the training lines and of the test lines
    std::vector<int> labels;               // for each line, its label as a number from 0 to classes-1
    int classes = 0;
};
// Splits lines into training and test lines. Every fifth line is a test line. All other lines are training lines if
// `most` is 0. Otherwise, at most `most` of them per label are drawn as training lines; the draw depends on (seed,
// draw). Throws BadInput if there are fewer than two different labels, no training line or no test line.
LabelledSplit split_labels(const Strings& labels, int most, std::uint64_t seed, std::uint32_t draw = 0);

// linear_probe(), nearest_neighbours() and naive_bayes() train a classifier on the training lines and return its
// accuracy on the test lines, 0..1.

// Logistic regression, trained with 300 steps of Adam. The vectors are first standardised: in each dimension, the
// training lines have mean 0 and variance 1. The loss contains the penalty |w|^2 / 1000 for the weights w.
double linear_probe(const Vectors& vectors, const LabelledSplit& split);
// Predicts the most frequent label among the `neighbours` training lines with the highest cosine similarity. If several
// labels are equally frequent, the label with the nearest line wins.
double nearest_neighbours(const Vectors& vectors, const LabelledSplit& split, int neighbours);
// Multinomial naive Bayes over the tokens of the sentences, with add-one smoothing (McCallum & Nigam 1998). It needs no
// vectors, and is a baseline for the other two classifiers.
double naive_bayes(const std::vector<Sentence>& sentences, const LabelledSplit& split);

// Clusters all vectors by k-means (20 rounds). The number of clusters is the number of different labels or the number
// of different vectors, whichever is smaller. Returns the normalised mutual information of clusters and labels, 0..1:
// their mutual information divided by the mean of their two entropies.
double cluster_information(const Vectors& vectors, const LabelledSplit& split, std::uint64_t seed);

}  // namespace masquerade
