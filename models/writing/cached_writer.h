// SPDX-License-Identifier: MIT
// Generates token by token with one stack, for many prefixes at a time. The stack attends to the generated tokens and
// to a memory, which is the source itself, the output of an encoder, or latents. The memory is computed once, and all
// prefixes of a source share it. The decoding state of each layer stores what its attention needs to know about the
// memory and the generated tokens, such as keys and values. The logits are bit-identical to the logits of one forward
// pass over the whole sequence. On CUDA, this holds only with the setting deterministic=true.
#pragma once
#include <functional>

#include "data/sentences.h"
#include "models/masks/words.h"
#include "models/writing/shortlists.h"
#include "models/writing/slots.h"

namespace masquerade {

// The memory of all sources: rows to which the layers of a stack attend, in addition to the generated tokens.
struct Memory {
    struct Source {
        int begin = 0, end = 0;  // the rows [begin, end) of the memory belong to the source
        int position = 0;        // position of the first generated token
        int name = 0;            // name of the document of the generated rows; random numbers depend on it
    };
    std::vector<Source> sources;
    // Decoding state of each layer. A layer whose state holds no memory sees only the generated tokens.
    std::vector<LayerState> layers;
    bool rotates_cross = false;
    // Masks that the setting `mask` defines; null: a generated token sees its whole source and the tokens before it.
    const LayerMasks* masks = nullptr;
    bool goes_on = false;  // whether the generated text continues its source, so that both are one text
    // If not -1, the id of [MASK], for models that predict the token at a [MASK]. Every step then appends a [MASK] to
    // each prefix, takes the logits of the next token from the row of this [MASK], and discards the row.
    int mask = -1;
    // Logits of the first generated token of each source, (sources, vocabulary), on the device of the stack. If there
    // are none and `mask` is -1, the first step feeds SearchSource::begin to compute these logits.
    View next;
    Buffer next_memory;  // the memory of `next`
    void set_next(const View& logits);
};

class CachedWriter : public NextToken {
  public:
    // Generated tokens have the segment id `type`. If `backward` is true, they are generated from right to left. `part`
    // is the part of the document to which they belong: 0 for part A (the source), 1 for part B (the target).
    CachedWriter(const Backbone& stack, int type, bool backward = false, int part = 1);

    // Forgets all sources and prefixes, and returns an empty memory. The caller must fill this memory on tape(),
    // between the tape's begin() and end(). The following steps may have at most `most_rows` prefixes of at most
    // `longest` tokens. `mask` becomes Memory::mask.
    Memory& start(int most_rows, int longest, int mask = -1);
    Memory& memory() { return memory_; }
    Tape& tape() { return tape_; }
    int vocabulary() const override { return stack_.options.vocabulary; }

    // If there are logits in Memory::next, the first step after start() feeds no token and returns these logits. Its
    // rows must be all sources, in order.
    const float* step(const std::vector<Row>& rows) override;
    // Returns null on the CPU. On another device, the shortlists are a part of the graph of the step.
    const Shortlists* shortlists(const std::vector<Row>& rows, int width) override;
    const float* logits() override;
    // Feeds the token of every row to the stack. Returns the logits of the next token, (rows.size(), vocabulary()).
    // They can be read until tape().end().
    View feed(const std::vector<Row>& rows);

    // On a GPU, whether step() runs as one CUDA graph. It always runs op by op if an observer is attached to tape().
    bool graph = true;

  protected:
    const Backbone& stack_;

  private:
    void feed_tokens(const std::vector<Row>& rows);
    // Runs the stack for one more row of every prefix, with the tokens `ids`. Returns the output of the stack, one
    // hidden state per row.
    Tensor* run(const std::vector<Row>& rows, const Tokens& ids);
    // Copies the states of prefixes that several rows continue, and then calls run(), as one CUDA graph. If `predicts`
    // is true, also computes logits_ and, if they have a width, shortlists_.
    void pass(const char* name, const std::vector<Row>& rows, const Tokens& ids, bool predicts);
    void feed_masks(const std::vector<Row>& rows);
    void predict(const View& logits);
    // Runs a step, with shortlists if `width` is not 0. Its logits_ can be read until close().
    void run_step(const std::vector<Row>& rows, int width);
    void close();  // ends the step of run_step(), if there is one
    SegmentGraph written_graph(const MaskWords& words, std::vector<CachedDocument> documents, int token_source) const;

    const int type_;
    const bool backward_;
    const int part_;
    Arena arena_;
    Tape tape_;
    Memory memory_;
    Slots made_;  // the slots for which the states in Memory::layers were made
    PrefixSlots slots_;
    bool asked_ = false;  // whether step() was called since start()
    bool open_ = false;   // whether the tape holds the tensors of a step of run_step()
    View logits_;         // the logits of the step
    std::vector<float> logits_on_host_;
    Shortlists shortlists_;
    // Inputs of the ops of a step: rows_ and the masks after it must stay unchanged until the step ends.
    TokenRows rows_;
    // Masks of the layers for which Memory::masks defines none: self-attention of layers without a memory,
    // self-attention of layers with a memory, and cross-attention.
    SegmentGraph alone_graph_, graph_, cross_graph_;
    LayerGraphs masks_, cross_masks_;  // graphs of Memory::masks in this step, for self- and cross-attention
};

// Copies logits (f32) to the host, into `memory`, and returns a pointer to them.
const float* on_host(const View& logits, std::vector<float>& memory);

// A CachedWriter that computes its memory from source sentences.
class SourceReader : public CachedWriter {
  public:
    using CachedWriter::CachedWriter;
    // Forgets all earlier sources and prefixes, and reads these sources. The following steps may have at most
    // `most_rows` prefixes.
    virtual void read(const Sentences& sources, int most_rows) = 0;
};

// Runs search() for all sources, 64 at a time, and returns the hypotheses of each source. `about` describes each
// source to the search. `read` must make the model read the sources [first, first + count), with room for `most_rows`
// prefixes. The second function reads `sources` with `reader`.
std::vector<Hypotheses> write_targets(
    NextToken& model, const std::vector<SearchSource>& about, const SearchOptions& options, std::uint64_t seed,
    const std::function<void(std::size_t first, std::size_t count, int most_rows)>& read);
std::vector<Hypotheses> write_targets(SourceReader& reader, const std::vector<SearchSource>& about,
                                      const Sentences& sources, const SearchOptions& options, std::uint64_t seed);

}  // namespace masquerade
