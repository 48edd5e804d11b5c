// SPDX-License-Identifier: MIT
// The mask of an attention call as a graph of segments: a rule in place of an (N,N) matrix. The rows of queries and of
// keys are cut into segments. A query segment lists the key segments that it sees, in the order in which it visits
// them. If it lists itself, its rule says which of its own rows it sees; every other segment is seen whole.
#pragma once
#include <cstdint>
#include <vector>

namespace masquerade {

// The keys, at place j, that a query at place i of the same segment sees (places count from the start of the segment):
enum class Rule : int {
    none,           // nothing
    full,           // everything                     BERT
    causal,         // j <= i                         language model
    strict_causal,  // j <  i
    anticausal,     // j >= i                         reversed language model
    rank,           // rank(j) <= rank(i)             permutation LM, content stream
    strict_rank,    // rank(j) <  rank(i)             permutation LM, query stream
    bits,           // an explicit bit per (i, j)     K-BERT, UniLMv2's pseudo-masks
};

struct KeySegment {
    int source = 0;          // which key/value tensor
    int begin = 0, end = 0;  // its rows there
    int place = 0;           // place of its first row in the document; only for patterns over all segments
    int before = 0;          // rows of its part before it; patterns count the places of a part
};

struct QuerySegment {
    int begin = 0, end = 0;            // rows of q
    int document = 0;                  // index in the batch; the segments of a document are adjacent
    int sees_begin = 0, sees_end = 0;  // range in SegmentGraph::sees: the key segments, in visiting order
    int self = -1;                     // the key segment that is this segment, or -1
    int offset = 0;                    // place of the first query row within `self` (decoding: number of cached rows)
    Rule rule = Rule::full;            // applies to `self`
    int window = -1;                   // of self: only |i - j| <= window * dilation ...; -1: no limit
    int dilation = 1;                  // ... and (i - j) a multiple of dilation
    int stride = 0;                    // > 0: also the places with (i - j) a multiple of stride (strided attention)
    int globals = 0;                   // the first `globals` places see all and are seen by all (as the rule allows)
    int block = 0;                     // > 0: also the places of the row's own block of `block` places, ...
    int block_before = 0;              // ... of the `block_before` blocks before it, ...
    int block_last = 0;                // ... and the last `block_last` places of every block
    bool window_all = false;           // window and blocks also apply to the other segments that it sees
    bool along = false;                // like window_all, with places from the start of the document: one text
    int bits_begin = -1;               // Rule::bits: first bit of row 0 in SegmentGraph::bits;
                                       // a row has as many bits as `self` has keys
};

struct SegmentGraph {
    std::vector<KeySegment> keys;
    std::vector<QuerySegment> queries;
    std::vector<int> sees;
    std::vector<int> query_rank, key_rank;  // Rule::rank: the rank of each query row and of each key row of source 0
    std::vector<std::uint32_t> bits;        // Rule::bits
    int documents = 0;
};

}  // namespace masquerade
