// SPDX-License-Identifier: MIT
#include "tokenizer/frame.h"

#include <algorithm>
#include <string>

#include "tokenizer/vocabulary.h"

namespace masquerade {

namespace {

// How many tokens of each text are kept, of `room` in all.
struct Lengths {
    int first, second;
};

Lengths longest_first(Rules rules, int room, int first, int second) {
    if (std::min(first, second) <= room / 2) {  // only the longer one is cut
        return first < second ? Lengths{first, room - first} : Lengths{room - second, second};
    }
    bool odd_to_first = rules == Rules::google || first > second;
    return odd_to_first ? Lengths{room - room / 2, room / 2} : Lengths{room / 2, room - room / 2};
}

Lengths kept(const Frame& frame, Rules rules, int room, int first, std::optional<int> second) {
    if (frame.truncation == Truncation::longest_first)
        return second ? longest_first(rules, room, first, *second) : Lengths{room, 0};
    bool of_first = frame.truncation == Truncation::only_first;
    long long excess = (long long)first + second.value_or(0) - room;
    int cut_from = of_first ? first : second.value_or(0);
    if (excess >= cut_from)
        throw TokenizerError("cannot truncate " + std::to_string(first) +
                             (second ? " and " + std::to_string(*second) : "") + " tokens to max_length " +
                             std::to_string(frame.max_length) + " by cutting only the " +
                             (of_first ? "first" : "second") +
                             " text: " + (cut_from > 0 ? "nothing of it would be left" : "there is none") +
                             "; raise max_length or use longest_first");
    return {first - int(of_first ? excess : 0), second.value_or(0) - int(of_first ? 0 : excess)};
}

// The end of a text that is kept.
Stretch end_of(const Frame& frame, int length, int kept) {
    return frame.cut_left ? Stretch{length - kept, length} : Stretch{0, kept};
}

}  // namespace

Share cut(const Frame& frame, Rules rules, int first, std::optional<int> second) {
    Share whole{{0, first}, {0, second.value_or(0)}};
    if (frame.max_length == 0) return whole;
    int room = frame.max_length - frame.special_tokens(second.has_value());
    if (room < 0)
        throw TokenizerError("max_length is " + std::to_string(frame.max_length) +
                             ", less than the special tokens of a sequence; expected at least " +
                             std::to_string(frame.special_tokens(second.has_value())));
    if ((long long)first + second.value_or(0) <= room) return whole;
    Lengths lengths = kept(frame, rules, room, first, second);
    return {end_of(frame, first, lengths.first), end_of(frame, whole.second.end, lengths.second)};
}

}  // namespace masquerade
