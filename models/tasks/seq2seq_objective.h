// SPDX-License-Identifier: MIT
// What two stacks are trained to do: what the encoder reads, and what the decoder writes after it.
//
//   seq2seq  a pair: the encoder reads [CLS] source [SEP], the decoder [CLS] and the target        Vaswani et al. 2017
//   mass     a sentence of which one span is hidden from the encoder; the decoder writes the span from the true token
//            before it on. Every token keeps the position it has in the sentence                   Song et al. 2019
#pragma once
#include "models/tasks/objective.h"

namespace masquerade {

// One document: what both stacks read, and what the decoder's rows are asked for.
struct PairExample {
    TokenRows source, target;
    std::vector<int> asked;
};

struct PairObjective {
    const char *name, *what;
    unsigned traits;  // of Objective: pairs, mask_token
    bool has(Objective::Trait trait) const { return traits & trait; }
    // Random numbers depend on (seed, objective, sentence's name, step) alone, never on its tokens.
    PairExample (*make)(const Sentence& sentence, std::uint32_t step, const ObjectiveOptions& options);

    // `pad_to` > 1 rounds the rows of both up to a multiple of it and documents to one of 8.
    PairBatch batch(const std::vector<const Sentence*>& sentences, std::uint32_t step,
                    const ObjectiveOptions& options, int pad_to = 1) const;
};

const std::vector<PairObjective>& pair_objectives();
const PairObjective& find_pair_objective(const std::string& name);  // BadUsage, with the names there are

}  // namespace masquerade
