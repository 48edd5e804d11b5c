// SPDX-License-Identifier: MIT
#include "tokenizer/trie.h"

#include <algorithm>

namespace masquerade {

Trie::Trie(std::vector<Entry> entries) : nodes_(512) {
    auto by_string = [](const Entry& a, const Entry& b) { return a.first < b.first; };
    std::stable_sort(entries.begin(), entries.end(), by_string);
    auto begin = entries.cbegin();
    while (begin != entries.cend() && begin->first.empty()) ++begin;
    nodes_[0].parent = -2;  // not free, and no node's child
    insert(0, 0, begin, entries.cend());
}

// The entries from begin to end are sorted, agree in their first `depth` bytes, and are longer than that, or
// equal to the string of the node.
void Trie::insert(int node, std::size_t depth, Iterator begin, Iterator end) {
    for (; begin != end && begin->first.size() == depth; ++begin)
        nodes_[std::size_t(node)].value = begin->second;
    std::vector<int> bytes;
    std::vector<Iterator> starts;
    for (Iterator i = begin; i != end; ++i) {
        int byte = (unsigned char)i->first[depth];
        if (bytes.empty() || bytes.back() != byte) {
            bytes.push_back(byte);
            starts.push_back(i);
        }
    }
    if (bytes.empty()) return;
    starts.push_back(end);
    int base = find_base(bytes);
    nodes_[std::size_t(node)].base = base;
    for (int byte : bytes) nodes_[std::size_t(base + byte)].parent = node;
    for (std::size_t k = 0; k < bytes.size(); k++)
        insert(base + bytes[k], depth + 1, starts[k], starts[k + 1]);
}

// A base at which the places of all bytes are free. An only child fits every free place and takes the first;
// for more children the search leaves behind a stretch that was tried often in vain, or building would be
// quadratic.
int Trie::find_base(const std::vector<int>& bytes) {
    constexpr int patience = 32;
    std::size_t& from = bytes.size() == 1 ? first_free_ : search_from_;
    auto taken = [&](std::size_t i) { return nodes_[i].parent != -1; };
    while (taken(from)) from++;
    std::size_t first = std::size_t(bytes.front());
    int tries = 0;
    for (std::size_t place = from;; place++) {
        std::size_t base = place - first;  // positive: the first 256 places are left free
        if (nodes_.size() < base + 512) nodes_.resize(base + 512);
        if (taken(place)) continue;
        if (std::none_of(bytes.begin(), bytes.end(), [&](int b) { return taken(base + std::size_t(b)); }))
            return int(base);
        if (++tries >= patience) from = place;
    }
}

}  // namespace masquerade
