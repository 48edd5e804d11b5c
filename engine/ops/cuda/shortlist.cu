// SPDX-License-Identifier: MIT
// The best tokens of each row of logits, and the parts of its log-sum-exp. Three kernels run: one warp finds the best
// logits of each part of 1024, one warp finds the best among the best of all parts of a row, and half a warp sums exp
// over each part. The results have the bits of the CPU.
#include "engine/ops/shortlist.h"
#include "engine/ops/launch.h"

namespace masquerade::DEVICE {
namespace {

struct Keys {};

// A logit and its column as one integer: the key of a better token is larger. No token has the key 0.
using Key = std::uint64_t;
HD Key key_of(float logit, int column) {
    const std::uint32_t bits = bits_of((logit != logit ? -INFINITY : logit) + 0.0f);  // + 0 turns -0 into 0
    return Key(bits >> 31 ? ~bits : bits | 0x80000000u) << 32 | ~std::uint32_t(column);
}
HD int column_of(Key key) { return int(~std::uint32_t(key)); }

// Calls put(i, key) in one lane for the `count` largest keys of a warp, largest first. best_below(bound) must return
// the largest key below `bound` among the keys of the lane, or 0 if there is none. Only the lane whose key was taken
// calls it again; if no lane has a key left, all of them do.
template <class BestBelow, class Put>
HD void each_largest(WarpLanes lanes, int count, BestBelow best_below, Put put) {
    Key mine = best_below(~Key(0));
    for (int i = 0; i < count; i++) {
        Key largest = mine;
        for (int d = 16; d > 0; d /= 2) {
            const Key other = lane_xor(largest, d);
            largest = other > largest ? other : largest;
        }
        if (first(lanes)) put(i, largest);
        if (mine == largest) mine = best_below(largest);
    }
}

// A part of a row of logits: the columns [begin, begin + count) of row n.
struct Part {
    std::int64_t n;
    int begin, count;
};
struct Logits {
    const float* x;
    int V, parts;  // columns of a row, and parts of a row
    HD const float* row(std::int64_t n) const { return x + n * V; }
    // Parts are numbered row after row.
    HD Part part(std::int64_t number) const {
        const std::int64_t n = number / parts;
        const int begin = int(number - n * parts) * logits_a_part;
        return {n, begin, V - begin < logits_a_part ? V - begin : logits_a_part};
    }
};

// Finds the keys of the best logits of a part. If the part has fewer than W logits, the last keys are 0. A lane reads
// `group` logits at a time.
template <int group>
struct BestOfPart {
    Logits logits;
    int W;
    Key* keys;
    HD void operator()(WarpLanes lanes, std::int64_t number) const {
        const Part part = logits.part(number);
        const float* from = logits.row(part.n) + part.begin;
        const auto best_below = [&](Key bound) {
            Key best = 0;
            for (int i = group * lane_of(lanes); i < part.count; i += 32 * group) {
                float some[group];
                read_numbers(from + i, some);
                for (int k = 0; k < group; k++) {
                    const Key key = key_of(some[k], part.begin + i + k);
                    if (key < bound && key > best) best = key;
                }
            }
            return best;
        };
        each_largest(lanes, W, best_below, [&](int i, Key key) { keys[number * W + i] = key; });
    }
};

struct BestOfRow {
    Logits logits;
    int W;
    const Key* keys;
    float *best, *ids;
    HD void operator()(WarpLanes lanes, std::int64_t n) const {
        const int candidates = logits.parts * W;
        const Key* from = keys + n * candidates;
        const auto best_below = [&](Key bound) {
            Key most = 0;
            for (int i = lane_of(lanes); i < candidates; i += 32) {
                const Key key = from[i];
                if (key < bound && key > most) most = key;
            }
            return most;
        };
        each_largest(lanes, W, best_below, [&](int i, Key key) {
            best[n * W + i] = logits.row(n)[column_of(key)];
            ids[n * W + i] = float(column_of(key));
        });
    }
};

// A warp sums two parts, with 16 lanes for each, in the order of sum(OneLane) (math/lanes.h), as for global_norm.
struct SumOfParts {
    Logits logits;
    int W;
    std::int64_t count;
    const float* best;
    float* parts;
    HD void operator()(WarpLanes lanes, std::int64_t pair) const {
        const std::int64_t number = 2 * pair + lane_of(lanes) / 16;
        float sum = 0;
        if (number < count) {
            const Part part = logits.part(number);
            const float *from = logits.row(part.n) + part.begin, top = best[part.n * W];
            for (int i = lane_of(lanes) % 16; i < part.count; i += 16) sum += exp_of(from[i] - top);
        }
        for (int half = 8; half > 0; half /= 2) sum += lane_xor(sum, half);
        if (lane_of(lanes) % 16 == 0 && number < count) parts[number] = sum;
    }
};

}  // namespace

void shortlist(View x, View best, View ids, View parts) {
    check_shortlist(x, best, parts);
    const Logits logits{x.as<float>(), int(x.columns()), int(parts.columns())};
    const int W = int(best.columns());
    const std::int64_t count = parts.count();
    Key* keys = workspace<Keys, Key>(count * W);
    if (rows_in_packets(logits.x, logits.V))
        for_each_row(count, BestOfPart<per_packet<float>>{logits, W, keys});
    else
        for_each_row(count, BestOfPart<1>{logits, W, keys});
    for_each_row(x.rows(), BestOfRow{logits, W, keys, best.as<float>(), ids.as<float>()});
    for_each_row((count + 1) / 2, SumOfParts{logits, W, count, best.as<float>(), parts.as<float>()});
}

}  // namespace masquerade::DEVICE
