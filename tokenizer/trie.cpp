// SPDX-License-Identifier: MIT
#include "tokenizer/trie.h"

#include <algorithm>

namespace masquerade {

Trie::Trie(std::vector<Entry> entries) : nodes_(512) {
    std::stable_sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.first < b.first; });
    nodes_[0].parent = -2;  // the root is neither a free slot (-1) nor a child of another node

    // Entries [begin, end) have the same first `depth` bytes, which lead to `node`.
    struct Group {
        int node;
        std::size_t depth, begin, end;
    };
    std::vector<Group> open{{0, 0, 0, entries.size()}};
    std::vector<int> bytes;           // the different bytes that follow the first `depth` bytes: one child each
    std::vector<std::size_t> starts;  // first entry of each child, then the end of the group
    while (!open.empty()) {
        Group group = open.back();
        open.pop_back();
        std::size_t i = group.begin;
        for (; i < group.end && entries[i].first.size() == group.depth; i++)
            if (group.depth > 0) nodes_[group.node].value = entries[i].second;
        bytes.clear();
        starts.clear();
        for (; i < group.end; i++) {
            int byte = (unsigned char)entries[i].first[group.depth];
            if (!bytes.empty() && bytes.back() == byte) continue;
            bytes.push_back(byte);
            starts.push_back(i);
        }
        if (bytes.empty()) continue;
        starts.push_back(group.end);
        int base = find_base(bytes);
        nodes_[group.node].base = base;
        for (int byte : bytes) nodes_[base + byte].parent = group.node;
        for (std::size_t k = bytes.size(); k-- > 0;)
            open.push_back({base + bytes[k], group.depth + 1, starts[k], starts[k + 1]});
    }
}

// Finds a base such that the slots nodes_[base + byte] are free for all bytes. A single child gets the first free slot.
// If a search for several children fails at many slots, later searches skip these slots. Without skipping, building the
// trie would take quadratic time.
int Trie::find_base(const std::vector<int>& bytes) {
    constexpr int patience = 32;
    std::size_t& from = bytes.size() == 1 ? first_free_ : search_from_;
    auto taken = [&](std::size_t i) { return nodes_[i].parent != -1; };
    while (taken(from)) from++;
    const std::size_t first = bytes.front();
    int tries = 0;
    for (std::size_t place = from;; place++) {
        std::size_t base = place - first;  // at least 2, because place >= 257 and first <= 255
        if (nodes_.size() < base + 512) nodes_.resize(base + 512);
        if (taken(place)) continue;
        if (std::none_of(bytes.begin(), bytes.end(), [&](int b) { return taken(base + b); })) return base;
        if (++tries >= patience) from = place;
    }
}

}  // namespace masquerade
