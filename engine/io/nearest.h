// SPDX-License-Identifier: MIT
// Finds the known word that a mistyped word probably means.
#pragma once
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace masquerade {

// Returns the smallest number of edits that turn a into b. An edit inserts, deletes or replaces one character, or swaps
// two neighbours, which are then not edited any more (optimal string alignment).                          Damerau 1964
inline int edit_distance(const std::string& a, const std::string& b) {
    std::size_t columns = b.size() + 1;
    std::vector<int> before(columns), last(columns), now(columns);
    for (std::size_t j = 0; j < columns; j++) last[j] = int(j);
    for (std::size_t i = 1; i <= a.size(); i++) {
        now[0] = int(i);
        for (std::size_t j = 1; j < columns; j++) {
            now[j] = std::min({last[j] + 1, now[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1])});
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                now[j] = std::min(now[j], before[j - 2] + 1);
        }
        before.swap(last);
        last.swap(now);
    }
    return last[b.size()];
}

// Returns the `count` known words with the smallest edit_distance() from `word`, nearest first.
inline std::vector<std::string> nearest(const std::string& word, const std::vector<std::string>& known,
                                        std::size_t count) {
    std::vector<std::pair<int, std::size_t>> by_distance;
    for (std::size_t i = 0; i < known.size(); i++) by_distance.emplace_back(edit_distance(word, known[i]), i);
    std::sort(by_distance.begin(), by_distance.end());
    std::vector<std::string> some;
    for (std::size_t i = 0; i < std::min(known.size(), count); i++) some.push_back(known[by_distance[i].second]);
    return some;
}

// Returns "; did you mean X?" for the nearest known word X. Returns "" if even its distance is more than half of the
// length of `word`, rounded up.
inline std::string did_you_mean(const std::string& word, const std::vector<std::string>& known) {
    const std::vector<std::string> one = nearest(word, known, 1);
    const bool near = !one.empty() && edit_distance(word, one[0]) <= int(word.size() + 1) / 2;
    return near ? "; did you mean " + one[0] + "?" : "";
}

}  // namespace masquerade
