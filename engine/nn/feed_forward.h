// SPDX-License-Identifier: MIT
// The feed-forward part of a layer, on each row by itself. Each kind is a class, and a name in feed_forward_kinds();
// layers and models know this interface alone.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "engine/nn/layers.h"

namespace masquerade {

struct FeedForwardShape {
    int width = 0, inner = 0;  // C, F
    double deviation = 0.02;   // of the first weights
    bool bias = true;
    GeluKind gelu = GeluKind::erf;
};

class FeedForward {
  public:
    virtual ~FeedForward() = default;
    virtual Tensor* operator()(Tape& tape, Tensor* x) const = 0;  // (N,C)
};

struct FeedForwardKind {
    const char *name, *what;
    // The parameters lie at path.up and path.down.
    std::unique_ptr<const FeedForward> (*make)(Parameters& parameters, const std::string& path,
                                               const FeedForwardShape& shape);
    // The activation alone, as the head of the stack has it.
    Tensor* (*activate)(Tape& tape, Tensor* x, GeluKind gelu);
};
const std::vector<FeedForwardKind>& feed_forward_kinds();
const FeedForwardKind& find_feed_forward(const std::string& name);  // BadUsage, with the names there are

}  // namespace masquerade
