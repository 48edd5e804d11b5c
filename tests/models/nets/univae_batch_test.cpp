// SPDX-License-Identifier: MIT
// Compares a batch of UniVAE with numbers that were written by hand: rows, positions, targets, weights and the divisor
// of the loss.
#include <doctest/doctest.h>

#include <algorithm>

#include "engine/tensor/numbers.h"
#include "models/tasks/univae_objective.h"

using namespace masquerade;

namespace {

UniVaeOptions options(bool free_length, bool conditional = false) {
    UniVaeOptions o;
    o.backbone.vocabulary = 12;
    o.backbone.width = 8;
    o.backbone.heads = 2;
    o.backbone.inner = 8;
    o.backbone.layers = 4;
    o.backbone.positions = 12;
    o.backbone.deviation = 0.3;
    o.latent.kind = LatentKind::gaussian;
    o.latent.size = 3;
    o.latent_layers = 3;
    o.max_length = 6;
    o.free_length = free_length;
    o.conditional = conditional;
    return o;
}

struct Model {
    Parameters parameters{DType::f64};
    UniVae univae;
    Arena arena{Device::cpu, Blocks::loose};
    Tape tape{arena, DType::f64};
    std::vector<Sentence> text = {{{2, 7, 3}, 40, {}}, {{2, 8, 9, 3}, 41, {}}};
    std::vector<const Sentence*> both = {&text[0], &text[1]};

    explicit Model(bool free_length = false, bool conditional = false)
        : univae(parameters, options(free_length, conditional)) {
        parameters.allocate(7);
    }

    std::vector<std::vector<double>> points(const Batch& batch) {
        tape.begin("encode");
        std::vector<std::vector<double>> z;
        for (const LatentSample& s : univae.encode(tape, batch, nullptr)) {
            z.emplace_back();
            for (std::int64_t i = 0; i < s.z->shape.count(); i++) z.back().push_back(number_at(s.z->view(), i));
        }
        tape.end();
        return z;
    }
    void disturb(const std::string& path) {
        for (const Tensor& p : parameters.all())
            if (p.path.find(path) != std::string::npos)
                for (std::int64_t i = 0; i < p.shape.count(); i++)
                    parameters.master(p).as<double>()[i] += 0.05 * double(i % 3 + 1);
    }
};

}  // namespace

TEST_CASE("univae batch: of a pair the encoder reads the source, and the decoder writes the target") {
    Model m;
    m.text[1].target = {10, 5, 11, 3};
    const Batch b = halves_batch(m.univae, m.both, 1, true);
    CHECK(b.source.ids == Tokens{2, 7, 3, 2, 8, 9, 3});
    CHECK(b.rows.ids == Tokens{2, 7, 2, 10, 5, 11});
    CHECK(b.labels.tokens == Tokens{7, 3, 10, 5, 11, 3});
    CHECK(b.rows.positions == Tokens{6, 7, 6, 7, 8, 9});
    m.tape.begin("both forms");
    const std::vector<LatentSample> z = m.univae.encode(m.tape, b, nullptr);
    const std::vector<double> split = numbers_of(m.univae.decode(m.tape, b, {z[0].z, z[1].z, z[2].z})->view());
    CHECK(split == numbers_of(m.univae.joint(m.tape, b, nullptr)->view()));
    m.tape.end();
    m.text[1].target.assign(6, 5);
    CHECK_THROWS_AS(halves_batch(m.univae, m.both), Error);
}

TEST_CASE("univae batch: both halves of a conditional model read the pair, and words of the target alone are hidden") {
    for (bool free_length : {false, true}) {
        Model m(free_length, true);
        m.text[0].target = {3};
        m.text[1].target = {10, 5, 3};
        Batch b = halves_batch(m.univae, m.both);
        CHECK(b.source.ids == Tokens{2, 7, 3, 3, 2, 8, 9, 3, 10, 5, 3});
        CHECK(b.source.types == Tokens{0, 0, 0, 1, 0, 0, 0, 0, 1, 1, 1});
        CHECK(b.source.positions == Tokens{0, 1, 2, 3, 0, 1, 2, 3, 4, 5, 6});
        CHECK(b.rows.ids == Tokens{2, 7, 3, 2, 8, 9, 3, 10, 5});
        CHECK(b.rows.types == Tokens{0, 0, 0, 0, 0, 0, 0, 1, 1});
        const int start = free_length ? 4 : 6;
        CHECK(b.rows.positions == Tokens{0, 1, 2, 0, 1, 2, 3, start, start + 1});
        CHECK(b.read_which == Tokens{0, -1, -1, 1, -1, -1, -1, -1, -1});
        CHECK(b.labels.rows == Tokens{2, 6, 7, 8});
        CHECK(b.labels.tokens == Tokens{3, 10, 5, 3});
        ObjectiveOptions hidden = halves_options(m.univae);
        hidden.word_dropout = 1, hidden.cls = 2, hidden.unknown = 1;
        b = objective_of(m.univae).batch(m.both, 0, hidden, 16);
        CHECK(Tokens(b.rows.ids.begin(), b.rows.ids.begin() + 9) == Tokens{2, 7, 3, 2, 8, 9, 3, 1, 1});
        CHECK(b.rows.count() == 32);  // the last inert document has one row for each of the 12 inert labels
        CHECK(std::count_if(b.read_which.begin(), b.read_which.end(), [](int d) { return d >= 0; }) == 8);
    }
}

TEST_CASE("univae batch: two sentences, row by row") {
    const Model model;
    const Batch b = halves_batch(model.univae, model.both);
    CHECK(b.source.ids == Tokens{2, 7, 3, 2, 8, 9, 3});
    CHECK(b.source.types == Tokens(7, 0));
    CHECK(b.source.positions == Tokens{0, 1, 2, 0, 1, 2, 3});
    CHECK(b.source.document == Tokens{40, 40, 40, 41, 41, 41, 41});
    CHECK(b.rows.ids == Tokens{2, 7, 2, 8, 9});
    CHECK(b.rows.types == Tokens(5, 1));
    CHECK(b.rows.positions == Tokens{6, 7, 6, 7, 8});
    CHECK(b.rows.document == Tokens{40, 40, 41, 41, 41});
    CHECK(b.labels.tokens == Tokens{7, 3, 8, 9, 3});
    CHECK(b.labels.weights == std::vector<double>(5, 1.0));
    CHECK(b.cls_rows == Tokens{0, 3});
    CHECK(b.which == Tokens{0, -1, -1, 1, -1, -1, -1});
    CHECK(b.labels.begin == Tokens{0, 2, 5});
    CHECK(b.documents == 2);
    CHECK(b.labels.count == 5);
}

TEST_CASE("univae batch: with free length the decoder half starts at the sentence's own length") {
    const Model model(true);
    CHECK(halves_batch(model.univae, model.both).rows.positions == Tokens{3, 4, 4, 5, 6});
    CHECK(model.univae.start_position(4) == 4);
    CHECK(Model().univae.start_position(4) == 6);
}

TEST_CASE("univae batch: the inert tail fills rows and documents, and weighs nothing") {
    const Model model;
    const Batch b = halves_batch(model.univae, model.both, 16);
    CHECK(b.source.count() == 16);
    CHECK(b.rows.count() == 16);
    CHECK(b.names().size() == 8);
    CHECK(b.document_weights == std::vector<double>{1, 1, 0, 0, 0, 0, 0, 0});
    for (std::size_t row = 5; row < 16; row++) {
        CHECK(b.labels.weights[row] == 0);
        CHECK(b.rows.document[row] > 1000000);  // no sentence has such a name
    }
    CHECK(b.labels.count == 5);
    CHECK(b.documents == 2);
}

TEST_CASE("univae batch: the loss is the mean over targets, with the KL of real documents, full or inert tail") {
    Model model;
    for (int pad_to : {1, 16}) {
        const Batch b = halves_batch(model.univae, model.both, pad_to);
        const LatentNoise noise = model.univae.space.noise(b.names(), 1, 0);
        double total[2] = {}, losses = 0, kl = 0;
        for (int weight : {0, 1}) {
            model.tape.begin("loss");
            const UniVae::Loss loss = model.univae.loss(model.tape, b, &noise, weight);
            total[weight] = number_at(loss.total->view(), 0);
            losses = kl = 0;
            for (int row = 0; row < 5; row++) losses += number_at(loss.losses->view(), row);
            for (const LatentSample& s : loss.latents)
                for (int document = 0; document < 2; document++) kl += number_at(s.kl->view(), document);
            model.tape.end();
        }
        CHECK(std::abs(total[0] - losses / 5) <= 1e-12);
        CHECK(std::abs(total[1] - (losses + kl) / 5) <= 1e-12);
        CHECK(kl > 1e-3);
    }
}

TEST_CASE("univae: each latent layer reads [CLS] at its own layer") {
    Model model;
    const Batch b = halves_batch(model.univae, model.both);
    const auto before = model.points(b);
    REQUIRE(before.size() == 3);
    model.disturb("latent.0.out");  // its output replaces [CLS] only in the layers above
    const auto after = model.points(b);
    CHECK(after[0] == before[0]);
    CHECK(after[1] != before[1]);
    CHECK(after[2] != before[2]);
    model.disturb("latent.1.out");
    const auto last = model.points(b);
    CHECK(last[1] == after[1]);
    CHECK(last[2] != after[2]);
}
