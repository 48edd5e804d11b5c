// SPDX-License-Identifier: MIT
// Training objectives. An objective defines the masks and the labels of a batch: which rows predict which tokens. The
// parameters of a model do not depend on the objective.
//
// One stack:
//   mlm           full mask; some tokens are hidden and predicted                      Devlin et al. 2019
//   lm            causal; every row predicts the next token (of a pair: both source and target are predicted)
//   lm-target     causal; only the target of a pair is predicted
//   lm-reverse    anticausal; every row predicts the previous token
//   prefix-lm     a prefix of random length, full; the rest is causal and predicted    Raffel et al. 2020
//   unilm         a pair: source full; target causal, sees the source, is predicted    Dong et al. 2019
//   plm           permutation language model in two streams                            Yang et al. 2019
//   plm-shuffled  tokens in a random order with their own positions, causal; each row predicts the next token of that
//                 order without knowing its position, so the distribution is a mixture over positions: kept to show
//                 the flaw of this simpler scheme                                      docs/unilm.md
//
// An encoder and a decoder:
//   seq2seq       a pair: the encoder reads [CLS] source [SEP], the decoder [CLS] and the target    Vaswani et al. 2017
//   mass          a sentence: one span is hidden from the encoder, and the decoder generates the span, given the true
//                 token before the span. Every token keeps its position in the sentence             Song et al. 2019
//
// Insertion (models/tasks/insertion_objective.cpp):
//   insertion            the decoder reads a subset of the target's words in both directions; every slot predicts its
//                        missing words                                                       Stern et al. 2019
//   insertion-one-stack  as insertion, on one stack; the source sees only itself
//   kermit               one stack reads subsets of source and target and predicts the missing words   Chan et al. 2019
//
// Two halves with latents between them (models/tasks/univae_objective.cpp):
//   reconstruct   a sentence, or the target of its pair, from the latents of the sentence              Su 2021
//
// Labelled examples (models/tasks/question_objective.cpp):
//   classify      predicts the labels of an example at the rows that the example names
//   label         as classify, but the rows can be anywhere
#pragma once
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "data/sentences.h"
#include "engine/base/named.h"
#include "models/batch/batch.h"
#include "models/masks/words.h"
#include "models/nets/backbone.h"

namespace masquerade {

// The targets of slots and their shares (Stern et al. 2019, sections 4.1 to 4.4). Each missing word of a slot has a
// share proportional to exp(-distance / tau).
struct InsertionRule {
    bool left_to_right = false;  // true: the only target is the next word, in the last slot
    bool middle = true;          // distance to the middle of the missing words (balanced binary tree); false: 0
    // (V) If given, the distance of a word is the number of missing words of the slot with a smaller score.
    std::shared_ptr<const std::vector<double>> scores;
    double tau = 1;  // infinite: equal shares
    // true: the end is a target only if no slot of the canvas misses words; false: in every slot that misses none
    bool sequence = false;
    double end_weight = 1;     // weight of a slot whose target is the end, relative to other slots
    int canvases = 1;          // number of canvases drawn from each target in a step
    int canvas = 0;            // index of the current canvas of a target
    int begin = -1, end = -1;  // [CLS] and [SEP], which enclose a canvas; [SEP] is also the end token of a slot
};

struct ObjectiveOptions {
    InsertionRule insertion;
    int vocabulary = 0;                    // V
    std::vector<int> special;              // tokens that are never hidden and never drawn at random
    int mask = -1;                         // [MASK]; mlm, plm and mass need it
    double hidden = 0.15;                  // mlm: share of the tokens that are hidden
    double kept = 0.1, random = 0.1;       // shares of hidden tokens that are kept or random; the rest become [MASK]
    double predicted = 1.0 / 6;            // plm: share of the tokens that are predicted
    double span = 0.5;                     // mass: share of the tokens that are hidden, in one span
    int source_type = 0, target_type = 1;  // segment ids
    int target_start = -1;                 // position of a target's first token; -1: directly after the source
    std::uint64_t seed = 1;
    // Masks in words, for the stack that predicts and for the encoder. They replace the objective's masks; null: none.
    std::shared_ptr<const LayerMasks> masks, encoder_masks;

    // for the objective reconstruct
    int longest = 0;          // maximum number of tokens of a sentence
    int last_read = 0;        // last layer of the encoder half, which runs only for [CLS]
    bool joint = false;       // also pack the joint form, both halves in one sequence
    double word_dropout = 0;  // share of the tokens that the decoder half reads as [UNK]
    int cls = -1, unknown = -1;
    // for the objectives classify and label
    std::shared_ptr<const MaskWords> example_mask;

    int target_position(int source) const { return target_start < 0 ? source : target_start; }
};

struct Objective {
    const char *name, *what;
    enum Trait : unsigned {
        none = 0,
        pairs = 1,             // needs a target
        mask_token = 2,        // needs [MASK]
        scattered = 4,         // rows with a label can be anywhere
        ranks = 8,             // the mask depends on ranks, and no mask in words can replace it
        writes = 16,           // trains generation from left to right
        writes_backward = 32,  // trains generation from right to left
        whole_source = 64,     // the text before the generated tokens is read in both directions
        encoder = 128,         // an encoder reads the source
        both_sides = 256,      // words are inserted in the source, too
    };
    unsigned traits;
    bool has(Trait trait) const { return traits & trait; }
    // Makes the example of a sentence. The random numbers depend only on (seed, objective, sentence's name, step).
    Example (*make)(const Sentence& sentence, std::uint32_t step, const ObjectiveOptions& options);
    // Sets the masks of the batch, including masks in words, from its parts and ranks.
    void (*mask)(Batch& batch, const ObjectiveOptions& options);

    // Makes a batch. If pad_to > 1, pads rows and labels to multiples of pad_to and documents to a multiple of 8.
    // Throws BadInput if a sentence lacks a target that is needed, BadUsage if [MASK] is needed and the vocabulary
    // lacks it.
    Batch batch(const std::vector<const Sentence*>& sentences, std::uint32_t step, const ObjectiveOptions& options,
                int pad_to = 1) const;
    // Sets all masks of the batch, including scored_graph.
    void give_masks(Batch& batch, const ObjectiveOptions& options) const;
};

// The tables of objectives: for one stack, or for an encoder and a decoder; for insertion, UniVAE, classification.
const std::vector<Objective>& objectives(bool encoder = false);
const std::vector<Objective>& insertion_objectives();
const std::vector<Objective>& latent_objectives();
const std::vector<Objective>& question_objectives();
// Throws BadUsage, which lists the names of the table, if there is no such objective.
const Objective& find_objective(const std::string& name, const std::vector<Objective>& table);
inline const Objective& find_objective(const std::string& name, bool encoder = false) {
    return find_objective(name, objectives(encoder));
}

// "unilm", or several objectives with weights: "mlm:2,unilm:2,lm:1,lm-reverse:1". Every batch has one objective, drawn
// with a probability proportional to its weight.
struct ObjectiveMixture {
    struct Part {
        const Objective* objective;
        double weight;
    };
    std::vector<Part> parts;  // weights sum to 1

    // Throws BadUsage if a name is not in the table, or a weight is not a number above 0.
    static ObjectiveMixture parse(const std::string& words, const std::vector<Objective>& table = objectives());
    const Objective& at(std::uint64_t seed, std::uint32_t step) const;
    bool has(Objective::Trait trait) const;
};

// Calls use(tape, batch, first) for `at_a_time` sentences at a time; `first` is the index of the batch's first
// sentence. make(sentences) returns a batch. The tape has the device and the type of `stack`.
template <class Make, class Use>
void each_batch(const Backbone& stack, const std::vector<const Sentence*>& sentences, std::size_t at_a_time, Make make,
                Use use) {
    Arena arena(stack.device(), Blocks::kept);
    Tape tape(arena, stack.storage());
    for (std::size_t first = 0; first < sentences.size(); first += at_a_time) {
        const auto begin = sentences.begin() + std::ptrdiff_t(first);
        const Batch batch =
            make(std::vector(begin, begin + std::ptrdiff_t(std::min(at_a_time, sentences.size() - first))));
        use(tape, batch, first);
    }
}

}  // namespace masquerade
