// SPDX-License-Identifier: MIT
// Finds the known word that a mistyped word probably means.
#pragma once
#include <algorithm>
#include <string>
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

// Returns the known word with the smallest edit_distance() from `word`. Returns "" if even this distance is more than
// half of the length of `word`, rounded up.
inline std::string nearest(const std::string& word, const std::vector<std::string>& known) {
    std::string best;
    int fewest = int(word.size() + 1) / 2;
    for (const std::string& candidate : known) {
        int edits = edit_distance(word, candidate);
        if (edits > fewest || (edits == fewest && !best.empty())) continue;
        fewest = edits;
        best = candidate;
    }
    return best;
}

}  // namespace masquerade
