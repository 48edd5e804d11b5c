// SPDX-License-Identifier: MIT
// The kinds of attention of a stack, in words. A kind alone is the kind of all layers; like a mask in words, words may
// also choose a kind for each part of a document and for each layer:
//
//   "A lsh; B softmax"               the source A, or the encoder, has lsh; the target B, or the decoder, has softmax
//   "window | layers -2:: softmax"   the upper two layers have softmax, the layers below have window
//
//   kinds  KIND, or one or two parts, separated by ";": A KIND; B KIND
//
// layer_words() splits kinds for some layers, separated by "|". If several apply, the last one counts. Rows for which
// the words choose no kind have softmax.
#pragma once
#include <array>
#include <string>
#include <vector>

#include "engine/nn/attention/attention.h"

namespace masquerade {

class AttentionWords {
  public:
    // Throws BadUsage if the words do not follow the grammar above, or if there is no kind of such a name.
    AttentionWords(const std::string& words, int layers);
    // Returns the kind of a layer for the rows of a part: 0 for A, 1 for B.
    const AttentionKind& of(int layer, int part) const { return *of_layers_.at(std::size_t(layer))[std::size_t(part)]; }
    // Returns the kinds that the words name.
    const std::vector<const AttentionKind*>& named() const { return named_; }

  private:
    std::vector<std::array<const AttentionKind*, 2>> of_layers_;
    std::vector<const AttentionKind*> named_;
};

}  // namespace masquerade
