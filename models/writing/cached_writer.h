// SPDX-License-Identifier: MIT
// Generates token by token with one stack, for many prefixes at a time. The memory is what was read before: sources, an
// encoder's output, or latents. The memory is computed once and shared by all prefixes of a source. The decoding state
// of each layer stores what its attention needs of the memory and of the generated tokens. The results are
// bit-identical to a pass over the whole sequence.
#pragma once
#include <functional>

#include "data/sentences.h"
#include "models/masks/words.h"
#include "models/writing/slots.h"

namespace masquerade {

// The rows of the sources. The layers of a stack attend to these rows and to the generated tokens.
struct Memory {
    struct Source {
        int begin = 0, end = 0;  // rows of the source in the memory
        int position = 0;        // position of the first generated token
        int name = 0;            // document name, which determines random numbers
    };
    std::vector<Source> sources;
    std::vector<LayerState> layers;  // a layer without memory sees only the generated tokens
    bool rotates_cross = false;
    const LayerMasks* masks = nullptr;  // masks in words; null: rows see their whole source
    bool goes_on = false;               // whether the generated text continues its source
    // (sources, V) Logits of the first generated tokens. If empty, the first step feeds SearchSource::begin instead.
    std::vector<float> next;
};

class CachedWriter : public NextToken {
  public:
    // Generated tokens have the segment id `type`. backward: generates from right to left.
    CachedWriter(const Backbone& stack, int type, bool backward = false);

    // Forgets everything. Later steps have at most `most_rows` prefixes of at most `longest` tokens. The caller fills
    // the returned memory on tape(), between the tape's begin() and end().
    Memory& start(int most_rows, int longest);
    Memory& memory() { return memory_; }
    Tape& tape() { return tape_; }
    int vocabulary() const override { return stack_.options.vocabulary; }

    // If the memory has `next`, the first call feeds no token and returns `next`.
    const float* step(const std::vector<Row>& rows) override;
    // Feeds the next token of every prefix and returns the logits (rows, V); call between tape().begin() and end().
    View feed(const std::vector<Row>& rows);

  protected:
    const Backbone& stack_;

  private:
    SegmentGraph written_graph(const MaskWords& words, std::vector<CachedDocument> documents, int token_source) const;

    const int type_;
    const bool backward_;
    Arena arena_;
    Tape tape_;
    Memory memory_;
    PrefixSlots slots_;
    bool asked_ = false;  // whether step() was called since start()
    std::vector<float> logits_;
    // Inputs of the ops of a step, which must outlive the step.
    TokenRows rows_;
    SegmentGraph alone_graph_, graph_, cross_graph_;  // masks of layers without memory, with memory, of cross-attention
    LayerGraphs masks_, cross_masks_;                 // graphs of memory_.masks
};

// A writer whose memory is the sources that it has read.
class SourceReader : public CachedWriter {
  public:
    using CachedWriter::CachedWriter;
    // Forgets everything and reads the sources, [CLS] ... [SEP] each. Later steps have at most `most_rows` prefixes.
    virtual void read(const std::vector<const Sentence*>& sources, int most_rows) = 0;
};

// Runs search() for all sources, 64 at a time. `about` describes each source to the search. `read` must make the model
// read the sources [first, first + count), with room for `most_rows` prefixes.
std::vector<std::vector<Hypothesis>> write_targets(
    NextToken& model, const std::vector<SearchSource>& about, const SearchOptions& options, std::uint64_t seed,
    const std::function<void(std::size_t first, std::size_t count, int most_rows)>& read);
std::vector<std::vector<Hypothesis>> write_targets(SourceReader& reader, const std::vector<SearchSource>& about,
                                                   const std::vector<const Sentence*>& sources,
                                                   const SearchOptions& options, std::uint64_t seed);

}  // namespace masquerade
