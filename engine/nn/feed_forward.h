// SPDX-License-Identifier: MIT
// The feed-forward part of a layer, which maps each row to a row, separately. Each kind is a class and an entry in
// feed_forward_kinds(); layers and models use only this interface.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "engine/nn/layers.h"

namespace masquerade {

struct FeedForwardShape {
    int width = 0, inner = 0;  // C, F
    double deviation = 0.02;   // standard deviation of the initial weights
    bool bias = true;
    GeluKind gelu = GeluKind::erf;
};

class FeedForward {
  public:
    virtual ~FeedForward() = default;
    virtual Tensor* operator()(Tape& tape, Tensor* x) const = 0;  // (N,C) -> (N,C)
};

struct FeedForwardKind {
    const char *name, *what;
    // Declares the parameters at path.up.* and path.down.*
    std::unique_ptr<const FeedForward> (*make)(Parameters& parameters, const std::string& path,
                                               const FeedForwardShape& shape);
    // The activation without the linear layers; the output head of a stack uses it too.
    Tensor* (*activate)(Tape& tape, Tensor* x, GeluKind gelu);
};
const std::vector<FeedForwardKind>& feed_forward_kinds();
const FeedForwardKind& find_feed_forward(const std::string& name);  // throws BadUsage, which lists the names

}  // namespace masquerade
