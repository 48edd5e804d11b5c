// SPDX-License-Identifier: MIT
// A mask in words, from which the segments of any document follow:
//
//   "A full; B causal sees A[0]"        UniVAE's upper layers: of A the target sees [CLS] alone
//
//   mask   parts, with ";" between them: A is the source, B the target; or AB alone, the document as one part
//   part   NAME RULE KEY=VALUE ... sees SLICE, SLICE ...
//   RULE   what its rows see of their own part: full, causal, strict-causal, anticausal, none
//   SLICE  what they see of the other part: A, B, one row A[0] or A[-1], or rows A[1:3], as Python counts them
//   KEY    a window over their own part: window=3 (rows at most 3 away), dilation=2 (every second place), stride=4 (also
//          every fourth place, however far), globals=1 (the first place sees all and is seen by all), over=all (the
//          window holds for what they see of the other part as well)
#pragma once
#include <string>
#include <vector>

#include "models/masks/mask.h"

namespace masquerade {

class SegmentBuilder;

class MaskWords {
  public:
    explicit MaskWords(const std::string& words);  // BadUsage: a word that is none of the above
    // BadUsage: a document has rows of a part that the words do not name.
    SegmentGraph operator()(const Documents& documents) const;
    // Two stacks: queries are the rows of B, keys those of A that they see.
    SegmentGraph cross(const Documents& documents) const;
    bool names(int part) const { return parts_[part].named; }  // 0: A or AB, 1: B
    // BadUsage: the words cannot be those of an encoder, whose rows are A, and a decoder, whose rows are B.
    void expect_two_stacks() const;
    // BadUsage: they let B see anything of A but [CLS] in a layer where that is a latent, or later rows of itself.
    void expect_bottleneck(bool latent) const;
    // The rows that a row of B sees when written token by token: rows [from, to) of a source of `source` rows, and the
    // rows of B before it within the window. If a text is continued, the row is one of A. BadUsage: the mask lets a row
    // see later rows, or several slices.
    struct Written {
        int from, to;
        Window window;
    };
    Written written(int source, bool goes_on) const;

    const std::string words;

  private:
    struct Slice {
        int from, to;  // negative: from the end; `to` at most whole: up to the end
    };
    struct Part {
        bool named = false;
        Rule rule = Rule::none;
        Window window;
        std::vector<Slice> sees;  // of the other part
    };
    void read_part(const std::string& text);
    Slice read_slice(const std::string& text, char other) const;
    void read_window(const std::string& word, const std::string& next, Window& window) const;
    // Key segments of what the other part sees of this part, whose own segment is `own`.
    std::vector<int> seen(int part, int own, SegmentBuilder& build) const;
    [[noreturn]] void refuse(const std::string& why) const;

    static constexpr int whole = 0x7fffffff;
    bool as_one_ = false;  // the only part is AB
    Part parts_[2];        // A or AB, B
};

enum class StackRows { both, encoder, decoder };  // of a stack: A and B of a document, or one of them

// Masks of layers, each over those before it: "A full; B causal | layers 2: A full; B causal sees A[0]". Layers are
// counted as Python does, and without "layers I:J" all are meant. An encoder heeds what is said of A, a decoder what is
// said of B.
class LayerMasks {
  public:
    LayerMasks(const std::string& words, int layers, StackRows rows = StackRows::both);  // BadUsage
    const std::vector<MaskWords>& masks() const { return masks_; }
    // (L) the mask of each layer, or -1: none is named
    const std::vector<int>& of_layers() const { return of_layers_; }
    // Those of a pass over documents, whose rows are those of the stack; of its attention to an encoder.
    LayerGraphs graphs(const Documents& documents) const;
    LayerGraphs cross(const Documents& documents) const;
    // Why nothing can be written token by token under them, as MaskWords::written says; empty: it can.
    std::string unwritable(bool goes_on) const;

  private:
    std::vector<MaskWords> masks_;
    std::vector<int> of_layers_;
};

}  // namespace masquerade
