// SPDX-License-Identifier: MIT
// A set of byte strings as a double array (Aoe 1989): the child of node n along byte b, if there is one, is
// node base[n] + b, and its parent says n. One step of a match is one load.
#pragma once
#include <string_view>
#include <utility>
#include <vector>

namespace masquerade {

class Trie {
  public:
    using Entry = std::pair<std::string_view, int>;  // a string and its value, not negative

    // If strings are equal, the last counts. The empty string is left out: it never matches.
    explicit Trie(const std::vector<Entry>& entries);

    struct Match {
        int length = 0;  // in bytes; 0: no string of the set begins the text
        int value = -1;
    };

    // The longest string of the set that the text begins with.
    Match longest(std::string_view text) const {
        Match best;
        int node = 0, length = 0;
        for (char c : text) {
            int child = nodes_[std::size_t(node)].base + (unsigned char)c;
            if (nodes_[std::size_t(child)].parent != node) break;
            node = child;
            length++;
            if (nodes_[std::size_t(node)].value >= 0) best = {length, nodes_[std::size_t(node)].value};
        }
        return best;
    }

  private:
    struct Node {
        int base = 0;
        int parent = -1;  // -1: the place is free; the root, node 0, has none
        int value = -1;
    };

    int find_base(const std::vector<int>& bytes);

    std::vector<Node> nodes_;  // 256 free places past the last base, so that a step needs no check of bounds
    std::size_t first_free_ = 257, search_from_ = 257;  // where find_base begins to look
};

}  // namespace masquerade
