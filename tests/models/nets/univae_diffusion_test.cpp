// SPDX-License-Identifier: MIT
// Tests a UniVAE whose decoder half un-hides tokens: the joint form and the split form give the same bits, also under
// masks in words; no information bypasses the latents, and no hidden token reaches a row that predicts; the gradient of
// every variant agrees with the complex step; the loss has the weights of the bound; a sentence alone gives the same as
// in any batch; and the model learns sentences and pairs by heart.
#include <doctest/doctest.h>

#include <cmath>
#include <set>

#include "engine/ops/cpu/parallel.h"
#include "engine/train/adamw.h"
#include "models/tasks/univae_evaluation.h"
#include "tests/models/nets/univae_any_order.h"

using namespace masquerade;
using namespace masquerade::small_univae;

namespace {

constexpr int mask_token = 4;

UniVaeOptions hiding(const LatentOptions& latent, bool pre_norm, bool is_conditional) {
    return any_order(UniVaeOptions::Decoder::diffusion, latent, pre_norm, is_conditional);
}
LatentOptions gaussian() { return small(LatentKind::gaussian, false, false).latent; }

std::vector<Sentence> text_for(const UniVaeOptions& o, int count, std::uint64_t seed) {
    std::vector<Sentence> all = o.conditional ? pairs(count, 11, seed) : sentences(count, 11, 50, seed);
    for (std::size_t i = 0; i < all.size(); i++) all[i].visit = seed * 100 + i;
    return all;
}

ObjectiveOptions options_for(const UniVae& model, std::uint64_t seed = 1) {
    ObjectiveOptions o = halves_options(model);
    o.mask = mask_token;
    o.seed = seed;
    return o;
}
Batch batch_of(const UniVae& model, const Sentences& text, std::uint32_t step, int pad_to = 1) {
    ObjectiveOptions o = options_for(model);
    o.joint = pad_to == 1;
    return halves_batch(model, text, step, o, pad_to);
}

bool same_row(const Tensor* a, const Tensor* b, int row) {
    bool same = true;
    for (std::int64_t i = row * a->columns(), end = i + a->columns(); i < end; i++)
        same &= number_at(a->view(), i) == number_at(b->view(), i);
    return same;
}

const AnyOrder diffusion = {UniVaeOptions::Decoder::diffusion, text_for, batch_of,
                            [](const Batch& batch) { return batch.labels.size(); }};

}  // namespace

TEST_CASE("univae, diffusion: joint == split, == in double, for every attention and kind of latent") {
    check_joint(diffusion);
}

TEST_CASE("univae, diffusion: masks in words, joint == split, and they change what is computed") {
    const auto states = [](const std::string& words) {
        UniVaeOptions o = hiding(gaussian(), false, false);
        o.mask = words;
        Model m(o, DType::f64);
        const auto text = text_for(o, 4, 5);
        const Batch batch = batch_of(m.model, pointers_to(text), 3);
        m.tape.begin("a");
        const Tensor* split = m.model.decode(m.tape, batch, points(m.model.encode(m.tape, batch, nullptr)));
        CHECK(same_bits(split->view(), m.model.joint(m.tape, batch, nullptr)->view()));
        return numbers_of(split->view());
    };
    const Numbers usual = states("");
    CHECK(usual == states("A full; B full | layers 2:: A full; B full sees A[0]"));
    CHECK(usual != states("A full; B full window=1 | layers 2:: A full; B full sees A[0]"));
    CHECK(usual != states("A full; B full | layers 2:: A full; B full window=1 sees A[0]"));
    CHECK(usual != states("A full window=1; B full | layers 2:: A full; B full sees A[0]"));
}

TEST_CASE("univae, diffusion: the gradient of every variant against the complex step, 1e-12") {
    std::vector<UniVaeOptions> all;
    for (const LatentOptions& latent : kinds_of_pairs)
        for (bool pre_norm : {false, true}) all.push_back(hiding(latent, pre_norm, latent.free_bits > 0));
    for (UniVaeOptions& o : all) {
        check_gradient(diffusion, o);
    }
}

TEST_CASE(
    "univae, diffusion: the hidden places are those of the objective diffusion, from the position of the decoder") {
    for (bool is_conditional : {false, true}) {
        Model m(hiding(gaussian(), !is_conditional, is_conditional), DType::f32);
        const ObjectiveOptions o = options_for(m.model, 3);
        for (const Sentence& s : text_for(m.model.options, 20, 9)) {
            const Example found = objective_of(m.model).make(s, 5, o),
                          expected = find_objective("diffusion").make(s, 5, o);
            const int n = int(s.ids.size()), context = is_conditional ? n : 1, before = found.document.source;
            CHECK(before == (is_conditional ? n : 0));
            REQUIRE(found.rows.count() - before == m.model.options.max_length - 1);
            REQUIRE(expected.rows.count() - context == m.model.options.max_length - 1);
            for (int i = 0; i < m.model.options.max_length - 1; i++) {
                CHECK(found.rows.ids[std::size_t(before + i)] == expected.rows.ids[std::size_t(context + i)]);
                CHECK(found.rows.positions[std::size_t(before + i)] == m.model.start_position(n) + i);
                CHECK(found.rows.types[std::size_t(before + i)] == 1);
            }
            CHECK(found.labels.tokens == expected.labels.tokens);
            CHECK(found.labels.weights == expected.labels.weights);
            CHECK(found.counted == expected.counted);
            for (int i = 0; i < found.labels.size(); i++)
                CHECK(found.labels.rows[std::size_t(i)] - before == expected.labels.rows[std::size_t(i)] - context);
            CHECK(found.source.ids == (is_conditional ? [&] {
                Tokens both = s.ids;
                both.insert(both.end(), s.target.begin(), s.target.end());
                return both;
            }() : s.ids));
        }
    }
}

TEST_CASE("univae, diffusion: the loss weighs hidden tokens by places/hidden, and counts the tokens of the text") {
    for (bool is_conditional : {false, true}) {
        Model m(hiding(gaussian(), false, is_conditional), DType::f64);
        const auto text = text_for(m.model.options, 6, 9);
        const int places = m.model.options.max_length - 1;
        std::set<double> numbers;
        for (std::uint32_t step = 0; step < 6; step++)
            for (int pad_to : {1, 16}) {
                const Batch batch = batch_of(m.model, pointers_to(text), step, pad_to);
                const LatentNoise noise = m.model.space.noise(batch.names(), 2, 1);
                m.tape.begin(batch.bucket);
                const UniVae::Loss loss = m.model.loss(m.tape, batch, &noise, 0.3);
                double sum = 0, tokens = 0;
                for (int d = 0; d < 6; d++) {
                    const Sentence& s = text[std::size_t(d)];
                    tokens += is_conditional ? double(s.target.size()) : double(s.ids.size()) - 1;
                    const int begin = batch.labels.begin[std::size_t(d)], end = batch.labels.begin[std::size_t(d) + 1];
                    for (int i = begin; i < end; i++) {
                        const double weight = batch.labels.weights[std::size_t(i)], hidden = places / weight;
                        CHECK(hidden == doctest::Approx(std::round(hidden)));
                        CHECK(end - begin <= std::round(hidden));  // places behind a visible end are not asked
                        numbers.insert(std::round(hidden));
                        sum += weight * number_at(loss.losses->view(), i);
                    }
                    for (const LatentSample& z : loss.latents) sum += 0.3 * number_at(z.kl->view(), d);
                }
                CHECK(batch.predictions() == tokens);
                CHECK(number_at(loss.total->view(), 0) == doctest::Approx(sum / tokens).epsilon(1e-12));
                m.tape.end();
            }
        CHECK(numbers.size() > 4);
    }
}

TEST_CASE("univae, diffusion: hidden tokens reach the decoder through z alone; visible ones through their rows") {
    for (bool is_conditional : {false, true})
        for (const LatentOptions& latent : kinds) {
            Model m(hiding(latent, false, is_conditional), DType::f64);
            auto text = text_for(m.model.options, 3, 5);
            const Batch batch = batch_of(m.model, pointers_to(text), 7);
            m.tape.begin("a");
            const auto z = points(m.model.encode(m.tape, batch, nullptr));
            Tensor* h = m.model.decode(m.tape, batch, z);
            // Other words at the hidden places: only the encoder half and the labels change.
            for (int d = 0; d < 3; d++) {
                const int first = batch.parts[std::size_t(d)].target - (m.model.options.max_length - 1);
                int row = 0;
                for (int before = 0; before < d; before++) row += batch.parts[std::size_t(before)].target;
                Sentence& s = text[std::size_t(d)];
                for (int m_ = batch.labels.begin[std::size_t(d)]; m_ < batch.labels.begin[std::size_t(d) + 1]; m_++) {
                    const std::size_t place = std::size_t(batch.labels.rows[std::size_t(m_)] - row - first);
                    CHECK(batch.rows.ids[std::size_t(batch.labels.rows[std::size_t(m_)])] == mask_token);
                    Tokens& words = is_conditional ? s.target : s.ids;
                    const std::size_t at = place + !is_conditional;
                    if (at + 1 < words.size()) words[at] = 5 + (words[at] + 7) % 45;
                }
            }
            const Batch other = batch_of(m.model, pointers_to(text), 7);
            CHECK(other.rows.ids == batch.rows.ids);
            CHECK(other.source.ids != batch.source.ids);
            CHECK(other.labels.tokens != batch.labels.tokens);
            CHECK_FALSE(same_bits(z[0]->view(), points(m.model.encode(m.tape, other, nullptr))[0]->view()));
            CHECK(same_bits(h->view(), m.model.decode(m.tape, other, z)->view()));
            for (int row = 0; row < batch.rows.count(); row++) {
                Batch changed = batch;
                int& id = changed.rows.ids[std::size_t(row)];
                id = 49 - id;
                const Tensor* h_changed = m.model.decode(m.tape, changed, z);
                const int document = batch.rows.document[std::size_t(row)];
                for (int i = 0; i < batch.labels.count; i++) {
                    const int asked = batch.labels.rows[std::size_t(i)];
                    // A place sees all places of its document and the source, and nothing of other documents.
                    CHECK(same_row(h, h_changed, i) == (batch.rows.document[std::size_t(asked)] != document));
                }
            }
            m.tape.end();
        }
}

TEST_CASE("univae, diffusion: the losses of a document alone == in any batch, any number of threads") {
    for (bool is_conditional : {false, true}) {
        UniVaeOptions o = hiding(gaussian(), true, is_conditional);
        o.backbone.dropout = o.backbone.attention_dropout = 0.1;
        Model m(o, DType::f32);
        const auto losses_of = [&](const Sentences& some, int pad_to, int which) {
            const Batch batch = batch_of(m.model, some, 3, pad_to);
            const LatentNoise noise = m.model.space.noise(batch.names(), 5, 3);
            m.tape.begin(batch.bucket, 5, 3, true);
            const Numbers all = numbers_of(m.model.loss(m.tape, batch, &noise, 1).losses->view());
            m.tape.end();
            return Numbers(all.begin() + batch.labels.begin[std::size_t(which)],
                           all.begin() + batch.labels.begin[std::size_t(which) + 1]);
        };
        int labelled = 0;
        for (std::uint64_t seed = 0; seed < 10; seed++) {
            const auto text = text_for(o, 3 + int(seed) % 9, seed);
            const Sentences all = pointers_to(text);
            const int which = int(seed % all.size());
            set_threads(1);
            const Numbers alone = losses_of({all[std::size_t(which)]}, 1, 0);
            labelled += !alone.empty();  // a text without words can have no hidden place before its end
            CHECK(alone == losses_of(all, 1, which));
            CHECK(alone == losses_of(all, 32, which));
            set_threads(4);
            CHECK(alone == losses_of(all, 32, which));
        }
        CHECK(labelled > 7);
    }
}

TEST_CASE("univae, diffusion: held-out losses are the mean over canvases, with the own z and with the z of another") {
    for (bool is_conditional : {false, true}) {
        Model m(hiding(gaussian(), false, is_conditional), DType::f64, /*planning=*/false);
        const auto text = text_for(m.model.options, 5, 4);
        const Sentences all = pointers_to(text);
        ObjectiveOptions o = options_for(m.model, 8);
        o.canvases = 4;
        const HeldOut h = held_out_losses(m.model, all, o);
        double tokens = 0, own = 0, other = 0, kl = 0;
        std::set<double> of_first;  // the weights of the canvases of the first sentence
        for (std::size_t i = 0; i < all.size(); i++)
            for (o.canvas = 0; o.canvas < o.canvases; o.canvas++) {
                const Batch batch = halves_batch(m.model, {all[i]}, 0, o, 1);
                const Batch before = halves_batch(m.model, {all[(i + 4) % 5]}, 0, o, 1);
                const LatentNoise noise = m.model.space.noise(batch.names(), 8, 0);
                const LatentNoise noise_before = m.model.space.noise(before.names(), 8, 0);
                m.tape.begin("a");
                const auto samples = m.model.encode(m.tape, batch, &noise);
                const auto loss = [&](const std::vector<Tensor*>& z) {
                    Tensor* states = m.model.backbone.head(m.tape, m.model.decode(m.tape, batch, z));
                    const Numbers each =
                        numbers_of(m.model.backbone.token_losses(m.tape, states, batch.labels.tokens)->view());
                    double sum = 0;
                    for (std::size_t k = 0; k < each.size(); k++) sum += each[k] * batch.labels.weights[k];
                    return sum;
                };
                own += loss(points(samples));
                other += loss(points(m.model.encode(m.tape, before, &noise_before)));
                if (i == 0) of_first.insert(batch.labels.weights.at(0));
                if (o.canvas == 0) {
                    tokens += batch.predictions();
                    for (const LatentSample& s : samples) kl += number_at(s.kl->view(), 0);
                }
                m.tape.end();
            }
        CHECK(of_first.size() == 4);  // every canvas hides another number of places
        CHECK(h.tokens == tokens);
        CHECK(h.own == doctest::Approx(own / tokens).epsilon(1e-12));
        CHECK(h.other == doctest::Approx(other / tokens).epsilon(1e-12));
        CHECK(h.kl == doctest::Approx(kl / 5).epsilon(1e-12));
        CHECK(h.elbo == doctest::Approx(-(own + kl) / 5).epsilon(1e-12));
        CHECK(h.at_place.empty());
    }
}

TEST_CASE("univae, diffusion: it learns by heart, and writes in one pass, in steps, and one place a pass") {
    for (bool is_conditional : {false, true})
        for (bool pre_norm : {false, true}) {
            CAPTURE(is_conditional);
            UniVaeOptions o = hiding(gaussian(), pre_norm, is_conditional);
            Model m(o, DType::f32, false);
            auto text = text_for(o, 3, 21);
            for (Sentence& s : text)
                if (is_conditional) s.ids = text[0].ids;  // one source, so that only z tells which target is meant
            AdamW optimiser(m.parameters, {0.9, 0.98, 1e-8, 0, 1});
            constexpr std::uint32_t steps = 1000;
            for (std::uint32_t step = 0; step < steps; step++) {
                for (std::size_t i = 0; i < text.size(); i++) text[i].visit = step * text.size() + i;
                const Batch batch = batch_of(m.model, pointers_to(text), step, 8);
                const LatentNoise noise = m.model.space.noise(batch.names(), 1, step);
                m.tape.begin("learn", 1, step, true);
                const UniVae::Loss loss = m.model.loss(m.tape, batch, &noise, 0.001);
                m.parameters.start_gradients();
                m.tape.backward(loss.total);
                m.parameters.finish_gradients();
                optimiser.update(step + 1, 5e-3 * (1 - step / double(steps)));
                m.tape.end();
            }
            UniVaeDecoder decoder(m.model, {});
            const auto requests = reconstructions(m.model, pointers_to(text));
            for (const auto& [per_pass, threshold, steps_of_all] :
                 {std::tuple(0, -1.0, 0), std::tuple(3, -1.0, 0), std::tuple(0, 0.0, 0), std::tuple(0, -1.0, 2)}) {
                SearchOptions options;
                options.unmask.per_pass = per_pass, options.unmask.steps = steps_of_all;
                options.canvas.threshold = threshold;
                const auto all = decoder.in_any_order(requests, options, 1);
                const std::vector<Tokens> texts = decoder.write(requests, options, 1, 2);
                REQUIRE(all.size() == text.size());
                for (std::size_t i = 0; i < text.size(); i++) {
                    const Tokens& wanted = is_conditional ? text[i].target : text[i].ids;
                    const Tokens expected(wanted.begin() + !is_conditional, wanted.end() - 1);
                    CHECK(all[i].at(0).tokens == expected);
                    CHECK(all[i][0].ended);
                    CHECK(texts[i] == expected);  // also if it is encoded and written again
                    if (threshold == 0) CHECK(all[i][0].rounds == 1);
                    if (steps_of_all == 2) CHECK(all[i][0].rounds <= 2);
                }
            }
        }
}

TEST_CASE("univae, diffusion: a sentence is written alone as in any batch, within its limits") {
    for (bool is_conditional : {false, true}) {
        const UniVaeOptions o = hiding(gaussian(), true, is_conditional);
        Model m(o, DType::f32);
        const auto text = text_for(o, 70, 2);  // more than the decoder writes at a time
        UniVaeDecoder decoder(m.model, {});
        SearchOptions draws;
        draws.samples = 3;
        for (const SearchOptions& how : {SearchOptions(), draws}) {
            const auto requests = reconstructions(m.model, pointers_to(text));
            const auto together = decoder.in_any_order(requests, how, 6);
            std::set<Tokens> different;
            std::size_t longest = 0, unequal = 0;
            for (std::size_t i = 0; i < text.size(); i++) {
                CHECK(int(together[i].size()) == std::max(1, how.samples));
                for (const Written& w : together[i]) {
                    CHECK(w.tokens.size() <= std::size_t(o.max_length) - 2);
                    CHECK(w.came.size() == w.tokens.size());
                    for (int token : w.tokens) CHECK((token == 1 || token >= 5));
                    different.insert(w.tokens);
                    longest = std::max(longest, w.tokens.size());
                    unequal += w.tokens != together[i][0].tokens;
                }
                if (i % 9 > 0) continue;
                const auto alone = decoder.in_any_order({requests[i]}, how, 6).at(0);
                for (std::size_t s = 0; s < alone.size(); s++) {
                    CHECK(alone[s].tokens == together[i][s].tokens);
                    CHECK(alone[s].score == together[i][s].score);
                }
            }
            CHECK(different.size() > 3);
            CHECK(longest == std::size_t(o.max_length) - 2);
            if (how.samples > 0) CHECK(unequal > 100);
        }
        auto two = reconstructions(m.model, {&text[0]});
        two.push_back(two[0]);
        two[1].sample = 1;
        draws.samples = 4, draws.minimum = 6;
        std::set<Tokens> of_points;
        for (const auto& samples : decoder.in_any_order(two, draws, 6))
            for (const Written& w : samples) of_points.insert(w.tokens);
        CHECK(of_points.size() == 8);
        SearchOptions options;
        options.maximum = 4, options.minimum = 2;
        options.forbidden = {
            decoder.in_any_order(reconstructions(m.model, {&text[0]}), options, 1)[0].at(0).tokens.at(0)};
        for (const Hypotheses& h : decoder.search(reconstructions(m.model, pointers_to(text)), options, 1)) {
            CHECK(h.at(0).tokens.size() <= 3);
            CHECK(h[0].tokens.size() >= 2);
            CHECK(std::count(h[0].tokens.begin(), h[0].tokens.end(), options.forbidden[0]) == 0);
        }
        options.beams = 2;
        CHECK_THROWS_WITH_AS(decoder.search({}, options, 1), doctest::Contains("a run of diffusion writes by"),
                             BadUsage);
        options.beams = 1, options.unmask.lengths = 2;
        CHECK_THROWS_WITH_AS(decoder.search({}, options, 1), doctest::Contains("--lengths is of"), BadUsage);
    }
}

TEST_CASE("univae, diffusion: what does not fit is refused") {
    UniVaeOptions o = hiding(gaussian(), false, false);
    const auto refused = [&](const std::string& mask, const char* why) {
        o.mask = mask;
        CHECK_THROWS_WITH_AS(Model(o, DType::f32), doctest::Contains(why), BadUsage);
    };
    refused("layers :2: A full; B causal", "expected \"A RULE; B full\", where B sees nothing of A");
    refused("layers :2: A full; B full sees A[0]", "below the latents; expected \"A RULE; B full\"");
    refused("layers 2:: A full; B full", "with a latent; expected \"A RULE; B full sees A[0]\"");
    refused("layers 2:: A full; B full sees A", "with a latent; expected \"A RULE; B full sees A[0]\"");
    refused("layers 2:: A full sees B; B full sees A[0]", "with a latent; expected");
    o.mask = "", o.latent_layers = 0;
    CHECK_THROWS_WITH_AS(Model(o, DType::f32), doctest::Contains("decoder=diffusion needs latents"), BadUsage);
    o = hiding(gaussian(), false, false);
    Model m(o, DType::f32);
    const auto text = text_for(o, 1, 1);
    CHECK_THROWS_WITH_AS(halves_batch(m.model, pointers_to(text), 0, halves_options(m.model), 1),
                         doctest::Contains("needs [MASK] in the vocabulary"), BadUsage);
}
