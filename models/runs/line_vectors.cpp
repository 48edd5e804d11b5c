// SPDX-License-Identifier: MIT
#include "models/runs/line_vectors.h"

#include "engine/base/processes.h"
#include "engine/tensor/numbers.h"

namespace masquerade {

Vectors state_vectors(VectorChoice::State state, const Backbone& stack, const Sentences& sentences,
                      const std::function<Batch(const Sentences&)>& make, const StateReader& read) {
    const std::size_t C = stack.options.width;
    Vectors own;  // the vectors of the sentences of this process
    each_own_batch(stack, sentences, 64, make, [&](Tape& tape, const Batch& batch, std::size_t) {
        tape.begin("states");
        const OnHost states(read(tape, batch)->view());  // (N,C): a row per token
        std::int64_t at = 0;
        for (const Document& d : batch.parts) {
            const int rows = state == VectorChoice::State::cls ? 1 : d.source;
            Numbers& vector = own.emplace_back(C, 0);
            for (std::int64_t i = 0; i < rows * std::int64_t(C); i++) vector[i % C] += states[at + i] / rows;
            at += d.source * std::int64_t(C);
        }
        tape.end();
    });
    return gather_lists(own);
}

}  // namespace masquerade
