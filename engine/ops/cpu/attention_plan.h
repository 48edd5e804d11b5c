// SPDX-License-Identifier: MIT
// The keys that the query blocks of a document visit, found once for all heads. engine/ops/visible.h interprets the
// graph; a plan stores the result as runs of keys that the same queries see.
#pragma once
#include "engine/ops/cpu/attention_call.h"
#include "engine/ops/cpu/vector.h"

#include <vector>

namespace masquerade::cpu {

// Packed key rows [key, key + count), and a bit for each lane that sees them.
struct KeyRun {
    int key, count;
    unsigned seen_by;
};

// The query rows [row, row + count) of a segment, count <= lanes, and the keys that any of them sees, in visiting
// order: runs [first_run, last_run) with `visits` keys in all.
struct QueryBlock {
    int row, count;
    int first_run, last_run, visits;
    unsigned everyone, seeing;  // bits of the lanes that hold a row; bits of the lanes that see a key
    // Whether every lane that sees a key has also seen all keys before it. The number of keys that the lane has seen is
    // then the index of the visit.
    bool in_step;
};

// The plan of one document. A thread has one plan, which it fills again for each document; the memory only grows.
struct DocumentPlan {
    std::vector<QueryBlock> blocks;
    std::vector<KeyRun> runs;
    int most_visits = 0;  // largest `visits` of a block
    int queries = 0;      // rows of all blocks

    // The keys of the document are packed one after another, segment by segment.
    std::vector<int> key_segments;  // in the order of their first visit
    std::vector<int> first_row;     // by key segment: its first packed row, if the segment is in key_segments
    int rows = 0;                   // packed rows

    // Scratch, all zero between uses.
    std::vector<char> numbered;  // by key segment: whether it is in key_segments already
    // The lanes for which a run of keys begins or ends at each place of a key segment; a bit for each place with lanes.
    std::vector<std::uint16_t> toggled;
    std::vector<std::uint64_t> changes;
};

// Fills the calling thread's plan for the document. The reference is valid until the thread's next call.
const DocumentPlan& plan_document(const AttentionCall& call, DocumentRange document);

}  // namespace masquerade::cpu
