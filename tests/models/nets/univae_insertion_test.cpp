// SPDX-License-Identifier: MIT
// Tests a UniVAE whose decoder half inserts words: the joint form and the split form give the same bits; no information
// bypasses the latents; the gradient of every variant agrees with the complex step; the loss is a mean over insertions;
// a sentence alone gives the same as in any batch; and the model learns sentences and pairs by heart.
#include <doctest/doctest.h>

#include <cmath>
#include <set>

#include "engine/ops/cpu/parallel.h"
#include "engine/train/adamw.h"
#include "tests/models/nets/univae_any_order.h"

using namespace masquerade;
using namespace masquerade::small_univae;

namespace {

UniVaeOptions inserting(const LatentOptions& latent, bool pre_norm, bool is_conditional) {
    return any_order(UniVaeOptions::Decoder::insertion, latent, pre_norm, is_conditional);
}
LatentOptions gaussian() { return small(LatentKind::gaussian, false, false).latent; }

std::vector<Sentence> text_for(const UniVaeOptions& o, int count, std::uint64_t seed) {
    return o.conditional ? pairs(count, 11, seed) : sentences(count, 11, 50, seed);
}

Batch batch_of(const UniVae& model, const Sentences& text, std::uint32_t step, const InsertionRule& rule = {},
               int pad_to = 1) {
    ObjectiveOptions o = halves_options(model);
    o.insertion = rule;
    o.joint = pad_to == 1;
    return halves_batch(model, text, step, o, pad_to);
}

std::vector<Written> first_of_each(const std::vector<std::vector<Written>>& texts) {
    std::vector<Written> first;
    for (const std::vector<Written>& samples : texts) first.push_back(samples.at(0));
    return first;
}

// Encodes the sentences without noise, and inserts their words into empty canvases. Returns what is written.
std::vector<Written> reconstructed(const UniVae& model, const Sentences& text, const CanvasOptions& how = {}) {
    UniVaeDecoder decoder(model, {});
    SearchOptions options;
    options.canvas = how;
    return first_of_each(decoder.in_any_order(reconstructions(model, text), options, 1));
}

const AnyOrder insertion = {UniVaeOptions::Decoder::insertion, text_for,
                            [](const UniVae& model, const Sentences& text, std::uint32_t step, int pad_to) {
                                return batch_of(model, text, step, {}, pad_to);
                            },
                            [](const Batch& batch) { return batch.rows.count(); }};

}  // namespace

TEST_CASE("univae, insertion: joint == split, == in double, for every attention and kind of latent") {
    check_joint(insertion);
}

TEST_CASE("univae, insertion: the gradient of every variant against the complex step, 1e-12") {
    std::vector<UniVaeOptions> all;
    for (int i = 0; i < 20; i++) {  // every variant of the head, conditional or not
        UniVaeOptions o = inserting(gaussian(), i % 3 == 0, i >= 10);
        o.insertion.joint = i & 1;
        o.insertion.contextual_bias = i & 2;
        o.insertion.mixture = i & 4 ? 3 : 1;
        o.insertion.projection = i % 10 < 8;
        all.push_back(o);
    }
    for (const LatentOptions& latent : kinds_of_pairs) all.push_back(inserting(latent, true, latent.free_bits > 0));
    for (UniVaeOptions& o : all) {
        check_gradient(insertion, o);
    }
}

TEST_CASE("univae, insertion: the loss is the mean over insertions, one for each word and one for the end") {
    for (bool is_conditional : {false, true}) {
        Model m(inserting(gaussian(), false, is_conditional), DType::f64);
        const auto text = text_for(m.model.options, 6, 9);
        for (int pad_to : {1, 16}) {
            const Batch batch = batch_of(m.model, pointers_to(text), 2, {}, pad_to);
            const LatentNoise noise = m.model.space.noise(batch.names(), 2, 1);
            m.tape.begin(batch.bucket);
            const UniVae::Loss loss = m.model.loss(m.tape, batch, &noise, 0.3);
            double sum = 0, insertions = 0;
            for (int d = 0; d < 6; d++) {
                const Sentence& s = text[std::size_t(d)];
                // The tokens of a target end with [SEP]; a sentence also begins with [CLS].
                const double own = is_conditional ? double(s.target.size()) : double(s.ids.size()) - 1;
                sum += own * number_at(loss.losses->view(), d);
                insertions += own;
                for (const LatentSample& z : loss.latents) sum += 0.3 * number_at(z.kl->view(), d);
            }
            CHECK(batch.predictions() == insertions);
            CHECK(number_at(loss.total->view(), 0) == doctest::Approx(sum / insertions).epsilon(1e-12));
            m.tape.end();
        }
    }
}

TEST_CASE(
    "univae, insertion: words that the canvas lacks reach the decoder through z alone; the canvas through its rows") {
    for (bool is_conditional : {false, true})
        for (const LatentOptions& latent : kinds) {
            Model m(inserting(latent, false, is_conditional), DType::f64);
            const auto text = text_for(m.model.options, 3, 5);
            const Batch batch = batch_of(m.model, pointers_to(text), 7);
            m.tape.begin("a");
            const auto z = points(m.model.encode(m.tape, batch, nullptr));
            Tensor* h = m.model.decode(m.tape, batch, z);
            Batch other = batch;  // other words in all encoder halves
            for (int& id : other.source.ids)
                if (id >= 5) id = 5 + (id + 7) % 45;
            CHECK_FALSE(same_bits(z[0]->view(), points(m.model.encode(m.tape, other, nullptr))[0]->view()));
            CHECK(same_bits(h->view(), m.model.decode(m.tape, other, z)->view()));
            const std::int64_t C = h->columns();
            for (int row = 0; row < batch.rows.count(); row++) {
                Batch changed = batch;
                int& id = changed.rows.ids[std::size_t(row)];
                id = 49 - id;
                const Tensor* h_changed = m.model.decode(m.tape, changed, z);
                for (int r = 0; r < batch.rows.count(); r++) {
                    bool same = true;
                    for (std::int64_t c = 0; c < C; c++)
                        same &= number_at(h->view(), r * C + c) == number_at(h_changed->view(), r * C + c);
                    // A source sees only itself; a canvas sees itself and the source, in both directions. The latent
                    // replaces the row of a source's [CLS], but only at layer 2; the layers below see the old row.
                    const bool one = batch.rows.document[std::size_t(r)] == batch.rows.document[std::size_t(row)];
                    const auto is_source = [&](int at) {
                        return is_conditional && batch.rows.types[std::size_t(at)] == 0;
                    };
                    CHECK(same == !(one && (is_source(row) || !is_source(r))));
                }
            }
            m.tape.end();
        }
}

TEST_CASE("univae, insertion: the losses of a document alone == in any batch, any number of threads") {
    for (bool is_conditional : {false, true}) {
        UniVaeOptions o = inserting(gaussian(), true, is_conditional);
        o.backbone.dropout = o.backbone.attention_dropout = 0.1;
        Model m(o, DType::f32);
        const auto loss_of = [&](const Sentences& some, int pad_to, int which) {
            const Batch batch = batch_of(m.model, some, 3, {}, pad_to);
            const LatentNoise noise = m.model.space.noise(batch.names(), 5, 3);
            m.tape.begin(batch.bucket, 5, 3, true);
            const double loss = number_at(m.model.loss(m.tape, batch, &noise, 1).losses->view(), which);
            m.tape.end();
            return loss;
        };
        for (std::uint64_t seed = 0; seed < 10; seed++) {
            const auto text = text_for(o, 3 + int(seed) % 9, seed);
            const Sentences all = pointers_to(text);
            const int which = int(seed % all.size());
            set_threads(1);
            const double alone = loss_of({all[std::size_t(which)]}, 1, 0);
            CHECK(alone == loss_of(all, 1, which));
            CHECK(alone == loss_of(all, 32, which));
            set_threads(4);
            CHECK(alone == loss_of(all, 32, which));
        }
    }
}

TEST_CASE("univae, insertion: it learns by heart, and writes greedily, in parallel, and by every rule of the end") {
    for (bool is_conditional : {false, true})
        for (const auto& [from_the_left, sequence, parallel] :
             {std::tuple(false, false, true), std::tuple(false, true, false), std::tuple(true, false, false)}) {
            CAPTURE(is_conditional);
            const bool left_to_right = from_the_left;
            CAPTURE(left_to_right);
            UniVaeOptions o = inserting(gaussian(), true, is_conditional);
            Model m(o, DType::f32, false);
            auto text = text_for(o, 3, 21);
            for (Sentence& s : text)
                if (is_conditional) s.ids = text[0].ids;  // one source, so that only z tells which target is meant
            InsertionRule rule;
            rule.left_to_right = left_to_right, rule.sequence = sequence, rule.tau = 0.25;
            AdamW optimiser(m.parameters, {0.9, 0.98, 1e-8, 0, 1});
            for (std::uint32_t step = 0; step < 1500; step++) {
                const Batch batch = batch_of(m.model, pointers_to(text), step, rule, 8);
                const LatentNoise noise = m.model.space.noise(batch.names(), 1, step);
                m.tape.begin("learn", 1, step, true);
                const UniVae::Loss loss = m.model.loss(m.tape, batch, &noise, 0.001);
                m.parameters.start_gradients();
                m.tape.backward(loss.total);
                m.parameters.finish_gradients();
                optimiser.update(step + 1, 5e-3 * (1 - step / 1500.0));
                m.tape.end();
            }
            for (bool at_once : {false, true}) {
                if (at_once && !parallel) continue;
                UniVaeDecoder::Special special;
                if (left_to_right || sequence) special.finalization = Finalization::sequence;
                UniVaeDecoder decoder(m.model, special);
                SearchOptions options;
                options.canvas.parallel = at_once;
                const auto requests = reconstructions(m.model, pointers_to(text));
                const std::vector<Written> all = first_of_each(decoder.in_any_order(requests, options, 1));
                const std::vector<Tokens> texts = decoder.write(requests, options, 1, 2);
                for (std::size_t i = 0; i < text.size(); i++) {
                    const Tokens& wanted = is_conditional ? text[i].target : text[i].ids;
                    const Tokens expected(wanted.begin() + !is_conditional, wanted.end() - 1);
                    CHECK(all[i].tokens == expected);
                    CHECK(all[i].ended);
                    CHECK(texts[i] == expected);  // also if it is encoded and written again
                    if (at_once) CHECK(all[i].rounds <= fewest_rounds(int(expected.size())) + 1);
                }
            }
        }
}

TEST_CASE("univae, insertion: a sentence is written alone as in any batch, within its limits") {
    for (bool is_conditional : {false, true}) {
        const UniVaeOptions o = inserting(gaussian(), true, is_conditional);
        Model m(o, DType::f32);
        const auto text = text_for(o, 70, 2);  // more than the decoder writes at a time
        const auto together = reconstructed(m.model, pointers_to(text));
        std::set<Tokens> different;
        for (std::size_t i = 0; i < text.size(); i++) {
            CHECK(together[i].tokens.size() <= std::size_t(o.max_length) - 2);
            for (int token : together[i].tokens) CHECK((token == 1 || token >= 5));
            different.insert(together[i].tokens);
            if (i % 9 > 0) continue;
            CHECK(reconstructed(m.model, {&text[i]})[0].tokens == together[i].tokens);
        }
        CHECK(different.size() > 3);
        UniVaeDecoder decoder(m.model, {});
        SearchOptions options;
        options.maximum = 4;
        options.forbidden = {together[0].tokens.at(0)};
        for (const Hypotheses& h : decoder.search(reconstructions(m.model, pointers_to(text)), options, 1)) {
            CHECK(h.at(0).tokens.size() <= 3);
            CHECK(std::count(h[0].tokens.begin(), h[0].tokens.end(), options.forbidden[0]) == 0);
        }
        options.beams = 2;
        CHECK_THROWS_WITH_AS(decoder.search(reconstructions(m.model, {&text[0]}), options, 1),
                             doctest::Contains("beams and samples are not possible"), BadUsage);
    }
}

TEST_CASE("univae, insertion: what does not fit is refused") {
    UniVaeOptions o = inserting(gaussian(), false, false);
    o.mask = "A full; B causal";
    CHECK_THROWS_WITH_AS(Model(o, DType::f32), doctest::Contains("leave out mask="), BadUsage);
    o.mask = "", o.latent_layers = 0;
    CHECK_THROWS_WITH_AS(Model(o, DType::f32), doctest::Contains("decoder=insertion needs latents"), BadUsage);
}
