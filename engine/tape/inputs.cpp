// SPDX-License-Identifier: MIT
#include "engine/tape/inputs.h"

#include <algorithm>
#include <cstring>

#include "engine/tensor/copy.h"

namespace masquerade {
namespace {

constexpr std::size_t smallest_block = std::size_t(1) << 16;

std::size_t aligned(std::size_t bytes) { return (bytes + 63) / 64 * 64; }

}  // namespace

void Inputs::begin_step() {
    ints_.clear();
    graph_count_ = 0;
    used_ = 0;
    if (blocks_.size() < 2) return;
    std::size_t all = 0;  // the last step needed several: from now on one holds as much
    for (const Buffer& block : blocks_) all += block.bytes();
    blocks_.clear();
    blocks_.emplace_back(all, device_);
}

const char* Inputs::upload(const void* data, std::size_t bytes) {
    if (blocks_.empty() || used_ + bytes > blocks_.back().bytes()) {
        blocks_.emplace_back(std::max(smallest_block, aligned(bytes)), device_);
        used_ = 0;
    }
    char* to = static_cast<char*>(blocks_.back().data()) + used_;
    copy_bytes(data, Device::cpu, to, device_, bytes);
    used_ += aligned(bytes);
    return to;
}

Ints Inputs::ints(const std::vector<int>& numbers) {
    const Ints here{numbers.data(), std::int64_t(numbers.size())};
    if (device_ == Device::cpu || numbers.empty()) return here;
    for (const GivenInts& known : ints_)
        if (known.given == here.data && known.there.count == here.count) return known.there;
    const char* there = upload(here.data, numbers.size() * sizeof(int));
    ints_.push_back({here.data, {reinterpret_cast<const int*>(there), here.count}});
    return ints_.back().there;
}

const SegmentGraph& Inputs::graph(const SegmentGraph& graph) {
    if (device_ == Device::cpu) return graph;
    for (std::size_t i = 0; i < graph_count_; i++)
        if (graphs_[i].given == &graph) return graphs_[i].there;
    if (graph_count_ == graphs_.size()) graphs_.emplace_back();
    GivenGraph& known = graphs_[graph_count_++];
    known.given = &graph;
    known.there = graph;
    // All tables in one piece: their number of copies counts, not their few bytes.
    packed_.clear();
    auto pack = [&](const auto& table) {
        const std::size_t begin = packed_.size(), bytes = table.size() * sizeof table[0];
        packed_.resize(begin + aligned(bytes));
        if (bytes > 0) std::memcpy(packed_.data() + begin, table.data(), bytes);
        return begin;
    };
    const std::size_t keys = pack(graph.keys), queries = pack(graph.queries), sees = pack(graph.sees),
                      query_rank = pack(graph.query_rank), key_rank = pack(graph.key_rank),
                      bits = pack(graph.bits);
    const char* at = upload(packed_.data(), packed_.size());
    auto ints_at = [&](std::size_t begin) { return reinterpret_cast<const int*>(at + begin); };
    known.there.on_device = {reinterpret_cast<const KeySegment*>(at + keys),
                             reinterpret_cast<const QuerySegment*>(at + queries),
                             ints_at(sees),
                             ints_at(query_rank),
                             ints_at(key_rank),
                             reinterpret_cast<const std::uint32_t*>(at + bits)};
    return known.there;
}

}  // namespace masquerade
