// SPDX-License-Identifier: MIT
// Packed batches: rows, masks, and what is asked.
#pragma once
#include <string>
#include <vector>

#include "models/batch/rows.h"
#include "models/masks/mask.h"

namespace masquerade {

// A packed batch, M of its N rows scored. Rows beyond the real ones belong to an inert document, which nobody sees.
struct ObjectiveBatch {
    TokenRows rows;  // (N)
    SegmentGraph graph;
    TokenRows scored;               // (M) the scored rows once more, to name them
    std::vector<int> scored_rows;   // (M) their places in `rows`, ascending
    // The same mask, its queries the scored rows alone, for the last layer; empty where scored rows are scattered: then the
    // last layer runs for all.
    SegmentGraph scored_graph;
    std::vector<int> targets;       // (M)
    std::vector<double> weights;    // (M) 1, or 0 where inert
    std::vector<int> scored_begin;  // (B+1) scored rows of document b: [begin[b], begin[b+1])
    int documents = 0, target_count = 0;  // real ones
    std::string bucket;
};

// A packed batch: Ne rows for the encoder, Nd for the decoder, each of these asked for a token. Rows beyond the real ones
// belong to inert documents, which nobody sees.
struct PairBatch {
    TokenRows source, target;  // (Ne), (Nd): targets are the tokens fed, one before the one that is asked for
    SegmentGraph encoder_graph, decoder_graph, cross_graph;
    std::vector<int> targets;             // (Nd)
    std::vector<double> weights;          // (Nd) 1, or 0 where inert
    std::vector<int> target_begin;        // (B+1) rows of document b: [begin[b], begin[b+1])
    int documents = 0, target_count = 0;  // real ones
    std::string bucket;
};

}  // namespace masquerade
