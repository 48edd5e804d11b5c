// SPDX-License-Identifier: MIT
// The vectors that a run computes for lines of text, and the computation of those that are hidden states.
#pragma once
#include <cstdint>
#include <functional>

#include "models/batch/batch.h"
#include "models/nets/backbone.h"
#include "models/tasks/objective.h"

namespace masquerade {

// Chooses the vectors that Run::vectors() returns.
struct VectorChoice {
    // usual: the family's usual vectors (Run::vectors). mean and cls: last hidden states of the stack that reads the
    // line: their mean over the tokens of the line, or the state of its first token, [CLS].
    enum class State { usual, mean, cls };
    State state = State::usual;
    void set_state(const std::string& word) {  // "mean", "cls", or empty for the usual vectors
        state = word == "mean" ? State::mean : word == "cls" ? State::cls : State::usual;
    }
    // Only for latents with noise: whether the latents are drawn from their posterior q(z | line) instead of being its
    // means. A draw depends on the seed and on the number of the line, which is first_line + i for lines[i].
    bool drawn = false;
    std::uint64_t seed = 1;
    std::uint32_t first_line = 0;
};

// Returns the states of all rows of a batch, (N,C), where C is the width of the stack.
using StateReader = std::function<Tensor*(Tape&, const Batch&)>;

// Returns the last hidden states of each sentence, averaged over its rows or, with State::cls, those of its first row.
// `stack` computes the states. make() makes a batch of some sentences; the document of a sentence has as many rows as
// Document::source says.
Vectors state_vectors(VectorChoice::State state, const Backbone& stack, const Sentences& sentences,
                      const std::function<Batch(const Sentences&)>& make, const StateReader& read);

}  // namespace masquerade
