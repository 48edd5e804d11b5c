// SPDX-License-Identifier: MIT
// Tests UniVAE: the joint form, the split form and writing with a cache give the same bits; no information bypasses the
// latents; a document alone gives the same as in any batch; and the gradient of the whole model agrees with the complex
// step.
#include <doctest/doctest.h>

#include "tests/models/nets/block_kinds.h"
#include "tests/models/nets/random_kinds.h"
#include "tests/models/nets/small_univae.h"

#include <cmath>
#include <tuple>

#include "engine/ops/cpu/parallel.h"
#include "engine/tape/trace.h"
#include "models/tasks/univae_prior.h"

using namespace masquerade;
using namespace masquerade::small_univae;

namespace {

// Feeds every sentence to the cached decoder, token by token. Returns whether the logits have the bits of `logits`
// (N,V), those of the decoder pass.
bool cached_equals(const UniVae& model, const std::vector<Sentence>& text, const Batch& batch,
                   const std::vector<LatentSample>& latents, const Tensor* logits) {
    UniVaeDecoder decoder(model, {});
    const std::int64_t V = logits->columns();
    bool equal = true;
    for (std::size_t b = 0; b < text.size(); b++) {
        DecodeRequest request;
        request.start = model.start_position(int(text[b].ids.size()));
        for (const LatentSample& s : latents)
            for (std::int64_t i = 0, Z = s.z->columns(); i < Z; i++)
                request.latent.push_back(number_at(s.z->view(), std::int64_t(b) * Z + i));
        if (model.options.conditional) request.source = text[b].ids;
        auto cached = decoder.forced_logits(request, model.options.conditional ? text[b].target : text[b].ids);
        equal &= int(cached.size()) == batch.labels.begin[b + 1] - batch.labels.begin[b];
        for (std::size_t t = 0; t < cached.size(); t++)
            for (std::int64_t v = 0; v < V; v++)
                equal &= cached[t][std::size_t(v)] ==
                         number_at(logits->view(), (batch.labels.begin[b] + std::int64_t(t)) * V + v);
    }
    return equal;
}

}  // namespace

TEST_CASE("univae: joint == split == cached logits, == in double") {
    for (const AttentionKind& attention : attention_kinds())
        for (const LatentOptions& latent : kinds)
            for (bool pre_norm : {false, true})
                for (bool rotary : {true, false})
                    for (const auto& [sampled, lower, upper] :
                         {std::tuple(true, "", ""), std::tuple(false, "", ""),
                          std::tuple(true, "A full window=1; B causal window=2", "A full; B causal window=1 sees A[0]"),
                          std::tuple(false, "A causal; B causal",
                                     "A full window=2 dilation=2 globals=1; B causal window=2 sees A[0]")}) {
                        CAPTURE(std::string(attention.name));
                        if ((rotary && !attention.rotates) || latent.free_bits > 0) continue;
                        UniVaeOptions o = small(latent, pre_norm, rotary);
                        o.backbone.attention = attention.name;
                        for (const char* key : {"window", "stride", "reach"}) o.backbone.attention_options[key] = 3;
                        for (const char* key : {"rounds", "buckets", "chunk"}) o.backbone.attention_options[key] = 2;
                        // One of the three layers is neither the first nor the last.
                        o.latent_layers = pre_norm ? 3 : 2;
                        if (*lower) o.mask = text(lower, " | layers -", o.latent_layers, ":: ", upper);
                        if (!rotary && !*lower && latent.projects) {  // latents at chosen layers, with two sizes
                            o.latent_at = sampled ? std::vector{1, 3} : std::vector{1, 2};
                            o.latent_sizes = {4, 8};
                            o.latent_kinds = mixed(latent.kind);
                        }
                        CAPTURE(o.mask);
                        Model m(o, DType::f64);
                        auto text = sentences(5, 11, 50, 3);
                        Batch batch = halves_batch(m.model, pointers_to(text), 1, true);
                        if (o.mask.find("window") != std::string::npos &&
                            !attention.refuses(make_mask("A full window=1; B causal", {{3, 3}})).empty())
                            continue;
                        if (!attention.refuses(causal_mask({{3, 3}})).empty()) continue;
                        LatentNoise noise = m.model.space.noise(batch.names(), 11, 0);
                        const LatentNoise* draw = sampled ? &noise : nullptr;
                        m.tape.begin("a");
                        auto latents = m.model.encode(m.tape, batch, draw);
                        Tensor* split = m.model.backbone.logits(
                            m.tape, m.model.backbone.head(m.tape, m.model.decode(m.tape, batch, points(latents))));
                        Tensor* joint =
                            m.model.backbone.logits(m.tape,
                                                    m.model.backbone.head(m.tape, m.model.joint(m.tape, batch, draw)));
                        CHECK(same_bits(split->view(), joint->view()));

                        CHECK(cached_equals(m.model, text, batch, latents, split));
                    }
}

TEST_CASE("univae: joint == split == cached logits, == in double, of kinds by layer and half") {
    Sequence random(6, "kinds");
    const auto reads = [](const AttentionKind& kind) { return kind.refuses(full_mask({{3, 0}})).empty(); };
    const auto writes = [](const AttentionKind& kind) { return kind.refuses(causal_mask({{0, 3}})).empty(); };
    int halves = 0;
    for (int round = 0; round < 30; round++) {
        UniVaeOptions o = small(LatentKind::gaussian, round % 2, round % 4 < 3);
        draw_kinds(random, o.backbone, reads, writes, 4);
        CAPTURE(o.backbone.attention);
        Model m(o, DType::f64);
        halves += m.model.backbone.has_parts();
        const auto text = sentences(4, 11, 50, 3);
        const Batch batch = halves_batch(m.model, pointers_to(text), 1, true);
        const LatentNoise noise = m.model.space.noise(batch.names(), 11, 0);
        m.tape.begin("a");
        const auto latents = m.model.encode(m.tape, batch, &noise);
        const auto logits = [&](Tensor* x) {
            return m.model.backbone.logits(m.tape, m.model.backbone.head(m.tape, x));
        };
        Tensor* split = logits(m.model.decode(m.tape, batch, points(latents)));
        CHECK(same_bits(split->view(), logits(m.model.joint(m.tape, batch, &noise))->view()));
        CHECK(cached_equals(m.model, text, batch, latents, split));
    }
    CHECK(halves > 20);
}

TEST_CASE("univae: the gradients of the joint and of the split form agree, 1e-12 in double") {
    for (const LatentOptions& latent : kinds_of_pairs) {
        UniVaeOptions o = small(latent, latent.kind == LatentKind::gaussian, true);
        if (latent.kind == LatentKind::gaussian_chain) o.latent_at = {1, 2, 3}, o.latent_sizes = {4, 8, 6};
        o.conditional = latent.free_bits > 0 || latent.learn_kappa || latent.source_prior;
        Model m(o, DType::f64);
        auto text = o.conditional ? pairs(5, 11, 13) : sentences(5, 11, 50, 13);
        Batch batch = halves_batch(m.model, pointers_to(text), 1, true);
        LatentNoise noise = m.model.space.noise(batch.names(), 3, 0);
        auto gradient = [&](bool joint) {
            m.tape.begin(joint ? "joint" : "split");
            Tensor* x = joint ? m.model.joint(m.tape, batch, &noise)
                              : m.model.decode(m.tape, batch, points(m.model.encode(m.tape, batch, &noise)));
            Tensor* weights = m.tape.constant("weights", {x->rows()}, DType::f64, batch.labels.weights.data());
            Tensor* h = m.model.backbone.head(m.tape, x);
            m.parameters.start_gradients();
            m.tape.backward(m.model.backbone.loss(m.tape, h, batch.labels.tokens, weights, "loss"));
            m.parameters.finish_gradients();
            View g = m.parameters.gradients();
            return std::vector<double>(g.as<double>(), g.as<double>() + g.count());
        };
        std::vector<double> split = gradient(false), joint = gradient(true);
        double largest = 0, apart = 0;
        for (std::size_t i = 0; i < split.size(); i++) {
            largest = std::max(largest, std::abs(split[i]));
            apart = std::max(apart, std::abs(split[i] - joint[i]));
        }
        CHECK(largest > 0.1);
        CHECK(apart <= 1e-12 * largest);
    }
}

TEST_CASE("univae: the samples of the points of one line have random numbers of their own") {
    Model m(small(LatentKind::gaussian, false, true), DType::f32);
    const DecodeRequest first{m.model.space.prior(4, 1, 0), 1, 0, m.model.start_position(8)};
    DecodeRequest second = first;
    second.sample = 1;
    SearchOptions options;
    options.samples = 4;
    options.minimum = 6;
    std::set<Tokens> different;
    for (const Hypotheses& samples : UniVaeDecoder(m.model, {}).search({first, second}, options, 9))
        for (const Hypothesis& h : samples) different.insert(h.tokens);
    CHECK(different.size() == 8);
}

TEST_CASE("univae: a sentence is written alone as in any batch, greedily or sampled") {
    Model m(small(LatentKind::gaussian, false, true), DType::f32);
    std::vector<DecodeRequest> requests;
    for (std::uint32_t line = 0; line < 70; line++)  // more lines than the decoder writes at a time
        requests.push_back({m.model.space.prior(4, line, 0), line, line % 3, m.model.start_position(8)});
    UniVaeDecoder decoder(m.model, {});
    for (int samples : {0, 1}) {
        SearchOptions sampling;
        sampling.samples = samples;
        sampling.top_k = 20;
        sampling.top_p = 0.9;
        std::vector<Tokens> together = decoder.write(requests, sampling, 9);
        bool some_differ = false;
        for (std::size_t i = 0; i < requests.size(); i += 7) {
            CHECK(decoder.write({requests[i]}, sampling, 9)[0] == together[i]);
            some_differ |= together[i] != together[0];
        }
        CHECK(some_differ);
    }
}

TEST_CASE("univae: a wrong start position is seen (the comparison above can fail)") {
    Model m(small(LatentKind::vmf, false, true), DType::f64);
    auto text = sentences(2, 11, 50, 3);
    Batch batch = halves_batch(m.model, pointers_to(text), 1, true);
    m.tape.begin("a");
    auto latents = m.model.encode(m.tape, batch, nullptr);
    for (int& p : batch.rows.positions) p -= 1;
    Tensor* split = m.model.decode(m.tape, batch, points(latents));
    CHECK_FALSE(same_bits(split->view(), m.model.joint(m.tape, batch, nullptr)->view()));
}

TEST_CASE("univae: what the decoder learns of the sentence passes through z alone") {
    // Encodes other sentences, but decodes with the same z. The decoder rows must keep their bits.
    for (const LatentOptions& latent : kinds) {
        Model m(small(latent, false, true), DType::f32);
        auto text = sentences(4, 11, 50, 5), other = text;
        for (Sentence& s : other)
            for (std::size_t i = 1; i + 1 < s.ids.size(); i++) s.ids[i] = 5 + (s.ids[i] + 7) % 45;
        Batch batch = halves_batch(m.model, pointers_to(text)), changed = halves_batch(m.model, pointers_to(other));
        changed.rows = batch.rows;
        m.tape.begin("a");
        auto z = points(m.model.encode(m.tape, batch, nullptr));
        auto z_other = points(m.model.encode(m.tape, changed, nullptr));
        CHECK_FALSE(same_bits(z[0]->view(), z_other[0]->view()));
        Tensor* h = m.model.decode(m.tape, batch, z);
        CHECK(same_bits(h->view(), m.model.decode(m.tape, changed, z)->view()));
        CHECK_FALSE(same_bits(h->view(), m.model.decode(m.tape, changed, z_other)->view()));
    }
}

namespace {

UniVaeOptions conditional(const LatentOptions& latent, bool pre_norm, bool rotary) {
    UniVaeOptions o = small(latent, pre_norm, rotary);
    o.conditional = true;
    o.free_length = pre_norm;
    return o;
}

Tensor* logits_of(Model& m, Tensor* x) { return m.model.backbone.logits(m.tape, m.model.backbone.head(m.tape, x)); }

}  // namespace

TEST_CASE("univae, conditional: joint == split, == in double; cached == split, == in float; for every attention") {
    int checked = 0;
    for (const AttentionKind& attention : attention_kinds())
        for (const LatentOptions& latent : kinds_of_pairs)
            for (bool pre_norm : {false, true}) {
                CAPTURE(std::string(attention.name));
                if (!attention.refuses(unilm_mask({{3, 3}})).empty() || latent.free_bits > 0) continue;
                UniVaeOptions o = conditional(latent, pre_norm, attention.rotates && pre_norm);
                o.backbone.attention = attention.name;
                for (const char* key : {"window", "stride", "reach"}) o.backbone.attention_options[key] = 3;
                for (const char* key : {"rounds", "buckets", "chunk"}) o.backbone.attention_options[key] = 2;
                if (pre_norm) o.latent_at = {1, 3};  // there is a layer without a latent above the lower one
                const auto text = pairs(5, 11, 3);
                for (DType type : {DType::f64, DType::f32}) {
                    Model m(o, type);
                    const Batch batch = halves_batch(m.model, pointers_to(text), 1, true);
                    const LatentNoise noise = m.model.space.noise(batch.names(), 11, 0);
                    m.tape.begin("a");
                    const auto latents = m.model.encode(m.tape, batch, &noise);
                    Tensor* split = logits_of(m, m.model.decode(m.tape, batch, points(latents)));
                    if (type == DType::f64)
                        CHECK(same_bits(split->view(), logits_of(m, m.model.joint(m.tape, batch, &noise))->view()));
                    else
                        CHECK(cached_equals(m.model, text, batch, latents, split));
                    checked++;
                }
            }
    CHECK(checked > 40);
}

TEST_CASE("univae, conditional: the target passes to the decoder through z alone, and the source through its rows") {
    for (const LatentOptions& latent : kinds_of_pairs) {
        Model m(conditional(latent, false, true), DType::f64);
        const auto text = pairs(4, 11, 5);
        const Batch batch = halves_batch(m.model, pointers_to(text), 1, true);
        m.tape.begin("a");
        const auto own = m.model.encode(m.tape, batch, nullptr);
        const auto z = points(own);
        Tensor* h = m.model.decode(m.tape, batch, z);
        // Returns the batch with another token in one row of the encoder half or of the decoder half.
        const auto changed = [&](bool encoder, int row) {
            Batch other = batch;
            int& id = (encoder ? other.source : other.rows).ids[std::size_t(row)];
            id = 49 - id;
            return other;
        };
        const auto differ = [](const Tensor* a, const Tensor* b, int row) {
            const std::int64_t C = a->columns();
            for (std::int64_t c = 0; c < C; c++)
                if (number_at(a->view(), row * C + c) != number_at(b->view(), row * C + c)) return true;
            return false;
        };
        int first = 0;
        for (int d = 0; d < 4; d++) {
            const Document half = batch.parts[std::size_t(d)], read = batch.read[std::size_t(d)];
            // The last token of the target is [SEP], which the decoder half predicts and does not read.
            const int in_half = first + half.source - 2;
            const Batch other = changed(true, in_half);
            const auto samples = m.model.encode(m.tape, other, nullptr);
            for (int e = 0; e < 4; e++) CHECK(differ(own[0].y, samples[0].y, e) == (e == d));
            CHECK(same_bits(h->view(), m.model.decode(m.tape, other, z)->view()));
            const Tensor* h_other = m.model.decode(m.tape, other, points(samples));
            CHECK(differ(h, h_other, batch.labels.begin[std::size_t(d)]) ==
                  (differ(z[0], samples[0].z, d) || differ(z[1], samples[1].z, d)));
            first += half.source;
            CHECK(read.source + read.target + 1 == half.source);
        }
        for (int row = 0; row < batch.rows.count(); row++) {
            const Batch other = changed(false, row);
            CHECK(same_bits(z[0]->view(), points(m.model.encode(m.tape, other, nullptr))[0]->view()));
            const Tensor* h_other = m.model.decode(m.tape, other, z);
            for (int label = 0; label < batch.labels.size(); label++) {
                const int asks = batch.labels.rows[std::size_t(label)];
                const bool one = batch.rows.document[std::size_t(asks)] == batch.rows.document[std::size_t(row)];
                const bool source = batch.rows.types[std::size_t(row)] == 0;
                CHECK(differ(h, h_other, label) == (one && (source || row <= asks)));
            }
        }
        m.tape.end();
    }
}

namespace {

UniVaeOptions with_source_prior(bool pre_norm) {
    UniVaeOptions o = conditional(kinds_of_pairs.at(kinds.size()), pre_norm, true);
    if (pre_norm) o.latent_at = {1, 3}, o.latent_sizes = {4, 6};
    return o;
}

}  // namespace

TEST_CASE("univae, prior of the source: no bit of it depends on the target; the source sets it") {
    for (bool pre_norm : {false, true}) {
        Model m(with_source_prior(pre_norm), DType::f64);
        const auto text = pairs(4, 11, 5);
        auto other_targets = text, other_sources = text;
        for (Sentence& s : other_targets) s.target.insert(s.target.begin(), 5 + s.name % 40);
        for (std::size_t i = 1; i + 1 < other_sources[3].ids.size(); i++)
            other_sources[3].ids[i] = 5 + (other_sources[3].ids[i] + 7) % 45;
        REQUIRE(text[3].ids.size() > 2);
        m.tape.begin("a");
        const auto encoded = [&](const std::vector<Sentence>& of) {
            return m.model.encode(m.tape, halves_batch(m.model, pointers_to(of)), nullptr);
        };
        // Returns the priors for these sources, given the latents `given`.
        const auto priors = [&](const std::vector<Sentence>& of, const std::vector<LatentSample>& given) {
            std::vector<Tensor*> all;
            m.model.draw(m.tape, sources_batch(m.model, pointers_to(of)), nullptr, [&](int l, const LatentSample& s) {
                all.push_back(s.y);
                return given[std::size_t(l)].z;
            });
            return all;
        };
        const auto own = encoded(text), targets = encoded(other_targets), sources = encoded(other_sources);
        CHECK_FALSE(same_bits(own[0].y->view(), targets[0].y->view()));
        CHECK(same_bits(own[0].prior->view(), targets[0].prior->view()));
        const auto again = priors(other_targets, own), others = priors(other_sources, own);
        REQUIRE(again.size() == own.size());
        for (std::size_t l = 0; l < own.size(); l++) {
            CHECK(same_bits(own[l].prior->view(), again[l]->view()));  // the prior in training is the prior of sampling
            const std::int64_t n = own[l].prior->columns();
            for (std::int64_t b = 0; b < 4; b++) {
                bool same = true;
                for (std::int64_t i = 0; i < n; i++)
                    same &= number_at(own[l].prior->view(), b * n + i) == number_at(others[l]->view(), b * n + i);
                CHECK(same == (b < 3));
            }
        }
        CHECK_FALSE(same_bits(own[0].prior->view(), sources[0].prior->view()));
        m.tape.end();
    }
}

TEST_CASE("univae, prior of the source: its KL is the integral of q log(q/p), and log_ratio its integrand") {
    Model m(with_source_prior(true), DType::f64);
    const auto text = pairs(3, 11, 5);
    const Batch batch = halves_batch(m.model, pointers_to(text));
    const LatentNoise noise = m.model.space.noise(batch.names(), 11, 0);
    m.tape.begin("a");
    const auto samples = m.model.encode(m.tape, batch, &noise);
    for (std::size_t l = 0; l < 2; l++) {
        const LatentSample& s = samples[l];
        const std::int64_t Z = s.z->columns();
        for (std::int64_t b = 0; b < 3; b++) {
            double kl = 0, ratio = 0;
            for (std::int64_t i = 0; i < Z; i++) {
                const auto row = [&](const Tensor* of, std::int64_t at) {
                    return number_at(of->view(), 2 * Z * b + at);
                };
                const double mean = row(s.y, i), deviation = std::exp(row(s.y, Z + i) / 2);
                const double prior_mean = row(s.prior, i), prior_deviation = std::exp(row(s.prior, Z + i) / 2);
                const auto log_ratio = [&](double z) {
                    const double q = (z - mean) / deviation, p = (z - prior_mean) / prior_deviation;
                    return (p * p - q * q) / 2 + std::log(prior_deviation / deviation);
                };
                constexpr double step = 0.01;  // step of the integral over z, in standard deviations of q
                for (double e = -12; e <= 12; e += step)
                    kl +=
                        std::exp(-e * e / 2) / std::sqrt(2 * std::acos(-1.0)) * step * log_ratio(mean + deviation * e);
                ratio += log_ratio(number_at(s.z->view(), Z * b + i));
            }
            CHECK(kl > 0.01);
            CHECK(std::abs(number_at(s.kl->view(), b) - kl) <= 1e-9 * kl);
            const auto y = numbers_of(s.y->view()), prior = numbers_of(s.prior->view()), z = numbers_of(s.z->view());
            CHECK(std::abs(m.model.latents[l].latent->log_ratio(&z[std::size_t(Z * b)], &y[std::size_t(2 * Z * b)],
                                                                &prior[std::size_t(2 * Z * b)]) -
                           ratio) <= 1e-9);
        }
    }
    m.tape.end();
}

TEST_CASE("univae, prior of the source: a draw is mean + deviation * e, given the source and the layers below") {
    Model m(with_source_prior(true), DType::f64);
    const auto text = pairs(3, 11, 5);
    m.tape.begin("a");
    const auto samples = m.model.encode(m.tape, halves_batch(m.model, pointers_to(text)), nullptr);
    std::vector<Numbers> own(3), normals;
    for (std::size_t b = 0; b < 3; b++) {
        normals.push_back(m.model.space.prior(4, std::uint32_t(b), 0));
        for (const LatentSample& s : samples)
            for (std::int64_t i = 0, Z = s.z->columns(); i < Z; i++)
                own[b].push_back(number_at(s.z->view(), std::int64_t(b) * Z + i));
    }
    // The numbers [from, to) of latents with 4 and 6 numbers. redraw() computes in single precision.
    for (const auto& [from, to] : {std::pair(0, 4), std::pair(4, 10), std::pair(5, 7)}) {
        std::vector<Numbers> drawn = own;
        redraw(m.model, pointers_to(text), normals, from, to, drawn);
        const LatentSample& s = samples[from < 4 ? 0 : 1];
        const int first = from < 4 ? 0 : 4, Z = int(s.z->columns());
        for (int b = 0; b < 3; b++)
            for (int i = 0; i < 10; i++) {
                double expected = own[std::size_t(b)][std::size_t(i)];
                if (i >= from && i < to)
                    expected = number_at(s.prior->view(), 2 * Z * b + i - first) +
                               std::exp(number_at(s.prior->view(), 2 * Z * b + Z + i - first) / 2) *
                                   float(normals[std::size_t(b)][std::size_t(i)]);
                CHECK(std::abs(drawn[std::size_t(b)][std::size_t(i)] - expected) <= 1e-12);
            }
    }
    // A layer above a redrawn layer depends on the redrawn numbers.
    std::vector<Numbers> all = own, upper = own;
    redraw(m.model, pointers_to(text), normals, 0, 10, all);
    redraw(m.model, pointers_to(text), normals, 4, 10, upper);
    CHECK(std::abs(all[0][5] - upper[0][5]) > 1e-3);
    m.tape.end();
}

TEST_CASE("univae, conditional: what does not fit is refused") {
    UniVaeOptions o = conditional(kinds[0], false, true);
    o.mask = "A full; B causal";
    CHECK_THROWS_WITH_AS(Model(o, DType::f32), doctest::Contains("leave out mask="), BadUsage);
    o.mask = "", o.latent_layers = 0;
    CHECK_THROWS_WITH_AS(Model(o, DType::f32), doctest::Contains("conditional=true needs latents"), BadUsage);
    o = with_source_prior(false);
    o.latent_kinds = {LatentKind::gaussian, LatentKind::vmf};
    CHECK_THROWS_WITH_AS(Model(o, DType::f32),
                         doctest::Contains("source_prior=true: latent=gaussian,vmf has no KL in closed form"),
                         BadUsage);
    o.latent_kinds = {}, o.conditional = false;
    CHECK_THROWS_WITH_AS(Model(o, DType::f32), doctest::Contains("source_prior=true needs conditional=true"), BadUsage);
    Model m(conditional(kinds[0], false, true), DType::f32);
    const auto alone = sentences(1, 11, 50, 3);
    CHECK_THROWS_WITH_AS(halves_batch(m.model, pointers_to(alone)), doctest::Contains("needs pairs"), BadInput);
    UniVaeDecoder decoder(m.model, {});
    CHECK_THROWS_WITH_AS(decoder.write({{m.model.space.prior(1, 0, 0)}}, {}, 1), doctest::Contains("has no source"),
                         Error);
}

// There are two layers, and the upper one has a latent. In the encoder half, [CLS] has read for one layer when the
// latent is computed. In the decoder half, information travels through two layers.
TEST_CASE("univae: under a mask in words a half hears what the words let through, and nothing else") {
    for (const auto& [mask, heard_by_cls, back] :
         {std::tuple("", 99, 99),
          std::tuple("A full window=1; B causal window=1 | layers 1: A full; B causal window=1 sees A[0]", 1, 2),
          std::tuple("A causal; B causal window=0 | layers 1: A full; B causal window=2 sees A[0]", 0, 2)}) {
        const std::string words = mask;
        CAPTURE(words);
        UniVaeOptions o = small(LatentKind::none, false, true);
        o.backbone.layers = 2;
        o.latent_layers = 1;
        o.mask = words;
        Model m(o, DType::f64);
        auto text = sentences(3, 11, 50, 5);
        const Batch batch = halves_batch(m.model, pointers_to(text), 1, true);
        m.tape.begin("before");
        const auto z = points(m.model.encode(m.tape, batch, nullptr));
        Tensor* h = m.model.decode(m.tape, batch, z);
        for (int row = 0; row < batch.source.count(); row++) {
            Batch other = batch;
            other.source.ids[std::size_t(row)] = 49 - other.source.ids[std::size_t(row)];
            const Tensor* z_other = points(m.model.encode(m.tape, other, nullptr))[0];
            const int document = batch.source.document[std::size_t(row)] - 100,
                      place = batch.source.positions[std::size_t(row)];
            for (int d = 0; d < 3; d++) {
                bool same = true;
                for (int i = 0; i < 6; i++)
                    same &= number_at(z[0]->view(), d * 6 + i) == number_at(z_other->view(), d * 6 + i);
                CHECK(same == !(d == document && place <= heard_by_cls));
            }
        }
        for (int row = 0; row < batch.rows.count(); row++) {
            Batch other = batch;
            other.rows.ids[std::size_t(row)] = 49 - other.rows.ids[std::size_t(row)];
            const Tensor* changed = m.model.decode(m.tape, other, z);
            for (int r = 0; r < batch.rows.count(); r++) {
                bool same = true;
                for (int c = 0; c < 16; c++)
                    same &= number_at(h->view(), r * 16 + c) == number_at(changed->view(), r * 16 + c);
                const bool one = batch.rows.document[std::size_t(r)] == batch.rows.document[std::size_t(row)];
                CHECK(same == !(one && r >= row && r - row <= back));
            }
        }
        m.tape.end();
    }
}

TEST_CASE("univae: masks in words that bypass the latents, or cannot be written under, are refused") {
    for (const auto& [mask, why] :
         {std::pair("A full; B causal sees A", "below the latents"),
          std::pair("A full; B causal", "in a layer with a latent"),
          std::pair("A full; B causal sees A[0]", "below the latents"),
          std::pair("layers 2:: A full; B causal sees A[:2]", "in a layer with a latent"),
          std::pair("layers 2:: A full; B causal sees A[0], A[1]", "in a layer with a latent"),
          std::pair("layers 3:: A full; B causal sees A[-1]", "in a layer with a latent"),
          std::pair("layers 2:: A full; B full sees A[0]", "in a layer with a latent"),
          std::pair("layers 2:: A full; B causal window=1 over=all sees A[0]", "in a layer with a latent"),
          std::pair("layers 0:2: A full sees B; B causal", "below the latents"),
          std::pair("layers 0:2: AB causal", "below the latents"),
          std::pair("layers 0:1: B causal", "below the latents"),
          std::pair("layers 0:0: A full; B full", "written token by token")}) {
        const std::string words = mask;
        CAPTURE(words);
        UniVaeOptions o = small(LatentKind::vmf, false, true);
        o.mask = words;
        CHECK_THROWS_WITH_AS(Model(o, DType::f32), doctest::Contains(why), BadUsage);
    }
}

TEST_CASE("univae: kinds of latents that do not fit are refused; a setting must suit one of them") {
    UniVaeOptions o = small(LatentKind::vmf, false, true);
    o.latent_kinds = {LatentKind::gaussian};
    CHECK_THROWS_WITH_AS(Model(o, DType::f32), doctest::Contains("latent_kinds has 1 kinds, for 2"), BadUsage);
    o.latent_kinds = {LatentKind::fsq, LatentKind::vq};
    o.latent.free_bits = 1;
    CHECK_THROWS_WITH_AS(Model(o, DType::f32), doctest::Contains("latent=fsq,vq has a constant KL"), BadUsage);
    o.latent_kinds = {LatentKind::fsq, LatentKind::gaussian};
    o.latent.free_bits_of = "number";
    CHECK_NOTHROW(Model(o, DType::f32));
    o.latent_kinds = {LatentKind::flow, LatentKind::gaussian};
    CHECK_THROWS_WITH_AS(Model(o, DType::f32), doctest::Contains("no KL that is a sum over numbers"), BadUsage);
}

TEST_CASE("univae: a latent takes nothing from the latent below it if their kinds differ") {
    UniVaeOptions o = small(LatentKind::power_spherical, false, true);
    const double kl = Model(o, DType::f32).model.latents[1].latent->constant_kl();
    o.latent_kinds = {LatentKind::vmf, LatentKind::power_spherical};
    const Model spheres(o, DType::f32);
    CHECK(spheres.model.latents[1].latent->constant_kl() == kl);
    CHECK(spheres.model.latents[0].latent->constant_kl() != kl);
    for (const LatentKind below : {LatentKind::gaussian, LatentKind::gaussian_chain}) {
        o.latent_kinds = {below, LatentKind::gaussian_chain};
        const Model chain(o, DType::f32);
        CHECK((chain.parameters.find("latent.1.prior.z.weight") != nullptr) == (below == LatentKind::gaussian_chain));
    }
}

TEST_CASE("univae: decoded with a cache == teacher-forced, == in float, for every kind of norm and feed-forward part") {
    UniVaeOptions o = small(LatentKind::vmf, false, true);
    std::vector<BackboneOptions> stacks = with_block_kinds(o.backbone);
    stacks.push_back(o.backbone);
    for (const BackboneOptions& stack : stacks) {
        CAPTURE(stack.norm);
        CAPTURE(stack.ffn);
        o.backbone = stack;
        Model m(o, DType::f32);
        auto text = sentences(6, 11, 50, 9);
        Batch batch = halves_batch(m.model, pointers_to(text), 16);
        m.tape.begin("a");
        auto latents = m.model.encode(m.tape, batch, nullptr);
        Tensor* logits =
            m.model.backbone.logits(m.tape,
                                    m.model.backbone.head(m.tape, m.model.decode(m.tape, batch, points(latents))));
        CHECK(cached_equals(m.model, text, batch, latents, logits));
        m.tape.end();
    }
}

TEST_CASE("univae: the losses of a document alone == in any batch, any number of threads") {
    for (bool prior : {false, true}) {
        UniVaeOptions o = prior ? with_source_prior(true) : small(LatentKind::gaussian, true, true);
        o.backbone.dropout = 0.1;
        o.backbone.attention_dropout = 0.1;
        Model m(o, DType::f32);
        auto losses_of = [&](const std::vector<const Sentence*>& some, int pad_to, std::size_t which) {
            Batch batch = halves_batch(m.model, some, pad_to);
            LatentNoise noise = m.model.space.noise(batch.names(), 5, 3);
            m.tape.begin(batch.bucket, 5, 3, true);
            UniVae::Loss loss = m.model.loss(m.tape, batch, &noise, 1);
            std::vector<double> losses;
            for (int row = batch.labels.begin[which]; row < batch.labels.begin[which + 1]; row++)
                losses.push_back(number_at(loss.losses->view(), row));
            for (const LatentSample& s : loss.latents) losses.push_back(number_at(s.kl->view(), std::int64_t(which)));
            m.tape.end();
            return losses;
        };
        for (std::uint64_t seed = 0; seed < 20; seed++) {
            auto text = prior ? pairs(3 + int(seed) % 9, 11, seed) : sentences(3 + int(seed) % 9, 11, 50, seed);
            auto all = pointers_to(text);
            std::size_t which = seed % all.size();
            set_threads(1);
            auto alone = losses_of({all[which]}, 1, 0);
            auto together = losses_of(all, 1, which);
            auto padded = losses_of(all, 32, which);
            set_threads(4);
            auto threaded = losses_of(all, 32, which);
            set_threads(0);
            CHECK(alone == together);
            CHECK(alone == padded);
            CHECK(alone == threaded);
        }
    }
}

TEST_CASE("univae: the gradient of the whole model against the complex step, 1e-12") {
    for (const LatentOptions& latent : kinds_of_pairs)
        for (bool pre_norm : {false, true}) {
            UniVaeOptions o = small(latent, pre_norm, pre_norm);
            o.backbone.dropout = 0.2;
            o.backbone.attention_dropout = 0.2;
            o.conditional = latent.free_bits > 0 || latent.learn_kappa || latent.source_prior;
            if (pre_norm && latent.projects && latent.free_bits_of != "number" && !latent.source_prior)
                o.latent_kinds = mixed(latent.kind);
            Model real(o, DType::f64), imaginary(o, DType::c128);
            auto text = o.conditional ? pairs(4, 11, 21) : sentences(4, 11, 50, 21);
            Batch batch = halves_batch(real.model, pointers_to(text), 8);
            LatentNoise noise = real.model.space.noise(batch.names(), 2, 1);
            real.tape.begin(batch.bucket, 2, 1, true);
            UniVae::Loss loss = real.model.loss(real.tape, batch, &noise, 0.7);
            real.parameters.start_gradients();
            real.tape.backward(loss.total);
            real.parameters.finish_gradients();
            for (int direction = 0; direction < 8; direction++) {
                Sequence random(std::uint64_t(direction), "direction");
                double expected = 0;
                auto& p = real.parameters.all();
                auto& q = imaginary.parameters.all();
                for (std::size_t i = 0; i < p.size(); i++)
                    for (std::int64_t k = 0; k < p[i].shape.count(); k++) {
                        double d = 2 * random.uniform_double() - 1, x = number_at(p[i].view(), k);
                        static_cast<complex*>(q[i].value)[k] = complex(x, 1e-30 * d);
                        expected += d * number_at(p[i].grad_view(), k);
                    }
                imaginary.tape.begin(batch.bucket, 2, 1, true);
                UniVae::Loss shifted = imaginary.model.loss(imaginary.tape, batch, &noise, 0.7);
                double found = shifted.total->view().as<complex>()->imag() / 1e-30;
                CHECK(std::abs(found - expected) <= 1e-12 * std::max(1.0, std::abs(expected)));
            }
        }
}
