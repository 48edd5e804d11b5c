// SPDX-License-Identifier: MIT
// A block of query rows visits a key if at least one of its rows sees the key. The plan of a document lists the visited
// keys of each block, as runs. A run consists of consecutive keys that the same rows of the block see. The plan is made
// once for all heads, with the functions of engine/ops/visible.h.
#pragma once
#include "engine/ops/cpu/attention_call.h"
#include "engine/ops/cpu/vector.h"

#include <vector>

namespace masquerade::cpu {

// A run of keys that the same queries of a block see: the packed key rows [key, key + count). The channels of these
// keys, which select the random bits of dropout (AttentionDropout), begin at `channel`. Bit i of seen_by is set if the
// query row in lane i sees these keys.
struct KeyRun {
    int key, channel, count;
    unsigned seen_by;
};

// A block: the query rows [row, row + count) of a segment, or of several segments of joined documents (DocumentRange),
// where count <= lanes. `visits` is the number of keys that at least one of these rows sees. The runs of these keys are
// the entries [first_run, last_run) of DocumentPlan::runs, in the order in which the block visits them.
struct QueryBlock {
    int row, count;
    int first_run, last_run, visits;
    // everyone: bit i is set if lane i has a query row. seeing: bit i is set if lane i sees at least one key.
    unsigned everyone, seeing;
};

// The plan of one document. A thread has one plan, which it fills again for each document; the memory only grows.
struct DocumentPlan {
    std::vector<QueryBlock> blocks;
    std::vector<KeyRun> runs;
    int most_visits = 0;  // maximum number of keys that the query rows of one block see
    int queries = 0;      // number of query rows of all blocks

    // The keys of the document are packed into one array, one key segment after another.
    std::vector<int> key_segments;  // indices of the key segments, in the order in which the query segments list them
    // For each key segment in SegmentGraph::keys: the row of the packed array at which the segment begins. Only set for
    // the segments in key_segments, and for those whose rows a segment of the document before has packed.
    std::vector<int> first_row;
    int rows = 0;  // total number of packed rows, over all key segments of the document

    // Scratch memory, which is all 0 between uses.
    std::vector<char> numbered;  // for each entry of SegmentGraph::keys: whether key_segments has it already
    // toggled[p]: bit i is set if lane i begins or stops seeing keys at position p of a key segment. changes: a bit for
    // each position p, set if toggled[p] was written.
    std::vector<std::uint16_t> toggled;
    std::vector<std::uint64_t> changes;
};

// Makes the plan of a document. The plan is valid until the next call in the same thread.
const DocumentPlan& plan_document(const AttentionCall& call, DocumentRange document);

}  // namespace masquerade::cpu
