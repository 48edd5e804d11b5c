// SPDX-License-Identifier: MIT
#include "engine/train/part_sum.h"

#include <algorithm>
#include <deque>

#include "engine/base/processes.h"
#include "engine/ops/ops.h"
#include "engine/tensor/copy.h"
#include "engine/tensor/numbers.h"

namespace masquerade {
namespace {

// Returns how many of n parts, n > 1, belong to the left of the two sums: the largest power of 2 below n.
int left_of(int n) {
    int h = 1;
    while (2 * h < n) h *= 2;
    return h;
}

double sum_of(const double* parts, int n) {
    if (n == 1) return parts[0];
    const int h = left_of(n);
    return sum_of(parts, h) + sum_of(parts + h, n - h);
}

void find_nodes(const PartRange& node, const PartRange& share, std::vector<PartRange>& found) {
    if (node.end <= share.begin || share.end <= node.begin) return;
    if (share.begin <= node.begin && node.end <= share.end) {
        found.push_back(node);
        return;
    }
    const int middle = node.begin + left_of(node.count());
    find_nodes({node.begin, middle}, share, found);
    find_nodes({middle, node.end}, share, found);
}

// The sum of a node of this or another process. Only the slice that this process adds up is needed.
struct NodeSum {
    PartRange parts;
    View slice;
};

// Returns the sum of all parts of `node`, computed from `known`, the sums of nodes from left to right. `next` is the
// first of them that has not been used. The tensors in `known` may be overwritten.
View sum_of(const PartRange& node, const std::vector<NodeSum>& known, std::size_t& next) {
    if (known[next].parts.begin == node.begin && known[next].parts.end == node.end) return known[next++].slice;
    const int middle = node.begin + left_of(node.count());
    const View left = sum_of({node.begin, middle}, known, next), right = sum_of({middle, node.end}, known, next);
    add_backward(right, {left, true}, {});
    return left;
}

// Slice i of a vector that is cut into n slices. Slices begin at multiples of 16 numbers, like parameters.
View slice_of(const View& all, int i, int n) {
    const auto begin = [&](std::int64_t k) { return k == n ? all.count() : all.count() / 16 * k / n * 16; };
    return part_of(all, begin(i), {begin(i + 1) - begin(i)});
}
Bytes bytes_of(const View& view) { return {view.data, view.bytes(), view.device != Device::cpu}; }

}  // namespace

double sum_of_parts(const std::vector<double>& parts) { return sum_of(parts.data(), int(parts.size())); }

PartRange share_of(int parts, int rank, int count) {
    const auto begin = [&](std::int64_t k) { return int((parts * k + count - 1) / count); };
    return {begin(rank), begin(rank + 1)};
}

std::vector<PartRange> nodes_within(const PartRange& share, int parts) {
    std::vector<PartRange> found;
    find_nodes({0, parts}, share, found);
    return found;
}

void GradientSum::add_to_gradients(const Buffer& sum) const {
    add_backward(trained(sum), {parameters_.trained(parameters_.gradients()), true}, {});
}

void GradientSum::keep_in(std::vector<Buffer>& sums, std::size_t i) const {
    if (i == sums.size()) sums.emplace_back(parameters_.gradients().bytes(), parameters_.device());
    copy(parameters_.trained(parameters_.gradients()), trained(sums[i]));
}

// Computes the sum of the node that contains `part`; the node is a tree of its own. Works like adding 1 to a binary
// counter: sums_[k] is bit k. As long as the next bit is 1, its sum is added to the gradients. It has as many parts as
// the gradients have by now, and these are the parts just before them.
void GradientSum::add(int part, int parts) {
    const std::vector<PartRange> mine = nodes_within(share_of(parts, processes().rank(), processes().count()), parts);
    std::size_t node = 0, k = 0;
    while (!mine[node].has(part)) node++;
    for (; added_ >> k & 1; k++) add_to_gradients(sums_[k]);
    if (part + 1 < mine[node].end) {
        keep_in(sums_, k);
        added_++;
        return;
    }
    for (; added_ >> k; k++)
        if (added_ >> k & 1) add_to_gradients(sums_[k]);
    added_ = 0;
    if (node + 1 < mine.size()) keep_in(nodes_, node);
}

void GradientSum::finish(int parts) {
    const int count = processes().count(), rank = processes().rank();
    if (count == 1) return;
    std::vector<std::vector<PartRange>> nodes;  // of each process
    for (int i = 0; i < count; i++) nodes.push_back(nodes_within(share_of(parts, i, count), parts));
    const View gradients = parameters_.trained(parameters_.gradients());
    const bool on_host = gradients.device == Device::cpu || !processes().reaches_gpus();
    const Device device = on_host ? Device::cpu : gradients.device;
    std::deque<OnHost> copies;  // if the sums are on a GPU, and the processes cannot reach it
    std::vector<View> mine;     // the sums of this process, where the processes can reach them
    for (std::size_t k = 0; k < nodes[rank].size(); k++) {
        const View sum = k + 1 < nodes[rank].size() ? trained(nodes_[k]) : gradients;
        mine.push_back(on_host ? copies.emplace_back(sum).view() : sum);
    }

    const View own = slice_of(gradients, rank, count);
    std::size_t foreign = 0, rounds = 0;
    for (int i = 0; i < count; i++) {
        if (i != rank) foreign += nodes[i].size();
        rounds = std::max(rounds, nodes[i].size());
    }
    if (received_.bytes() < foreign * own.bytes()) received_ = Buffer(foreign * own.bytes(), device);
    std::vector<std::vector<NodeSum>> sums(nodes.size());  // of each process
    for (std::size_t k = 0, place = 0; k < rounds; k++) {  // round k: the sums of the k-th node of each process
        std::vector<Bytes> send(nodes.size()), receive(nodes.size());
        for (int i = 0; i < count; i++) {
            if (i != rank && k < mine.size()) send[i] = bytes_of(slice_of(mine[k], i, count));
            if (k >= nodes[i].size()) continue;
            View slice = own;
            slice.device = device;
            if (i == rank) {
                slice.data = slice_of(mine[k], rank, count).data;
            } else {
                slice.data = received_.at(own.bytes() * place++);
                receive[i] = bytes_of(slice);
            }
            sums[i].push_back({nodes[i][k], slice});
        }
        processes().exchange(send, receive, __LINE__);
    }

    std::vector<NodeSum> known;
    for (const auto& of_process : sums) known.insert(known.end(), of_process.begin(), of_process.end());
    std::size_t next = 0;
    const View total = sum_of({0, parts}, known, next);
    const View result = on_host ? copies.emplace_back(OnHost::to_write(gradients)).view() : gradients;
    std::vector<Bytes> slices;
    for (int i = 0; i < count; i++) slices.push_back(bytes_of(slice_of(result, i, count)));
    if (total.data != slices[rank].data) copy(total, slice_of(result, rank, count));
    gather(slices);
    if (on_host) copies.back().store();
}

std::size_t GradientSum::bytes() const {
    return (sums_.size() + nodes_.size()) * parameters_.gradients().bytes() + received_.bytes();
}

}  // namespace masquerade
