// SPDX-License-Identifier: MIT
// Masks: functions from the lengths of documents to the segment graph of their attention.
//
// A packed batch holds its documents one after another, each as `source` tokens, starting with [CLS], followed by
// `target` tokens. In the comments A is the source, B the target.
#pragma once
#include "engine/ops/segments.h"

#include <functional>
#include <string>
#include <vector>

namespace masquerade {

struct Document {
    int source = 0, target = 0;  // numbers of tokens
};
using Documents = std::vector<Document>;

// The documents without their targets, or without their sources: for passes whose rows are only sources or only
// targets.
Documents sources_of(const Documents& documents);
Documents targets_of(const Documents& documents);
int rows_of(const Documents& documents);

// Masks that can also be given in words (models/masks/words.h).
SegmentGraph full_mask(const Documents& documents);         // every row sees all rows       BERT
SegmentGraph causal_mask(const Documents& documents);       // sees itself, earlier rows     language model
SegmentGraph anticausal_mask(const Documents& documents);   // sees itself, later rows       reversed language model
SegmentGraph unilm_mask(const Documents& documents);        // A full; B causal, sees A      Dong et al. 2019
SegmentGraph independent_mask(const Documents& documents);  // A full; B causal              UniVAE, lower layers
SegmentGraph uniae_mask(const Documents& documents);        // A full; B causal, sees [CLS]  UniVAE, upper layers

// Cross-attention: queries are the targets, keys are the sources of the same document.
SegmentGraph cross_mask(const Documents& documents);

// UniVAE's decoder in split form, upper layers: row b of key source 0 is the latent key of document b; the rows of key
// source 1 are the targets. B is causal and sees its latent first. The results are bit-identical to uniae_mask. (The
// lower layers use causal_mask(targets_of(documents)), the encoder full_mask(sources_of(documents)).)
SegmentGraph latent_mask(const Documents& documents);

// A document in a decoding step with a key/value cache. Queries are the fresh rows of all documents, one document after
// another.
struct CachedDocument {
    int seen_begin = 0, seen_end = 0;  // fully visible rows of key source 0: of a latent, a prefix or an encoder
    int begin = 0;                     // first row of the document in the token source
    int cached = 0;                    // number of rows from earlier steps
    int fresh = 1;                     // number of rows of this step, which follow the cached rows
    bool one_text = false;             // the rows continue the text of source 0: patterns count positions across both
};
// Fresh rows see the visible rows of source 0, then the cached rows, then each other causally. Each row is
// bit-identical to the same row of a pass over the whole sequence.
SegmentGraph cached_mask(const std::vector<CachedDocument>& documents, int token_source);
// Decoding from right to left: fresh rows precede the cached rows, and both precede source 0. Fresh rows see each other
// anticausally, then the cached rows, then source 0, which is the order of the keys in the whole text.
SegmentGraph cached_before_mask(const std::vector<CachedDocument>& documents, int token_source);

// Permutation language model: the rank of a packed row is its index in the order of factorisation, or -1 for context.
// Content stream (strict = false): a row sees ranks up to its own. Query stream (strict = true): a row sees smaller
// ranks; queries are the rows of another tensor, keys are those of the content stream.     Yang et al. 2019
SegmentGraph rank_mask(const Documents& documents, const std::vector<int>& rank, bool strict);

// Both streams in one tensor: the source rows of a document are the content stream, its target rows the query stream. A
// query sees the content of smaller rank; no row sees a query. `rank` has a rank for every packed row.
SegmentGraph two_stream_mask(const Documents& documents, const std::vector<int>& rank);

// Returns the mask for only some queries: query row m of the result is row rows[m] of `graph`. Throws Error if a row is
// in no query segment.
SegmentGraph only_queries(const SegmentGraph& graph, const std::vector<int>& rows);

// An arbitrary mask: sees(query row, key row) is called for every pair of packed rows of a document.
SegmentGraph bits_mask(const Documents& documents, const std::function<bool(int, int)>& sees);
// K-BERT: every packed row has a branch (-1: the trunk) and an entity (-1: none). A branch is attached to the trunk
// tokens of its entity. The trunk sees the trunk, a branch sees itself, and an entity and its branches see each other.
//                                                                                     Liu et al. 2020
SegmentGraph knowledge_mask(const Documents& documents, const std::vector<int>& entity, const std::vector<int>& branch);
// Pseudo-masks of UniLMv2: weight 0 is context, +s a true token of span s, -s a [MASK] of span s. A true token sees the
// weights from 0 to its own; a [MASK] of span s sees context, true tokens of spans below s, and the [MASK]s of s.
//                                                                                     Bao et al. 2020
SegmentGraph pseudo_mask(const Documents& documents, const std::vector<int>& weight);

// Sliding-window, dilated, strided and global attention, which can restrict any graph.
struct Window {
    int radius = -1;   // largest distance that is seen; -1: no window
    int dilation = 1;  // within the window, only multiples of this distance are seen
    int stride = 0;    // with a window: multiples of this distance are seen, too; 0: off
    int globals = 0;   // this many rows at the start of a segment see all and are seen by all
    bool all = false;  // whether the window also restricts other segments, which are otherwise fully visible
};
SegmentGraph with_window(SegmentGraph graph, const Window& window);
void add_window(QuerySegment& segment, const Window& window);

// Masks that replace the usual mask in some layers of a stack.
struct LayerGraphs {
    std::vector<SegmentGraph> graphs;
    std::vector<int> of_layer;  // (L) index of the layer's graph, or -1: the usual mask; empty: -1 for all layers
    const SegmentGraph& at(int layer, const SegmentGraph& usual) const {
        const int i = of_layer.empty() ? -1 : of_layer.at(std::size_t(layer));
        return i < 0 ? usual : graphs[std::size_t(i)];
    }
};

// Further inputs of some masks, one number per packed row.
struct MaskDetails {
    std::vector<int> rank;            // for plm and plm-query
    std::vector<int> stream_rank;     // for plm-streams
    std::vector<int> entity, branch;  // for k-bert
    std::vector<int> weight;          // for pseudo-mask
};
enum class MaskRows {
    tokens,   // queries and keys are the packed tokens
    source,   // queries and keys are the sources
    target,   // queries and keys are the targets
    latent,   // queries are the targets, keys the latents (source 0) and the targets (source 1)
    decoded,  // as latent, but the only query is the last target of each document
    cross,    // queries are the targets, keys the sources
};
struct NamedMask {
    const char* name;
    const char* text;  // one-line description
    MaskRows rows;
    const char* words;  // the mask in words (models/masks/words.h); null: `make` makes it
    SegmentGraph (*make)(const Documents& documents, const MaskDetails& details) = nullptr;
    bool decoder = false;  // for the decoder of an encoder-decoder model

    bool latents() const { return rows == MaskRows::latent || rows == MaskRows::decoded; }  // whether latents are keys
};
const std::vector<NamedMask>& named_masks();
const NamedMask& find_mask(const std::string& name);  // throws BadUsage if there is none
inline bool mask_in_words(const std::string& name) { return name.find(' ') != name.npos; }
// Makes a mask given by its name or in words.
SegmentGraph make_mask(const std::string& name, const Documents& documents, const MaskDetails& details = {});
// Returns details with which an example of every named mask shows the mask's purpose.
MaskDetails example_details(const Documents& documents);

// Draws one document under a mask given by its name or in words: rows are queries, columns are keys. Throws BadUsage if
// the picture would be wider than 80 columns.
std::string draw_mask(const std::string& name, int source, int target);
// Returns the same picture as SVG, of any width.
std::string mask_svg(const std::string& name, int source, int target);
// Draws any graph. `queries` labels the query rows; `keys` labels the key rows of every key source.
std::string draw_graph(const SegmentGraph& graph, const std::vector<std::string>& queries,
                       const std::vector<std::vector<std::string>>& keys);
// Draws one document of a graph, for debuggers: `mask graph` in gdb, `print masquerade::draw_document(graph, 0)` in
// lldb. q7 is row 7 of the queries; k, l, m and n label the rows of the key sources 0 to 3.
const char* draw_document(const SegmentGraph& graph, int document);

}  // namespace masquerade
