// SPDX-License-Identifier: MIT
// The mask of an attention call as a graph of segments, instead of an (N,N) matrix. The rows of queries and of keys are
// cut into segments. A query segment lists the key segments that it sees, in the order in which it visits them. If it
// lists itself, its rule says which of its own rows each row sees; it sees all rows of every other listed segment.
#pragma once
#include <cstdint>
#include <vector>

namespace masquerade {

// The condition on which a query at position i sees the key at position j of the same segment. Positions (in this file:
// places) are counted from the start of the segment.
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
    int begin = 0, end = 0;  // rows of that tensor
    int place = 0;           // place of the first row in the document; only needed for patterns over all segments
    int before = 0;          // if the segment is a piece of a part (source or target): rows of the part before it
};

struct QuerySegment {
    int begin = 0, end = 0;            // rows of the query tensor
    int document = 0;                  // index in the batch; the segments of a document are adjacent
    int sees_begin = 0, sees_end = 0;  // range in SegmentGraph::sees: the key segments, in visiting order
    int self = -1;                     // the key segment with the keys of this segment, or -1
    int offset = 0;                    // place of the first query row within `self` (decoding: number of cached rows)
    Rule rule = Rule::full;            // applies to `self`
    int window = -1;                   // place i sees only places j of `self` with |i - j| <= window * dilation ...
    int dilation = 1;                  // ... and i - j a multiple of dilation; window = -1: no limit
    int stride = 0;                    // if not 0, it also sees places with i - j a multiple of stride
    int globals = 0;                   // the first `globals` places see all and are seen by all (as the rule allows)
    int block = 0;                     // if not 0, it also sees its own block of `block` places, ...
    int block_before = 0;              // ... the `block_before` blocks before its own block, ...
    int block_last = 0;                // ... and the last `block_last` places of every block
    bool window_all = false;           // window and blocks also apply to the other segments that this segment sees
    bool along = false;                // as window_all, but places are counted from the start of the document
    int bits_begin = -1;               // Rule::bits: first bit of row 0 in SegmentGraph::bits;
                                       // a row has as many bits as `self` has keys
};

struct SegmentGraph {
    std::vector<KeySegment> keys;
    std::vector<QuerySegment> queries;
    std::vector<int> sees;
    std::vector<int> query_rank, key_rank;  // Rule::rank: the rank of each query row and of each key row of source 0
    std::vector<std::uint32_t> bits;        // Rule::bits: the bits of all segments with this rule
    int documents = 0;
};

}  // namespace masquerade
