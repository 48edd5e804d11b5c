// SPDX-License-Identifier: MIT
#include "tokenizer/frame.h"

#include <algorithm>
#include <string>

#include "tokenizer/vocabulary.h"

namespace masquerade {

namespace {

std::string in_words(int first, std::optional<int> second) {
    std::string lengths = std::to_string(first);
    if (second) lengths += " and " + std::to_string(*second);
    return lengths + " tokens";
}

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
    long long excess = (long long)first + second.value_or(0) - room;
    int cut_from = frame.truncation == Truncation::only_second ? second.value_or(0) : first;
    switch (frame.truncation) {
        case Truncation::longest_first:
            if (second) return longest_first(rules, room, first, *second);
            return {room, 0};
        case Truncation::only_first:
        case Truncation::only_second:
            if (excess < cut_from) {
                bool is_first = frame.truncation == Truncation::only_first;
                return {first - int(is_first ? excess : 0), second.value_or(0) - int(is_first ? 0 : excess)};
            }
            throw TokenizerError(
                "cannot truncate " + in_words(first, second) + " to max_length " +
                std::to_string(frame.max_length) + " by cutting only the " +
                (frame.truncation == Truncation::only_first ? "first" : "second") +
                " text: " + (cut_from > 0 ? "nothing of it would be left" : "there is none") +
                "; raise max_length or use longest_first");
        case Truncation::refuse: break;
    }
    throw TokenizerError(in_words(first, second) + " and " +
                         std::to_string(frame.special_tokens(second.has_value())) +
                         " special ones are more than max_length " + std::to_string(frame.max_length) +
                         "; raise it or allow truncation");
}

// The end of a text that is kept.
Stretch end_of(const Frame& frame, int length, int kept) {
    return frame.cut_left ? Stretch{length - kept, length} : Stretch{0, kept};
}

// use(stretch) for the kept end of a text, or where windows are asked for, for every part of it.
template <class Use>
void windows(const Frame& frame, int length, int kept, Use use) {
    if (kept == length || !frame.windows) return use(end_of(frame, length, kept));
    if (frame.overlap < 0 || frame.overlap >= kept)
        throw TokenizerError("windows of " + std::to_string(kept) + " tokens cannot overlap by " +
                             std::to_string(frame.overlap) +
                             ": expected 0 or more, and fewer than they hold; " +
                             "raise max_length, which is " + std::to_string(frame.max_length));
    int step = kept - frame.overlap;
    for (int passed = 0;; passed += step) {  // tokens before the window, as seen from the end that is kept
        int size = std::min(kept, length - passed);
        use(frame.cut_left ? Stretch{length - passed - size, length - passed}
                           : Stretch{passed, passed + size});
        if (passed + size == length) return;
    }
}

}  // namespace

void cut(const Frame& frame, Rules rules, int first, std::optional<int> second, std::vector<Share>& shares) {
    shares.clear();
    Share whole{{0, first}, {0, second.value_or(0)}};
    if (frame.max_length == 0) {
        shares.push_back(whole);
        return;
    }
    int room = frame.max_length - frame.special_tokens(second.has_value());
    if (room < 0)
        throw TokenizerError("max_length is " + std::to_string(frame.max_length) +
                             ", less than the special tokens of a sequence; expected at least " +
                             std::to_string(frame.special_tokens(second.has_value())));
    if ((long long)first + second.value_or(0) <= room) {
        shares.push_back(whole);
        return;
    }
    Lengths lengths = kept(frame, rules, room, first, second);
    if (frame.windows && second && frame.truncation == Truncation::longest_first)
        throw TokenizerError(
            "windows of a pair need to know which text is cut: use only_first or only_second");
    if (second && lengths.second < *second && frame.windows) {
        windows(frame, *second, lengths.second, [&](Stretch part) { shares.push_back({whole.first, part}); });
    } else {
        Stretch tail = end_of(frame, second.value_or(0), lengths.second);
        windows(frame, first, lengths.first, [&](Stretch part) { shares.push_back({part, tail}); });
    }
}

}  // namespace masquerade
