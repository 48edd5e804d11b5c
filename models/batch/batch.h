// SPDX-License-Identifier: MIT
// Packed batches. A batch holds the rows of several documents, one document after another without padding between them.
// It also holds the attention masks and the labels, which say which row must predict which token.
#pragma once
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "models/batch/rows.h"
#include "models/masks/mask.h"

namespace masquerade {

// The targets of labels that may have several targets or none, as in insertion models. The targets of label m are
// tokens[j] for begin[m] <= j < begin[m+1]; shares[j] is the weight of target j in the loss.
struct Choices {
    std::vector<int> begin = {0};  // index of each label's first target, then the number of all targets
    std::vector<int> tokens;       // the targets of all labels, one label after another
    Numbers shares;                // the weight of each target in the loss
    int size() const { return tokens.size(); }
    void push(int token, double share) {
        tokens.push_back(token);
        shares.push_back(share);
    }
};

// Label m says that row rows[m] must predict tokens[m]. In insertion models, label m instead stands for a slot, a place
// where words can be inserted: the slot between row rows[m] and the next row. The targets of the slot are in `choices`.
struct Labels {
    std::vector<int> rows, tokens;  // one row index and one token id per label; row indices ascend
    Numbers weights;                // weight of each label in the loss; 0 for padding labels
    std::vector<int> begin = {0};   // real document b has the labels begin[b] .. begin[b+1]-1
    int count = 0;                  // number of real labels; the padding labels follow them
    int counted = 0;                // the sum of Example::counted
    Choices choices;
    int size() const { return tokens.size(); }
    void push(int row, int token, double weight = 1) {
        rows.push_back(row);
        tokens.push_back(token);
        weights.push_back(weight);
    }
};

// The rows and labels of one document before packing. A model has either one stack, which reads `rows`, or an encoder,
// which reads `source`, and a decoder, which reads `rows`. The two halves of UniVAE count as two stacks.
struct Example {
    TokenRows source;  // rows of the encoder; empty if there is only one stack
    TokenRows rows;    // rows of the only stack, or of the decoder
    // With one stack: the numbers of source and target rows in `rows`. The same in a conditional UniVAE, where `rows`
    // are the rows of the decoder half, which reads the source and the target. Other models with two stacks do not use
    // this field.
    Document document;
    // Some masks need a number for each row. two_stream_mask(): the place of the row in the order of prediction.
    // k-bert: the entity or the fact of the row, as tree_of() numbers them. pseudo_mask(): the span and the kind of the
    // row, in the encoding of its parameter `weight`. Empty for other masks.
    std::vector<int> rank;
    // Only in a UniVAE that inserts words: the number of insertions that generate the target, one for each of its words
    // and one for its end. 0: none are counted.
    int insertions = 0;
    // If the weights of the labels are not 1: the number of tokens that the labels stand for, by which the sum of their
    // weighted losses is divided. 0: the number of labels.
    int counted = 0;
    Labels labels;             // labels of `rows`
    bool same_source = false;  // whether this example shares the previous example's source; if so, `source` is empty
};

struct Batch;

// The fields that only UniVAE uses; in batches of other models, they are empty. UniVAE's encoder half reads a sentence,
// and its decoder half reconstructs it. Batch::source and Batch::source_graph belong to the encoder half, and
// Batch::rows to the decoder half. Batch::graph is the mask of the decoder layers without a latent or, in a conditional
// UniVAE, of all decoder layers.
struct Halves {
    TokenRows cls;  // the row [CLS] of each document: the first row of its encoder half
    // cls_rows: for each document, the index of its row [CLS] in `source`. which: for each row of `source`, the index
    // of its document if the row is [CLS], else -1.
    std::vector<int> cls_rows, which;
    Numbers document_weights;  // for each document, 1, or 0 for inert (padding) documents
    // cls_graph: the mask of the last encoder layer; its only queries are the rows [CLS]. latent_graph: the mask of
    // decoder layers with a latent, in which every row also sees the latent of its document; empty if conditional.
    SegmentGraph cls_graph, latent_graph;
    // Only in a conditional UniVAE, else empty. read: for each document, the numbers of source and target rows that its
    // decoder half has in Batch::rows. read_which: for each row of Batch::rows, the index of its document if the row is
    // the first of the source, [CLS], else -1.
    Documents read;
    std::vector<int> read_which;
    // Only in a UniVAE that inserts words, else empty: Example::insertions of each document; 0 for inert documents.
    Numbers insertions;
    // If the prior of the latents depends on the source: a batch whose encoder halves read only the sources, with the
    // same documents in the same order. Else null.
    std::shared_ptr<const Batch> sources;
    // For UniVae::joint(), which runs both halves of each document as one sequence.
    // joint: the rows of all sequences.
    // joint_cls_rows: for each document, the index in `joint` of the row [CLS] of its encoder half.
    // joint_which: for each row of `joint`, the index of its document if the row is the [CLS] of an encoder half, else
    // -1.
    // joint_read_which: for each row of `joint`, the index of its document if the row is the [CLS] of the source in the
    // decoder half of a conditional UniVAE, else -1.
    // joint_decoder_rows: the indices, in `joint`, of those rows of the decoder halves that have a label.
    // joint_parts: for each row of `joint`, 1 if it is a target row of a decoder half, else 0.
    // joint_lower_graph and joint_upper_graph: the masks of layers without and with a latent.
    // joint_masks: masks that replace joint_lower_graph and joint_upper_graph in some layers.
    TokenRows joint;
    std::vector<int> joint_cls_rows, joint_which, joint_read_which, joint_decoder_rows;
    std::vector<char> joint_parts;
    SegmentGraph joint_lower_graph, joint_upper_graph;
    LayerGraphs joint_masks;
    const std::vector<int>& names() const { return cls.document; }  // for each document, the number that names it
};

// Counts of a batch. The loss of a batch is a sum divided by one of them.
struct BatchCounts {
    int documents = 0;    // real documents
    int predictions = 0;  // Batch::predictions()
};

// A batch of documents. If a batch is padded, inert documents follow the real ones: no real row attends to their rows,
// and their labels have weight 0.
struct Batch : Halves {
    TokenRows source, rows;  // rows of the encoder (empty if there is none); rows of the decoder or the only stack
    // Two numbers for each document. With one stack: its source rows and its target rows in `rows`. With two stacks:
    // its rows in `source` (0 if it shares the source of the previous document), and its rows in `rows`.
    Documents parts;
    // Only for models with cross-attention. Two numbers for each source: its rows, and all decoder rows that attend to
    // it. Several documents can share a source (Example::same_source).
    Documents shared;
    // For each row, the number that the mask needs (Example::rank); -1 for padding rows. Empty if the mask needs none.
    std::vector<int> rank;
    SegmentGraph source_graph, graph, cross_graph;  // masks of encoder, decoder (or only stack), cross-attention
    LayerGraphs source_masks, masks, cross_masks;   // masks that replace the three masks above in some layers
    Labels labels;                                  // labels of `rows`
    TokenRows scored;                               // copy of rows[labels.rows[m]] for each label m
    // The mask of the last layer if this layer runs only for the rows with a label. If scored_graph is empty, the last
    // layer runs for all rows.
    SegmentGraph scored_graph;
    int documents = 0;    // number of real documents
    BatchCounts part_of;  // if this batch is a part of a larger batch, the counts of the larger batch; else zeros
    // Text with everything that determines the memory of a step: the sizes, which pack() sets, and further information
    // such as the name of the objective. Batches with equal buckets share a memory plan.
    std::string bucket;

    // Returns the number of predictions: the number of labels; Labels::counted, if it is not 0; or, in a UniVAE that
    // inserts words, the number of insertions.
    int predictions() const {
        if (!insertions.empty()) return int(std::accumulate(insertions.begin(), insertions.end(), 0.0));
        return labels.counted > 0 ? labels.counted : labels.count;
    }
    // Returns the counts of this batch or, if it is a part of a larger batch, of the larger batch. A loss is a sum
    // divided by one of these counts, so the losses of all parts add up to the loss of the larger batch.
    BatchCounts whole() const { return part_of.documents > 0 ? part_of : BatchCounts{documents, predictions()}; }
    int inert() const { return int(parts.size()) - documents; }  // number of inert documents
    const SegmentGraph& graph_at(int layer) const { return masks.at(layer, graph); }
    const SegmentGraph& last_graph() const { return graph_at(int(masks.of_layer.size()) - 1); }
};

// Packs the rows and labels of examples into a batch. The caller must set the masks. If pad_to > 1, adds inert
// documents: the numbers of rows and labels become multiples of pad_to, and the number of documents becomes a multiple
// of 8.
Batch pack(const std::vector<Example>& examples, int pad_to);

// The number that names the first inert document (TokenRows::document). The other inert documents have the numbers
// first_filler - 1, first_filler - 2, ...
constexpr int first_filler = 0x7fffffff;

}  // namespace masquerade
