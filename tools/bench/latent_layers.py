#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measures how much each latent layer says about a label of the sentence, and whether one number says it alone.

    ./generate RUN --vectors vectors.npy < sentences.txt
    tools/bench/latent_layers.py vectors.npy labels.txt 4 110       # one label for each sentence; 4 latent layers, kappa 110

For each latent layer, a vector contains the mean of the latent, a point on a sphere. The program adds normal noise of
variance 1 / kappa to each number, so that the vectors are nearly samples of the latent kind `vmf`. Information that is
lost in the noise therefore does not count. The classifiers are tested on every fifth line and trained on the other
lines; accuracies are in percent. Prints:
    most frequent      accuracy if the most frequent class is always the answer
    layers, all        accuracy of a linear classifier on each latent layer, and on all layers together
    best less second   accuracy of the best layer minus accuracy of the second-best layer
    best number        largest mutual information of one number and the label, as a fraction of the label's entropy; a
                       number is divided into 20 intervals with equally many sentences
    gap                mutual information gap (Chen et al. 2018): `best number` minus the value of the second-best one
"""
import sys

import numpy

vectors, labels = numpy.load(sys.argv[1]), numpy.array(open(sys.argv[2]).read().splitlines())
layers, kappa = int(sys.argv[3]), float(sys.argv[4])
vectors += numpy.random.default_rng(1).normal(size=vectors.shape) / kappa**0.5
test = numpy.arange(len(labels)) % 5 == 0
classes = numpy.unique(labels)


def right(x):  # the percentage of test lines that a linear classifier (ridge regression) on x gets right
    x = numpy.c_[(x - x.mean(0)) / x.std(0), numpy.ones(len(x))]
    a = x[~test]
    w = numpy.linalg.solve(a.T @ a + numpy.eye(a.shape[1]), a.T @ (labels[~test, None] == classes))
    return 100 * (classes[(x[test] @ w).argmax(1)] == labels[test]).mean()


def information(x):
    bins = numpy.searchsorted(numpy.quantile(x, numpy.arange(1, 20) / 20), x)
    p = numpy.array([numpy.bincount(bins[labels == c], minlength=20) for c in classes]) / len(x)
    of_class, of_bin = p.sum(1, keepdims=True), p.sum(0, keepdims=True)
    ratio = numpy.where(p > 0, p / of_class / of_bin, 1)
    return (p * numpy.log(ratio)).sum() / -(of_class * numpy.log(of_class)).sum()


each = [right(x) for x in numpy.split(vectors, layers, axis=1)]
first, second = sorted(map(information, vectors.T))[:-3:-1]
best = sorted(each)
print("most frequent %.1f | layers %s | all %.1f | best less second %.1f | best number %.3f | gap %.3f" % (
    right(vectors[:, :0]), " ".join("%.1f" % r for r in each), right(vectors), best[-1] - best[-2], first, first - second))
