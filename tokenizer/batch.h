// SPDX-License-Identifier: MIT
// Many texts, or pairs, encoded by several threads into one packed buffer: no padding, the tokens of one
// sequence after those of the one before.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/frame.h"
#include "tokenizer/wordpiece.h"

namespace masquerade {

// One text, or a pair.
struct Input {
    std::string_view first;
    std::optional<std::string_view> second;
};

// Sequence b, of input b, is tokens [starts[b], starts[b + 1]).
struct PackedBatch {
    std::vector<int> ids;
    std::vector<int> types;      // 0: of the first text, 1: of the second (frame.h)
    std::vector<int> starts{0};  // one more than there are sequences
    std::vector<Piece> pieces;   // with_pieces: bytes and word of each token in its own text. [CLS] and [SEP]
                                 // have bytes [0, 0) and word -1: this is the mask of special tokens
    int size() const { return int(starts.size()) - 1; }
    std::vector<int> positions() const;  // of each token in its sequence, from 0
};

// input(i) for i below `count`, called from several threads at once; what it refers to must stay. The result is
// the same for any number of threads; 0: one for each processor. What goes wrong with an input, or in a thread,
// is thrown here: the first input's error, with its number, which is counted from first_input.
PackedBatch encode_batch(const WordPiece& tokenizer, std::size_t count,
                         const std::function<Input(std::size_t)>& input, const Frame& frame = {},
                         int threads = 1, std::size_t first_input = 1);

// Lines: a vector of strings or views.
template <class Lines>
PackedBatch encode_batch(const WordPiece& tokenizer, const Lines& lines, const Frame& frame = {},
                         int threads = 1) {
    auto input = [&](std::size_t i) { return Input{std::string_view(lines[i]), {}}; };
    return encode_batch(tokenizer, lines.size(), input, frame, threads);
}

// Pair i is first[i] and second[i].
template <class First, class Second>
PackedBatch encode_pairs(const WordPiece& tokenizer, const First& first, const Second& second,
                         const Frame& frame = {}, int threads = 1) {
    if (first.size() != second.size())
        throw TokenizerError("cannot pair " + std::to_string(first.size()) + " texts with " +
                             std::to_string(second.size()) + ": expected equally many");
    auto input = [&](std::size_t i) {
        return Input{std::string_view(first[i]), std::string_view(second[i])};
    };
    return encode_batch(tokenizer, first.size(), input, frame, threads);
}

// Turns the bytes of a line's pieces into code points, in place. Bytes that are not UTF-8 do not count.
void to_code_points(std::string_view line, Piece* begin, Piece* end);
inline void to_code_points(std::string_view line, std::vector<Piece>& pieces) {
    to_code_points(line, pieces.data(), pieces.data() + pieces.size());
}

}  // namespace masquerade
