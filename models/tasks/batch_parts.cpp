// SPDX-License-Identifier: MIT
#include "models/tasks/batch_parts.h"

#include <algorithm>
#include <numeric>

namespace masquerade {
namespace {

std::vector<std::size_t> sizes_of(const Sentences& sentences, const SentenceSize& size) {
    std::vector<std::size_t> sizes;
    for (const Sentence* s : sentences) sizes.push_back(size(*s));
    return sizes;
}

}  // namespace

std::vector<std::size_t> cut_evenly(const std::vector<std::size_t>& sizes, int parts) {
    const std::size_t items = sizes.size(), pieces = std::min(std::size_t(parts), items);
    const double all = std::accumulate(sizes.begin(), sizes.end(), 0.0);
    std::vector<std::size_t> begin = {0};
    double before = 0;  // total size of the items before item i
    for (std::size_t i = 0; i < items; i++) {
        // A piece ends before item i if the end of item i would be farther from the piece's share than its beginning,
        // or if each of the items left is needed for a piece of its own.
        const double share = all * double(begin.size()) / double(pieces);
        const bool full = before + double(sizes[i]) - share > share - before;
        const bool some = i > begin.back(), needed = items - i == pieces - begin.size();
        if (begin.size() < pieces && some && (full || needed)) begin.push_back(i);
        before += double(sizes[i]);
    }
    begin.push_back(items);
    return begin;
}

std::vector<std::size_t> cut_by_size(const Sentences& sentences, std::size_t limit, const SentenceSize& size) {
    const std::vector<std::size_t> sizes = sizes_of(sentences, size);
    const std::size_t all = std::accumulate(sizes.begin(), sizes.end(), std::size_t(0));
    return cut_evenly(sizes, int((all + limit - 1) / limit));
}

BatchParts::BatchParts(const Sentences& sentences, int parts, const std::function<Batch(const Sentences&)>& make) {
    const std::vector<std::size_t> begin = cut_evenly(sizes_of(sentences, tokens_in), parts);
    BatchCounts whole;
    for (std::size_t i = 0; i + 1 < begin.size(); i++) {
        batches_.push_back(make(Sentences(sentences.begin() + begin[i], sentences.begin() + begin[i + 1])));
        whole.documents += batches_.back().documents;
        whole.predictions += batches_.back().predictions();
    }
    for (Batch& each : batches_) each.part_of = whole;
}

}  // namespace masquerade
