// SPDX-License-Identifier: MIT
// Packed batches: the rows of several documents, their masks, and the labels, which say which rows predict which
// targets.
#pragma once
#include <string>
#include <vector>

#include "models/batch/rows.h"
#include "models/masks/mask.h"

namespace masquerade {

// Targets and their shares in the loss, for labels that have several targets or none. Label m has the targets
// tokens[j] for j in [begin[m], begin[m+1]).
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

// Label m says what row rows[m], or the insertion slot after that row, must predict: tokens[m] or, if `choices` is not
// empty, the targets of label m in `choices`.
struct Labels {
    std::vector<int> rows, tokens;  // (M); rows ascend
    std::vector<double> weights;    // (M) 1, or 0 for padding
    std::vector<int> begin = {0};   // (B+1) labels of document b: [begin[b], begin[b+1])
    int count = 0;                  // number of real labels, which precede the padding
    Choices choices;                // empty: each label has one target, in `tokens`
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
    Document document;         // if there is only one stack: lengths of the parts A and B of `rows`
    std::vector<int> rank;     // rank of every row, for masks that depend on ranks
    Labels labels;             // labels of `rows`
    bool same_source = false;  // whether the source is that of the previous example; `source` is then empty
};

// Further parts of a UniVAE batch; empty in other batches. In a UniVAE batch, `source` and `source_graph` belong to the
// encoder half, `rows` to the decoder half, and `graph` to the decoder layers without a latent.
struct Halves {
    TokenRows cls;  // (B) the rows of [CLS]
    // cls_rows (B): the rows of [CLS] in `source`. which: for each row of `source`, its document if the row is [CLS],
    // else -1.
    std::vector<int> cls_rows, which;
    std::vector<double> document_weights;  // (B) 1, or 0 for padding
    // cls_graph: the encoder half's mask with only the rows of [CLS] as queries. latent_graph: the mask of the decoder
    // layers with a latent, whose key every row sees.
    SegmentGraph cls_graph, latent_graph;
    TokenRows joint;  // both halves of each document as one sequence (UniVae::joint); the next fields belong to it
    std::vector<int> joint_cls_rows, joint_which, joint_decoder_rows;
    SegmentGraph joint_lower_graph, joint_upper_graph;
    LayerGraphs joint_masks;
    const std::vector<int>& names() const { return cls.document; }  // (B)
};

// Padding rows belong to inert documents: no real row attends to them, and their weight is 0.
struct Batch : Halves {
    TokenRows source, rows;                         // (Ns), (N)
    Documents parts;                                // lengths of parts A and B or, with two stacks, of source and rows
    Documents shared;                               // with two stacks: lengths of each source and of all its rows
    std::vector<int> rank;                          // (N), or empty
    SegmentGraph source_graph, graph, cross_graph;  // masks of the encoder, of the other stack, of cross-attention
    LayerGraphs source_masks, masks, cross_masks;   // replace the three masks above in some layers
    Labels labels;                                  // labels of `rows`
    TokenRows scored;                               // (M) the rows with a label
    // The mask whose queries are only the rows with a label, for the last layer. If it is empty, the last layer runs
    // for all rows.
    SegmentGraph scored_graph;
    int documents = 0;  // number of real documents
    std::string bucket;

    const SegmentGraph& graph_at(int layer) const { return masks.at(layer, graph); }
    const SegmentGraph& last_graph() const { return graph_at(int(masks.of_layer.size()) - 1); }
};

// Packs rows and labels into a batch, without masks. If pad_to > 1, adds inert documents, so that the numbers of rows
// and labels are multiples of pad_to and the number of documents is a multiple of 8.
Batch pack(const std::vector<Example>& examples, int pad_to);

// Name of the first inert document. Further inert documents are named first_filler - 1, first_filler - 2, ...
constexpr int first_filler = 0x7fffffff;

}  // namespace masquerade
