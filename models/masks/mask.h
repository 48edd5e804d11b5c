// SPDX-License-Identifier: MIT
// Masks: functions that make the segment graph of an attention call (engine/ops/segments.h) from the lengths of the
// documents of a batch.
//
// A packed batch holds its documents one after another. A document consists of `source` tokens, which start with [CLS],
// and then of `target` tokens. In the comments of this file, A is the source and B is the target of a document. A row
// never sees rows of another document.
#pragma once
#include <functional>

#include "engine/ops/segments.h"
#include "input/lists.h"

namespace masquerade {

struct Document {
    int source = 0, target = 0;  // numbers of tokens
};
using Documents = std::vector<Document>;

// sources_of() sets all target lengths to 0, for passes whose rows are only the sources. targets_of() sets all source
// lengths to 0, for passes whose rows are only the targets.
Documents sources_of(const Documents& documents);
Documents targets_of(const Documents& documents);
int rows_of(const Documents& documents);
// Returns the part of every packed row: 0 for the source A, 1 for the target B.
std::vector<char> parts_of_rows(const Documents& documents);

// Masks that can also be given in words (models/masks/words.h). "A full": a row of A sees all rows of A. "B causal": a
// row of B sees itself and the earlier rows of B. "B sees A": a row of B also sees all rows of A.
SegmentGraph full_mask(const Documents& documents);        // a row sees all rows                 BERT
SegmentGraph causal_mask(const Documents& documents);      // a row sees itself and earlier rows  language model
SegmentGraph anticausal_mask(const Documents& documents);  // a row sees itself and later rows    reversed LM
// The source A is full; the target B is causal, and sees A. Dong et al. 2019
SegmentGraph unilm_mask(const Documents& documents);
// UniVAE, lower layers: the source A is full; the target B is causal.
SegmentGraph independent_mask(const Documents& documents);
// UniVAE, upper layers: the source A is full; the target B is causal, and sees the row [CLS] of A.
SegmentGraph uniae_mask(const Documents& documents);

// Cross-attention: the queries are the rows of the target B, and every query sees all rows of the source A.
SegmentGraph cross_mask(const Documents& documents);

// The mask of UniVAE's decoder pass in the layers with a latent. The queries are the rows of the target B. Row d of key
// tensor 0 is the latent of document d; key tensor 1 holds the rows of B. A row of B sees the latent of its document,
// the earlier rows of B, and itself. Under uniae_mask, a row of B sees the row [CLS] of A in place of the latent. If
// the key and the value of the latent equal those of [CLS], the attention output of each row of B is bit-identical
// under both masks.
SegmentGraph latent_mask(const Documents& documents);

// The mask of a conditional UniVAE that runs both halves of document d as one sequence. The sequence has three parts:
// the encoder half, with halves[d].source rows (halves[d].target is ignored), and the source and the target of
// decoders[d]. A row of the encoder half sees the encoder half. A source row sees the source. A target row sees the
// source, itself and the earlier target rows.
SegmentGraph conditional_mask(const Documents& halves, const Documents& decoders);

// A document in a decoding step with a KV cache. The rows of this step are called fresh, and the rows of earlier steps
// are called cached. The queries are the fresh rows of all documents, one document after another. The keys of fresh and
// cached rows are in one key tensor, whose index is the argument token_source of the functions below.
struct CachedDocument {
    // Every fresh row sees the rows [seen_begin, seen_end) of key tensor 0. This tensor holds latents, a prefix of the
    // text, or the output of an encoder.
    int seen_begin = 0, seen_end = 0;
    int begin = 0;   // first row of the document in the key tensor of the fresh and cached rows
    int cached = 0;  // number of cached rows
    int fresh = 1;   // number of fresh rows
    // true: the rows of key tensor 0, the cached rows and the fresh rows are one text. A sliding window then also
    // limits which rows of key tensor 0 are seen; it counts distances in this text. If the text is generated from right
    // to left, it is always one text.
    bool one_text = false;
};
// If `backward` is false: the mask for generation from left to right. In the key tensor token_source, the fresh rows
// follow the cached rows. A fresh row sees the rows [seen_begin, seen_end) of key tensor 0, then the cached rows, then
// the earlier fresh rows and itself. If a window is added (with_window()), it limits which cached and fresh rows are
// seen. It limits the rows of key tensor 0 only if one_text or Window::all is true. The results for a fresh row are
// bit-identical to its results in a pass over the whole text.
//
// If `backward` is true: the mask for generation from right to left. In the key tensor token_source, the fresh rows
// precede the cached rows. A fresh row sees itself and later fresh rows, then the cached rows, then the rows
// [seen_begin, seen_end) of key tensor 0. In the text, the tokens of these rows stand in this order: fresh, cached, key
// tensor 0. If a window is added (with_window()), it limits which of all these rows are seen.
SegmentGraph cached_mask(const std::vector<CachedDocument>& documents, int token_source, bool backward = false);

// The masks of a permutation language model (Yang et al. 2019). rank[i] says when packed row i is predicted: 0 means
// first, 1 means next, and so on; -1 means that the row is context. If `strict` is false, the mask is for the content
// stream: a row sees the rows whose rank is at most its own rank. If `strict` is true, the mask is for the query
// stream, whose rows are a separate tensor: a query row sees the content rows with a smaller rank than its own.
SegmentGraph rank_mask(const Documents& documents, const std::vector<int>& rank, bool strict);

// Permutation language model with both streams in one tensor: A holds the content rows of a document, B its query rows.
// A content row sees the content rows of smaller or equal rank; a query row sees the content rows of smaller rank. No
// row sees a query row. `rank` has a rank for every packed row.
SegmentGraph two_stream_mask(const Documents& documents, const std::vector<int>& rank);

// Block diffusion (Arriola et al. 2025): a text is cut into blocks, and every block stands twice in a document. A holds
// the context and the true tokens of the blocks, B holds the blocks with hidden tokens. block[i] is the block of packed
// row i; -1 is the context. A row of A sees the rows of A up to its own block; a row of B sees the rows of A before its
// block, and its own block in B. Throws Error if the blocks of A or of B do not ascend.
SegmentGraph block_streams_mask(const Documents& documents, const std::vector<int>& block);

// Returns the graph with Rule::full in place of Rule::causal: a row that saw the earlier rows of its part sees all rows
// of this part. A decoder that inserts words has such a mask.
SegmentGraph full_for_causal(SegmentGraph graph);

// Returns a copy of `graph` with only some of the query rows: query row m of the result is query row rows[m] of
// `graph`. Throws Error if a row is in no query segment of `graph`.
SegmentGraph only_queries(const SegmentGraph& graph, const std::vector<int>& rows);

// Where the keys of a row are: row `row` of key tensor `source`.
struct KeyPlace {
    int source = 0, row = 0;
};
// Returns a copy of `graph`, whose keys must be in one tensor, with the key of row i at places[i]. A key segment is
// split where its rows are not adjacent in their new tensor. Throws Error if this splits a segment with a rule
// (QuerySegment::self), or if keys have ranks. The results of attention stay bit-identical.
SegmentGraph with_keys_at(const SegmentGraph& graph, const std::vector<KeyPlace>& places);

// An arbitrary mask. sees(i, j) must return whether packed row i sees packed row j; it is called for every pair of rows
// of the same document.
SegmentGraph bits_mask(const Documents& documents, const std::function<bool(int, int)>& sees);
// K-BERT (Liu et al. 2020). The rows are a sentence, called the trunk, and facts about the entities of the sentence,
// called branches. branch[i] is the branch of packed row i; -1: the row is in the trunk. entity[i] is the entity to
// which the row belongs; -1: none. Two rows see each other in three cases: both are in the trunk; both are in the same
// branch; or one is in the trunk, the other in a branch, and both belong to the same entity.
SegmentGraph knowledge_mask(const Documents& documents, const std::vector<int>& entity, const std::vector<int>& branch);
// Pseudo-masks of UniLMv2 (Bao et al. 2020), where spans 1, 2, 3 ... are predicted in this order. weight[i] is 0 if
// packed row i is context, s if it is a true token of span s, and -s if it is a [MASK] of span s. A context row sees
// the context. A true token of span s sees the context and the true tokens of the spans up to s. A [MASK] of span s
// sees the context, the true tokens of the spans below s, and the [MASK]s of span s.
SegmentGraph pseudo_mask(const Documents& documents, const std::vector<int>& weight);

// Sliding-window, dilated, strided and global attention. With a window, a row sees a row of its own segment only if the
// mask allows it, and if at least one of radius, stride and globals allows it, too.
struct Window {
    int radius = -1;   // rows at most radius * dilation rows away are seen; -1: this struct has no effect
    int dilation = 1;  // within the window, only rows at distances that are multiples of this are seen
    int stride = 0;    // rows at any distance that is a multiple of this number are seen, too; 0: off
    int globals = 0;   // the first `globals` rows of a segment see every row, and every row sees them, at any distance
    bool all = false;  // true: the window also limits which rows of other segments are seen

    // The largest distance of a row in the window: radius * dilation. It may be at most `farthest`, so that its sum
    // with a place fits into an int.
    std::int64_t reach() const { return std::int64_t(radius) * dilation; }
    static constexpr std::int64_t farthest = 1 << 30;
};
// Returns the graph with `window` set in all query segments. Throws Error if a number of the window, or its reach, is
// out of range.
SegmentGraph with_window(SegmentGraph graph, const Window& window);
void add_window(QuerySegment& segment, const Window& window);

// Masks that replace the usual mask in some layers of a stack.
struct LayerGraphs {
    std::vector<SegmentGraph> graphs;
    // For each layer, the index in `graphs` of its mask, or -1 for the usual mask. Empty: all layers have the usual
    // mask.
    std::vector<int> of_layer;
    const SegmentGraph& at(int layer, const SegmentGraph& usual) const {
        const int i = of_layer.empty() ? -1 : of_layer.at(layer);
        return i < 0 ? usual : graphs[i];
    }
};

// Further inputs of some named masks, one number per packed row. Each field's comment names the masks that read the
// field.
struct MaskDetails {
    std::vector<int> rank;            // plm and plm-query: see rank_mask()
    std::vector<int> stream_rank;     // plm-streams: see two_stream_mask()
    std::vector<int> entity, branch;  // k-bert: see knowledge_mask()
    std::vector<int> weight;          // pseudo-mask: see pseudo_mask()
    std::vector<int> block;           // block-diffusion: see block_streams_mask()
};
// Which rows are the queries and the keys of a named mask.
enum class MaskRows {
    tokens,   // queries and keys: all packed tokens
    source,   // queries and keys: the rows of the source A
    target,   // queries and keys: the rows of the target B
    latent,   // queries: the rows of B; keys: the latents (key tensor 0) and the rows of B (key tensor 1)
    decoded,  // queries: the last row of B of each document; keys: the latents and the rows of B
    cross,    // queries: the rows of the target B; keys: the rows of the source A
};
struct NamedMask {
    const char* name;
    const char* text;  // description in one line
    MaskRows rows;
    const char* words;  // the mask in words (models/masks/words.h); null: call `make` instead
    SegmentGraph (*make)(const Documents& documents, const MaskDetails& details) = nullptr;
    bool decoder = false;  // whether the mask is for the decoder of an encoder-decoder model
};
const std::vector<NamedMask>& named_masks();
const NamedMask& find_mask(const std::string& name);  // throws BadUsage if no mask has this name
inline bool mask_in_words(const std::string& name) { return name.find(' ') != name.npos; }
// Makes a mask that is given by its name or in words.
SegmentGraph make_mask(const std::string& name, const Documents& documents, const MaskDetails& details = {});
// Returns example ranks, entities, branches and weights for pictures of the named masks. The examples are chosen so
// that each picture shows what its mask is for.
MaskDetails example_details(const Documents& documents);

// Returns a picture, as text, of one document under a mask that is given by its name or in words. Its rows are queries,
// its columns are keys. Throws BadUsage if the picture would be wider than 80 columns.
std::string draw_mask(const std::string& name, int source, int target);
// Returns the picture of draw_mask() as SVG, which may have any width.
std::string mask_svg(const std::string& name, int source, int target);
// Returns which cells of this picture are dark: sees[i][j] says whether query i sees key j.
std::vector<std::vector<bool>> seen_cells(const std::string& name, int source, int target);
// Returns a picture, as text, of any graph. queries[i] is the label of query row i; keys[t][j] is the label of row j of
// key tensor t. Throws BadUsage if the picture would be wider than 80 columns.
std::string draw_graph(const SegmentGraph& graph, const Strings& queries, const std::vector<Strings>& keys);
// Returns a picture of one document of a graph, for debuggers. In gdb, type `mask graph`; in lldb,
// `print masquerade::draw_document(graph, 0)`. In the picture, q7 is query row 7, and k7, l7, m7 and n7 are row 7 of
// the key tensors 0, 1, 2 and 3. The returned string is valid until the next call.
const char* draw_document(const SegmentGraph& graph, int document);

}  // namespace masquerade
