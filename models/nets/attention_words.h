// SPDX-License-Identifier: MIT
// Reads a text that chooses the kind of attention (attention_kinds()) of each layer of a stack. A text that consists of
// one kind, such as "window", chooses this kind for all layers. As in the texts that describe masks
// (models/masks/words.h), a kind can also be limited to the source or the target of a pair, and to some layers:
//
//   "A lsh; B softmax"               rows of the source A (or the encoder) have lsh, rows of the target B (or the
//                                    decoder) have softmax
//   "window | layers -2:: softmax"   the upper two layers have softmax, the layers below have window
//
// The text has one or more entries, separated by "|". An entry is KIND, "A KIND", "B KIND" or "A KIND; B KIND", and can
// begin with a range of layers, which layer_words() reads. If several entries name a kind for the same rows of a layer,
// the last entry counts. Rows for which no entry names a kind have softmax.
#pragma once
#include <array>
#include <string>
#include <vector>

#include "engine/nn/attention/attention.h"

namespace masquerade {

class AttentionWords {
  public:
    // Throws BadUsage if the text does not have the form described at the top of this file, or names an unknown kind.
    AttentionWords(const std::string& words, int layers);
    // Returns the kind of attention that a layer uses for the rows of one part. Part 0 is the source A or the encoder;
    // part 1 is the target B or the decoder.
    const AttentionKind& of(int layer, int part) const { return *of_layers_.at(layer)[part]; }
    // Returns the kinds that the text names, in the order of the text.
    const std::vector<const AttentionKind*>& named() const { return named_; }

  private:
    std::vector<std::array<const AttentionKind*, 2>> of_layers_;
    std::vector<const AttentionKind*> named_;
};

}  // namespace masquerade
