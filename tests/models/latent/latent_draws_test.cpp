// SPDX-License-Identifier: MIT
// Random numbers of the latents: each depends on seed, step, document, layer and place, and on each of them.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "engine/math/normal.h"
#include "models/latent/latent.h"
#include "models/density/prior.h"
#include "models/scoring/metrics.h"
#include "models/tasks/univae_evaluation.h"
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

TEST_CASE("latent draws: a batch keeps the names of its sentences, and its padding has names of its own") {
    Parameters p;
    UniVae model(p, tiny_model(LatentKind::gaussian, false));
    p.allocate(1);
    std::vector<Sentence> all = random_sentences(2);
    all[0].name = 70, all[1].name = 90;
    const UniVaeBatch batch = model.batch({&all[0], &all[1]}, 32);
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
    CHECK(first.other == first.own);  // the neighbour of one is itself
    CHECK(both.other != both.own);
}

TEST_CASE("prior: codes that are held out say how wide components are, and are none themselves") {
    LatentOptions o;
    o.kind = LatentKind::gaussian;
    o.size = 2;
    const LatentSpace space(o, 1);
    std::vector<float> codes;
    Sequence random(1, "codes");
    for (int i = 0; i < 76; i++) codes.push_back(random.uniform());
    for (int i = 0; i < 4; i++) codes.push_back(1000);  // of 40 codes the last two
    View view;
    view.data = codes.data();
    view.shape = {40, 2};
    const LatentPrior prior = LatentPrior::fit(space, view, 1);
    for (std::uint32_t line = 0; line < 200; line++)
        for (double x : prior.draw(1, line, 0, 0)) CHECK(std::abs(x) < 2);
    CHECK(prior.codes().factor()[0] > 1);  // the others lie within [0,1]
}

TEST_CASE("distinct n-grams: a share of all, repeated ones too") {
    CHECK(distinct({{1, 1, 2}}, 1) == doctest::Approx(2.0 / 3));
    CHECK(distinct({{1, 1, 2}, {1}}, 1) == doctest::Approx(0.5));
    CHECK(distinct({{1, 1, 1}}, 2) == doctest::Approx(0.5));
}
