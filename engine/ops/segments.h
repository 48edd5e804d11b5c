// SPDX-License-Identifier: MIT
// The mask of an attention call as a graph of segments, instead of an (N,N) matrix. The rows of queries and of keys are
// cut into segments. A query segment lists the key segments that it sees. Kernels process the key segments in the order
// of this list. The list may contain the key segment that consists of the same rows as the query segment (`self`). A
// rule says which keys of `self` a query row sees. A query row sees all keys of every other listed segment. A window or
// blocks may further limit which keys a query row sees.
#pragma once
#include <cstdint>
#include <vector>

namespace masquerade {

// The condition under which a query at position i sees the key at position j of the same segment. Positions are
// counted from the start of the segment.
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
    int source = 0;          // index of the key/value tensor with the keys of the segment
    int begin = 0, end = 0;  // the rows [begin, end) of key/value tensor `source`
    int place = 0;           // position in the document of the segment's first row; used by window_all and along
    int before = 0;          // position of the first row in its part (source or target) of the document
};

// A pattern of positions, which exists if window >= 0 or block > 0. A query at position i then sees a key of
// QuerySegment::self only if the rule and at least one of these fields let the query see the key.
struct SegmentPattern {
    int window = -1;       // position i sees the positions j with |i - j| <= window * dilation; -1: no window
    int dilation = 1;      // only distances i - j that are multiples of dilation are in the window
    int stride = 0;        // with a window, i also sees all j where i - j is a multiple of stride; 0: no stride
    int globals = 0;       // the first `globals` positions see all positions and are seen by all positions
    int block = 0;         // positions are cut into blocks of this size, for the next two fields; 0: no blocks
    int block_before = 0;  // position i sees its own block and this many blocks before it; -1: not even its own
    int block_last = 0;    // a query also sees the last `block_last` positions of every block
};

struct QuerySegment : SegmentPattern {
    int begin = 0, end = 0;            // the rows [begin, end) of the query tensor
    int document = 0;                  // index of the document in the batch; query segments of a document are adjacent
    int sees_begin = 0, sees_end = 0;  // the key segments that it sees are SegmentGraph::sees[sees_begin, sees_end)
    int self = -1;                     // index of the key segment that consists of the same rows; -1 if there is none
    int offset = 0;                    // position in `self` of the first query row; in decoding, number of cached rows
    Rule rule = Rule::full;            // says which keys of `self` a query row sees
    // true if the pattern also limits the key segments other than `self`. Window and stride then use distances in the
    // document; globals and blocks are counted within the source or the target.
    bool window_all = false;
    // true if the pattern limits all key segments, and all its positions are counted in the document
    bool along = false;
    // For Rule::bits: index in SegmentGraph::bits of the first bit of this segment. Each query row has one bit for each
    // key of `self`; the bits of the next row follow directly.
    int bits_begin = -1;
};

struct SegmentGraph {
    std::vector<KeySegment> keys;
    std::vector<QuerySegment> queries;
    std::vector<int> sees;
    std::vector<int> query_rank, key_rank;  // for rank, strict_rank: rank of each query row, and of each row of kv[0]
    std::vector<std::uint32_t> bits;        // for Rule::bits: the bits of all segments with this rule
    int documents = 0;

    // Adds a key segment. The query segment that is added next (by add()) sees it.
    void see(const KeySegment& key) {
        sees.push_back(int(keys.size()));
        keys.push_back(key);
    }
    // Adds a query segment. The query segment sees all key segments in `sees` that were added after the previous query
    // segment.
    void add(QuerySegment q) {
        q.sees_begin = queries.empty() ? 0 : queries.back().sees_end;
        q.sees_end = int(sees.size());
        queries.push_back(q);
    }
    // Returns how many of the lists of keys that `sees` consists of contain a key row, on average over `rows` key rows,
    // rounded up: 1 if each row is seen in one list, 2 if targets see their source beside themselves.
    std::int64_t lists_of_a_row(std::int64_t rows) const {
        std::int64_t seen = 0;
        for (int key : sees) seen += keys[key].end - keys[key].begin;
        return rows > 0 ? (seen + rows - 1) / rows : 0;
    }
};

}  // namespace masquerade
