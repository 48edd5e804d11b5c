// SPDX-License-Identifier: MIT
// Checks of every UniVAE whose decoder half writes in any order: by inserting words, or by masked diffusion.
#pragma once
#include <doctest/doctest.h>

#include <cmath>

#include "engine/nn/attention/attention.h"
#include "tests/models/nets/small_univae.h"

namespace masquerade::small_univae {

// The differences between the decoders. rows: the number of rows that UniVae::decode() returns for a batch.
struct AnyOrder {
    UniVaeOptions::Decoder decoder;
    std::vector<Sentence> (*text)(const UniVaeOptions& options, int count, std::uint64_t seed);
    Batch (*batch)(const UniVae& model, const Sentences& text, std::uint32_t step, int pad_to);
    int (*rows)(const Batch& batch);
};

inline UniVaeOptions any_order(UniVaeOptions::Decoder decoder, const LatentOptions& latent, bool pre_norm,
                               bool is_conditional) {
    UniVaeOptions o = small(latent, pre_norm, true);
    o.decoder = decoder;
    o.conditional = is_conditional || latent.source_prior;
    o.free_length = pre_norm;
    if (pre_norm) o.latent_at = {1, 3};  // there is a layer without a latent above the lower one
    return o;
}

// Checks that the joint form equals the split form, for every attention and kind of latent.
inline void check_joint(const AnyOrder& by) {
    int checked = 0;
    for (const AttentionKind& attention : attention_kinds())
        for (const LatentOptions& latent : kinds_of_pairs)
            for (bool pre_norm : {false, true})
                for (bool is_conditional : {false, true}) {
                    CAPTURE(std::string(attention.name));
                    if (latent.free_bits > 0) continue;
                    const bool softmax = std::string(attention.name) == "softmax";
                    if (!softmax && latent.kind != LatentKind::gaussian) continue;
                    UniVaeOptions o = any_order(by.decoder, latent, pre_norm, is_conditional);
                    o.backbone.attention = attention.name;
                    o.backbone.rotary = attention.rotates;
                    for (const char* key : {"window", "stride", "reach"}) o.backbone.attention_options[key] = 3;
                    for (const char* key : {"rounds", "buckets", "chunk"}) o.backbone.attention_options[key] = 2;
                    const Document one{3, 3};
                    if (!attention.refuses(make_mask("A full; B full sees A[0]", {one})).empty()) continue;
                    Model m(o, DType::f64);
                    const auto text = by.text(o, 5, 3);
                    const Batch batch = by.batch(m.model, pointers_to(text), 4, 1);
                    const LatentNoise noise = m.model.space.noise(batch.names(), 11, 0);
                    m.tape.begin("a");
                    Tensor* split = nullptr;
                    try {
                        split = m.model.decode(m.tape, batch, points(m.model.encode(m.tape, batch, &noise)));
                    } catch (const BadUsage& refusal) {
                        CHECK(std::string(refusal.what()).find("does not support this mask") != std::string::npos);
                        continue;
                    }
                    CHECK(split->rows() == by.rows(batch));
                    CHECK(same_bits(split->view(), m.model.joint(m.tape, batch, &noise)->view()));
                    checked++;
                }
    CHECK(checked > 60);
}

// Compares the gradient of a model with the complex step.
inline void check_gradient(const AnyOrder& by, UniVaeOptions o) {
    o.backbone.dropout = o.backbone.attention_dropout = 0.2;
    Model real(o, DType::f64), imaginary(o, DType::c128);
    const auto text = by.text(o, 4, 21);
    const Batch batch = by.batch(real.model, pointers_to(text), 1, 8);
    const LatentNoise noise = real.model.space.noise(batch.names(), 2, 1);
    real.tape.begin(batch.bucket, 2, 1, true);
    const UniVae::Loss loss = real.model.loss(real.tape, batch, &noise, 0.7);
    real.parameters.start_gradients();
    real.tape.backward(loss.total);
    real.parameters.finish_gradients();
    Sequence random(3, "direction");
    const View p = real.parameters.values(), g = real.parameters.gradients(), c = imaginary.parameters.values();
    double expected = 0;
    for (std::int64_t i = 0; i < p.count(); i++) {
        const double d = 2 * random.uniform_double() - 1;
        expected += d * g.as<double>()[i];
        c.as<complex>()[i] = complex(p.as<double>()[i], 1e-30 * d);
    }
    imaginary.tape.begin(batch.bucket, 2, 1, true);
    const UniVae::Loss shifted = imaginary.model.loss(imaginary.tape, batch, &noise, 0.7);
    const double found = shifted.total->view().as<complex>()->imag() / 1e-30;
    CHECK(std::abs(found - expected) <= 1e-12 * std::max(1.0, std::abs(expected)));
    CHECK(std::abs(expected) > 1e-3);
}

}  // namespace masquerade::small_univae
