// SPDX-License-Identifier: MIT
// The objectives of training: a mask, and which rows are asked for which token. The weights know nothing of them.
//
// One stack:
//   mlm           full mask, some tokens hidden; hidden tokens are asked for           Devlin et al. 2019
//   lm            causal; every row for its successor                                  of pairs: the whole line
//   lm-target     the same mask, asked only for the target of a pair
//   lm-reverse    anticausal; every row for its predecessor
//   prefix-lm     a prefix of random length full, the rest causal and asked for        Raffel et al. 2020
//   unilm         a pair: the source full, the target causal, sees it, is asked for    Dong et al. 2019
//   plm           permutation language model in two streams                            Yang et al. 2019
//   plm-shuffled  tokens in a random order with their own positions, causal; each row for the next token of that order,
//                 of which it is not told the place: its distribution is a mixture over places, kept as the flaw of a
//                 simpler scheme                                                       docs/unilm.md
//
// An encoder and a decoder:
//   seq2seq       a pair: the encoder reads [CLS] source [SEP], the decoder [CLS] and the target    Vaswani et al. 2017
//   mass          a sentence of which one span is hidden from the encoder; the decoder writes the span from the true
//                 token before it on. Every token keeps the position it has in the sentence                 Song et al. 2019
//
// Insertion (models/tasks/insertion_objective.cpp):
//   insertion            the decoder reads a part of the target in both directions; every slot is asked for
//                        words                                                               Stern et al. 2019
//   insertion-one-stack  the same on one stack, of which the source's part sees itself alone
//   kermit               one stack reads parts of source and target, and is asked for words of both    Chan et al. 2019
//
// Two halves with latents between them (models/tasks/univae_objective.cpp):
//   reconstruct   a sentence, or the target of its pair, from the latents of the sentence              Su 2021
//
// Examples with questions (models/tasks/question_objective.cpp):
//   classify      the answers, at rows that the example names
//   label         the same, where these rows lie anywhere
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

// Which words a slot is asked for, and how much (Stern et al. 2019, sections 4.1 to 4.4).
struct InsertionRule {
    bool left_to_right = false;  // one action, the next word; else a share of every word that a slot lacks, by ...
    bool middle = true;          // ... its distance to their middle: a balanced binary tree, ...
    std::shared_ptr<const std::vector<double>> scores;  // (V) ... or how many of them have a smaller score
    double tau = 1;                                     // exp(-distance / tau); infinite: all alike
    bool sequence = false;     // the end is asked for where all words are there; else in every slot that lacks none
    double end_weight = 1;     // of a slot that is asked for the end, beside 1
    int canvases = 1;          // parts of a target that are drawn in a step
    int canvas = 0;            // which of them it is
    int begin = -1, end = -1;  // [CLS] and [SEP], which stand around a canvas; [SEP] is the end of a slot as well
};

struct ObjectiveOptions {
    InsertionRule insertion;
    int vocabulary = 0;                    // V: random tokens lie below
    std::vector<int> special;              // never hidden, never drawn at random
    int mask = -1;                         // [MASK]; mlm and plm need it
    double hidden = 0.15;                  // mlm: share of the tokens; of these ...
    double kept = 0.1, random = 0.1;       // ... stay as they are, or become any token; the rest become [MASK]
    double predicted = 1.0 / 6;            // plm: share of the tokens that are asked for, the last of the order
    double span = 0.5;                     // mass: share of the tokens that are hidden, all in one span
    int source_type = 0, target_type = 1;  // segment ids
    int target_start = -1;                 // position of a target's first token; -1: that after the source
    std::uint64_t seed = 1;
    // Masks in words for one stack or the decoder, and for the encoder. They replace the objective's masks; null: none.
    std::shared_ptr<const LayerMasks> masks, encoder_masks;

    // reconstruct
    int longest = 0;          // tokens of a sentence
    int last_read = 0;        // the layer that the encoder half runs for [CLS] alone
    bool joint = false;       // both halves in one sequence as well
    double word_dropout = 0;  // share of the tokens that the decoder half reads as [UNK]
    int cls = -1, unknown = -1;
    // classify and label
    std::shared_ptr<const MaskWords> example_mask;

    int target_position(int source) const { return target_start < 0 ? source : target_start; }
};

struct Objective {
    const char *name, *what;
    enum Trait : unsigned {
        none = 0,
        pairs = 1,             // needs a target
        mask_token = 2,        // needs [MASK]
        scattered = 4,         // the rows it asks lie anywhere
        ranks = 8,             // its mask is one of ranks, and no other can stand in its place
        writes = 16,           // teaches to write from left to right
        writes_backward = 32,  // ... from right to left
        whole_source = 64,     // what comes before the written tokens is read in both directions
        encoder = 128,         // the source is read by a stack of its own
        both_sides = 256,      // words are inserted in the source as well
    };
    unsigned traits;
    bool has(Trait trait) const { return traits & trait; }
    // Random numbers depend on (seed, objective, sentence's name, step) alone, never on its tokens.
    Example (*make)(const Sentence& sentence, std::uint32_t step, const ObjectiveOptions& options);
    // Gives the batch its graphs, by its parts and ranks, and those of the masks in words.
    void (*mask)(Batch& batch, const ObjectiveOptions& options);

    // `pad_to` > 1 rounds rows and questions up to a multiple of it and documents to one of 8. BadInput, BadUsage: a
    // sentence lacks a target, the vocabulary [MASK].
    Batch batch(const std::vector<const Sentence*>& sentences, std::uint32_t step, const ObjectiveOptions& options,
                int pad_to = 1) const;
    // Gives a batch all its masks.
    void give_masks(Batch& batch, const ObjectiveOptions& options) const;
};

// Those of one stack, or of an encoder and a decoder; those of insertion, of two halves, of examples.
const std::vector<Objective>& objectives(bool encoder = false);
const std::vector<Objective>& insertion_objectives();
const std::vector<Objective>& latent_objectives();
const std::vector<Objective>& question_objectives();
// BadUsage, with the names there are.
const Objective& find_objective(const std::string& name, const std::vector<Objective>& table);
inline const Objective& find_objective(const std::string& name, bool encoder = false) {
    return find_objective(name, objectives(encoder));
}

// "unilm", or several objectives with weights: "mlm:2,unilm:2,lm:1,lm-reverse:1". Every batch has one of them, drawn by
// its weight.
struct ObjectiveMixture {
    struct Part {
        const Objective* objective;
        double weight;
    };
    std::vector<Part> parts;  // weights sum to 1

    // BadUsage
    static ObjectiveMixture parse(const std::string& words, const std::vector<Objective>& table = objectives());
    const Objective& at(std::uint64_t seed, std::uint32_t step) const;
    bool has(Objective::Trait trait) const;
};

// use(tape, batch, first) for `at_a_time` sentences at a time, of which `first` is the number of the first: `make` makes a
// batch of some sentences, and `stack` says where it is computed.
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
