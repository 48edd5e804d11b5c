// SPDX-License-Identifier: MIT
// Masks in words: a small language for masks that apply to documents of any length. Example:
//
//   "A full; B causal sees A[0]"        UniVAE's upper layers: [CLS] is the only row of A that B sees
//
//   mask   one or two parts, separated by ";": A is the source, B the target. Or one part AB: the whole document
//   part   NAME RULE KEY=VALUE ... sees SLICE, SLICE ...
//   RULE   which rows of its own part a row sees: full, causal, strict-causal, anticausal, none; or
//          rows=1000/1100/1110/1111, a square table with a group of digits for each row: row i sees row j if digit j of
//          group i is 1. A part with fewer rows has the upper left corner
//   SLICE  rows of the other part that all rows of this part see: all (A or B), one row (A[0] or A[-1]), or a range
//          (A[1:3]), indexed as in Python
//   KEY    restrictions of RULE: window=3 (rows at most 3 away), dilation=2 (every second row, so that window=3 reaches
//          6 rows), stride=4 (also every fourth row at any distance), globals=1 (the first row sees all rows and is
//          seen by all rows of the part), over=all (the restrictions also hold for rows of the other part).
//          The other keys need window. The product of window and dilation is at most 2^30
#pragma once
#include <string>
#include <vector>

#include "input/index_range.h"
#include "models/masks/mask.h"

namespace masquerade {

class SegmentBuilder;

class MaskWords {
  public:
    // Throws BadUsage if the words do not follow the grammar at the top of this file.
    explicit MaskWords(const std::string& words);
    // Makes the mask of self-attention. Throws BadUsage if a document has rows of a part that the words do not name, or
    // more rows of a part than its table (rows=). The last `inert` documents are padding: their rows beyond the table
    // see nothing.
    SegmentGraph operator()(const Documents& documents, int inert = 0) const;
    // Makes the mask of cross-attention. The queries are the rows of B, and the keys are the rows of A that B sees
    // according to the words.
    SegmentGraph cross(const Documents& documents) const;
    // Whether the words name this part. Part 0 is the source A or, in a mask with the part AB, the whole document; part
    // 1 is the target B.
    bool names(int part) const { return parts_[part].named; }
    // Checks that the mask suits an encoder, whose rows are A, and a decoder, whose rows are B. Throws BadUsage if the
    // mask has the part AB, if A sees B, or if B has over=all.
    void expect_two_stacks() const;
    // Throws BadUsage unless the mask suits a layer of UniVAE. The encoder half A must see nothing of the decoder half
    // B, and B must have the rule `full` or, if `full` is false, `causal`, without over=all. `latent` says whether the
    // layer has a latent. If it is true, B must see exactly the row [CLS] of A; otherwise, B must see nothing of A.
    void expect_bottleneck(bool latent, bool full) const;
    // Whether a part sees rows of the other part, and the window of the part.
    bool sees_other(int part) const { return !parts_[part].sees.empty(); }
    const Window& window(int part) const { return parts_[part].window; }
    // Returns which rows a new row sees in token-by-token generation after a source of `source` rows: the rows [from,
    // to) of the source, and the earlier new rows within `window`. If goes_on is true, or if the mask has the single
    // part AB, the new rows continue the source and see all earlier rows. Throws BadUsage if the mask does not permit
    // token-by-token generation: for example, because rows see later rows, or because B sees several separate ranges of
    // rows of the source.
    struct Written {
        int from, to;
        Window window;
    };
    Written written(int source, bool goes_on) const;
    // Throws BadUsage unless the mask permits generation from right to left. The generated text is the part A or AB,
    // and each row of this part must see exactly itself and all later rows.
    void expect_backward() const;

    const std::string words;

  private:
    struct Part {
        bool named = false;
        Rule rule = Rule::none;
        Strings table;  // for Rule::bits: the digits of each row
        Window window;
        std::vector<IndexRange> sees;  // the rows of the other part that this part sees
    };
    void read_part(const std::string& text);
    void read_table(const std::string& digits, Part& part) const;
    IndexRange read_slice(const std::string& text, char other) const;
    void read_window(const std::string& word, const std::string& next, Window& window) const;
    // Returns the indices of the key segments that cover the slices of `part` that the other part sees. `part_key`
    // is the index of the existing key segment with all rows of `part`.
    std::vector<int> seen(int part, int part_key, SegmentBuilder& build) const;
    [[noreturn]] void refuse(const std::string& why) const;

    bool as_one_ = false;  // whether the mask has one part, AB, for the whole document
    Part parts_[2];        // parts_[0] is the source A, or AB; parts_[1] is the target B
};

// Returns the words of a mask for whole documents, "AB rows=...", in which row i sees row j if sees[i][j]. Throws
// BadUsage if the table is empty or not square.
std::string words_of_table(const std::vector<std::vector<bool>>& sees);

// The words for the layers [from, to) of a stack.
struct LayerWords {
    int from, to;
    std::string words, range;  // range: the text of the range, such as "2:"; empty if the words are for all layers
};
// Splits a text at "|" into the words for several ranges of layers. Example: "A full; B causal | layers 2: A full; B
// causal sees A[0]". Words that begin with "layers I:J" are for the layers from I to before J, indexed as in Python;
// other words are for all layers. In the example, "layers 2:" means layer 2 and all layers above it. `setting` is the
// name of the setting, for messages. Throws BadUsage if a range cannot be read.
std::vector<LayerWords> layer_words(const std::string& setting, const std::string& words, int layers);
// Throws BadUsage if no layer is in one of the ranges of the text. layers[s] is the number of layers of stack s: an
// encoder and a decoder read the same text, and one of them must have such a layer.
void expect_layers(const std::string& setting, const std::string& words, const std::vector<int>& layers);
// Returns the words of a text, which are separated by spaces or commas.
Strings words_of(std::string text);

enum class StackRows { both, encoder, decoder };  // the rows of a stack are A and B (both), A (encoder), or B (decoder)

// Masks for the layers of a stack (layer_words()). If the words give several masks for a layer, the last one counts. An
// encoder uses only the A parts of the masks, and a decoder only the B parts.
class LayerMasks {
  public:
    // Throws BadUsage if the words are not valid, or do not suit a stack with these rows.
    LayerMasks(const std::string& words, int layers, StackRows rows = StackRows::both);
    const std::vector<MaskWords>& masks() const { return masks_; }
    // For each layer, the index in masks() of its mask, or -1 if no mask applies to the layer.
    const std::vector<int>& of_layers() const { return of_layers_; }
    // Returns the masks of self-attention (MaskWords::operator()). If the stack is an encoder (StackRows), the
    // documents must have no rows of B. If the stack is a decoder, the documents must have no rows of A.
    LayerGraphs graphs(const Documents& documents, int inert = 0) const;
    // Returns the masks of cross-attention: the queries are rows of the target B, the keys are rows of the source A.
    LayerGraphs cross(const Documents& documents) const;
    // Returns why these masks do not permit token-by-token generation, or "" if they do. If `backward` is false,
    // generation is from left to right; if it is true, from right to left. MaskWords::written() explains `goes_on`.
    std::string unwritable(bool goes_on, bool backward = false) const;

  private:
    std::vector<MaskWords> masks_;
    std::vector<int> of_layers_;
};

}  // namespace masquerade
