// SPDX-License-Identifier: MIT
// Random numbers of the latents: each depends on seed, step, document, layer and place, and on each of them.
#include <doctest/doctest.h>

#include <cmath>

#include "models/latent/latent.h"

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
