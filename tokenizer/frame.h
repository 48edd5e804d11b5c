// SPDX-License-Identifier: MIT
// Truncates a pair of texts to the number of tokens that a model accepts.
#pragma once
#include <algorithm>
#include <cstdint>
#include <optional>

#include "tokenizer/characters.h"

namespace masquerade {

// The text that is shortened: the longer one, or always the first or the second.
enum class Truncation { longest, first, second };

struct Lengths {
    int first, second;
};

// Shortens the longer text until both have equal length, then each text in turn by one token, until they have `room`
// tokens together. If `room` is odd, one text then has one token more. In BERT's reference (_truncate_seq_pair in
// create_pretraining_data.py), it is the first text. In Hugging Face's library, it is the text that was longer, or the
// second text if both had equal length.
inline Lengths longest_first(Rules rules, int room, int first, int second) {
    if (first <= room - second) return {first, second};
    if (std::min(first, second) <= room / 2)  // only the longer text is shortened
        return first < second ? Lengths{first, room - first} : Lengths{room - second, second};
    const bool odd_to_first = rules == Rules::google || first > second;
    return odd_to_first ? Lengths{room - room / 2, room / 2} : Lengths{room / 2, room - room / 2};
}

// Returns the lengths after truncation to `room` tokens; nullopt if the first or second text alone is to be shortened
// and would become empty.
inline std::optional<Lengths> cut(Truncation which, Rules rules, int room, Lengths all) {
    const std::int64_t excess = std::int64_t(all.first) + all.second - room;
    if (excess <= 0) return all;
    if (which == Truncation::longest) return longest_first(rules, room, all.first, all.second);
    int& loses = which == Truncation::first ? all.first : all.second;
    if (excess >= loses) return std::nullopt;
    loses -= int(excess);
    return all;
}

}  // namespace masquerade
