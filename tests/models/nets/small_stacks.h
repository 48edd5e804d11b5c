// SPDX-License-Identifier: MIT
// A small encoder and decoder, and pairs for them, which several tests share.
#pragma once
#include "models/nets/encoder_decoder.h"
#include "models/tasks/objective.h"
#include "tests/models/runs/small_pairs.h"

namespace masquerade::small_stacks {

using namespace small_pairs;

inline EncoderDecoderOptions small(bool pre_norm, bool rotary, bool rotary_cross = true) {
    EncoderDecoderOptions o;
    o.stack.vocabulary = V;
    o.stack.width = 16;
    o.stack.heads = 2;
    o.stack.inner = 24;
    o.stack.layers = 2;
    o.stack.positions = 24;
    o.stack.rotary = rotary;
    o.stack.pre_norm = pre_norm;
    o.stack.deviation = 0.3;
    o.decoder_layers = 3;
    o.rotary_cross = rotary_cross;
    return o;
}

using Rows = std::vector<std::vector<double>>;

struct Model : Small<EncoderDecoder, EncoderDecoderOptions> {
    using Small::Small;
    static Rows rows(const Tensor* t) {
        const OnHost numbers(t->view());
        Rows all(std::size_t(t->rows()));
        for (std::size_t r = 0; r < all.size(); r++)
            for (std::int64_t c = 0; c < t->columns(); c++)
                all[r].push_back(numbers[std::int64_t(r) * t->columns() + c]);
        return all;
    }
    // Returns the logits of every row of the decoder.
    Rows logits(const Batch& batch) {
        tape.begin("logits");
        const Rows all = rows(model.decoder.logits(tape, model.hidden(tape, batch)));
        tape.end();
        return all;
    }
    Rows encoded(const Batch& batch) {
        tape.begin("encoded");
        const Rows all = rows(model.encode(tape, batch.source, batch.source_graph).x);
        tape.end();
        return all;
    }
};

}  // namespace masquerade::small_stacks
