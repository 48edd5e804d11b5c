// SPDX-License-Identifier: MIT
// The mask of an attention call as a graph of segments, instead of an (N,N) matrix. The rows of queries and of keys
// are cut into segments. A query segment lists the key segments that it sees, in the order in which it visits them.
// One of them may be the key segment with the keys of its own rows (`self`); for `self`, a rule says which keys each
// row sees. The rows see all keys of every other listed segment. A window or blocks may narrow both.
#pragma once
#include <cstdint>
#include <vector>

namespace masquerade {

// The condition under which a query at position i sees the key at position j of the same segment. Positions are
// counted from the start of the segment. In this file, a position is called a place.
enum class Rule : int {
    none,           // never
    full,           // always                         BERT
    causal,         // j <= i                         language model
    strict_causal,  // j <  i
    anticausal,     // j >= i                         reversed language model
    rank,           // rank(j) <= rank(i)             permutation LM, content stream
    strict_rank,    // rank(j) <  rank(i)             permutation LM, query stream
    bits,           // bit (i, j) is set              K-BERT, UniLMv2's pseudo-masks
};

struct KeySegment {
    int source = 0;          // index of the key/value tensor
    int begin = 0, end = 0;  // the rows [begin, end) of this tensor
    int place = 0;           // place of the first row in its document; used by window_all and along
    int before = 0;          // rows before the segment in its part of the document (source or target)
};

struct QuerySegment {
    int begin = 0, end = 0;            // rows of the query tensor
    int document = 0;                  // index in the batch; all segments of a document are adjacent
    int sees_begin = 0, sees_end = 0;  // range in SegmentGraph::sees: the key segments, in visiting order
    int self = -1;                     // index of the key segment with the keys of the same rows; -1 if there is none
    int offset = 0;                    // place of the first query row in `self`; in decoding, number of cached rows
    Rule rule = Rule::full;            // which keys of `self` a row sees
    // The pattern, which exists if window >= 0 or block > 0. Place i then sees only those places j of `self` that the
    // rule and at least one of these conditions allow.
    int window = -1;          // if not -1: places j with |i - j| <= window * dilation, ...
    int dilation = 1;         // ... if i - j is a multiple of dilation
    int stride = 0;           // if not 0, and there is a window: places j with i - j a multiple of stride
    int globals = 0;          // all places, if i or j is one of the first `globals` places
    int block = 0;            // if not 0, the size of blocks of places: the block of i, ...
    int block_before = 0;     // ... the `block_before` blocks before it (-1: not even the block of i), ...
    int block_last = 0;       // ... and the last `block_last` places of every block
    bool window_all = false;  // the pattern also limits the other key segments that this segment sees
    bool along = false;       // like window_all, but places are counted from the start of the document
    int bits_begin = -1;      // Rule::bits: first bit of row 0 in SegmentGraph::bits;
                              // a row has as many bits as `self` has keys
};

struct SegmentGraph {
    std::vector<KeySegment> keys;
    std::vector<QuerySegment> queries;
    std::vector<int> sees;
    std::vector<int> query_rank, key_rank;  // rank, strict_rank: ranks of all query rows and of all rows of source 0
    std::vector<std::uint32_t> bits;        // Rule::bits: the bits of all segments with this rule
    int documents = 0;
};

}  // namespace masquerade
