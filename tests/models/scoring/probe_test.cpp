// SPDX-License-Identifier: MIT
// Tests classifiers on vectors that contain the label exactly, nearly, or not at all.
#include "models/scoring/probe.h"

#include <doctest/doctest.h>

#include <cmath>

#include "engine/base/error.h"
#include "engine/base/random.h"

using namespace masquerade;

namespace {

// Vectors of three labels. For each label, they lie around one corner, with the deviation `spread`.
struct Cloud {
    std::vector<std::string> labels;
    std::vector<std::vector<double>> vectors;
    std::vector<Sentence> sentences;
    explicit Cloud(double spread) {
        Sequence random(1, "cloud");
        for (int i = 0; i < 600; i++) {
            const int label = int(random.below(3));
            labels.push_back(std::string(1, char('a' + label)));
            vectors.push_back({});
            for (int d = 0; d < 4; d++)
                vectors.back().push_back((d == label) + spread * (random.uniform_double() - 0.5));
            Sentence s;
            s.ids = {2, spread < 1 ? 10 + label : 10, 20 + int(random.below(5)), 3};
            sentences.push_back(s);
        }
    }
};

}  // namespace

TEST_CASE("probe: labels that vectors or words tell are found, others are not") {
    const Cloud near(0.8), far(1e6);
    const LabelledSplit split = split_labels(near.labels, 0, 1), chance = split_labels(far.labels, 0, 1);
    CHECK((split.classes == 3 && split.train.size() == 480 && split.test.size() == 120));
    CHECK(linear_probe(near.vectors, split) >= 0.99);
    CHECK(nearest_neighbours(near.vectors, split, 5) >= 0.99);
    CHECK(naive_bayes(near.sentences, split) == 1);
    CHECK(cluster_information(near.vectors, split, 1) >= 0.6);
    CHECK(linear_probe(far.vectors, chance) <= 0.5);
    CHECK(nearest_neighbours(far.vectors, chance, 5) <= 0.5);
    CHECK(naive_bayes(far.sentences, chance) <= 0.5);
    CHECK(cluster_information(far.vectors, chance, 1) <= 0.1);
}

TEST_CASE("probe: of labels with as many votes the one of the nearest wins; clusters start from different vectors") {
    // Lines 0 to 3 and 5 are for training, and line 4 is the question. The labels of its neighbours, nearest first, are
    // a b b c a.
    const auto at = [](double angle) { return std::vector<double>{std::cos(angle), std::sin(angle)}; };
    const std::vector<std::string> labels = {"a", "b", "b", "c", "a", "a"};
    CHECK(nearest_neighbours({at(0.1), at(0.2), at(0.3), at(0.4), at(0), at(0.5)}, split_labels(labels, 0, 1), 5) == 1);
    CHECK(nearest_neighbours({at(0.1), at(0.2), at(0.5), at(0.3), at(0), at(0.4)}, split_labels(labels, 0, 1), 5) == 1);
    // If labels have equally many votes, the nearest one wins, whatever their order among the lines or in the alphabet.
    for (const std::vector<std::string>& swapped : {std::vector<std::string>{"b", "a", "b", "c", "a", "a"},
                                                    std::vector<std::string>{"a", "b", "a", "c", "b", "b"}})
        CHECK(nearest_neighbours({at(0.2), at(0.1), at(0.3), at(0.4), at(0), at(0.5)}, split_labels(swapped, 0, 1),
                                 5) == 1);
    std::vector<std::vector<double>> vectors;
    std::vector<std::string> of;
    for (int i = 0; i < 60; i++) vectors.push_back(at(i % 3)), of.push_back(std::string(1, char('a' + i % 3)));
    for (std::uint64_t seed = 1; seed < 20; seed++)
        CHECK(std::abs(cluster_information(vectors, split_labels(of, 0, 1), seed) - 1) < 1e-9);
}

TEST_CASE("probe: few labels are drawn of each, by the seed; the test stays the same") {
    const Cloud cloud(0.8);
    const LabelledSplit one = split_labels(cloud.labels, 1, 1), other = split_labels(cloud.labels, 1, 2);
    CHECK(one.train.size() == 3);
    CHECK(one.test == other.test);
    CHECK(one.train != other.train);
    CHECK(linear_probe(cloud.vectors, one) > 0.6);
    CHECK_THROWS_AS(split_labels({"a", "a", "a", "a", "a", "a"}, 0, 1), BadInput);
    CHECK_THROWS_AS(split_labels({"a", "b"}, 0, 1), BadInput);
}
