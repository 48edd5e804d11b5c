// SPDX-License-Identifier: MIT
// The masks by name: from the lengths of documents to the segment graph of their attention.
//
// A packed batch holds its documents one after the other, each as `source` tokens, [CLS] first, then `target`
// tokens. In the comments A is the source, B the target.
#pragma once
#include "engine/ops/segments.h"

#include <functional>
#include <string>
#include <vector>

namespace masquerade {

struct Document {
    int source = 0, target = 0;  // tokens
};
using Documents = std::vector<Document>;

// The passes of a model in two parts: its rows are the sources alone, or the targets alone.
Documents sources_of(const Documents& documents);
Documents targets_of(const Documents& documents);
int rows_of(const Documents& documents);

// Those that words can say (models/masks/words.h).
SegmentGraph full_mask(const Documents& documents);         // all see all                  BERT
SegmentGraph causal_mask(const Documents& documents);       // itself and the ones before   language model
SegmentGraph anticausal_mask(const Documents& documents);   // itself and the ones after    reversed
SegmentGraph unilm_mask(const Documents& documents);        // A full; B causal, sees A     Dong et al. 2019
SegmentGraph independent_mask(const Documents& documents);  // A full; B causal             UniVAE, lower
SegmentGraph uniae_mask(const Documents& documents);        // A full; B causal, sees [CLS] UniVAE, upper

// Queries are the targets, keys the sources of the same document: encoder-decoder attention, MASS.
SegmentGraph cross_mask(const Documents& documents);

// UniVAE's decoder in split form, upper layers: row b of source 0 is the latent key of document b, the rows
// of source 1 are the targets; B causal, sees its latent first. Gives the bits of uniae_mask. For the lower
// layers there is causal_mask(targets_of(documents)), for the encoder full_mask(sources_of(documents)).
SegmentGraph latent_mask(const Documents& documents);

// Decoding with a cache. Queries are the fresh rows of all documents, one after the other.
struct CachedDocument {
    int seen_begin = 0, seen_end = 0;  // rows of source 0 that it sees whole: a latent, a prefix, an encoder
    int begin = 0;                     // its first row in the token source
    int cached = 0;                    // rows that are there from earlier steps
    int fresh = 1;                     // rows of this step, which follow them
    bool one_text = false;             // they continue what is seen: a pattern of attention counts places along both
};
// Fresh rows see source 0 as said, then the cached rows, then each other causally. Each has the bits that the
// same row has when all are run at once.
SegmentGraph cached_mask(const std::vector<CachedDocument>& documents, int token_source);
// The same from right to left: fresh rows lie before the cached ones, and all of them before source 0. They see each
// other anticausally, then the cached rows, then source 0: the order of their keys in the whole text.
SegmentGraph cached_before_mask(const std::vector<CachedDocument>& documents, int token_source);

// Permutation language model: a rank for every packed row, its place in the order of factorisation, -1 for
// context. Content stream (strict false): ranks up to one's own; query stream: ranks below, its queries are
// rows of their own tensor, its keys those of the content stream.                          Yang et al. 2019
SegmentGraph rank_mask(const Documents& documents, const std::vector<int>& rank, bool strict);

// Both streams in one tensor: a document's source rows are the content, its target rows the queries, which nobody sees:
// a query sees the content of smaller rank. A rank for every packed row.
SegmentGraph two_stream_mask(const Documents& documents, const std::vector<int>& rank);

// The same mask, asked only for these rows: query row m is row rows[m] of the graph, every one in some segment of it.
SegmentGraph only_queries(const SegmentGraph& graph, const std::vector<int>& rows);

// Anything at all: sees(query row, key row), asked for every pair of packed rows of a document.
SegmentGraph bits_mask(const Documents& documents, const std::function<bool(int, int)>& sees);
// K-BERT: for every packed row its branch (-1: the trunk) and its entity (-1: none); a branch hangs on the
// trunk tokens of its entity. The trunk sees the trunk, an entity and its branches see each other, a branch
// itself.
//                                                                                     Liu et al. 2020
SegmentGraph knowledge_mask(const Documents& documents, const std::vector<int>& entity, const std::vector<int>& branch);
// Pseudo-masks of UniLMv2: weight 0 context, +s a true token of span s, -s its [MASK]. True tokens see
// weights from 0 to their own; a [MASK] of span s sees the true tokens below s and the [MASK]s of s.
//                                                                                     Bao et al. 2020
SegmentGraph pseudo_mask(const Documents& documents, const std::vector<int>& weight);

// Sliding, dilated, strided and global attention, laid over any graph.
struct Window {
    int radius = -1;   // -1: no window
    int dilation = 1;  // only every so many places
    int stride = 0;    // also the places that are multiples of it away
    int globals = 0;   // places from the start of a segment that all see and that see all
    bool all = false;  // also towards other segments; else these are seen whole
};
SegmentGraph with_window(SegmentGraph graph, const Window& window);
void add_window(QuerySegment& segment, const Window& window);

// The masks that layers of a stack have in place of the usual one.
struct LayerGraphs {
    std::vector<SegmentGraph> graphs;
    std::vector<int> of_layer;  // (L) which of them, or -1; none: all layers have the usual one
    const SegmentGraph& at(int layer, const SegmentGraph& usual) const {
        const int i = of_layer.empty() ? -1 : of_layer.at(std::size_t(layer));
        return i < 0 ? usual : graphs[std::size_t(i)];
    }
};

// The inputs of masks beside lengths.
struct MaskDetails {
    std::vector<int> rank;            // plm, plm-query
    std::vector<int> stream_rank;     // plm-streams
    std::vector<int> entity, branch;  // k-bert
    std::vector<int> weight;          // pseudo-mask
};
enum class MaskRows {
    tokens,   // queries and keys are the packed tokens
    source,   // ... the sources alone
    target,   // ... the targets alone
    latent,   // queries are targets, keys the latents (source 0) and the targets (source 1)
    decoded,  // ... the last target of each document alone
    cross,    // queries are targets, keys sources
};
struct NamedMask {
    const char* name;
    const char* text;  // what it is, in a line
    MaskRows rows;
    const char* words;  // in words (models/masks/words.h), or null: `make` makes it
    SegmentGraph (*make)(const Documents& documents, const MaskDetails& details) = nullptr;
    bool decoder = false;  // of the rows of a decoder that has an encoder

    bool latents() const { return rows == MaskRows::latent || rows == MaskRows::decoded; }  // source 0 of its keys
};
const std::vector<NamedMask>& named_masks();
const NamedMask& find_mask(const std::string& name);  // BadUsage, with the names there are
inline bool mask_in_words(const std::string& name) { return name.find(' ') != name.npos; }
// A mask by its name, or in words.
SegmentGraph make_mask(const std::string& name, const Documents& documents, const MaskDetails& details = {});
// Details by which every named mask shows what it does.
MaskDetails example_details(const Documents& documents);

// The picture of one document under a mask by its name, or in words: rows queries, columns keys, at most 80 columns
// wide; BadUsage where it would be wider.
std::string draw_mask(const std::string& name, int source, int target);
// The same as SVG, as wide as it gets.
std::string mask_svg(const std::string& name, int source, int target);
// The same of any graph. Labels name the query rows and, for every source, its key rows.
std::string draw_graph(const SegmentGraph& graph, const std::vector<std::string>& queries,
                       const std::vector<std::vector<std::string>>& keys);
// The same of one document, for a debugger: `mask graph` in gdb, `print masquerade::draw_document(graph, 0)` in lldb.
// q7 is row 7 of the queries; k, l, m and n are rows of the key sources 0 to 3.
const char* draw_document(const SegmentGraph& graph, int document);

}  // namespace masquerade
