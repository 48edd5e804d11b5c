// SPDX-License-Identifier: MIT
// Generation by a model that gives the logits of the next token: greedy search, beam search, sampling. docs/decoding.md
// describes each option with its formula and origin.
//
// The result for a source is a function of (source, options, seed). It does not depend on the other sources of the
// search or on the number of threads. Ties go to the better beam of the previous step, then to the smaller token.
#pragma once
#include <cstdint>
#include <vector>

#include "models/writing/canvas.h"

namespace masquerade {

// The model as the search sees it: it returns the logits of the next token for many prefixes.
class NextToken {
  public:
    // A prefix, one token longer than a row of the previous step.
    struct Row {
        int source;  // index of the prefix's source
        int parent;  // the continued row of the previous step; -1 in the first step, which has one row per source
        int token;   // the appended token; the source's `begin` in the first step
    };
    virtual ~NextToken() = default;
    virtual int vocabulary() const = 0;  // V
    // Returns logits (rows.size(), V), f32 on the host, which are valid until the next call. Rows are in the order of
    // their sources. Several rows may continue one row of the previous step; rows that are not continued are dropped.
    virtual const float* step(const std::vector<Row>& rows) = 0;
};

struct SearchSource {
    std::uint32_t line = 0;    // determines the random draws of this source, together with `sample`
    std::uint32_t sample = 0;  // number of the source's first sample
    int begin = 0;             // the first token that is fed; not part of the hypothesis
    std::vector<int> ends;     // tokens that end a hypothesis
    int maximum = 0;           // maximum number of tokens, including the end; 0: the options' maximum
};

struct SearchOptions {
    // Beam search; beams = 1 is greedy search.
    int beams = 1;
    int n_best = 1;             // number of hypotheses returned, best first; at most `beams`
    double length_penalty = 1;  // alpha: score = sum / length^alpha

    // Sampling, if samples > 0. Temperature, top-k and top-p are applied in this order.
    int samples = 0;         // samples per source
    double temperature = 1;  // above 0
    int top_k = 0;           // keeps the k most likely tokens; 0: all
    double top_p = 1;        // then keeps the most likely until their probabilities sum to p   Holtzman et al. 2020

    // Rules for the generated tokens, in the order in which they are applied.
    double repetition_penalty = 1;  // for tokens that were already generated, and `begin`: Keskar et al. 2019
    int no_repeat_ngram = 0;        // no n-gram of this length is generated twice; 0: off. Paulus et al. 2018
    std::vector<int> forbidden;     // tokens that are never generated
    int minimum = 0;                // number of tokens before an end is allowed
    int maximum = 128;              // maximum number of tokens, including the end

    // bert4keras' beam search and its `minlen`: stops when the best beam ends, and drops other beams that end.
    bool bert4keras = false;

    CanvasOptions canvas = {};  // for models that insert, which also use `maximum` and `forbidden`
};

// Returns a uniform number in (0,1) that is determined by (seed, input line, sample, step), not by the batch.
double sampling_draw(std::uint64_t seed, std::uint32_t line, std::uint32_t sample, std::uint32_t step);

struct Hypothesis {
    std::vector<int> tokens;  // without `begin` and the end token
    double score = 0;         // docs/decoding.md, "The score"
    bool ended = false;       // true: an end token ended it; false: the maximum did, or no token was allowed
};

// Returns the hypotheses of every source: the n_best of beam search, best first, or all samples in order. Throws Error
// if options contradict each other or have tokens outside the vocabulary.
std::vector<std::vector<Hypothesis>> search(NextToken& model, const std::vector<SearchSource>& sources,
                                            const SearchOptions& options, std::uint64_t seed);

}  // namespace masquerade
