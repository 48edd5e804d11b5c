// SPDX-License-Identifier: MIT
// Compares the draws of every kind of latent with its densities and its KL. The kinds come from the table of kinds. The
// seed of the draws is fixed. A mean of n draws may differ from the expected value by 5 of its standard errors.
#include <doctest/doctest.h>

#include <cmath>
#include <map>

#include "engine/base/random.h"
#include "engine/tensor/numbers.h"
#include "models/latent/latent.h"

using namespace masquerade;

namespace {

using Numbers = std::vector<double>;

struct Mean {
    double sum = 0, squares = 0, count = 0;
    void add(double x) { sum += x, squares += x * x, count++; }
    double mean() const { return sum / count; }
    double error() const { return std::sqrt(std::max(0.0, squares / count - mean() * mean()) / count); }
};

// Latent layers, one above the other, with changed parameters. All documents have the same y.
struct Latents {
    Parameters parameters{DType::f64};
    std::vector<LatentLayer> layers;
    std::vector<Numbers> y;  // for each layer, the input of its latent

    Latents(const LatentOptions& o, const std::vector<int>& sizes, double amplitude, double change = 0.3) {
        for (std::size_t l = 0; l < sizes.size(); l++) {
            LatentOptions own = o;
            own.size = sizes[l];
            layers.emplace_back(parameters, text("latent.", l), 4, 0.02, 1e-12, own,
                                l > 0 ? layers.back().latent.get() : nullptr);
        }
        parameters.allocate(3);
        Sequence random(11, "parameters");
        for (const Tensor& p : parameters.all())
            if (p.needs_grad) {
                Numbers all = numbers_of(parameters.master(p));
                for (double& x : all) x += change * (2 * random.uniform_double() - 1);
                write_numbers(parameters.master(p), all.data());
            }
        for (const LatentLayer& layer : layers) {
            const int Z = layer.latent->options.size;
            y.emplace_back();
            for (int i = 0; i < layer.latent->inputs(); i++)
                y.back().push_back(amplitude / std::sqrt(Z) * (2 * random.uniform_double() - 1));
        }
    }
    const Latent& latent(std::size_t l) const { return *layers[l].latent; }

    // Calls f(layer, sample) for each layer, from the lowest up. The samples are drawn for `count` documents or, if
    // `given` (count, all numbers) is not null, they are these numbers.
    template <class F>
    void each(Tape& tape, int count, const LatentNoise* noise, const std::vector<Numbers>* given, F f) const {
        std::vector<LatentSample> below;
        int first = 0;
        for (std::size_t l = 0; l < layers.size(); l++) {
            auto scope = tape.scope(text("latent.", l));
            const int Z = latent(l).options.size;
            Numbers all, z;
            for (int b = 0; b < count; b++) {
                all.insert(all.end(), y[l].begin(), y[l].end());
                for (int i = 0; given && i < Z; i++) z.push_back((*given)[std::size_t(b)][std::size_t(first + i)]);
            }
            Tensor* from = tape.constant("y", {count, latent(l).inputs()}, DType::f64, all.data());
            LatentSample s = latent(l).sample(tape, from, noise, int(l), below);
            if (given) s.z = tape.constant("given", {count, Z}, DType::f64, z.data());
            f(l, s);
            below.push_back(s);
            first += Z;
        }
    }
    // Returns log q - log p of document b in layer l.
    double log_ratio(std::size_t l, const LatentSample& s, int b) const {
        const int Z = latent(l).options.size;
        const Numbers z = part(s.z, b, Z), prior = s.prior ? part(s.prior, b, 2 * Z) : Numbers();
        return latent(l).log_ratio(z.data(), y[l].data(), s.prior ? prior.data() : nullptr);
    }
    static Numbers part(const Tensor* t, int b, int columns) {
        Numbers all;
        for (int i = 0; i < columns; i++) all.push_back(number_at(t->view(), std::int64_t(b) * columns + i));
        return all;
    }
};

std::vector<int> names(int count) {
    std::vector<int> all;
    for (int b = 0; b < count; b++) all.push_back(b);
    return all;
}

// Checks for each layer, and for all layers together, that the mean of log q/p over the draws equals the KL that the
// layer reports.
void check_kl(const Latents& latents, int count) {
    const LatentSpace space(latents.layers);
    const LatentNoise noise = space.noise(names(count), 5, 1);
    Arena arena(Device::cpu, Blocks::loose);
    Tape tape(arena, DType::f64);
    tape.begin("kl");
    latents.each(tape, count, &noise, nullptr, [&](std::size_t l, const LatentSample& s) {
        CAPTURE(l);
        Mean beside, kl;
        for (int b = 0; b < count; b++) {
            kl.add(s.kl ? number_at(s.kl->view(), b) : latents.latent(l).constant_kl());
            beside.add(latents.log_ratio(l, s, b) -
                       (s.kl ? number_at(s.kl->view(), b) : latents.latent(l).constant_kl()));
        }
        CAPTURE(kl.mean());
        CAPTURE(beside.error());
        CHECK(std::abs(beside.mean()) <= 5 * beside.error() + 1e-6 * (1 + kl.mean()));
        CHECK(kl.mean() >= -5 * kl.error());
        if (s.kls)
            for (int b = 0; b < std::min(count, 5); b++) {
                double sum = 0;
                for (double each : Latents::part(s.kls, b, latents.latent(l).options.size)) sum += each;
                CHECK(std::abs(sum - number_at(s.kl->view(), b)) <= 1e-12 * (1 + std::abs(sum)));
            }
    });
    tape.end();
}

// Checks that E_q[p / q] = 1 for the encoder's draws, and E_p[q / p] = 1 for the prior's draws. Neither would hold if a
// density did not integrate to 1, or if the draws did not follow it.
void check_draws(const Latents& latents, int count) {
    const LatentSpace space(latents.layers);
    for (bool of_prior : {false, true}) {
        CAPTURE(of_prior);
        std::vector<Numbers> drawn;
        for (int b = 0; b < count && of_prior; b++) drawn.push_back(space.prior(7, std::uint32_t(b), 0));
        const LatentNoise noise = space.noise(names(count), 6, 1);
        Arena arena(Device::cpu, Blocks::loose);
        Tape tape(arena, DType::f64);
        tape.begin("draws");
        Numbers logs(std::size_t(count), 0.0);
        latents.each(tape, count, of_prior ? nullptr : &noise, of_prior ? &drawn : nullptr,
                     [&](std::size_t l, const LatentSample& s) {
                         for (int b = 0; b < count; b++) logs[std::size_t(b)] += latents.log_ratio(l, s, b);
                     });
        Mean ratio;
        for (double each : logs) ratio.add(std::exp(of_prior ? each : -each));
        CAPTURE(ratio.mean());
        CAPTURE(ratio.error());
        CHECK(ratio.error() < 0.05);  // small enough for the next check to be meaningful
        CHECK(std::abs(ratio.mean() - 1) <= 5 * ratio.error());
        tape.end();
    }
}

struct Case {
    std::vector<int> sizes;
    double kappa, amplitude, change;  // amplitude and change: size of the parameters
};

}  // namespace

TEST_CASE("latent density: the mean of log q/p of every kind is the KL that it costs, in all sizes") {
    for (const LatentKindRow& row : latent_kinds())
        for (const Case& each : {Case{{2, 2, 2}, 0.5, 1, 0.3}, Case{{3, 3}, 30, 3, 0.3}, Case{{8, 4, 6}, 12, 2, 0.3},
                                 Case{{32}, 110, 4, 0.1}, Case{{2}, 2000, 20, 0.1}}) {
            if (!row.make(nullptr, "", LatentOptions{row.kind}, nullptr)->has_density()) continue;
            CAPTURE(std::string(row.name));
            CAPTURE(each.sizes[0]);
            for (bool learned : {false, true}) {
                LatentOptions o;
                o.kind = row.kind, o.kappa = each.kappa, o.learn_kappa = o.flow.actnorm = learned, o.groups = 1,
                o.flow.width = 4;
                o.flow.linear = learned ? "lu" : "full";
                if (learned) o.free_bits = 1, o.free_bits_of = "number";
                check_kl(Latents(o, each.sizes, each.amplitude, each.change), 3000);
            }
        }
}

TEST_CASE("latent density: log variances beyond the clamps cost, draw and weigh as at the clamp") {
    for (const LatentKindRow& row : latent_kinds()) {
        LatentOptions o;
        o.kind = row.kind;
        Latents latents(o, {2, 2}, 1);
        if (latents.latent(0).inputs() != 4) continue;  // not a kind whose inputs are means and log variances
        CAPTURE(std::string(row.name));
        Latents clamped(o, {2, 2}, 1);
        for (std::size_t l = 0; l < 2; l++)
            for (const auto& [place, beyond] : {std::pair(2, -12.0), {3, 11.0}})
                latents.y[l][std::size_t(place)] = beyond, clamped.y[l][std::size_t(place)] = beyond < 0 ? -8 : 8;
        check_kl(latents, 4000);
        const LatentSpace space(latents.layers);
        const LatentNoise noise = space.noise(names(3), 5, 1);
        std::map<std::size_t, std::vector<Numbers>> found[2];
        for (int which : {0, 1}) {
            const Latents& of = which ? clamped : latents;
            Arena arena(Device::cpu, Blocks::loose);
            Tape tape(arena, DType::f64);
            tape.begin("clamped");
            of.each(tape, 3, &noise, nullptr, [&](std::size_t l, const LatentSample& s) {
                for (int b = 0; b < 3; b++) {
                    Numbers all = Latents::part(s.z, b, 2);
                    all.push_back(number_at(s.kl->view(), b));
                    all.push_back(of.log_ratio(l, s, b));
                    found[which][l].push_back(all);
                }
            });
        }
        CHECK(found[0] == found[1]);
    }
    // In a learned prior, the log variances of z given the layer below are clamped, too.
    LatentOptions o;
    o.kind = LatentKind::gaussian_chain;
    Latents chain(o, {2, 2}, 1);
    for (const auto& [place, beyond] : {std::pair(2, -11.0), {3, 12.0}}) {
        const Tensor* bias = chain.parameters.find("latent.1.prior.out.bias");
        REQUIRE(bias);
        chain.parameters.master(*bias).as<double>()[place] = beyond;
    }
    check_kl(chain, 4000);
    const LatentSpace space(chain.layers);
    Mean narrow, wide;  // in layer 1: squared differences of z and its mean, divided by the clamped variances
    std::vector<Numbers> drawn;
    for (std::uint32_t b = 0; b < 4000; b++) drawn.push_back(space.prior(7, b, 0));
    Arena arena(Device::cpu, Blocks::loose);
    Tape tape(arena, DType::f64);
    tape.begin("prior");
    chain.each(tape, 4000, nullptr, &drawn, [&](std::size_t l, const LatentSample& s) {
        for (int b = 0; b < 4000 && l == 1; b++) {
            const Numbers prior = Latents::part(s.prior, b, 4), z = Latents::part(s.z, b, 2);
            narrow.add((z[0] - prior[0]) * (z[0] - prior[0]) / std::exp(-8.0)),
                wide.add((z[1] - prior[1]) * (z[1] - prior[1]) / std::exp(8.0));
        }
    });
    CHECK(std::abs(narrow.mean() - 1) <= 5 * narrow.error());
    CHECK(std::abs(wide.mean() - 1) <= 5 * wide.error());
}

TEST_CASE(
    "latent density: of every kind, p over q is 1 in the mean of what the encoder draws, and q over p of "
    "what the prior draws") {
    for (const LatentKindRow& row : latent_kinds())
        for (const Case& each : {Case{{2}, 0.7, 0.6, 0.4}, Case{{3, 2}, 0.8, 0.5, 0.12}, Case{{5, 5, 4}, 1, 0.5, 0.1},
                                 Case{{16}, 3, 0.6, 0.04}})
            for (bool learned : {false, true}) {
                LatentOptions o;
                o.kind = row.kind, o.kappa = each.kappa, o.learn_kappa = o.flow.actnorm = learned, o.groups = 1,
                o.flow.width = 3;
                o.flow.linear = learned ? "lu" : "full";
                const Latents latents(o, each.sizes, each.amplitude, each.change);
                if (!latents.latent(0).has_density() || latents.latent(0).code_parts() > 0) continue;
                CAPTURE(std::string(row.name));
                CAPTURE(each.sizes[0]);
                check_draws(latents, 8000);
            }
}

TEST_CASE("latent density: a kind of codes draws all of them alike, and costs the log of how many there are") {
    for (const LatentKindRow& row : latent_kinds())
        for (int choices : {2, 5}) {
            LatentOptions o;
            o.kind = row.kind, o.levels = o.codes = choices, o.groups = 2;
            const Latents latents(o, {4, 2}, 1);
            if (latents.latent(0).code_parts() == 0) continue;
            CAPTURE(std::string(row.name));
            const LatentSpace space(latents.layers);
            int parts = 0;
            for (std::size_t l = 0; l < 2; l++) {
                const Latent& latent = latents.latent(l);
                CHECK(latent.code_choices() == choices);
                CHECK(std::abs(latent.constant_kl() - latent.code_parts() * std::log(double(choices))) <= 1e-12);
                parts += latent.code_parts();
            }
            CHECK(std::abs(space.constant_kl() - parts * std::log(double(choices))) <= 1e-12);
            constexpr int count = 6000;
            std::vector<std::map<int, int>> seen(static_cast<std::size_t>(parts));
            std::map<std::vector<int>, int> pairs;  // for the first two parts
            for (std::uint32_t line = 0; line < count; line++) {
                const Numbers z = space.prior(3, line, 0);
                std::vector<int> code;
                Numbers written(z.size());
                for (int l = 0; l < 2; l++) {
                    const Latent& latent = latents.latent(std::size_t(l));
                    const std::vector<int> own = latent.read_code(z.data() + space.begin(l));
                    latent.write_code(own, written.data() + space.begin(l));
                    code.insert(code.end(), own.begin(), own.end());
                }
                CHECK(written == z);
                for (std::size_t k = 0; k < code.size(); k++) seen[k][code[k]]++;
                pairs[{code[0], code[1]}]++;
            }
            const auto alike = [&](int found, int of) {
                return std::abs(found - count / double(of)) <= 5 * std::sqrt(count / double(of));
            };
            for (const auto& part : seen) {
                CHECK(int(part.size()) == choices);
                for (const auto& each : part) CHECK(alike(each.second, choices));
            }
            CHECK(int(pairs.size()) == choices * choices);
            for (const auto& each : pairs) CHECK(alike(each.second, choices * choices));
            // q replaces each part by a random one with probability `change`. log q - log p must be that of the
            // resulting parts.
            for (double change : {0.1, 0.6}) {
                Sequence random(5, "changed");
                Mean kept;
                const Numbers from = space.prior(3, 1, 0);
                const std::vector<int> own = latents.latent(0).read_code(from.data());
                for (int i = 0; i < count; i++) {
                    Numbers z(from.begin(), from.begin() + 4);
                    const double log_ratio = latents.latent(0).disturb(z.data(), change, random);
                    const std::vector<int> now = latents.latent(0).read_code(z.data());
                    double expected = 0;
                    for (std::size_t k = 0; k < own.size(); k++) {
                        kept.add(now[k] == own[k]);
                        expected += std::log(now[k] == own[k] ? (1 - change) * choices + change : change);
                    }
                    CHECK(std::abs(log_ratio - expected) <= 1e-12);
                }
                CHECK(std::abs(kept.mean() - (1 - change + change / choices)) <= 5 * kept.error());
            }
        }
}

TEST_CASE("latent density: a learned kappa is that of the setting times the exponential of its parameter") {
    int learned = 0;
    for (const LatentKindRow& row : latent_kinds()) {
        LatentOptions o;
        o.kind = row.kind, o.kappa = 20, o.learn_kappa = true;
        const Latents latents(o, {8, 8}, 1);
        const LatentSpace space(latents.layers);
        const LatentNoise noise = space.noise(names(1), 5, 1);
        Arena arena(Device::cpu, Blocks::loose);
        Tape tape(arena, DType::f64);
        tape.begin("kappa");
        latents.each(tape, 1, &noise, nullptr, [&](std::size_t l, const LatentSample& s) {
            const Tensor* change = latents.parameters.find(text("latent.", l, ".log_kappa"));
            if (!change) return;
            learned++;
            LatentOptions fixed = latents.latent(l).options;
            fixed.learn_kappa = false, fixed.kappa = o.kappa * std::exp(number_at(change->view(), 0));
            const double expected = row.make(nullptr, "", fixed, nullptr)->constant_kl();
            CHECK(std::abs(number_at(s.kl->view(), 0) - expected) <= 1e-6 * expected);
        });
        tape.end();
    }
    CHECK(learned == 4);
}

TEST_CASE("latent density: a learned kappa stays where its distribution is defined, whatever its start") {
    for (const double start : {1.0, 1e4, 1e6})
        for (const double change : {-1e3, -3.0, 9.0, 1e3}) {
            LatentOptions o;
            o.kind = LatentKind::vmf, o.kappa = start, o.learn_kappa = true;
            const Latents latents(o, {8}, 1);
            latents.parameters.find("latent.0.log_kappa")->view().as<double>()[0] = change;
            const LatentNoise noise = LatentSpace(latents.layers).noise(names(1), 5, 1);
            CHECK(std::abs(noise.w[0][0]) <= 1);
        }
}

TEST_CASE("latents: a code moves to the mean of the rows that chose it") {
    LatentOptions o;
    o.kind = LatentKind::vq;
    o.codes = 5;
    o.groups = 1;
    o.decay = 0.5;
    const int Z = 2, count = 3;
    const Latents latents(o, {Z}, 1);
    const Tensor* codes = nullptr;
    for (const Tensor& p : latents.parameters.all())
        if (p.path.find(".codes") != p.path.npos) codes = &p;
    REQUIRE(codes);
    const Numbers before = numbers_of(codes->view());
    Arena arena(Device::cpu, Blocks::loose);
    Tape tape(arena, DType::f64);
    tape.begin("codes");
    const Numbers ones(count, 1);
    Tensor* weights = tape.constant("weights", {count}, DType::f64, ones.data());
    int chosen = -1;
    latents.each(tape, count, nullptr, nullptr, [&](std::size_t l, const LatentSample& s) {
        chosen = int(number_at(s.code->view(), 0));
        latents.latent(l).learn(s.y->view(), s.code->view(), weights->view(), 1, 0);
    });
    tape.end();
    const Numbers after = numbers_of(codes->view());
    REQUIRE(chosen >= 0);
    double was = 0, is = 0;  // squared distances to the rows, which are all equal
    for (int i = 0; i < Z; i++) {
        const std::size_t at = std::size_t(chosen * Z + i);
        was += std::pow(before[at] - latents.y[0][std::size_t(i)], 2);
        is += std::pow(after[at] - latents.y[0][std::size_t(i)], 2);
    }
    CHECK(is < 0.5 * was);
}
