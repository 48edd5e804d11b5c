// SPDX-License-Identifier: MIT
// Tests measures of latents with known results: codes that are different for n sentences contain log n nats of
// information, and latents that are not read contain none.
#include "models/scoring/latent_use.h"

#include <doctest/doctest.h>

#include <cmath>
#include <map>

#include "models/tasks/univae_prior.h"
#include "tests/train/tiny_run.h"

using namespace masquerade;

TEST_CASE("latents: information is log n where z tells all sentences apart, and 0 where it tells nothing") {
    const std::vector<std::string> lines = grammar_questions(3, 300);
    for (const LatentKindRow& row : latent_kinds()) {
        if (row.kind == LatentKind::none) continue;
        CAPTURE(std::string(row.name));
        UniVaeSettings s = tiny_settings(row.kind);
        s.model.latent.kappa = 1e6;
        s.model.latent.codes = 5000;
        s.model.backbone.deviation = 0.3;
        UniVaeRun run(s, train_vocabulary(lines, s.vocabulary));
        const std::vector<Sentence> text = run.sentences({lines[0], lines[1], lines[2], lines[3], lines[4]});
        const auto layer = [&](const char* path, double scale, double variance) {
            for (const Tensor& p : run.parameters.all()) {
                if (p.path.find(path) == std::string::npos) continue;
                const OnHost numbers(run.parameters.master(p));
                std::vector<double> all;
                for (std::int64_t i = 0; i < p.shape.count(); i++)
                    all.push_back(row.kind == LatentKind::gaussian && i >= p.shape.count() / 2 ? variance
                                                                                               : scale * numbers[i]);
                write_numbers(run.parameters.master(p), all.data());
            }
        };
        // Large weights move the latents far apart, and the Gaussians become as narrow as they can be. Then the weights
        // become 0, so that all latents are equal.
        layer(".in.weight", 300, 0), layer(".in.bias", 0, -20);
        const LatentUse apart = latent_use(run.model, pointers_to(text), 1);
        double expected = std::log(5.0);
        // Sentences may share a code. The expected value is then the entropy of the codes.
        if (run.model.latents[0].latent->code_parts() > 0) {
            std::map<std::vector<double>, double> share;
            for (const std::vector<double>& z : mean_latents(run.model, pointers_to(text))) share[z] += 0.2;
            expected = 0;
            for (const auto& [z, p] : share) expected -= p * std::log(p);
            CHECK(share.size() > 1);
        }
        CHECK(std::fabs(apart.mutual_information - expected) <= 1e-6);
        CHECK(apart.active > 0);
        CHECK(apart.units == 16);
        layer(".in.weight", 0, 0);
        const LatentUse alike = latent_use(run.model, pointers_to(text), 1);
        CHECK(std::fabs(alike.mutual_information) <= 1e-6);
        CHECK(alike.active == 0);
    }
}

TEST_CASE("latents: all of B's latents write B, none of them A; what is between is shared") {
    const std::vector<std::string> lines = grammar_questions(3, 300);
    UniVaeSettings s = tiny_settings(LatentKind::vmf);
    s.model.latent_layers = 1;
    s.model.backbone.dropout = s.model.backbone.attention_dropout = 0;
    s.model.backbone.width = 32;
    s.train.learning_rate = 5e-3;
    s.train.schedule_steps = 300;
    const std::vector<std::string> two = {"what is the name of this river?", "how do you cook a large fish?"};
    TemporaryFolder folder;
    UniVaeRun run(s, train_vocabulary(lines, 500));
    RunFolder where = RunFolder::create(folder.file("run"));
    UniVaeTask task(run, in_memory(run.sentences(two)), run.sentences(two));
    Trainer trainer(run.parameters, task, where, TinyRun::limited(s, 300));
    trainer.quiet = true;
    trainer.run(never);
    const std::vector<Sentence> text = run.sentences(two);
    UniVaeDecoder decoder(run.model, run.special());
    const Swaps all = swap_latents(run.model, decoder, pointers_to(text), most_frequent(text, 3), 1);
    REQUIRE(all.layers.size() == 1);
    CHECK(all.layers[0].content_b.mean == 1);
    CHECK(all.layers[0].form_b.mean == 1);
    CHECK(all.layers[0].content_a.mean == all.content.mean);
    CHECK(all.layers[0].form_a.mean == all.form.mean);
    CHECK(all.content.mean < 0.7);
}

TEST_CASE("latents: a chain draws from the prior that its loss has") {
    UniVaeOptions o = tiny_model(LatentKind::gaussian_chain, false);
    o.backbone.layers = 4;
    o.latent_layers = 3;
    Parameters p;
    const UniVae model(p, o);
    p.allocate(1);
    const std::vector<Sentence> text = random_sentences(3);
    const Batch batch = halves_batch(model, pointers_to(text));
    Arena arena(Device::cpu, Blocks::kept);
    Tape tape(arena, DType::f32);
    const LatentNoise noise = model.space.noise(batch.names(), 7, 0);
    tape.begin("sample");
    const std::vector<LatentSample> samples = model.encode(tape, batch, &noise);
    constexpr int Z = 8;
    CHECK(samples[0].prior == nullptr);
    for (std::int64_t b = 0; b < 3; b++) {
        std::vector<double> all;
        for (std::size_t l = 0; l < 3; l++) {
            std::vector<double> drawn = all;
            for (int i = 0; i < Z; i++) drawn.push_back(0.3 * i - 1);
            model.latents[l].latent->draw(&drawn[l * Z]);
            for (int i = 0; i < Z; i++) {
                double expected = 0.3 * i - 1;
                if (samples[l].prior)
                    expected = number_at(samples[l].prior->view(), b * 2 * Z + i) +
                               std::exp(number_at(samples[l].prior->view(), b * 2 * Z + Z + i) / 2) * expected;
                CHECK(std::fabs(drawn[l * Z + std::size_t(i)] - expected) <= 1e-5);
                all.push_back(number_at(samples[l].z->view(), b * Z + i));
            }
        }
    }
    // The learned prior is not N(0, 1). The KL of a layer must be relative to the learned prior.
    double shift = 0;
    for (int i = 0; i < 2 * Z; i++) shift += std::fabs(number_at(samples[2].prior->view(), i));
    CHECK(shift > 1e-3);
    tape.end();
}

TEST_CASE("latents: codebooks follow what is near them, and a point of codes is its own nearest") {
    const std::vector<std::string> lines = grammar_questions(3, 300);
    UniVaeSettings s = tiny_settings(LatentKind::vq);
    s.model.latent.codes = 4;
    TemporaryFolder folder;
    TinyRun run(s, RunFolder::create(folder.file("run")), 60);
    const auto distance = [&] {
        double sum = 0;
        const std::vector<Sentence> text = run.model.sentences({lines.begin(), lines.begin() + 40});
        Arena arena(Device::cpu, Blocks::kept);
        Tape tape(arena, DType::f32);
        const Batch batch = halves_batch(run.model.model, pointers_to(text));
        tape.begin("near");
        for (const LatentSample& l : run.model.model.encode(tape, batch, nullptr))
            for (std::int64_t i = 0; i < 40 * 8; i++)
                sum += std::pow(number_at(l.z->view(), i) - number_at(l.y->view(), i), 2);
        tape.end();
        return sum;
    };
    const double before = distance();
    run.trainer.run(never);
    CHECK(distance() < 0.5 * before);
    // Each group has its own codebook.
    const LatentSpace& space = run.model.model.space;
    std::vector<double> z = space.prior(1, 2, 3);
    const std::vector<double> same = z;
    space.project(z);
    CHECK(z == same);
    const OnHost codes(run.model.parameters.find("latent.0.codes")->view());
    bool of_second = false;
    for (int m = 0; m < 4; m++) {
        bool equal = true;
        for (int i = 0; i < 4; i++) equal &= z[std::size_t(4 + i)] == codes[(4 + m) * 4 + i];
        of_second |= equal;
    }
    CHECK(of_second);
}

TEST_CASE("latents: a flow's prior sums to 1, its draws come from it, and the loss has its KL") {
    UniVaeOptions o = tiny_model(LatentKind::flow, false);
    o.latent.size = 2;
    o.latent.flow.width = 5;
    Parameters p;
    const UniVae model(p, o);
    p.allocate(1);
    Sequence random(4, "flow");
    for (const Tensor& t : p.all()) {
        if (t.path.find(".flow.") == std::string::npos) continue;
        std::vector<double> numbers;
        for (std::int64_t i = 0; i < t.shape.count(); i++)
            numbers.push_back(number_at(p.master(t), i) + 0.8 * random.uniform_double() - 0.4);
        write_numbers(p.master(t), numbers.data());
    }
    const Latent& flow = *model.latents[1].latent;
    const double y[] = {0, 0, 0, 0};
    double sum = 0, mean[2] = {0, 0}, square = 0;
    for (double a = -15; a < 15; a += 0.05)
        for (double b = -15; b < 15; b += 0.05) {
            const double z[] = {a, b};
            const double density =
                std::exp(flow.log_posterior(z, y) - flow.log_ratio(z, y, nullptr)) / (2 * 3.14159265358979) * 0.0025;
            sum += density, mean[0] += density * a, mean[1] += density * b, square += density * (a * a + b * b);
        }
    CHECK(std::fabs(sum - 1) <= 1e-3);
    double drawn[2] = {0, 0}, drawn_square = 0;
    constexpr int n = 40000;
    for (int i = 0; i < n; i++) {
        const std::vector<double> z = model.space.prior(1, std::uint32_t(i), 0);
        drawn[0] += z[2] / n, drawn[1] += z[3] / n, drawn_square += (z[2] * z[2] + z[3] * z[3]) / n;
    }
    CHECK(std::fabs(drawn[0] - mean[0]) <= 0.03);
    CHECK(std::fabs(drawn[1] - mean[1]) <= 0.03);
    CHECK(std::fabs(drawn_square - square) <= 0.03 * square);
    CHECK(std::fabs(square - 2) > 0.1);  // it is not N(0, 1)

    const std::vector<Sentence> text = random_sentences(3);
    const Batch batch = halves_batch(model, pointers_to(text));
    Arena arena(Device::cpu, Blocks::kept);
    Tape tape(arena, DType::f32);
    const LatentNoise noise = model.space.noise(batch.names(), 7, 0);
    tape.begin("sample");
    const std::vector<LatentSample> samples = model.encode(tape, batch, &noise);
    for (std::size_t l = 0; l < 2; l++)
        for (std::int64_t b = 0; b < 3; b++) {
            const LatentSample& s = samples[l];
            double z[2], own[4];
            for (int i = 0; i < 4; i++) own[i] = number_at(s.y->view(), b * 4 + i);
            for (int i = 0; i < 2; i++) z[i] = number_at(s.z->view(), b * 2 + i);
            CHECK(std::fabs(number_at(s.kl->view(), b) - model.latents[l].latent->log_ratio(z, own, nullptr)) <= 1e-4);
        }
    tape.end();
}
