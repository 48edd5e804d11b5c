// SPDX-License-Identifier: MIT
// Generation by a model that gives the logits of the next token: greedy search, beam search, sampling. docs/decoding.md
// describes each option with its formula and origin.
//
// The hypotheses of a source depend only on the source, the options, the seed and the model's logits. They do not
// depend on the other sources of the search or on the number of threads. If two continuations have equal sums of log p,
// the continuation of the better beam comes first. If they continue the same beam, the one with the smaller token id
// comes first.
#pragma once
#include "models/writing/canvas.h"
#include "models/writing/unmask.h"

namespace masquerade {

class Shortlists;  // models/writing/shortlists.h

// The interface through which the search uses a model. The model returns the logits of the next token for many prefixes
// at once.
class NextToken {
  public:
    // A prefix of the generated text. It consists of the prefix of one row of the previous step and one more token.
    struct Row {
        int source;  // index of the source to which the prefix belongs
        // Index of the row of the previous step that this row continues; -1 in the first step (one row per source).
        int parent;
        int token;  // the token that is appended; in the first step, SearchSource::begin
    };
    virtual ~NextToken() = default;
    virtual int vocabulary() const = 0;  // V, the number of tokens of the vocabulary
    // Returns the logits of the next token of every row, (rows.size(), V), as f32 on the host. They are valid until the
    // next call. The rows are sorted by source; in the first step, every source has one row. Several rows may continue
    // one row of the previous step. A row that the next step does not continue is never continued later, so the model
    // may forget it.
    virtual const float* step(const std::vector<Row>& rows) = 0;

    // For models whose logits are on a device. Does what step() does, but returns only the `width` best tokens of every
    // row, and what the log-sum-exp of the row needs. They are valid until the next call. A model whose logits are on
    // the host does nothing and returns null; the search then calls step().
    virtual const Shortlists* shortlists(const std::vector<Row>& /*rows*/, int /*width*/) { return nullptr; }
    // Returns all logits of the step for which shortlists() was called, as step() does. A model that overrides
    // shortlists() must override this, too.
    virtual const float* logits() { return nullptr; }
};

struct SearchSource {
    std::uint32_t line = 0;    // number of the input line, on which the random draws of the source depend
    std::uint32_t sample = 0;  // number of the source's first sample; the random draws depend on it, too
    int begin = 0;             // the token before the first generated token; not part of a hypothesis
    Tokens ends;               // tokens that end a hypothesis
    int maximum = 0;           // maximum number of generated tokens, including the end token; 0: SearchOptions::maximum
};

constexpr int longest_target = 65536;  // no model writes more tokens; each has its own limit, by its settings

struct SearchOptions {
    // Beam search; beams = 1 is greedy search.
    int beams = 1;
    int n_best = 1;  // number of hypotheses returned per source, best first; at most `beams`
    // alpha in score = (sum of log p of the tokens) / length^alpha; the length includes the end token. Without effect
    // if bert4keras is true.
    double length_penalty = 1;

    // Sampling, if samples > 0. Temperature, top-k and top-p are applied in this order.
    int samples = 0;         // samples per source
    double temperature = 1;  // above 0; the logits are divided by it
    int top_k = 0;           // keeps only the k most likely tokens; 0: keeps all
    double top_p = 1;        // keeps the smallest set of tokens with total probability >= top_p. Holtzman et al. 2020

    // Rules for the generated tokens, in the order in which they are applied.
    double repetition_penalty = 1;  // makes tokens that were already generated less likely; 1: off. Keskar et al. 2019
    int no_repeat_ngram = 0;        // no n-gram of this length is generated twice; 0: off. Paulus et al. 2018
    Tokens forbidden;               // tokens that are never generated
    int minimum = 0;                // number of tokens that must be generated before an end token is allowed
    int maximum = longest_target;   // maximum number of generated tokens, including the end token

    // Whether to search as bert4keras does: the search stops when the best beam ends, and other beams that end are
    // dropped. An end token before `minimum` is allowed, but does not end the beam (bert4keras' `minlen`).
    bool bert4keras = false;

    CanvasOptions canvas = {};  // for insertion models, which use only `canvas`, `maximum` and `forbidden`
    UnmaskOptions unmask = {};  // for models of masked diffusion (check_unmasking())
};

// Returns a uniform random number in (0,1) that depends only on the arguments, not on the batch. `line` is the number
// of the input line. `what` is the name of the use of the number.
double sampling_draw(std::uint64_t seed, std::uint32_t line, std::uint32_t sample, std::uint32_t step,
                     const char* what = "generate.token");

struct Hypothesis {
    Tokens tokens;       // without `begin` and the end token
    double score = 0;    // sum of log p, divided by length^length_penalty (docs/decoding.md, "The score")
    bool ended = false;  // whether an end token was generated; false: maximum length reached, or no token was allowed
    int passes = 0;      // passes of the model, if the text was not written from left to right
};
using Hypotheses = std::vector<Hypothesis>;  // the hypotheses of one source

// Returns the hypotheses of every source: at most `n_best` from beam search, best first, or all samples in the order of
// their numbers. Throws Error if the options contradict each other, or if the options or a source have a token outside
// the vocabulary.
std::vector<Hypotheses> search(NextToken& model, const std::vector<SearchSource>& sources, const SearchOptions& options,
                               std::uint64_t seed);

}  // namespace masquerade
