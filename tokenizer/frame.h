// SPDX-License-Identifier: MIT
// The tokens that two texts keep where a model has room for fewer.
#pragma once
#include <algorithm>
#include <cstdint>
#include <optional>

#include "tokenizer/characters.h"

namespace masquerade {

// The text that loses tokens: the longer one, or always the same.
enum class Truncation { longest, first, second };

struct Lengths {
    int first, second;
};

// The longer text is cut until both are equally long, then each in turn. If the odd token of two long texts is left,
// BERT's reference (_truncate_seq_pair of create_pretraining_data.py) gives it to the first text, Hugging Face's
// library to the text that was longer, and to the second of two equally long ones.
inline Lengths longest_first(Rules rules, int room, int first, int second) {
    if (first <= room - second) return {first, second};
    if (std::min(first, second) <= room / 2)  // only the longer one is cut
        return first < second ? Lengths{first, room - first} : Lengths{room - second, second};
    const bool odd_to_first = rules == Rules::google || first > second;
    return odd_to_first ? Lengths{room - room / 2, room / 2} : Lengths{room / 2, room - room / 2};
}

// Nothing if the only text to be cut would be left empty.
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
