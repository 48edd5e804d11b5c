// SPDX-License-Identifier: MIT
#pragma once
#include "tools/bench/train.h"

namespace masquerade {

// Returns a mark of the same kind that is small enough for a test.
inline TrainMark small_mark(const std::string& name) {
    TrainMark mark = train_mark(name, 3);
    BackboneOptions& b = mark.model.backbone;
    b.width = 16, b.heads = 2, b.inner = 32, b.layers = 3, mark.model.latent_layers = 2;
    mark.model.latent.size = 4;
    mark.sentences.resize(3);
    if (!mark.univae) mark.targets.resize(3);
    return mark;
}

}  // namespace masquerade
