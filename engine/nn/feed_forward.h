// SPDX-License-Identifier: MIT
// The feed-forward part of a layer: it maps each row to a row of the same width, independently of the other rows. Each
// kind is a class and an entry in feed_forward_kinds(). A layer finds its kind by name (find_feed_forward()), and uses
// only the interface FeedForward. The output head of a model uses only FeedForwardKind::activate.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "engine/nn/layers.h"

namespace masquerade {

struct FeedForwardShape {
    int width = 0, inner = 0;  // C, the width of a row; F, the width between the linear layers
    double deviation = 0.02;   // standard deviation of the initial weights
    bool bias = true;
    GeluKind gelu = GeluKind::erf;
};

class FeedForward {
  public:
    virtual ~FeedForward() = default;
    virtual Tensor* operator()(Tape& tape, Tensor* x) const = 0;  // maps x (N,C) to (N,C)
};

struct FeedForwardKind {
    const char *name, *what;
    // Declares the parameters, whose paths are `path` followed by .up.* and .down.*.
    std::unique_ptr<const FeedForward> (*make)(Parameters& parameters, const std::string& path,
                                               const FeedForwardShape& shape);
    // Applies only the activation, without the linear layers.
    Tensor* (*activate)(Tape& tape, Tensor* x, GeluKind gelu);
};
const std::vector<FeedForwardKind>& feed_forward_kinds();
// Throws BadUsage if no kind has this name; the message lists all names.
const FeedForwardKind& find_feed_forward(const std::string& name);

}  // namespace masquerade
