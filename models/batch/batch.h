// SPDX-License-Identifier: MIT
// Packed batches: the rows of several documents, the masks over them, and the questions put to rows.
#pragma once
#include <string>
#include <vector>

#include "models/batch/rows.h"
#include "models/masks/mask.h"

namespace masquerade {

// The tokens that questions want by shares, where one wants several or none: question m those of [begin[m],
// begin[m+1]).
struct Choices {
    std::vector<int> begin = {0};  // (M+1)
    std::vector<int> tokens;       // (J)
    std::vector<double> shares;    // (J)
    int size() const { return int(tokens.size()); }
    void push(int token, double share) {
        tokens.push_back(token);
        shares.push_back(share);
    }
};

// Question m is put to row rows[m], or to the slot behind that row, and wants the token tokens[m], or its choices.
struct Asked {
    std::vector<int> rows, tokens;  // (M); rows ascend
    std::vector<double> weights;    // (M) 1, or 0 where inert
    std::vector<int> begin = {0};   // (B+1) questions of document b: [begin[b], begin[b+1])
    int count = 0;                  // real ones
    Choices choices;                // none: the tokens
    int size() const { return int(tokens.size()); }
    void push(int row, int token, double weight = 1) {
        rows.push_back(row);
        tokens.push_back(token);
        weights.push_back(weight);
    }
};

// One document that is to be packed.
struct Example {
    TokenRows source;          // rows of the encoder; none where one stack does all
    TokenRows rows;            // rows of the stack that predicts
    Document document;         // one stack: lengths of the parts A and B of its rows
    std::vector<int> rank;     // of every row, for masks of ranks
    Asked asked;               // of `rows`
    bool same_source = false;  // that of the example before
};

// Further parts of a UniVAE batch; empty in other batches. There `source` and `source_graph` belong to the encoder half,
// `rows` to the decoder half, and `graph` to the layers below the latents.
struct Halves {
    TokenRows cls;  // (B) the rows of [CLS]
    std::vector<int> cls_rows,
        which;  // (B) their places in `source`; source row -> document, if it is its [CLS], or -1
    std::vector<double> document_weights;  // (B) 1, or 0 where inert
    SegmentGraph cls_graph, latent_graph;  // A full for [CLS] alone; B causal, sees its document's latent key first
    TokenRows joint;                       // both halves of each document, for the joint form
    std::vector<int> joint_cls_rows, joint_which, joint_decoder_rows;
    SegmentGraph joint_lower_graph, joint_upper_graph;
    LayerGraphs joint_masks;
    const std::vector<int>& names() const { return cls.document; }  // (B)
};

// Rows beyond the real ones belong to inert documents, which nobody sees and which weigh nothing.
struct Batch : Halves {
    TokenRows source, rows;                         // (Ns), (N)
    Documents parts;                                // A and B of each document; of two stacks source and rows
    Documents shared;                               // of two stacks: each source and all rows that read it
    std::vector<int> rank;                          // (N), or none
    SegmentGraph source_graph, graph, cross_graph;  // of the encoder; of the other stack; from that to the encoder
    LayerGraphs source_masks, masks, cross_masks;   // those that some layers have in their place
    Asked asked;                                    // of `rows`
    TokenRows scored;                               // (M) the rows that are asked, to name them
    // The mask with the asked rows alone as queries, for the last layer; empty: the last layer runs for all rows.
    SegmentGraph scored_graph;
    int documents = 0;  // real ones
    std::string bucket;

    const SegmentGraph& graph_at(int layer) const { return masks.at(layer, graph); }
    const SegmentGraph& last_graph() const { return graph_at(int(masks.of_layer.size()) - 1); }
};

// The rows and questions of a batch without its masks. `pad_to` > 1 adds inert documents: rows and questions become
// multiples of it, documents of 8.
Batch pack(const std::vector<Example>& examples, int pad_to);

// Name of the first inert document; the next ones have smaller names.
constexpr int first_filler = 0x7fffffff;

}  // namespace masquerade
