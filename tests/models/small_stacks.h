// SPDX-License-Identifier: MIT
// A small encoder and decoder, and pairs for it: what their tests share.
#pragma once
#include "engine/base/random.h"
#include "engine/tensor/numbers.h"
#include "models/encoder_decoder.h"

namespace masquerade::small_stacks {

constexpr int V = 40, longest = 8;

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

inline ObjectiveOptions options() {
    ObjectiveOptions o;
    o.vocabulary = V;
    o.special = {0, 1, 2, 3, 4};
    o.mask = 4;
    return o;
}

inline std::vector<Sentence> pairs(int count, std::uint64_t seed) {
    Sequence random(seed, "pairs");
    std::vector<Sentence> all(static_cast<std::size_t>(count));
    for (int i = 0; i < count; i++) {
        Sentence& s = all[std::size_t(i)];
        s.name = i;
        s.ids.push_back(2);
        for (std::uint32_t n = 1 + random.below(9); n > 0; n--) s.ids.push_back(5 + int(random.below(V - 5)));
        s.ids.push_back(3);
        for (std::uint32_t n = 1 + random.below(longest - 2); n > 0; n--)
            s.target.push_back(5 + int(random.below(V - 5)));
        s.target.push_back(3);
    }
    return all;
}

inline std::vector<const Sentence*> pointers(const std::vector<Sentence>& all) {
    std::vector<const Sentence*> p;
    for (const Sentence& s : all) p.push_back(&s);
    return p;
}

using Rows = std::vector<std::vector<double>>;

struct Model {
    Parameters parameters;
    EncoderDecoder model;
    Arena arena;
    Tape tape;
    explicit Model(const EncoderDecoderOptions& o, DType type = DType::f32)
        : parameters(type), model(parameters, o), arena(Device::cpu, false), tape(arena, type) {
        parameters.allocate(7);
    }
    static Rows rows(const Tensor* t) {
        const OnHost numbers(t->view());
        Rows all(std::size_t(t->rows()));
        for (std::size_t r = 0; r < all.size(); r++)
            for (std::int64_t c = 0; c < t->columns(); c++)
                all[r].push_back(numbers[std::int64_t(r) * t->columns() + c]);
        return all;
    }
    // The logits of every row of the decoder, and the last hidden state of the encoder.
    Rows logits(const PairBatch& batch) {
        tape.begin("logits");
        const Rows all = rows(model.decoder.logits(tape, model.hidden(tape, batch)));
        tape.end();
        return all;
    }
    Rows encoded(const PairBatch& batch) {
        tape.begin("encoded");
        const Rows all = rows(model.encode(tape, batch.source, batch.encoder_graph));
        tape.end();
        return all;
    }
};

}  // namespace masquerade::small_stacks
