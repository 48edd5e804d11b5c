// SPDX-License-Identifier: MIT
// A mask in words, which defines the segments of any document:
//
//   "A full; B causal sees A[0]"        UniVAE's upper layers: the target sees only [CLS] of A
//
//   mask   parts separated by ";": A is the source, B the target; or only AB, the document as one part
//   part   NAME RULE KEY=VALUE ... sees SLICE, SLICE ...
//   RULE   what the rows of the part see of their own part: full, causal, strict-causal, anticausal, none
//   SLICE  what they see of the other part: A, B, one row A[0] or A[-1], or rows A[1:3], indexed as in Python
//   KEY    a window within their own part: window=3 (rows at most 3 away), dilation=2 (every second row), stride=4
//          (also every fourth row at any distance), globals=1 (the first row sees all and is seen by all), over=all
//          (the window also restricts what they see of the other part)
#pragma once
#include <string>
#include <vector>

#include "models/masks/mask.h"

namespace masquerade {

class SegmentBuilder;

class MaskWords {
  public:
    explicit MaskWords(const std::string& words);  // throws BadUsage if the words do not follow this grammar
    // Throws BadUsage if a document has rows of a part that the words do not name.
    SegmentGraph operator()(const Documents& documents) const;
    // Cross-attention of two stacks: queries are the rows of B, keys are the rows of A that B sees.
    SegmentGraph cross(const Documents& documents) const;
    bool names(int part) const { return parts_[part].named; }  // 0: A or AB, 1: B
    // Throws BadUsage if the mask is impossible for an encoder, whose rows are A, and a decoder, whose rows are B.
    void expect_two_stacks() const;
    // Throws BadUsage unless the mask suits UniVAE: B is causal; in a layer with a latent it sees only [CLS] of A, in
    // other layers nothing of A.
    void expect_bottleneck(bool latent) const;
    // The rows that a row of B sees in token-by-token generation: rows [from, to) of a source of `source` rows, and
    // earlier rows of B within the window. If goes_on, the generated rows belong to A and see all earlier rows. Throws
    // BadUsage if such generation is impossible, for example because the mask lets a row see later rows or several
    // slices.
    struct Written {
        int from, to;
        Window window;
    };
    Written written(int source, bool goes_on) const;

    const std::string words;

  private:
    struct Slice {
        int from, to;  // negative: from the end; to = whole: up to the end
    };
    struct Part {
        bool named = false;
        Rule rule = Rule::none;
        Window window;
        std::vector<Slice> sees;  // slices of the other part
    };
    void read_part(const std::string& text);
    Slice read_slice(const std::string& text, char other) const;
    void read_window(const std::string& word, const std::string& next, Window& window) const;
    // Key segments for the slices of `part` that the other part sees; `own` is the key segment of `part`.
    std::vector<int> seen(int part, int own, SegmentBuilder& build) const;
    [[noreturn]] void refuse(const std::string& why) const;

    static constexpr int whole = 0x7fffffff;
    bool as_one_ = false;  // whether the only part is AB
    Part parts_[2];        // [0]: A or AB, [1]: B
};

enum class StackRows { both, encoder, decoder };  // the rows of a stack: A and B, only A, or only B

// Masks for the layers of a stack, separated by "|": "A full; B causal | layers 2: A full; B causal sees A[0]". Later
// masks override earlier ones. Layers are indexed as in Python; a mask without "layers I:J" applies to all layers. An
// encoder uses only the A parts of the masks (source), a decoder only the B parts (target).
class LayerMasks {
  public:
    // Throws BadUsage if the words are not valid, or not for such a stack.
    LayerMasks(const std::string& words, int layers, StackRows rows = StackRows::both);
    const std::vector<MaskWords>& masks() const { return masks_; }
    // (L) index of each layer's mask, or -1 if no mask applies to the layer
    const std::vector<int>& of_layers() const { return of_layers_; }
    // The masks of self-attention. The documents must have no rows of a part, A or B, that this stack lacks (StackRows).
    LayerGraphs graphs(const Documents& documents) const;
    // The masks of cross-attention: queries are rows of B, keys are rows of A.
    LayerGraphs cross(const Documents& documents) const;
    // The reason why token-by-token generation is impossible with these masks (MaskWords::written); empty if possible.
    std::string unwritable(bool goes_on) const;

  private:
    std::vector<MaskWords> masks_;
    std::vector<int> of_layers_;
};

}  // namespace masquerade
