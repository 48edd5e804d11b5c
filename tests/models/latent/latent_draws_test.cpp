// SPDX-License-Identifier: MIT
// Tests the random numbers of latents: if the seed, the step, the document, the layer or the place changes, the number
// changes. It depends on nothing else.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "engine/ops/cpu/parallel.h"
#include "engine/tensor/numbers.h"
#include "engine/train/schedule.h"
#include "models/latent/latent.h"
#include "models/density/prior.h"
#include "models/scoring/metrics.h"
#include "models/tasks/univae_evaluation.h"
#include "tests/normals.h"
#include "tests/train/tiny_run.h"

using namespace masquerade;

namespace {

LatentSpace space_of(LatentKind kind) {
    LatentOptions o;
    o.kind = kind;
    o.size = 8;
    o.kappa = 20;
    return LatentSpace(o, 3);
}

}  // namespace

TEST_CASE("latent draws: noise goes by seed, step, document and layer, each by itself") {
    const LatentSpace space = space_of(LatentKind::vmf);
    const LatentNoise noise = space.noise({7, 9}, 1, 2);
    CHECK(noise.w[0][0] != noise.w[0][1]);
    CHECK(noise.w[0][0] != noise.w[1][0]);
    CHECK(noise.e[0][0] != noise.e[0][8]);
    CHECK(noise.e[0][0] != noise.e[1][0]);
    CHECK(noise.e[0][0] != noise.e[0][4]);
    const LatentNoise same = space.noise({9}, 1, 2), step = space.noise({9}, 1, 3), seed = space.noise({9}, 4, 2);
    CHECK(same.w[0][0] == noise.w[0][1]);
    for (std::size_t i = 0; i < 8; i++) CHECK(same.e[2][i] == noise.e[2][8 + i]);
    CHECK(step.w[0][0] != same.w[0][0]);
    CHECK(step.e[0][0] != same.e[0][0]);
    CHECK(seed.w[0][0] != same.w[0][0]);
    CHECK(seed.e[0][0] != same.e[0][0]);
}

TEST_CASE("latent draws: smaller noise scales angles on the sphere and numbers elsewhere, with their derivatives") {
    for (const LatentKindRow& row : latent_kinds()) {
        CAPTURE(row.name);
        const LatentSpace space = space_of(row.kind);
        const bool on_sphere = row.kind == LatentKind::vmf || row.kind == LatentKind::power_spherical;
        const LatentNoise whole = space.noise({7, 9}, 1, 2);
        for (double share : {1.0, 0.5, 0.01}) {
            LatentNoise part = whole;
            space.scale_noise(part, share);
            for (std::size_t l = 0; l < 3; l++) {
                for (std::size_t i = 0; i < whole.e[l].size(); i++)
                    CHECK(part.e[l][i] == (on_sphere ? whole.e[l][i] : float(share * whole.e[l][i])));
                for (std::size_t b = 0; b < 2 && on_sphere; b++) {
                    const auto scaled = [&](double w) { return std::cos(share * std::acos(w)); };
                    const double w = whole.w[l][b], by = whole.w_by_log_kappa[l][b], h = 1e-4;
                    CHECK(std::abs(part.w[l][b] - scaled(w)) <= 1e-6);
                    const double slope = (scaled(w + h * by) - scaled(w - h * by)) / (2 * h);
                    CHECK(std::abs(part.w_by_log_kappa[l][b] - slope) <= 1e-6 + 1e-4 * std::abs(slope));
                }
            }
        }
    }
}

TEST_CASE("latent draws: the share of noise rises from a hundredth to all, when the schedule says so") {
    CHECK(noise_share_at(0, 0, 0, 0) == 1);
    CHECK(noise_share_at(0, 0, 5, 100) == 1);
    CHECK(noise_share_at(0.5, 0, 0, 0) == 0.01);  // the length of the schedule is not known yet
    CHECK(noise_share_at(0.5, 0, 49, 100) == 0.01);
    CHECK(noise_share_at(0.5, 0, 50, 100) == 1);
    CHECK(noise_share_at(0.5, 0.2, 50, 100) == 0.01);
    CHECK(noise_share_at(0.5, 0.2, 60, 100) == doctest::Approx(0.5));
    CHECK(noise_share_at(0.5, 0.2, 70, 100) == doctest::Approx(1));
    CHECK(noise_share_at(0.5, 0.2, 200, 100) == 1);
    CHECK(noise_share_at(0, 0.5, 25, 100) == doctest::Approx(0.5));
}

TEST_CASE("latent draws: those of the uniform prior are points of spheres, one for each layer") {
    const LatentSpace space = space_of(LatentKind::vmf);
    const std::vector<double> z = space.prior(1, 2, 3);
    REQUIRE(z.size() == 24);
    for (int l = 0; l < 3; l++) {
        double square = 0;
        for (int i = 0; i < 8; i++) square += z[std::size_t(8 * l + i)] * z[std::size_t(8 * l + i)];
        CHECK(square == doctest::Approx(1));
    }
    CHECK(z[0] != z[8]);
    CHECK(z[8] != z[16]);
}

TEST_CASE("latent draws: the KL of a von Mises-Fisher latent is that of all layers") {
    LatentOptions o;
    o.kind = LatentKind::vmf;
    o.size = 8;
    o.kappa = 20;
    CHECK(LatentSpace(o, 3).constant_kl() == doctest::Approx(3 * LatentSpace(o, 1).constant_kl()));
    CHECK(LatentSpace(o, 1).constant_kl() > 0);
}

TEST_CASE("latent draws: directions are of other words than the distance from the mean") {
    const LatentNoise noise = space_of(LatentKind::vmf).noise({7}, 1, 2);
    const Stream stream = make_stream(1, "latent.noise", 2);
    for (std::uint32_t layer = 0; layer < 3; layer++)
        for (std::uint32_t block = 0; block < 2; block++) {
            const FourNormals n = normal4(stream.at(7, layer, 1 + block));
            for (int k = 0; k < 4; k++) CHECK(noise.e[layer][4 * block + std::uint32_t(k)] == n[k]);
        }
}

TEST_CASE("latent draws: noise is the same with any number of threads, for every kind of latent") {
    const int before = threads();
    std::vector<int> names(200);
    std::iota(names.begin(), names.end(), 7);
    for (const LatentKindRow& row : latent_kinds()) {
        const LatentSpace space = space_of(row.kind);
        set_threads(1);
        const LatentNoise one = space.noise(names, 1, 2);
        set_threads(3);
        const LatentNoise three = space.noise(names, 1, 2);
        CHECK(one.e == three.e);
        CHECK(one.w == three.w);
        CHECK(one.w_by_log_kappa == three.w_by_log_kappa);
    }
    set_threads(before);
}

TEST_CASE("latent draws: a batch keeps the names of its sentences, and its padding has names of its own") {
    Parameters p;
    UniVae model(p, tiny_model(LatentKind::gaussian, false));
    p.allocate(1);
    std::vector<Sentence> all = random_sentences(2);
    all[0].name = 70, all[1].name = 90;
    const Batch batch = halves_batch(model, {&all[0], &all[1]}, 32);
    REQUIRE(batch.names().size() == 8);
    CHECK(batch.names()[0] == 70);
    CHECK(batch.names()[1] == 90);
    std::vector<int> names = batch.names();
    std::sort(names.begin(), names.end());
    CHECK(std::unique(names.begin(), names.end()) == names.end());
}

TEST_CASE("held-out losses of two sentences are those of each, weighed by tokens and by sentences") {
    Parameters p;
    UniVae model(p, tiny_model(LatentKind::gaussian, false));
    p.allocate(1);
    std::vector<Sentence> all = random_sentences(6);
    const Sentence *a = &all[4], *b = &all[5];
    const HeldOut first = held_out_losses(model, {a}, 1), second = held_out_losses(model, {b}, 1),
                  both = held_out_losses(model, {a, b}, 1);
    const double tokens_a = double(first.tokens), tokens_b = double(second.tokens), tokens = double(both.tokens);
    CHECK(tokens == tokens_a + tokens_b);
    CHECK(tokens_a == double(a->ids.size()) - 1);
    CHECK(std::abs(both.own * tokens - first.own * tokens_a - second.own * tokens_b) < 1e-3);
    CHECK(std::abs(first.kl - second.kl) > 1e-6);
    CHECK(std::abs(2 * both.kl - first.kl - second.kl) < 1e-6 * (1 + both.kl));
    CHECK(std::abs(both.elbo + both.own * tokens / 2 + both.kl) < 1e-6 * (1 + std::abs(both.elbo)));
    CHECK(std::isnan(first.other));  // a single sentence has no other sentence
    CHECK(both.other != both.own);
}

TEST_CASE("held-out losses: the KL of the layers is that of all, along the samples") {
    for (LatentKind kind :
         {LatentKind::gaussian, LatentKind::gaussian_chain, LatentKind::flow, LatentKind::vmf, LatentKind::vq}) {
        Parameters p;
        UniVae model(p, tiny_model(kind, false));
        p.allocate(1);
        const std::vector<Sentence> all = random_sentences(70);
        const HeldOut h = held_out_losses(model, pointers_to(all), 1);
        REQUIRE(h.layer_kl.size() == model.latents.size());
        double sum = 0;
        for (double kl : h.layer_kl) sum += kl;
        CHECK(sum > 0);
        CHECK(std::abs(sum - h.kl) <= 1e-9 * h.kl);
    }
}

// The 65th sentence begins a new batch.
TEST_CASE("held-out losses: the z of another sentence is never its own, whatever the batch") {
    Parameters p;
    UniVaeOptions o = tiny_model(LatentKind::none, false);
    o.backbone.deviation = 0.3;
    UniVae model(p, o);
    p.allocate(1);
    const std::vector<Sentence> all = random_sentences(65);
    const std::vector<const Sentence*> sentences = pointers_to(all);
    const std::vector<const Sentence*> most(sentences.begin(), sentences.end() - 1);
    const HeldOut whole = held_out_losses(model, sentences, 1), first = held_out_losses(model, most, 1);
    const double last = whole.other * double(whole.tokens) - first.other * double(first.tokens);
    Arena arena(Device::cpu, Blocks::kept);
    Tape tape(arena, DType::f32);
    tape.begin("the 65th with the z of the 64th");
    std::vector<Tensor*> z;
    for (const LatentSample& l : model.encode(tape, halves_batch(model, {sentences[63]}), nullptr)) z.push_back(l.z);
    const Batch batch = halves_batch(model, {sentences[64]});
    double expected = 0;
    for (double loss : numbers_of(
             model.backbone
                 .token_losses(tape, model.backbone.head(tape, model.decode(tape, batch, z)), batch.labels.tokens)
                 ->view()))
        expected += loss;
    CHECK(std::abs(last - expected) <= 1e-3);
    tape.end();
}

TEST_CASE("latents drawn anew in part: the rest stays, and a layer goes by those below it") {
    for (LatentKind kind : {LatentKind::gaussian, LatentKind::gaussian_chain, LatentKind::flow, LatentKind::vmf}) {
        Parameters p;
        UniVaeOptions o = tiny_model(kind, false);
        o.backbone.deviation = 0.5;
        UniVae model(p, o);
        p.allocate(1);
        const LatentSpace& space = model.space;
        REQUIRE(space.layers() >= 2);
        const std::vector<double> one = space.prior(1, 2, 3), other = space.prior(1, 2, 4);
        const int from = space.begin(1), to = space.begin(2);
        CHECK(space.redrawn(one, from, to, 1, 2, 3) == one);  // the same z_0 gives the same draw
        const std::vector<double> changed = space.redrawn(other, from, to, 1, 2, 3);
        for (int i = 0; i < space.numbers(); i++)
            if (i < from || i >= to) CHECK(changed[std::size_t(i)] == other[std::size_t(i)]);
        bool same = true;
        for (int i = from; i < to; i++) same = same && changed[std::size_t(i)] == one[std::size_t(i)];
        CHECK(same == (kind != LatentKind::gaussian_chain));
        // A range may begin and end inside a layer. On a sphere, the other numbers of the layer are then multiplied by
        // a common factor.
        const std::vector<double> inside = space.redrawn(other, from + 1, to - 1, 1, 2, 3);
        const auto factor = [&](int i) { return inside[std::size_t(i)] / other[std::size_t(i)]; };
        if (kind != LatentKind::vmf) CHECK(factor(from) == 1);
        CHECK(factor(to - 1) == doctest::Approx(factor(from)).epsilon(1e-12));
        CHECK(factor(from + 1) != doctest::Approx(factor(from)));
    }
}

TEST_CASE("prior: codes that are held out say how wide components are, and are none themselves") {
    LatentOptions o;
    o.kind = LatentKind::gaussian;
    o.size = 2;
    const LatentSpace space(o, 1);
    std::vector<float> codes;
    Sequence random(1, "codes");
    for (int i = 0; i < 76; i++) codes.push_back(random.uniform());
    for (int i = 0; i < 4; i++) codes.push_back(1000);  // the last two of the 40 codes
    View view;
    view.data = codes.data();
    view.shape = {40, 2};
    const MixturePrior prior = MixturePrior::fit(space, view, 1);
    for (std::uint32_t line = 0; line < 200; line++)
        for (double x : prior.draw({1, line, 0, 0})) CHECK(std::abs(x) < 2);
    CHECK(prior.codes().factor()[0] > 1);  // the other codes are between 0 and 1
}

TEST_CASE("distinct n-grams: a share of all, repeated ones too") {
    CHECK(distinct({{1, 1, 2}}, 1) == doctest::Approx(2.0 / 3));
    CHECK(distinct({{1, 1, 2}, {1}}, 1) == doctest::Approx(0.5));
    CHECK(distinct({{1, 1, 1}}, 2) == doctest::Approx(0.5));
}

TEST_CASE("latent options: free bits of a constant KL are refused, with a hint at learn_kappa where there is a kappa") {
    for (const LatentKindRow& kind : latent_kinds()) {
        CAPTURE(std::string(kind.name));
        LatentOptions o;
        o.kind = kind.kind;
        o.free_bits = 1;
        const std::string why = message_of<BadUsage>([&] { expect_fitting(o); });
        CHECK(why.empty() == kind.has(LatentKindRow::kl));
        if (!why.empty())
            CHECK_SAYS(why, kind.has(LatentKindRow::kappa) ? "unless learn_kappa=true" : "; leave free_bits out");
    }
}
