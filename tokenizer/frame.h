// SPDX-License-Identifier: MIT
// The sequence for a model that a text, or a pair of texts, becomes:
//   [CLS] first [SEP]               type 0
//   [CLS] first [SEP] second [SEP]  type 0 up to the first [SEP], then type 1
// and the tokens that are cut off if the sequence is too long. UniLM's source and target are such a pair.
#pragma once
#include <optional>

#include "tokenizer/characters.h"

namespace masquerade {

// Which text loses tokens where there are too many.
enum class Truncation {
    longest_first,  // the longer one, until both are equally long; then each in turn
    only_first,     // never all of it: that is an error
    only_second,    // the same
};

struct Frame {
    bool special = true;  // with [CLS] and [SEP]
    int max_length = 0;   // of a sequence, its special tokens counted; 0: any length
    Truncation truncation = Truncation::longest_first;
    bool cut_left = false;     // what is cut off is the beginning, not the end
    bool with_pieces = false;  // keep where each token comes from

    int special_tokens(bool pair) const { return !special ? 0 : pair ? 3 : 2; }
};

// Tokens [begin, end) of a text.
struct Stretch {
    int begin, end;
    bool operator==(const Stretch& other) const { return begin == other.begin && end == other.end; }
};

// The part of each text that a sequence holds.
struct Share {
    Stretch first, second;
    bool operator==(const Share& other) const { return first == other.first && second == other.second; }
};

// The part that is kept of a text of `first` tokens, or of a pair.
//
// The rules differ where both texts of a pair are cut and an odd number of tokens is kept: BERT's reference
// (_truncate_seq_pair of create_pretraining_data.py) gives the odd one to the first text, Hugging Face's library
// to the text that was longer, and to the second of two equally long ones.
//
// TokenizerError where the frame leaves no room: less than its special tokens need, or nothing left of the only
// text to be cut.
Share cut(const Frame& frame, Rules rules, int first, std::optional<int> second);

}  // namespace masquerade
