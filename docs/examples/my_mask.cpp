// SPDX-License-Identifier: MIT
// Defines a new mask with the engine's segments: in a language model, each row sees itself, a few rows before it, and
// the first row of the sentence. The program draws the mask, compares it with a rule for pairs of rows, and trains a
// small model under the mask.
#include <cstdio>

#include "engine/tensor/numbers.h"
#include "engine/train/adamw.h"
#include "models/masks/mask.h"
#include "models/nets/backbone.h"

using namespace masquerade;

SegmentGraph sink_mask(const Documents& documents, int radius) {
    Window window;
    window.radius = radius;
    window.globals = 1;
    return with_window(causal_mask(documents), window);
}

int main() {
    const Documents one = {{9, 0}}, two = {{9, 0}, {6, 0}};
    std::vector<std::string> names;
    for (int i = 0; i < 9; i++) names.push_back(std::to_string(i));
    const std::string picture = draw_graph(sink_mask(one, 2), names, {names});
    std::printf("%s", picture.c_str());

    // Builds the same mask from a rule that is asked for every pair of rows. The rule is slow, but it is the definition
    // of the mask.
    const SegmentGraph rule =
        bits_mask(one, [](int row, int key) { return key <= row && (row - key <= 2 || key == 0 || row == 0); });
    if (draw_graph(rule, names, {names}) != picture) return std::printf("the two differ\n"), 1;

    Parameters parameters;
    BackboneOptions options;
    options.vocabulary = 12, options.width = 32, options.heads = 2, options.inner = 64, options.layers = 2,
    options.positions = 9;
    const Backbone stack(parameters, options);
    parameters.allocate(1);
    AdamW optimiser(parameters, {0.9, 0.98, 1e-8, 0, 1});
    TokenRows rows;
    std::vector<int> next;
    for (int n = 0; n < 15; n++) {
        const int position = n < 9 ? n : n - 9, document = n < 9 ? 0 : 1;
        rows.push(1 + (3 * position + document) % 11, 0, position, document);
        next.push_back(1 + (3 * (position + 1) + document) % 11);
    }
    const SegmentGraph graph = sink_mask(two, 2);
    Arena arena;
    Tape tape(arena, DType::f32);
    double last = 0;
    for (int step = 0; step <= 60; step++) {
        tape.begin("sentences", 1, std::uint32_t(step), true);
        Tensor* h = stack.head(tape, stack.finish(tape, stack.run(tape, rows, graph)));
        const Backbone::MeanLoss loss = stack.mean_loss(tape, h, next, std::vector<double>(15, 1), 15, 0);
        parameters.start_gradients();
        tape.backward(loss.total);
        parameters.finish_gradients();
        optimiser.update(step + 1, 0.01);
        last = number_at(loss.total->view(), 0);
        if (step % 20 == 0) std::printf("step %2d  loss %.4f nats a word\n", step, last);
        tape.end();
    }
    return last < 0.05 ? 0 : 1;
}
