// SPDX-License-Identifier: MIT
// The mask of an attention call as a graph of segments: what the field draws as an (N,N) matrix, kept as a rule.
// Rows of queries and rows of keys are cut into segments; a query segment lists the key segments it sees, in the order
// in which it visits them. One of them may be itself: towards itself its rule holds, every other one it sees whole.
#pragma once
#include <cstdint>
#include <vector>

namespace masquerade {

// The keys, at place j, that a query at place i of the same segment sees (places count from the segment's start):
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
    int place = 0;           // where it begins in its document; for patterns over all segments alone
    int before = 0;          // rows of its part that lie before it: a pattern counts places of the part
};

struct QuerySegment {
    int begin = 0, end = 0;            // rows of q
    int document = 0;                  // index in the batch; the segments of one document lie together
    int sees_begin = 0, sees_end = 0;  // range in SegmentGraph::sees: key segments in the order of their visit
    int self = -1;                     // the key segment that is this one, or -1
    int offset = 0;           // place of the first query row within `self` (decoding one row: rows cached before)
    Rule rule = Rule::full;   // towards `self`
    int window = -1;          // of self, only |i - j| <= window * dilation ...; -1: no limit
    int dilation = 1;         // ... and (i - j) a multiple of dilation
    int stride = 0;           // > 0: also the places with (i - j) a multiple of stride (strided attention)
    int globals = 0;          // the first `globals` places are seen by all rows and see all (as the rule allows)
    int block = 0;            // > 0: also the places of its own block of so many, and ...
    int block_before = 0;     // ... of as many blocks before it, and ...
    int block_last = 0;       // ... the last so many places of every block
    bool window_all = false;  // window and blocks also hold towards the other segments it sees
    bool along = false;       // the same, but places count from the start of the document: segments are one text
    int bits_begin = -1;      // Rule::bits: first bit of row 0 in SegmentGraph::bits, a row has as many bits as
                              // `self` has keys
};

struct SegmentGraph {
    std::vector<KeySegment> keys;
    std::vector<QuerySegment> queries;
    std::vector<int> sees;
    std::vector<int> query_rank, key_rank;  // Rule::rank: a rank for every query row and every key row of source 0
    std::vector<std::uint32_t> bits;        // Rule::bits
    int documents = 0;
};

}  // namespace masquerade
