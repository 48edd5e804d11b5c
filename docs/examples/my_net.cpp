// SPDX-License-Identifier: MIT
// Defines a new net on the tape, which predicts the next word from the two words before it, and trains the net with
// AdamW. Source: Bengio et al. 2003.
#include <cstdio>

#include "engine/nn/layers.h"
#include "engine/tensor/numbers.h"
#include "engine/train/adamw.h"

using namespace masquerade;

struct TwoWords {
    Tensor* words;  // (V,C): the embedding table, which is also the matrix of the output layer
    Linear before, last, mix;
    TwoWords(Parameters& p, int V, int C)
        : words(p.add("words", {V, C}, {Init::normal, 0.3})),
          before(p, "before", C, C, 0.3),
          last(p, "last", C, C, 0.3),
          mix(p, "mix", C, C, 0.3) {}

    Tensor* loss(Tape& tape, const std::vector<int>& a, const std::vector<int>& b, const std::vector<int>& next) const {
        Tensor* x = before(tape, embedding(tape, tape.ints(a), words, "a"), "before");            // (N,C)
        x = add(tape, x, last(tape, embedding(tape, tape.ints(b), words, "b"), "last"), "both");  // (N,C)
        x = mix(tape, gelu(tape, x, GeluKind::erf, "gelu"), "mix");                               // (N,C)
        const std::vector<double> each(next.size(), 1.0 / double(next.size()));
        Tensor* weights = tape.constant("weights", {std::int64_t(next.size())}, DType::f32, each.data());
        Tensor* total = cross_entropy(tape, x, words, nullptr, tape.ints(next), weights, "loss");
        tape.retain(total);
        return total;
    }
};

int main() {
    // A word is a number from 0 to 10. The next word is the sum of the two words before it, modulo 11.
    std::vector<int> a, b, next;
    for (int i = 0; i < 11; i++)
        for (int j = 0; j < 11; j++) {
            a.push_back(i);
            b.push_back(j);
            next.push_back((i + j) % 11);
        }
    Parameters parameters;
    const TwoWords model(parameters, 11, 24);
    parameters.allocate(1);
    AdamW optimiser(parameters, {0.9, 0.98, 1e-8, 0, 1});
    Arena arena;
    Tape tape(arena, DType::f32);
    double last = 0;
    for (int step = 0; step <= 400; step++) {
        tape.begin("pairs", 1, std::uint32_t(step), true);
        Tensor* loss = model.loss(tape, a, b, next);
        parameters.start_gradients();
        tape.backward(loss);
        parameters.finish_gradients();
        optimiser.update(step + 1, 0.01);
        last = number_at(loss->view(), 0);
        if (step % 100 == 0) std::printf("step %3d  loss %.4f nats a word\n", step, last);
        tape.end();
    }
    return last < 0.05 ? 0 : 1;
}
