// SPDX-License-Identifier: MIT
// Chooses the kinds of attention of a stack (attention_kinds()) with a text. A kind alone is the kind of all layers. As
// in masks in words (models/masks/words.h), the text can also name a kind for each part of a document and for some
// layers:
//
//   "A lsh; B softmax"               rows of the source A (or the encoder) have lsh, rows of the target B (or the
//                                    decoder) have softmax
//   "window | layers -2:: softmax"   the upper two layers have softmax, the layers below have window
//
//   kinds  KIND, or one or two parts, separated by ";": A KIND; B KIND
//
// layer_words() splits the text at "|" and reads the ranges of layers. If several entries name a kind for the same rows
// of a layer, the last one counts. Rows for which no entry names a kind have softmax.
#pragma once
#include <array>
#include <string>
#include <vector>

#include "engine/nn/attention/attention.h"

namespace masquerade {

class AttentionWords {
  public:
    // Throws BadUsage if the words do not follow the grammar above, or if they name an unknown kind.
    AttentionWords(const std::string& words, int layers);
    // Returns the kind of attention that a layer uses for the rows of one part of a document. `part` is 0 for the
    // source A (or the encoder), and 1 for the target B (or the decoder).
    const AttentionKind& of(int layer, int part) const { return *of_layers_.at(layer)[part]; }
    // Returns the kinds that the words name.
    const std::vector<const AttentionKind*>& named() const { return named_; }

  private:
    std::vector<std::array<const AttentionKind*, 2>> of_layers_;
    std::vector<const AttentionKind*> named_;
};

}  // namespace masquerade
