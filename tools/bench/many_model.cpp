// SPDX-License-Identifier: MIT
#include <algorithm>

#include "engine/train/part_sum.h"
#include "tools/bench/many.h"

namespace masquerade {

// A step has four small exchanges: two for the losses (Trainer::read), one for whether to stop, and one for the time
// (Trainer::run). The others are those of GradientSum::finish().
StepExchange exchange_of_step(int parts, int count, double gradient_bytes) {
    if (count == 1) return {};
    std::size_t sums = 0;  // of a process, at most
    for (int rank = 0; rank < count; rank++)
        sums = std::max(sums, nodes_within(share_of(parts, rank, count), parts).size());
    return {int(sums) + 1 + 4, double(sums + 1) * gradient_bytes * (count - 1) / count};
}

Prediction predict(const Cluster& c, int parts, int count, double gradient_bytes) {
    const StepExchange exchange = exchange_of_step(parts, count, gradient_bytes);
    Prediction p{parts, (parts + count - 1) / count * c.part + c.update, exchange.calls * c.latency};
    if (count == 1) return p;
    const int near = (c.node > 0 ? std::min(c.node, count) : count) - 1;  // the other processes on the node
    const double of_each = exchange.bytes / (count - 1);
    p.exchange += std::max(near * of_each / c.bandwidth, (count - 1 - near) * of_each / c.bandwidth_between);
    return p;
}

std::pair<double, double> line_through(const Messages& messages) {
    const auto [few, quick] = messages.front();
    const auto [many, slow] = messages.back();
    const double per_byte = std::max(1e-15, (slow - quick) / (many - few));  // not 0: JSON has no infinity
    return {std::max(0.0, quick - per_byte * few), 1 / per_byte};
}

}  // namespace masquerade
