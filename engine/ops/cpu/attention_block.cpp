// SPDX-License-Identifier: MIT
// What a block visits, and what dropout takes away.
#include "engine/ops/cpu/attention_block.h"

#include "engine/ops/visible.h"

namespace masquerade::cpu::blocks {
namespace {

template <class T>
void grow(std::vector<T>& v, std::size_t size) {
    if (v.size() < size) v.resize(size);
}

struct FourOfLanes {
    Words v[4];
};

// Philox 4x32-10 (base/random.h) for a counter in every lane.
FourOfLanes philox_lanes(Words c0, Words c1, Words c2, Words c3, std::uint32_t key0, std::uint32_t key1) {
    auto high = [](Words x, std::uint32_t factor) {
        Words h;
        for (int i = 0; i < lanes; i++) h[i] = std::uint32_t((std::uint64_t(factor) * x[i]) >> 32);
        return h;
    };
    for (int round = 0; round < 10; round++) {
        Words a = high(c0, 0xD2511F53u), b = high(c2, 0xCD9E8D57u);
        Words low0 = c0 * 0xD2511F53u, low2 = c2 * 0xCD9E8D57u;
        c0 = b ^ c1 ^ key0;
        c1 = low2;
        c2 = a ^ c3 ^ key1;
        c3 = low0;
        key0 += 0x9E3779B9u;
        key1 += 0xBB67AE85u;
    }
    return {{c0, c1, c2, c3}};
}

}  // namespace

AttentionScratch& attention_scratch() {
    thread_local AttentionScratch scratch;
    return scratch;
}

void number_keys(const AttentionCall& call, DocumentRange document, AttentionScratch& scratch) {
    const SegmentGraph& graph = call.graph;
    grow(scratch.first_row, graph.keys.size());
    scratch.key_segments.clear();
    scratch.rows = 0;
    for (int i = document.first; i < document.last; i++)
        for (int v = graph.queries[i].sees_begin; v < graph.queries[i].sees_end; v++) {
            int index = graph.sees[v];
            if (scratch.first_row[index] > 0) continue;
            scratch.key_segments.push_back(index);
            scratch.first_row[index] = scratch.rows + 1;
            scratch.rows += graph.keys[index].end - graph.keys[index].begin;
        }
}

void forget_keys(AttentionScratch& scratch) {
    for (int index : scratch.key_segments) scratch.first_row[index] = 0;
}

void find_visits(const AttentionCall& call, const QuerySegment& segment, int row, int count,
                 AttentionScratch& scratch) {
    const SegmentGraph& graph = call.graph;
    const auto everyone = std::uint16_t((1u << count) - 1);
    grow(scratch.visited, std::size_t(scratch.rows) + 4);
    grow(scratch.seen_by, std::size_t(scratch.rows) + 4);
    int* visited = scratch.visited.data();
    std::uint16_t* seen_by = scratch.seen_by.data();
    int n = 0;
    for (int v = segment.sees_begin; v < segment.sees_end; v++) {
        int index = graph.sees[v], first = scratch.first_row[index] - 1;
        const KeySegment& key = graph.keys[index];
        int size = key.end - key.begin;
        if (sees_whole(segment, index)) {
            for (int j = 0; j < size; j++, n++) visited[n] = first + j, seen_by[n] = everyone;
            continue;
        }
        // Where a run of keys begins or ends for a query, its bit is toggled; what is set in between sees the
        // key.
        scratch.toggled.assign(std::size_t(size) + 1, 0);
        std::uint16_t* toggled = scratch.toggled.data();
        for (int i = 0; i < count; i++)
            each_run(graph, segment, row + i, index, [&](int begin, int end) {
                toggled[begin - key.begin] ^= std::uint16_t(1u << i);
                toggled[end - key.begin] ^= std::uint16_t(1u << i);
            });
        std::uint16_t now = 0;
        for (int j = 0; j < size; j++) {
            now ^= toggled[j];
            visited[n] = first + j;
            seen_by[n] = now;
            n += now != 0;
        }
    }
    scratch.seeing = 0;
    for (int t = 0; t < n; t++) scratch.seeing |= seen_by[t];
    for (; n % 4 != 0; n++) visited[n] = scratch.rows, seen_by[n] = 0;
    scratch.visits = n;
}

void draw_dropout(const AttentionCall& call, int row, int count, int head, const AttentionScratch& scratch,
                  float* factors) {
    const std::uint32_t none = ~0u;
    const auto scale = float(1 / (1 - double(call.rule.dropout)));
    const Stream& stream = call.rule.stream;
    Words document{}, position{}, ordinal{}, drawn = none - Words{};
    for (int i = 0; i < count; i++) {
        document[i] = std::uint32_t(call.rule.rows.document[row + i]);
        position[i] = std::uint32_t(call.rule.rows.position[row + i]);
    }
    FourOfLanes draws{};
    for (int t = 0; t < scratch.visits; t++) {
        Words sees = Words(lanes_of(scratch.seen_by[t]));
        Words channel = attention_channel(head, 0) + ordinal, block = channel >> 2, turn = channel & 3u;
        Words stale = sees & Words(block != drawn), any = stale;
        for (int half = lanes / 2; half > 0; half /= 2)
            for (int i = 0; i < half; i++) any[i] |= any[i + half];
        if (any[0] != 0) {
            draws = philox_lanes(block, position, document, stream.step - Words{}, stream.key0, stream.key1);
            drawn = block;
        }
        Words bits = turn == 0u ? draws.v[0] : turn == 1u ? draws.v[1] : turn == 2u ? draws.v[2] : draws.v[3];
        store(factors + t * lanes, bits >= call.threshold ? splat(scale) : Vector{});
        ordinal -= sees;  // a lane that sees is all ones: minus one
    }
}

}  // namespace masquerade::cpu::blocks
