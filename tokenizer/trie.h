// SPDX-License-Identifier: MIT
// A map from byte strings to numbers: a trie, stored as a double array (Aoe 1989). If byte b leads from node n to its
// child c, then c = base[n] + b and parent[c] = n. A match visits one node per byte.
#pragma once
#include <string_view>
#include <utility>
#include <vector>

namespace masquerade {

class Trie {
  public:
    using Entry = std::pair<std::string_view, int>;  // a string and its value, which is not negative

    // If several strings are equal, the last one wins. The empty string is ignored and never matches.
    explicit Trie(std::vector<Entry> entries);

    struct Match {
        int length = 0;  // in bytes; 0: no string of the trie is a prefix of the text
        int value = -1;
    };

    // Returns the longest string of the trie that is a prefix of the text.
    Match longest(std::string_view text) const {
        Match best;
        int node = 0, length = 0;
        for (char c : text) {
            int child = nodes_[node].base + (unsigned char)c;
            if (nodes_[child].parent != node) break;
            node = child;
            length++;
            if (nodes_[node].value >= 0) best = {length, nodes_[node].value};
        }
        return best;
    }

  private:
    struct Node {
        int base = 0;
        int parent = -1;  // -1: the slot is free; -2: the root, which is node 0
        int value = -1;   // -1: no string ends at this node
    };

    int find_base(const std::vector<int>& bytes);

    std::vector<Node> nodes_;  // has at least 256 slots after the largest base, so base + byte needs no bounds check
    // The slots at which find_base() begins to search: first_free_ for a single child, search_from_ for several
    // children.
    std::size_t first_free_ = 257, search_from_ = 257;
};

}  // namespace masquerade
