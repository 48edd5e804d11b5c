// SPDX-License-Identifier: MIT
// Writing by a model that tells the logits of the next token: greedy, beams, sampling.
// Each option, its formula and where it comes from: docs/decoding.md.
//
// Everything is a function of (source, options, seed): which sources are searched together, and by how many
// threads, changes no bit. Ties go to the better beam of the step before, then to the smaller token.
#pragma once
#include <cstdint>
#include <vector>

#include "models/writing/canvas.h"

namespace masquerade {

// A model as a search sees it: it gives the logits of the token after each of many prefixes.
class NextToken {
  public:
    // A prefix, one token longer than a row of the step before.
    struct Row {
        int source;  // index of the source it belongs to
        int parent;  // the row of the step before that it continues; -1 in the first step, one row a source
        int token;   // what is appended; the source's `begin` in the first step
    };
    virtual ~NextToken() = default;
    virtual int vocabulary() const = 0;  // V
    // logits (rows.size(), V), f32 on the host; live until the next call. Rows of a source are neighbours,
    // sources in order. A row of the step before that no row continues is gone for good; several may continue
    // one.
    virtual const float* step(const std::vector<Row>& rows) = 0;
};

struct SearchSource {
    std::uint32_t line = 0;    // names the random draws of this source
    std::uint32_t sample = 0;  // and with it the first of its samples
    int begin = 0;             // the first token the model is fed; not part of what is written
    std::vector<int> ends;     // any of them ends a hypothesis
    int maximum = 0;           // tokens written at most, the end counted; 0: the options' maximum
};

struct SearchOptions {
    // Beams. One is greedy; then the rest of these, but for the length, has no part in it.
    int beams = 1;
    int n_best = 1;             // hypotheses returned, the best first; at most `beams`
    double length_penalty = 1;  // alpha: score = sum / length^alpha

    // Sampling, where samples > 0: so many a source. Tokens pass the temperature, top-k and top-p in this order.
    int samples = 0;
    double temperature = 1;  // above 0
    int top_k = 0;           // keeps the k most likely; 0: all
    double top_p = 1;        // then the fewest whose share of what was kept reaches p       Holtzman et al. 2020

    // Rules of what may be written, in the order in which they act.
    double repetition_penalty = 1;  // of tokens already written, `begin` among them: Keskar et al. 2019
    int no_repeat_ngram = 0;        // no n-gram of this length twice; 0: off. Paulus et al. 2018
    std::vector<int> forbidden;     // never written
    int minimum = 0;                // tokens before an end is allowed
    int maximum = 128;              // tokens written at most, the end counted

    // bert4keras' beam search and its `minlen`: it stops when the best beam ends, and drops others that do.
    bool bert4keras = false;

    CanvasOptions canvas = {};  // of models that insert, which heed `maximum` and `forbidden` beside these
};

// The draw of (seed, input line, sample, step), in (0,1): the batch has no part in it.
double sampling_draw(std::uint64_t seed, std::uint32_t line, std::uint32_t sample, std::uint32_t step);

struct Hypothesis {
    std::vector<int> tokens;  // without `begin` and without the end that ended it
    double score = 0;         // docs/decoding.md, "The score"
    bool ended = false;       // by an end token; else it met the maximum, or nothing was allowed
};

// For every source its hypotheses: with beams the n_best, the best first; with samples as many, in order.
// Error where options contradict each other or name tokens outside the vocabulary.
std::vector<std::vector<Hypothesis>> search(NextToken& model, const std::vector<SearchSource>& sources,
                                            const SearchOptions& options, std::uint64_t seed);

}  // namespace masquerade
