// SPDX-License-Identifier: MIT
// Shared by softmax attention on all devices and, in part, by lsh_attention: the layout of the heads, the checks of
// the arguments, and the random numbers of dropout.
#pragma once
#include <cstring>
#include <vector>

#include "engine/ops/check.h"
#include "engine/ops/table.h"

namespace masquerade {

// The heads of an attention call: H query heads and G key/value heads, all of width D. H / G consecutive query heads
// share one key/value head. There are Nq query rows and Nk key rows. A row of q (Nq,H D) holds the queries of all H
// heads. A row of kv (Nk,2 G D) holds the keys of all G heads, then their values. G is H in Vaswani et al. 2017, 1 in
// Shazeer 2019, and any divisor of H in Ainslie et al. 2023.
struct AttentionHeads {
    int of_queries = 0, of_keys = 0, D = 0;  // H query heads, G key/value heads, and the width of one head
    constexpr int C() const { return of_queries * D; }
    constexpr int values() const { return of_keys * D; }  // the first column of the values in kv
    constexpr int kv_columns() const { return 2 * of_keys * D; }
    constexpr int readers() const { return of_queries / of_keys; }  // number of query heads that share a key/value head
};
inline AttentionHeads attention_heads(const View& q, const Views& kv, int heads) {
    const int H = heads < 1 ? 1 : heads, D = int(q.columns()) / H;
    const int G = kv.count > 0 && D > 0 ? int(kv[0].columns()) / (2 * D) : H;
    return {H, G < 1 ? 1 : G, D};
}

// Dropout of softmax attention. 16 random bits decide whether a query row keeps its probability for a key. Each key has
// a channel, a number that says which random bits belong to the key. One draw of random numbers (Stream::at()) yields
// four 32-bit words, which contain the bits for 8 consecutive channels. The lower half of a word belongs to one
// channel, and the upper half to the next channel.
//
// The key segments that a query segment sees (SegmentGraph::sees) get ranges of channels, one range after another. Each
// range begins at a multiple of 8. The channel of a key is the first channel of its segment plus the index of the key
// in the segment. Keys that the mask hides keep their channels, so a key has the same channel for all rows of a query
// segment.
struct AttentionDropout {
    std::uint32_t threshold = 0;  // a probability is kept if its 16 bits are at least this; 0: there is no dropout
    double kept = 1;              // factor of a kept probability: 65536 / (65536 - threshold), about 1 / (1 - rate)
    AttentionDropout() = default;
    explicit AttentionDropout(double rate)
        : threshold(std::uint32_t(rate * 65536 + 0.5 < 65535 ? rate * 65536 + 0.5 : 65535)),
          kept(65536.0 / (65536 - threshold)) {}

    static constexpr int keys_a_draw = 8;
    // Returns the number of channels of a key segment: its number of keys, rounded up to a multiple of 8.
    static constexpr int channels_of(const KeySegment& key) {
        return (key.end - key.begin + keys_a_draw - 1) / keys_a_draw * keys_a_draw;
    }
    // Returns the argument `block` with which Stream::at() draws the bits of this channel for a query head.
    static constexpr std::uint32_t block_of(int head, int channel) {
        return (std::uint32_t(head) << 17) + std::uint32_t(channel / keys_a_draw);
    }
    // Returns whether the probability for the key with this channel is kept. `draw` is the draw that contains the bits
    // of this channel (block_of()).
    constexpr bool keeps(const Four& draw, int channel) const {
        const std::uint32_t word = draw.v[channel % keys_a_draw / 2];
        return (channel % 2 ? word : word << 16) >= threshold << 16;
    }
};

// Checks the number of heads and the dropout of a call with `queries` query rows, and the shape of lse.
inline void check_attention_rule(const char* op, const View& q, const AttentionRule& rule, std::int64_t queries,
                                 const View& lse) {
    if (rule.heads < 1 || q.columns() % rule.heads != 0)
        throw Error(op, ": ", seen("q", q), ", not divisible into ", rule.heads, " heads");
    expect_shape(op, "lse", lse, {queries, rule.heads}, arithmetic_of(q.dtype));
    if (!(rule.dropout >= 0 && rule.dropout < 1))
        throw Error(op, ": dropout is ", rule.dropout, ", expected in [0, 1)");
    if (rule.dropout == 0) return;
    expect_count(op, "documents of the queries", rule.rows.document, queries);
    expect_count(op, "positions of the queries", rule.rows.position, queries);
}

inline void check_attention_tensors(const char* op, const View& q, const Views& kv, const AttentionRule& rule,
                                    const View& lse) {
    check_attention_rule(op, q, rule, q.rows(), lse);
    const AttentionHeads all = attention_heads(q, kv, rule.heads);
    for (int s = 0; s < kv.count; s++)
        if (kv[s].columns() != all.kv_columns() || rule.heads % all.of_keys != 0 || kv[s].dtype != q.dtype)
            throw Error(op, ": ", seen("kv", kv[s]), " but ", seen("q", q), " of ", rule.heads,
                        " heads; kv holds keys and values, of as many heads or a divisor, each as wide as one of q");
}

inline void check_attention_keys(const char* op, const Views& kv, const SegmentGraph& graph) {
    for (std::size_t k = 0; k < graph.keys.size(); k++) {
        const KeySegment& key = graph.keys[k];
        if (key.source < 0 || key.source >= kv.count)
            throw Error(op, ": key segment ", k, " is in source ", key.source, " of ", kv.count);
        if (key.begin < 0 || key.begin > key.end || key.end > kv[key.source].rows())
            throw Error(op, ": key segment ", k, " is rows ", key.begin, " to ", key.end, " but ",
                        seen("kv", kv[key.source]));
    }
}

inline void check_attention_query(const char* op, const View& q, const Views& kv, const SegmentGraph& graph,
                                  int index) {
    const QuerySegment& s = graph.queries[index];
    auto refuse = [&](const auto&... why) { throw Error(op, ": query segment ", index, " ", why...); };
    int keys = int(graph.keys.size());
    if (s.begin < 0 || s.begin > s.end || s.end > q.rows())
        refuse("is rows ", s.begin, " to ", s.end, " but ", seen("q", q));
    if (s.sees_begin < 0 || s.sees_begin > s.sees_end || s.sees_end > int(graph.sees.size()))
        refuse("sees entries ", s.sees_begin, " to ", s.sees_end, " of ", graph.sees.size());
    std::int64_t most = 0;
    for (int v = s.sees_begin; v < s.sees_end; v++) {
        int key = graph.sees[v];
        if (key < 0 || key >= keys) refuse("sees key segment ", key, " of ", keys);
        for (int w = s.sees_begin; w < v; w++)
            if (graph.sees[w] == key) refuse("sees key segment ", key, " twice");
        most += AttentionDropout::channels_of(graph.keys[key]);
    }
    if (most >= 1 << 20) refuse("sees ", most, " keys, more than 2^20");
    if (s.self < -1 || s.self >= keys) refuse("is key segment ", s.self, " of ", keys);
    if (s.offset < 0 || s.dilation < 1 || s.stride < 0 || s.globals < 0 || s.block < 0 || s.block_before < -1 ||
        s.block_last < 0)
        refuse("has offset ", s.offset, ", dilation ", s.dilation, ", stride ", s.stride, ", globals ", s.globals,
               ", block ", s.block, ", blocks before ", s.block_before, ", last places ", s.block_last);
    if (s.self < 0) return;
    const KeySegment& self = graph.keys[s.self];
    bool ranked = s.rule == Rule::rank || s.rule == Rule::strict_rank;
    if (ranked && self.source != 0) refuse("is ranked, which only keys of source 0 can be");
    if (ranked &&
        (std::int64_t(graph.query_rank.size()) != q.rows() || std::int64_t(graph.key_rank.size()) != kv[0].rows()))
        refuse("is ranked, but there are ranks for ", graph.query_rank.size(), " queries and ", graph.key_rank.size(),
               " keys, ", seen("q", q), ", ", seen("kv", kv[0]));
    std::int64_t bits = std::int64_t(s.end - s.begin) * (self.end - self.begin);
    if (s.rule == Rule::bits && (s.bits_begin < 0 || s.bits_begin + bits > 32 * std::int64_t(graph.bits.size())))
        refuse("needs bits ", s.bits_begin, " to ", s.bits_begin + bits, " of ", 32 * graph.bits.size());
}

// Throws Error if a segment of the graph is not valid for these tensors.
inline void check_attention_graph(const char* op, const View& q, const Views& kv, const SegmentGraph& graph) {
    check_attention_keys(op, kv, graph);
    for (std::size_t i = 0; i < graph.queries.size(); i++) check_attention_query(op, q, kv, graph, int(i));
}

inline void check_attention_gradients(const char* op, const Views& kv, const Grads& dkv) {
    if (dkv.count > kv.count) throw Error(op, ": ", dkv.count, " gradients for ", kv.count, " key/value tensors");
    for (int s = 0; s < dkv.count; s++) {
        expect_grad(op, "dkv", dkv[s], kv[s]);
        for (int t = 0; t < s; t++)
            if (dkv[s] && dkv[t] && dkv[s].view.data == dkv[t].view.data && dkv[s].view.count() > 0)
                throw Error(op, ": kv ", kv[s].path, " is listed twice; name it once, with all its segments");
    }
}

// Sets covered[n] to 1 if a query segment contains row n of q, else to 0. Throws Error if two segments contain row n.
inline void find_covered_rows(const char* op, const View& q, const SegmentGraph& graph, std::vector<char>& covered) {
    covered.assign(q.rows(), 0);
    for (const QuerySegment& s : graph.queries) {
        if (s.begin == s.end) continue;
        char* const rows = covered.data() + s.begin;
        const std::size_t count = std::size_t(s.end - s.begin);
        if (const void* twice = std::memchr(rows, 1, count))
            throw Error(op, ": two query segments hold row ", static_cast<const char*>(twice) - covered.data(),
                        " of q ", q.path);
        std::memset(rows, 1, count);
    }
}

}  // namespace masquerade
