// SPDX-License-Identifier: MIT
// Compares measures of held-out text with arithmetic: densities of latents, importance weights, and the KL in the loss
// by which the best checkpoint is chosen.
#include "models/scoring/metrics.h"
#include "models/tasks/univae_evaluation.h"

#include <doctest/doctest.h>

#include <cmath>

#include "models/tasks/univae_prior.h"
#include "tests/train/threads_as_processes.h"
#include "tests/train/tiny_run.h"

using namespace masquerade;

namespace {

LatentSpace space(LatentKind kind, int size, double kappa = 4) {
    LatentOptions o;
    o.kind = kind;
    o.size = size;
    o.kappa = kappa;
    return {o, 2};
}

double norm(const std::vector<double>& x) {
    double sum = 0;
    for (double v : x) sum += v * v;
    return std::sqrt(sum);
}

}  // namespace

TEST_CASE("evaluation: log q/p of a Gaussian, with its variance") {
    const LatentSpace gaussian = space(LatentKind::gaussian, 2);
    // The means, and then the log variances.
    const double z[] = {0.7, -1.2}, y[] = {0.5, -1.0, std::log(0.25), std::log(2.25)};
    // The sum of (z^2 - (z - mu)^2 / variance - log variance) / 2.
    const double expected = (0.49 - 0.04 / 0.25 - std::log(0.25)) / 2 + (1.44 - 0.04 / 2.25 - std::log(2.25)) / 2;
    CHECK(std::abs(gaussian.log_ratio(z, y) - expected) <= 1e-12);
}

TEST_CASE("evaluation: log q/p of a von Mises-Fisher distribution, whatever the length of its mean") {
    const double kappa = 4;
    const LatentSpace sphere = space(LatentKind::vmf, 3, kappa);
    const double z[] = {0.6, 0, 0.8};
    for (double length : {1.0, 2.5, 0.1}) {
        const double y[] = {0, 0, length};
        // In three dimensions, q = kappa e^(kappa cos) / (4 pi sinh kappa) and p = 1 / (4 pi).
        CHECK(std::abs(sphere.log_ratio(z, y) - (std::log(kappa / std::sinh(kappa)) + kappa * 0.8)) <= 1e-9);
    }
}

TEST_CASE("evaluation: between two points of a sphere goes a great circle, at an even pace") {
    const LatentSpace sphere = space(LatentKind::vmf, 2);
    const std::vector<double> a = {1, 0, 0, 1}, b = {0, 1, 0, 1};  // a quarter of a circle in the first layer
    for (double t : {0.0, 0.25, 0.5, 1.0}) {
        const std::vector<double> between = sphere.interpolate(a, b, t);
        CHECK(std::abs(between[0] - std::cos(t * std::acos(0.0))) <= 1e-12);
        CHECK(std::abs(between[1] - std::sin(t * std::acos(0.0))) <= 1e-12);
        CHECK(std::abs(norm({between[2], between[3]}) - 1) <= 1e-12);
    }
    const std::vector<double> straight = space(LatentKind::gaussian, 2).interpolate(a, b, 0.25);
    CHECK(std::abs(straight[0] - 0.75) <= 1e-12);
}

TEST_CASE("evaluation: draws of the prior go by seed, line and sample, each by itself") {
    for (LatentKind kind : {LatentKind::vmf, LatentKind::gaussian}) {
        const LatentSpace latents = space(kind, 4);
        const std::vector<double> first = latents.prior(1, 2, 3);
        CHECK(latents.prior(1, 2, 3) == first);
        CHECK(latents.prior(2, 2, 3) != first);
        CHECK(latents.prior(1, 3, 3) != first);
        CHECK(latents.prior(1, 2, 4) != first);
    }
}

// q equals p, and the decoder does not see z. Therefore, every weight is p(x|z), and more samples change nothing.
TEST_CASE("evaluation: the importance-weighted likelihood is a mean over its samples") {
    UniVaeSettings s = tiny_settings(LatentKind::gaussian);
    const std::vector<std::string> lines = grammar_questions(3, 300);
    UniVaeRun run(s, train_vocabulary(lines, s.vocabulary));
    for (const Tensor& p : run.parameters.all())
        if (p.path.find("latent") != std::string::npos)
            std::fill_n(run.parameters.master(p).as<float>(), p.shape.count(), 0.0f);
    const std::vector<Sentence> text = run.sentences({lines[0], lines[1], lines[2]});
    const std::vector<double> one = importance_weighted_nll(run.model, pointers_to(text), 1, 1);
    const std::vector<double> many = importance_weighted_nll(run.model, pointers_to(text), 8, 1);
    for (std::size_t i = 0; i < text.size(); i++) CHECK(std::abs(one[i] - many[i]) <= 1e-5 * one[i]);
    const HeldOut held_out = held_out_losses(run.model, pointers_to(text), 1);
    CHECK(std::abs(held_out.elbo * 3 + one[0] + one[1] + one[2]) <= 1e-3);
    // The targets at all places together are all targets.
    double sum = 0;
    for (std::size_t i = 0; i < held_out.at_place.size(); i++) {
        sum += held_out.at_place[i];
        CHECK(held_out.reach[i] ==
              std::count_if(text.begin(), text.end(), [&](const Sentence& each) { return i + 1 < each.ids.size(); }));
    }
    CHECK(std::abs(sum - held_out.own * double(held_out.tokens)) <= 1e-9 * sum);
}

// 70 sentences of 40 tokens. The first 64 of them, one group, are cut into three pieces.
TEST_CASE("evaluation: long sentences are measured in small batches, which change no sum") {
    Parameters p;
    UniVaeOptions o = tiny_model(LatentKind::none, false);
    o.max_length = 40;
    o.backbone.positions = 80;
    o.backbone.deviation = 0.3;
    const UniVae model(p, o);
    p.allocate(1);
    std::vector<Sentence> all = random_sentences(70);
    Sequence random(6, "longer");
    for (Sentence& s : all)
        while (s.ids.size() < 40) s.ids.insert(s.ids.begin() + 1, 5 + int(random.below(55)));
    const Sentences sentences = pointers_to(all);
    std::vector<std::size_t> begin;
    each_batch(model, sentences, [&](Tape&, const Batch& batch, std::size_t first) {
        begin.push_back(first);
        CHECK(batch.names().at(0) == int(first));
        CHECK(batch.source.count() <= int(measured_size));
    });
    CHECK(begin == std::vector<std::size_t>{0, 21, 43, 64});

    const HeldOut h = held_out_losses(model, sentences, 1);
    CHECK(h.sentences == 70);
    double own = 0, other = 0;
    Arena arena(Device::cpu, Blocks::kept);
    Tape tape(arena, DType::f32);
    const auto loss = [&](std::size_t of, std::size_t from) {  // the loss of a sentence with the z of a sentence
        tape.begin("one sentence");
        std::vector<Tensor*> z;
        for (const LatentSample& l : model.encode(tape, halves_batch(model, {sentences[from]}), nullptr))
            z.push_back(l.z);
        const Batch batch = halves_batch(model, {sentences[of]});
        Tensor* states = model.backbone.head(tape, model.decode(tape, batch, z));
        double sum = 0;
        for (double each : numbers_of(model.backbone.token_losses(tape, states, batch.labels.tokens)->view()))
            sum += each;
        tape.end();
        return sum;
    };
    for (std::size_t i = 0; i < all.size(); i++) own += loss(i, i), other += loss(i, i > 0 ? i - 1 : 63);
    CHECK(std::abs(h.own * double(h.tokens) - own) <= 1e-9 * own);
    CHECK(std::abs(h.other * double(h.tokens) - other) <= 1e-9 * other);
    CHECK(std::abs(own - other) > 1e-5 * own);

    as_processes(2, [&](int) {
        const HeldOut shared = held_out_losses(model, sentences, 1);
        CHECK(shared.own == h.own);
        CHECK(shared.mean_path == h.mean_path);
        CHECK(shared.other == h.other);
        CHECK(shared.at_place == h.at_place);
    });
}

TEST_CASE("evaluation: an importance weight is p(x|z) p(z) / q(z|x); each has noise of its own") {
    Parameters p;
    const UniVae model(p, tiny_model(LatentKind::gaussian, false));
    p.allocate(1);
    const Sentence text = random_sentences(6)[4];
    const Batch batch = halves_batch(model, {&text});
    Arena arena(Device::cpu, Blocks::kept);
    Tape tape(arena, DType::f32);
    double mean = 0;
    for (std::uint32_t s = 0; s < 3; s++) {
        const LatentNoise noise = model.space.noise(batch.names(), 7, s);
        tape.begin("sample");
        const UniVae::Loss loss = model.loss(tape, batch, &noise, 0);  // -log p(x|z) per token
        double log_weight = -number_at(loss.total->view(), 0) * batch.labels.count;
        for (const LatentSample& l : loss.latents)
            for (std::int64_t i = 0; i < 8; i++) {  // log p - log q, for p = N(0, 1) and q = N(mu, variance)
                const double z = number_at(l.z->view(), i), e = z - number_at(l.y->view(), i),
                             log_variance = number_at(l.y->view(), 8 + i);
                log_weight += (e * e / std::exp(log_variance) + log_variance - z * z) / 2;
            }
        mean += std::exp(log_weight) / 3;
        tape.end();
    }
    CHECK(std::abs(importance_weighted_nll(model, {&text}, 3, 7).at(0) + std::log(mean)) <= 1e-3);
}

TEST_CASE("evaluation: the loss that chooses the best checkpoint holds the KL; without latents there is none") {
    for (LatentKind kind : {LatentKind::gaussian, LatentKind::vmf, LatentKind::none}) {
        UniVaeSettings s = tiny_settings(kind);
        const std::vector<std::string> lines = grammar_questions(3, 300);
        UniVaeRun run(s, train_vocabulary(lines, s.vocabulary));
        UniVaeTask task(run, in_memory(run.sentences(lines)), run.sentences({lines[0], lines[1]}));
        const std::vector<Sentence> text = run.sentences({lines[0], lines[1]});
        const HeldOut h = held_out_losses(run.model, pointers_to(text), s.train.seed);
        const std::vector<Metric> metrics = task.validate();
        CHECK(metrics.at(0).name == "loss");
        CHECK(metrics[0].value == h.own + h.kl_per_token);
        CHECK((h.kl > 0) == (kind != LatentKind::none));
        CHECK(std::abs(h.kl_per_token * double(h.tokens) - 2 * h.kl) <= 1e-9 * h.kl);
    }
}

// The KL in the log of training must count only the real documents. Inert documents have a KL, too, but it must not
// count.
TEST_CASE("evaluation: the KL of training is that of real documents, and has the weight of the schedule") {
    UniVaeSettings s = tiny_settings(LatentKind::gaussian);
    s.model.backbone.dropout = s.model.backbone.attention_dropout = 0;
    s.kl_schedule = "linear";
    s.beta = 2;
    const std::vector<std::string> lines = grammar_questions(3, 300);
    UniVaeRun run(s, train_vocabulary(lines, s.vocabulary));
    UniVaeTask task(run, in_memory(run.sentences(lines)), {});
    Arena arena(Device::cpu, Blocks::loose);
    Tape tape(arena, DType::f32);
    std::vector<double> totals;
    double kl = 0, tokens = 0;
    task.next_batch(0);
    for (std::int64_t step : {0, 25, 50, 80}) {  // of 100 steps; the weights are 0, 1, 2, 2
        tape.begin("step", 1, 0, true);
        Tensor* loss = task.loss(tape, step, 100);
        totals.push_back(number_at(loss->view(), 0));
        kl = task.metrics()().at(0).value;
        tokens = double(task.batch_tokens());
        tape.end();
    }
    CHECK(kl > 0);
    // KL of all documents, divided by the KL per document.
    const double documents = tokens * (totals[1] - totals[0]) / kl;
    CHECK(std::abs(documents - std::round(documents)) <= 1e-2);
    CHECK(documents >= 1);
    CHECK(std::abs((totals[2] - totals[0]) - 2 * (totals[1] - totals[0])) <= 1e-5);
    CHECK(std::abs(totals[3] - totals[2]) <= 1e-6);
}

TEST_CASE("evaluation: beta multiplies the KL in the loss of training") {
    auto loss = [](double beta) {
        UniVaeSettings s = tiny_settings(LatentKind::gaussian);
        s.kl_schedule = "constant";
        s.beta = beta;
        const std::vector<std::string> lines = grammar_questions(3, 300);
        UniVaeRun run(s, train_vocabulary(lines, s.vocabulary));
        UniVaeTask task(run, in_memory(run.sentences(lines)), {});
        Arena arena(Device::cpu, Blocks::loose);
        Tape tape(arena, DType::f32);
        task.next_batch(0);
        tape.begin("step");
        return number_at(task.loss(tape, 0, 100)->view(), 0);
    };
    const double none = loss(0), half = loss(0.5), twice = loss(2);
    CHECK(half - none > 1e-4);
    CHECK(std::abs(twice - none - 4 * (half - none)) <= 1e-5);
}

TEST_CASE("evaluation: what is written too long or too short is less close") {
    const std::vector<Tokens> references = {{5, 6, 7, 8, 9, 10}};
    const Closeness same = compare(references, references), longer = compare(references, {{5, 6, 7, 8, 9, 10, 11, 12}}),
                    shorter = compare(references, {{5, 6, 7, 8}});
    CHECK(std::abs(same.bleu4 - 100) <= 1e-9);
    CHECK(same.exact == 1);
    for (const Closeness& other : {longer, shorter}) {
        CHECK(other.exact == 0);
        CHECK(other.bleu4 < 95);
    }
    // Precisions of n-grams for 8 tokens: 6/8, 5/7, 4/6, 3/5. Brevity penalty for 4 tokens instead of 6: exp(1 - 6/4).
    CHECK(std::abs(longer.bleu4 - 100 * std::pow(6.0 / 8 * 5 / 7 * 4 / 6 * 3 / 5, 0.25)) <= 1e-9);
    CHECK(std::abs(shorter.bleu4 - 100 * std::exp(-0.5)) <= 1e-9);
    CHECK(std::abs(shorter.token_accuracy - 4.0 / 6) <= 1e-12);
    const auto edits = [&](const Tokens& written) { return 6 * compare(references, {written}).edits; };
    CHECK(same.edits == 0);
    for (const auto& [written, expected] : {std::pair<Tokens, double>({5, 6, 7, 8, 9, 10, 11, 12}, 2),
                                            {{5, 6, 7, 8}, 2},
                                            {{}, 6},
                                            {{6, 7, 8, 9, 10}, 1},
                                            {{5, 1, 7, 8, 9, 10}, 1},
                                            {{5, 6, 8, 7, 9, 10}, 2}})
        CHECK(std::abs(edits(written) - expected) <= 1e-12);
}

TEST_CASE(
    "evaluation: words that are dropped are hidden from the decoder half alone, by chance, the same at any place") {
    UniVaeSettings s = tiny_settings(LatentKind::vmf);
    const std::vector<std::string> lines = grammar_questions(3, 300);
    const auto batch_with = [&](double share) {
        s.word_dropout = share;
        UniVaeRun run(s, train_vocabulary(lines, s.vocabulary));
        UniVaeTask task(run, in_memory(run.sentences(lines)), {});
        task.next_batch(3);
        return task.batch();
    };
    const Batch whole = batch_with(0), half = batch_with(0.5), none = batch_with(1);
    CHECK(half.source.ids == whole.source.ids);
    CHECK(half.labels.tokens == whole.labels.tokens);
    int hidden = 0, words = 0;
    for (std::size_t i = 0; i < whole.rows.ids.size(); i++) {
        const int id = whole.rows.ids[i];
        CHECK((half.rows.ids[i] == id || half.rows.ids[i] == 1));
        CHECK(none.rows.ids[i] == (id == 2 ? 2 : 1));
        words += id > 4, hidden += id > 4 && half.rows.ids[i] != id;
    }
    CHECK(std::abs(hidden - 0.5 * words) < 3 * std::sqrt(0.25 * words));
}

// A small codebook allows a sum over all codes: p(x) is the mean of p(x|c).
TEST_CASE("evaluation: the importance-weighted likelihood of codes is the mean over all of them") {
    for (LatentKind kind : {LatentKind::vq, LatentKind::fsq}) {
        UniVaeOptions o = tiny_model(kind, false);
        o.latent_layers = 1;
        o.latent.size = 2;
        o.latent.codes = o.latent.levels = 3;
        Parameters p;
        const UniVae model(p, o);
        p.allocate(3);
        const std::vector<Sentence> text = random_sentences(3);
        const std::vector<double> estimated = importance_weighted_nll(model, pointers_to(text), 4000, 1);
        Arena arena(Device::cpu, Blocks::kept);
        Tape tape(arena, DType::f32);
        for (std::size_t i = 0; i < text.size(); i++) {
            const Batch batch = halves_batch(model, {&text[i]});
            double sum = 0;
            for (int c = 0; c < 9; c++) {
                double z[2] = {c % 3 - 1.0, c / 3 - 1.0};
                if (kind == LatentKind::vq)
                    for (int g = 0; g < 2; g++)
                        z[g] = number_at(p.find("latent.0.codes")->view(), 3 * g + (g == 0 ? c % 3 : c / 3));
                tape.begin("code");
                Tensor* point = tape.constant("z", {1, 2}, DType::f32, z);
                Tensor* h = model.backbone.head(tape, model.decode(tape, batch, {point}));
                const Tensor* losses = model.backbone.token_losses(tape, h, batch.labels.tokens);
                double nll = 0;
                for (std::int64_t t = 0; t < losses->shape.count(); t++) nll += number_at(losses->view(), t);
                sum += std::exp(-nll) / 9;
                tape.end();
            }
            CHECK(std::abs(estimated[i] + std::log(sum)) <= 0.08);
        }
    }
}

// A code of two parts, and one number in the layer above. p(x) is the mean over the nine codes of an integral, which is
// computed on a grid.
TEST_CASE("evaluation: the importance-weighted likelihood of a code and a number is the mean of integrals") {
    UniVaeOptions o = tiny_model(LatentKind::fsq, false);
    o.latent_layers = 2;
    o.latent_sizes = {2, 1};
    o.latent_kinds = {LatentKind::fsq, LatentKind::gaussian};
    o.latent.levels = 3;
    Parameters p;
    const UniVae model(p, o);
    p.allocate(3);
    const std::vector<Sentence> text = random_sentences(2);
    constexpr int points = 41;
    const std::vector<const Sentence*> copies(points, &text[1]);
    const Batch batch = halves_batch(model, copies);
    Arena arena(Device::cpu, Blocks::kept);
    Tape tape(arena, DType::f32);
    double sum = 0;
    for (int c = 0; c < 9; c++) {
        std::vector<double> code, number;
        for (int i = 0; i < points; i++) {
            code.insert(code.end(), {c % 3 - 1.0, c / 3 - 1.0});
            number.push_back((i - points / 2) * 0.25);
        }
        tape.begin("grid");
        Tensor* h = model.decode(tape, batch,
                                 {tape.constant("code", {points, 2}, DType::f32, code.data()),
                                  tape.constant("number", {points, 1}, DType::f32, number.data())});
        const Tensor* losses = model.backbone.token_losses(tape, model.backbone.head(tape, h), batch.labels.tokens);
        for (std::size_t i = 0; i < points; i++) {
            double nll = 0;
            for (int t = batch.labels.begin[i]; t < batch.labels.begin[i + 1]; t++) nll += number_at(losses->view(), t);
            sum += std::exp(-nll - number[i] * number[i] / 2) / std::sqrt(2 * std::acos(-1.0)) * 0.25 / 9;
        }
        tape.end();
    }
    CHECK(std::abs(importance_weighted_nll(model, {&text[1]}, 3000, 1).at(0) + std::log(sum)) <= 0.08);
}

// K = 1, Z = 2. p(x) is the integral of p(x|z) N(z; 0, 1), computed on a grid. More samples must not make the bound
// worse.
TEST_CASE("evaluation: the importance-weighted likelihood of two numbers is the integral over them") {
    UniVaeOptions o = tiny_model(LatentKind::gaussian, false);
    o.latent_layers = 1;
    o.latent.size = 2;
    Parameters p;
    const UniVae model(p, o);
    p.allocate(3);
    for (const Tensor& t : p.all())  // keeps q near the prior; otherwise, millions of samples would be needed
        if (t.path.find("latent.0") != std::string::npos) {
            std::vector<double> numbers;
            for (std::int64_t i = 0; i < t.shape.count(); i++) numbers.push_back(0.3 * number_at(p.master(t), i));
            write_numbers(p.master(t), numbers.data());
        }
    const std::vector<Sentence> text = random_sentences(2);
    const Sentence& sentence = text[1];
    std::vector<const Sentence*> copies(64, &sentence);
    const Batch batch = halves_batch(model, copies);
    Arena arena(Device::cpu, Blocks::kept);
    Tape tape(arena, DType::f32);
    std::vector<double> grid;
    for (double a = -5; a <= 5; a += 0.25)
        for (double b = -5; b <= 5; b += 0.25) grid.insert(grid.end(), {a, b});
    double sum = 0;
    for (std::size_t first = 0; first < grid.size(); first += 128) {
        std::vector<double> z(128, 0);
        const std::size_t count = std::min<std::size_t>(128, grid.size() - first);
        std::copy_n(grid.begin() + std::ptrdiff_t(first), count, z.begin());
        tape.begin("grid");
        Tensor* h =
            model.backbone.head(tape, model.decode(tape, batch, {tape.constant("z", {64, 2}, DType::f32, z.data())}));
        const Tensor* losses = model.backbone.token_losses(tape, h, batch.labels.tokens);
        for (std::size_t i = 0; i < count / 2; i++) {
            double nll = 0;
            for (int t = batch.labels.begin[i]; t < batch.labels.begin[i + 1]; t++) nll += number_at(losses->view(), t);
            sum += std::exp(-nll - (z[2 * i] * z[2 * i] + z[2 * i + 1] * z[2 * i + 1]) / 2) / (2 * 3.14159265358979) *
                   0.0625;
        }
        tape.end();
    }
    CHECK(std::abs(importance_weighted_nll(model, {&sentence}, 4000, 1)[0] + std::log(sum)) <= 0.02);
    for (int S : {1, 4}) {  // S samples, repeated 200 times
        double mean[2] = {0, 0}, square[2] = {0, 0};
        for (int repeat = 0; repeat < 200; repeat++)
            for (int k : {0, 1}) {
                const double nll =
                    importance_weighted_nll(model, {&sentence}, S << k, std::uint64_t(1000 * k + repeat))[0];
                mean[k] += nll / 200, square[k] += nll * nll / 200;
            }
        const double error = std::sqrt((square[0] - mean[0] * mean[0] + square[1] - mean[1] * mean[1]) / 200);
        CHECK(mean[1] <= mean[0] + 3 * error);
    }
}
