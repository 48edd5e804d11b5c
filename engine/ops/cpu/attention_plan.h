// SPDX-License-Identifier: MIT
// The keys that the query blocks of a document visit, found once for all heads: the one reading of the graph
// (ops/visible.h) turned into runs of keys that the same queries see.
#pragma once
#include "engine/ops/cpu/attention_call.h"
#include "engine/ops/cpu/vector.h"

#include <vector>

namespace masquerade::cpu {

// Packed key rows [key, key + count), and a bit for every lane that sees them.
struct KeyRun {
    int key, count;
    unsigned seen_by;
};

// The query rows [row, row + count) of a segment, count <= lanes, and the keys that any of them sees, in the
// order of visit: runs [first_run, last_run) with `visits` keys in all.
struct QueryBlock {
    int row, count;
    int first_run, last_run, visits;
    unsigned everyone, seeing;  // lanes that are rows; lanes that see anything
    // Whether a lane that sees a key has seen all before it, so that the keys it has seen are the visits.
    bool in_step;
};

// The plan of a document in one thread; its memory only grows.
struct DocumentPlan {
    std::vector<QueryBlock> blocks;
    std::vector<KeyRun> runs;
    int most_visits = 0;  // of a block
    int queries = 0;      // rows of all blocks

    // The keys of the document lie packed one after the other.
    std::vector<int> key_segments;  // in the order of their first visit
    std::vector<int> first_row;     // first packed row of every key segment in key_segments
    int rows = 0;

    std::vector<char> numbered;  // of every key segment: whether first_row is its
    // Scratch, all zero: of every place, lanes for which a run begins or ends there; a bit where there are some.
    std::vector<std::uint16_t> toggled;
    std::vector<std::uint64_t> changes;
};

// The calling thread's plan, made for the document.
const DocumentPlan& plan_document(const AttentionCall& call, DocumentRange document);

}  // namespace masquerade::cpu
