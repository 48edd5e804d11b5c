// SPDX-License-Identifier: MIT
// Generation by a model of masked diffusion. A canvas is a sequence of places, of which some hold tokens and the others
// are hidden. In each pass, the model computes the logits of hidden places, and tokens are written at some of them.
// This ends when no place is hidden. docs/diffusion-writing.md describes each option.
//
// The result depends only on the canvas, its numbers `line` and `sample`, the options, the seed and the logits. If two
// places are equally good, the one further to the left comes first; of equally likely tokens, the smallest id.
#pragma once
#include "data/sentences.h"

namespace masquerade {

struct SearchOptions;  // models/writing/search.h
struct Written;        // models/writing/canvas.h

struct MaskedCanvas {
    static constexpr int hidden = -1;
    int source = 0;                      // index of the source to which the canvas belongs
    int number = 0;                      // index of the canvas among all that unmask_canvases() writes, which sets it
    std::uint32_t line = 0, sample = 0;  // the numbers on which the random draws depend
    Tokens tokens;                       // the token of each place, or `hidden`
    // The token that ends the text; -1: none. Behind the first end token, every place holds this token. A hidden place
    // cannot become the end if a word is visible behind it, or if its index is below `minimum`.
    int end = -1, minimum = 0;
    double score = 0;            // log p of the number of places, which Written::score includes
    std::vector<int> came = {};  // for each place, the number of the pass that wrote it; 0: it was visible at the start
    std::vector<int> asked = {};  // the hidden places whose logits are needed, in order
};

using MaskedCanvases = std::vector<const MaskedCanvas*>;

class PlaceModel {
  public:
    virtual ~PlaceModel() = default;
    virtual int vocabulary() const = 0;
    // Returns the logits of all asked places, one canvas after another: for each place, as many numbers as there are
    // tokens. They are on the host, and valid until the next call.
    virtual const float* logits(const MaskedCanvases& canvases) = 0;
};

// Which places a pass writes. At most one of per_pass, steps, entropy_bound and CanvasOptions::threshold may be given;
// if none is given, per_pass is 1.
struct UnmaskOptions {
    // The best places are written first. confidence: those with the largest log p of the token that would be written;
    // margin: with the largest difference between the probabilities of the two most likely tokens; entropy: with the
    // smallest entropy; random: those with the largest random number. Empty: entropy with entropy_bound; otherwise
    // random if tokens are drawn, and confidence if not.
    std::string order;
    int per_pass = 0;  // how many places a pass writes; 0: not given
    // In how many steps all places are written; 0: not given. After step j, the share of the visible places is j/steps
    // (plan linear) or 1 - cos(pi/2 j/steps) (plan cosine). In random order, each hidden place is written with the
    // probability that leads to this share, independently of the others. Otherwise, the best places are written.
    int steps = 0;
    std::string plan = "linear";
    // If 0 or more: the best places are written as long as the sum of their entropies without the largest one is at
    // most this. It bounds the divergence of their joint distribution from the product that is drawn.
    double entropy_bound = -1;
    double choice_temperature = 0;  // factor of the random noise in the order of the places; Chang et al. 2022
    // With `steps`: the share of the largest possible probability with which a written place is hidden again in a step.
    //                                                                                            Wang et al. 2025
    double remask = 0;
    int block =
        0;  // size of a block in places; a pass writes only into the first block with hidden places; 0: no blocks
    int lengths = 0;         // how many of the most likely lengths are tried (TargetRun::unmask()); 0: not given, 1
    bool ends_last = false;  // a place that would become the end waits until no place to its left is hidden
};
const Strings& unmask_orders();
const Strings& unmask_plans();
// Returns the first option of ./generate that belongs to masked diffusion and that the user changed; null: none.
const char* changed(const UnmaskOptions& options);
// Throws BadUsage if the options of this way of writing contradict each other, or if the search has an option that it
// does not support.
void check_unmasking(const SearchOptions& options);

// The share of the places that are visible after step `step` of a plan, times `places`.
double visible_after(const UnmaskOptions& options, int step, double places = 1);

// Writes all hidden places. Uses these options of the search: samples (0: the most likely tokens), temperature, top_k,
// top_p, forbidden, unmask and canvas.threshold. In Written, `tokens` are the tokens before the end, `rounds` counts
// the passes of the model, `ended` says whether the first end token was written, not given, and `score` is
// MaskedCanvas::score plus the log probabilities of the written tokens.
std::vector<Written> unmask_canvases(PlaceModel& model, std::vector<MaskedCanvas> starts, const SearchOptions& options,
                                     std::uint64_t seed);

// For each canvas, writes the tokens of truths[i] at its hidden places, one by one in a random order, and returns the
// sum of their log p (Uria et al. 2014). The order depends on the seed and on the numbers `line` and `sample` of the
// canvas. If `block` is above 0, each run of so many places is written before the next one. Places behind a visible end
// are not counted. The softmax is over the whole vocabulary, including tokens that unmask_canvases() never writes.
Numbers log_p_in_random_order(PlaceModel& model, std::vector<MaskedCanvas> starts, const Texts& truths, int block,
                              std::uint64_t seed);

}  // namespace masquerade
