// SPDX-License-Identifier: MIT
// Truncates a pair of texts to the number of tokens that a model accepts.
#pragma once
#include <algorithm>
#include <cstdint>
#include <optional>

#include "tokenizer/characters.h"

namespace masquerade {

// Which text of a pair is shortened: the longer text, or always the first or the second text.
enum class Truncation { longest, first, second };

struct Lengths {
    int first, second;
};

// Shortens the longer text until both texts have equal length. Then shortens both texts alternately by one token.
// Stops when the two texts together have `room` tokens. If both texts are shortened and `room` is odd, one text keeps
// one token more: in BERT's reference (_truncate_seq_pair in create_pretraining_data.py), the first text; in Hugging
// Face's library, the text that was longer, or the second text if the lengths were equal.
inline Lengths longest_first(Rules rules, int room, int first, int second) {
    if (first <= room - second) return {first, second};
    if (std::min(first, second) <= room / 2)  // only the longer text is shortened
        return first < second ? Lengths{first, room - first} : Lengths{room - second, second};
    const bool odd_to_first = rules == Rules::google || first > second;
    return odd_to_first ? Lengths{room - room / 2, room / 2} : Lengths{room / 2, room - room / 2};
}

// Returns the lengths after truncation to `room` tokens. Returns nullopt if only one text may be shortened (`which`
// is first or second) and it would become empty.
inline std::optional<Lengths> cut(Truncation which, Rules rules, int room, Lengths all) {
    const std::int64_t excess = std::int64_t(all.first) + all.second - room;
    if (excess <= 0) return all;
    if (which == Truncation::longest) return longest_first(rules, room, all.first, all.second);
    int& loses = which == Truncation::first ? all.first : all.second;
    if (excess >= loses) return std::nullopt;
    loses -= excess;
    return all;
}

}  // namespace masquerade
