// SPDX-License-Identifier: MIT
// Writing token by token by one stack, many prefixes at a time. What was read (a source, an encoder, a latent) is only
// a memory, which every prefix of a source sees and which is made once. The attention of each layer keeps what it needs
// of it and of what was written. What is written this way has the bits of a pass over the whole.
#pragma once
#include <functional>

#include "data/sentences.h"
#include "models/masks/words.h"
#include "models/writing/slots.h"

namespace masquerade {

// The rows of the sources, which the layers of a stack attend to besides the generated tokens.
struct Memory {
    struct Source {
        int begin = 0, end = 0;  // its rows, among those that were read
        int position = 0;        // of the first token that is fed
        int name = 0;            // of its random numbers
    };
    std::vector<Source> sources;
    std::vector<LayerState> layers;  // a layer that has read nothing sees what was written alone
    bool rotates_cross = false;
    const LayerMasks* masks = nullptr;  // in words; null: rows see their source whole
    bool goes_on = false;               // what is written continues its source
    std::vector<float>
        next;  // (sources, V) logits of the first tokens; empty: the first step feeds `begin` of each source
};

class CachedWriter : public NextToken {
  public:
    // Tokens that are fed have segment id `type`; backward: each stands before those that were written earlier.
    CachedWriter(const Backbone& stack, int type, bool backward = false);

    // Forgets everything. What follows fills the memory: on tape(), begun and ended by the caller.
    Memory& start(int most_rows, int longest);
    Memory& memory() { return memory_; }
    Tape& tape() { return tape_; }
    int vocabulary() const override { return stack_.options.vocabulary; }

    // Where memory has `next`, the first call feeds nothing and gives what follows the sources.
    const float* step(const std::vector<Row>& rows) override;
    // Feeds the next token of every prefix, between tape().begin() and end(): the logits (rows, V).
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
    bool asked_ = false;  // whether any step was
    std::vector<float> logits_;
    // what the ops of a step read
    TokenRows rows_;
    SegmentGraph alone_graph_, graph_, cross_graph_;  // of layers without and with memory
    LayerGraphs masks_, cross_masks_;                 // of memory_.masks
};

// A writer whose memory is sources that it reads.
class SourceReader : public CachedWriter {
  public:
    using CachedWriter::CachedWriter;
    // Forgets everything and reads these: tokens [CLS] ... [SEP]. At most `most_rows` prefixes will be written at a
    // time.
    virtual void read(const std::vector<const Sentence*>& sources, int most_rows) = 0;
};

// search() of all sources, 64 at a time; `about` says what it knows of each. `read` gives the model `count` of them
// from number `first` on, with room for `most_rows` prefixes.
std::vector<std::vector<Hypothesis>> write_targets(
    NextToken& model, const std::vector<SearchSource>& about, const SearchOptions& options, std::uint64_t seed,
    const std::function<void(std::size_t first, std::size_t count, int most_rows)>& read);
std::vector<std::vector<Hypothesis>> write_targets(SourceReader& reader, const std::vector<SearchSource>& about,
                                                   const std::vector<const Sentence*>& sources,
                                                   const SearchOptions& options, std::uint64_t seed);

}  // namespace masquerade
