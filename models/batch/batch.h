// SPDX-License-Identifier: MIT
// Packed batches: the rows of several documents, their masks, and the questions: which rows predict which targets.
#pragma once
#include <string>
#include <vector>

#include "models/batch/rows.h"
#include "models/masks/mask.h"

namespace masquerade {

// Targets with shares, for questions that have several targets or none. Question m has [begin[m], begin[m+1]).
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

// Label m belongs to row rows[m], or to the slot after that row: the row predicts tokens[m], or one of its choices.
struct Labels {
    std::vector<int> rows, tokens;  // (M); rows ascend
    std::vector<double> weights;    // (M) 1, or 0 if inert
    std::vector<int> begin = {0};   // (B+1) labels of document b: [begin[b], begin[b+1])
    int count = 0;                  // number of real labels, which come first
    Choices choices;                // empty: `tokens` are the labels
    int size() const { return int(tokens.size()); }
    void push(int row, int token, double weight = 1) {
        rows.push_back(row);
        tokens.push_back(token);
        weights.push_back(weight);
    }
};

// One document before packing.
struct Example {
    TokenRows source;          // rows of the encoder; empty if there is only one stack
    TokenRows rows;            // rows of the stack that predicts
    Document document;         // one stack: lengths of the parts A and B of its rows
    std::vector<int> rank;     // rank of every row, for masks that depend on ranks
    Labels labels;             // of `rows`
    bool same_source = false;  // shares the source of the previous example
};

// Further parts of a UniVAE batch; empty in other batches. In a UniVAE batch, `source` and `source_graph` belong to the
// encoder half, `rows` to the decoder half, and `graph` to the layers below the latents.
struct Halves {
    TokenRows cls;  // (B) the rows of [CLS]
    std::vector<int> cls_rows,
        which;  // (B) rows of [CLS] in `source`; for each row of `source`, its document if it is [CLS], else -1
    std::vector<double> document_weights;  // (B) 1, or 0 if inert
    SegmentGraph cls_graph, latent_graph;  // encoder half, only [CLS] queries; decoder half, also sees the latent's key
    TokenRows joint;                       // both halves of each document, for the joint form
    std::vector<int> joint_cls_rows, joint_which, joint_decoder_rows;
    SegmentGraph joint_lower_graph, joint_upper_graph;
    LayerGraphs joint_masks;
    const std::vector<int>& names() const { return cls.document; }  // (B)
};

// Padding rows belong to inert documents: no real row attends to them, and their weight is 0.
struct Batch : Halves {
    TokenRows source, rows;                         // (Ns), (N)
    Documents parts;                                // lengths of parts A and B; two stacks: of source and rows
    Documents shared;                               // two stacks: lengths of each source and of all rows that read it
    std::vector<int> rank;                          // (N), or empty
    SegmentGraph source_graph, graph, cross_graph;  // masks of the encoder, of the other stack, of cross-attention
    LayerGraphs source_masks, masks, cross_masks;   // replace these masks in some layers
    Labels labels;                                  // of `rows`
    TokenRows scored;                               // (M) the rows with a label
    // The mask whose queries are only the rows with a label, for the last layer. If it is empty, the last layer runs
    // for all rows.
    SegmentGraph scored_graph;
    int documents = 0;  // number of real documents
    std::string bucket;

    const SegmentGraph& graph_at(int layer) const { return masks.at(layer, graph); }
    const SegmentGraph& last_graph() const { return graph_at(int(masks.of_layer.size()) - 1); }
};

// Packs rows and questions into a batch, without masks. If pad_to > 1, adds inert documents, so that the numbers of
// rows and questions are multiples of pad_to and the number of documents is a multiple of 8.
Batch pack(const std::vector<Example>& examples, int pad_to);

// Name of the first inert document; the names of further ones count down.
constexpr int first_filler = 0x7fffffff;

}  // namespace masquerade
