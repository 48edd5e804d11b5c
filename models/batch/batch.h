// SPDX-License-Identifier: MIT
// Packed batches: the rows of several documents, one document after another without padding between them; their masks;
// and the labels, which say which rows predict which tokens.
#pragma once
#include <string>
#include <vector>

#include "models/batch/rows.h"
#include "models/masks/mask.h"

namespace masquerade {

// The targets of labels that may have several targets or none, as in insertion models. Label m has the targets
// tokens[j], with the shares shares[j] of the loss, for begin[m] <= j < begin[m+1].
struct Choices {
    std::vector<int> begin = {0};  // index of each label's first target, then the number of all targets
    std::vector<int> tokens;       // the targets of all labels, one label after another
    std::vector<double> shares;    // the share of each target
    int size() const { return int(tokens.size()); }
    void push(int token, double share) {
        tokens.push_back(token);
        shares.push_back(share);
    }
};

// Label m says that row rows[m] must predict tokens[m]. If `choices` is not empty, the slot after row rows[m] must
// instead predict the targets of label m in `choices`.
struct Labels {
    std::vector<int> rows, tokens;  // one number per label; rows ascend
    std::vector<double> weights;    // weight of each label in the loss: 1, or 0 for padding labels
    std::vector<int> begin = {0};   // labels of real document b: begin[b] to before begin[b+1]
    int count = 0;                  // number of real labels; the padding labels follow them
    Choices choices;
    int size() const { return int(tokens.size()); }
    void push(int row, int token, double weight = 1) {
        rows.push_back(row);
        tokens.push_back(token);
        weights.push_back(weight);
    }
};

// The rows and labels of one document before packing. A model has either one stack, which reads `rows`, or an encoder,
// which reads `source`, and a decoder, which reads `rows`. The two halves of UniVAE count as two stacks.
struct Example {
    TokenRows source;          // rows of the encoder; empty if there is only one stack
    TokenRows rows;            // rows of the only stack, or of the decoder
    Document document;         // the lengths of the parts A and B of `rows`; two stacks: empty, except in a conditional
                               // UniVAE, whose decoder half also reads the source
    std::vector<int> rank;     // a number of every row, for masks that depend on one (two_stream_mask(): its rank,
                               // pseudo_mask(): its weight, a tree: tree_of()); else empty
    Labels labels;             // labels of `rows`
    bool same_source = false;  // whether this example has the source of the previous one; `source` is then empty
};

// The parts of a UniVAE batch that other batches lack; empty in other batches. In a UniVAE batch, Batch::source and
// Batch::source_graph belong to the encoder half, Batch::rows to the decoder half, and Batch::graph to the decoder
// layers without a latent.
struct Halves {
    TokenRows cls;  // the row [CLS] of each document
    // cls_rows: for each document, the index of its row [CLS] in `source`. which: for each row of `source`, the index
    // of its document if the row is [CLS], else -1.
    std::vector<int> cls_rows, which;
    std::vector<double> document_weights;  // for each document, 1, or 0 for inert (padding) documents
    // cls_graph: the mask of the last encoder layer, whose only queries are the rows [CLS]. latent_graph: the mask of
    // decoder layers with a latent, in which every row also sees the latent of its document.
    SegmentGraph cls_graph, latent_graph;
    // Only in a conditional UniVAE, else empty. read: for each document, the lengths of the two parts of its rows in
    // Batch::rows, the source and the target. read_which: for each row of Batch::rows, the index of its document if it
    // is the first row of the source, [CLS], else -1.
    Documents read;
    std::vector<int> read_which;
    // Both halves of each document as one sequence, for UniVae::joint(), and what joint() needs to know about these
    // rows: the indices of the rows [CLS]; for each row, the index of its document if it is [CLS], else -1; the same
    // numbers for [CLS] of the source in a conditional decoder half; the indices of the decoder half's rows that have a
    // label; the part of each row, 1 for targets in the decoder half, else 0; and the masks of layers without and with
    // a latent.
    TokenRows joint;
    std::vector<int> joint_cls_rows, joint_which, joint_read_which, joint_decoder_rows;
    std::vector<char> joint_parts;
    SegmentGraph joint_lower_graph, joint_upper_graph;
    LayerGraphs joint_masks;
    const std::vector<int>& names() const { return cls.document; }  // the name of each document
};

// A batch of documents. Padding rows belong to inert documents, which follow the real ones: no real row attends to
// padding rows, and labels of padding rows have weight 0.
struct Batch : Halves {
    TokenRows source, rows;                         // rows of the encoder (if any); rows of the decoder or only stack
    Documents parts;                                // for each document, the lengths of its parts A and B or, for two
                                                    // stacks, the numbers of its rows in `source` and in `rows`
    Documents shared;                               // two stacks: for each source, the number of its rows, and of all
                                                    // decoder rows that attend to it, even in several documents
    std::vector<int> rank;                          // Example::rank of each row of `rows`, padded with -1; or empty
    SegmentGraph source_graph, graph, cross_graph;  // masks: encoder, decoder or only stack, cross-attention
    LayerGraphs source_masks, masks, cross_masks;   // replace source_graph, graph, cross_graph in some layers
    Labels labels;                                  // labels of `rows`
    TokenRows scored;                               // copies of the rows with a label, one per label
    // The mask of the last layer if this layer runs only for the rows with a label. If scored_graph is empty, the last
    // layer runs for all rows.
    SegmentGraph scored_graph;
    int documents = 0;   // number of real documents
    std::string bucket;  // all sizes on which the memory of a step depends, as text; equal buckets share a memory plan

    const SegmentGraph& graph_at(int layer) const { return masks.at(layer, graph); }
    const SegmentGraph& last_graph() const { return graph_at(int(masks.of_layer.size()) - 1); }
};

// Packs the rows and labels of examples into a batch, without masks. If pad_to > 1, adds inert documents so that the
// numbers of rows and labels are multiples of pad_to and the number of documents is a multiple of 8.
Batch pack(const std::vector<Example>& examples, int pad_to);

// The name of the first inert document. The other inert documents are named first_filler - 1, first_filler - 2, ...
constexpr int first_filler = 0x7fffffff;

}  // namespace masquerade
