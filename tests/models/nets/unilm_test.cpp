// SPDX-License-Identifier: MIT
// Tests UniLM: writing with a cache gives the bits of a teacher-forced pass, in any order of continuations; the
// gradient of the whole model; learning texts by heart and writing them again; mixtures of objectives; and starting
// from the weights of another run.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <map>

#include "engine/tensor/numbers.h"
#include "engine/train/adamw.h"
#include "models/masks/builder.h"
#include "models/runs/unilm_run.h"
#include "models/masks/mask.h"
#include "tests/models/nets/block_kinds.h"
#include "tests/models/nets/random_kinds.h"
#include "tests/models/runs/small_pairs.h"

using namespace masquerade;
using namespace masquerade::small_pairs;

namespace {

BackboneOptions small(bool pre_norm, bool rotary) {
    BackboneOptions o;
    o.vocabulary = V;
    o.width = 16;
    o.heads = 2;
    o.inner = 24;
    o.layers = 3;
    o.positions = 40;
    o.rotary = rotary;
    o.pre_norm = pre_norm;
    o.deviation = 0.3;
    return o;
}

struct Model : Small<UniLm, BackboneOptions> {
    using Small::Small;
    // Returns the logits of every scored row.
    std::vector<std::vector<float>> forced(const Batch& batch) {
        tape.begin("forced");
        const OnHost logits(model.backbone.logits(tape, model.hidden(tape, batch))->view());
        std::vector<std::vector<float>> rows(batch.labels.rows.size());
        for (std::size_t m = 0; m < rows.size(); m++)
            for (int v = 0; v < V; v++) rows[m].push_back(float(logits[std::int64_t(m) * V + v]));
        tape.end();
        return rows;
    }
};

// Writes targets token by token with a cache. Checks that the logits equal those of a pass over the whole text.
void check_cached(const BackboneOptions& o, const std::string& name, const std::string& mask, int start,
                  DType type = DType::f32) {
    CAPTURE(name);
    CAPTURE(mask);
    CAPTURE(o.attention);
    Model m(o, type);
    const std::vector<Sentence> text = pairs(5, 11);
    ObjectiveOptions by = options(start);
    if (!mask.empty()) by.masks = std::make_shared<const LayerMasks>(mask, 3);
    const Batch batch = find_objective(name).batch(pointers_to(text), 0, by);
    const AttentionWords kinds(o.attention, o.layers);
    for (int layer : {0, 1})
        if (&kinds.of(layer, 0) == &kinds.of(layer, 1) && !kinds.of(layer, 0).refuses(batch.graph_at(layer)).empty())
            return;
    const auto forced = m.forced(batch);
    m.parameters.freeze();
    ReadingOptions reading;
    reading.causal = reading.goes_on = name == "lm-target";
    reading.masks = by.masks;
    reading.target_start = start;
    reading.longest = longest;
    UniLmDecoder decoder(m.model, reading);
    decoder.read(pointers_to(text), int(text.size()));
    check_targets(decoder, 3, text, batch, forced);
}

BackboneOptions of_kind(const std::string& attention, bool pre_norm, bool rotary) {
    BackboneOptions o = small(pre_norm, rotary);
    o.attention = attention;
    AttentionOptions& a = o.attention_options;
    a["window"] = a["dilation"] = a["globals"] = a["reach"] = 2, a["stride"] = 3;
    a["rounds"] = a["buckets"] = a["chunk"] = 2;
    return o;
}

}  // namespace

TEST_CASE("unilm: cached == teacher-forced logits, bit for bit, for every source of a batch") {
    for (const AttentionKind& attention : attention_kinds())
        for (bool pre_norm : {false, true})
            for (bool rotary : {false, true})
                for (int start : {-1, 16})
                    for (const auto& [name, mask] :
                         {std::pair("unilm", ""), std::pair("lm-target", ""),
                          std::pair("unilm", "A full; B causal | layers 1: A full; B causal sees A[0]"),
                          std::pair("unilm", "A causal; B causal window=2 sees A[1:-1]"),
                          std::pair("lm-target", "layers 1:2: AB causal")})
                        if (!rotary || attention.rotates)
                            check_cached(of_kind(attention.name, pre_norm, rotary), name, mask, start);
}

TEST_CASE("unilm: cached == teacher-forced logits, bit for bit, in bf16") {
    for (const AttentionKind& attention : attention_kinds())
        for (bool pre_norm : {false, true})
            for (const char* name : {"unilm", "lm-target"})
                check_cached(of_kind(attention.name, pre_norm, attention.rotates), name, "", -1, DType::bf16);
}

TEST_CASE("unilm: cached == teacher-forced logits, bit for bit, for every way that a kind has") {
    const std::vector<std::pair<const char*, AttentionOptions>> ways = {
        {"luna_causal", {{"pack", "elu"}}},
        {"luna_causal", {{"pack", "softmax"}}},
        {"luna_causal", {{"tied", true}}},
        {"performer", {{"feature_map", "hyperbolic"}}},
        {"performer", {{"feature_map", "trigonometric"}}},
        {"performer", {{"feature_map", "relu"}}},
        {"rfa", {{"gate", true}}},
        {"linformer", {{"value_weights", true}}},
        {"linformer", {{"sharing", "headwise"}, {"value_weights", true}}},
        {"linformer", {{"sharing", "layerwise"}}},
    };
    for (const auto& [kind, way] : ways) {
        BackboneOptions o = of_kind(kind, true, false);
        for (const auto& [key, value] : way) o.attention_options[key] = value;
        check_cached(o, "unilm", "", -1);
    }
}

// With biases of -200, exp(x) underflows for every number x of queries and keys, so the sum by which y is divided is 0.
TEST_CASE("unilm: linear attention whose features all underflow gives numbers, and so do its gradients") {
    Model m(of_kind("linear", true, false));
    for (const Tensor& p : m.parameters.all())
        if (p.path.find("query.bias") != p.path.npos || p.path.find("key.bias") != p.path.npos)
            write_numbers(m.parameters.master(p), std::vector<double>(std::size_t(p.shape.count()), -200).data());
    m.parameters.round();
    const std::vector<Sentence> text = pairs(3, 11);
    m.tape.begin("underflow", 1, 1, true);
    const Tensor* loss = m.loss_and_gradient(find_objective("unilm").batch(pointers_to(text), 0, options()));
    CHECK(std::isfinite(number_at(loss->view(), 0)));
    for (double g : numbers_of(m.parameters.gradients())) CHECK(std::isfinite(g));
}

TEST_CASE("unilm: cached == teacher-forced logits, bit for bit, of kinds by layer and part; their gradient") {
    Sequence random(6, "kinds");
    const SegmentGraph full = full_mask({{3, 0}}), causal = causal_mask({{3, 0}}), both = unilm_mask({{3, 2}});
    const auto honours = [](const SegmentGraph& g) {
        return [&g](const AttentionKind& kind) { return kind.refuses(g).empty(); };
    };
    for (int round = 0; round < 40; round++) {
        const bool lm = round % 3 == 2;
        BackboneOptions o = small(round % 2, round % 5 < 3);
        draw_kinds(random, o, honours(lm ? causal : full), honours(lm ? causal : both), 3);
        check_cached(o, lm ? "lm-target" : "unilm", "", round % 4 ? -1 : 16);
    }
    for (const char* words : {"A window; B lambda | layers 1:2: A luna; B softmax | layers 2:: A linear; B linear",
                              "A linformer; B window | layers 1:: A sinkhorn; B luna_causal"}) {
        CAPTURE(std::string(words));
        BackboneOptions o = small(false, false);
        o.attention = words;
        o.attention_options = {{"slots", 3}, {"features", 4}, {"chunk", 3}, {"sharing", "layerwise"}};
        const std::vector<Sentence> text = pairs(3, 11);
        CHECK(gradient_error<Model>(o, find_objective("unilm").batch(pointers_to(text), 0, options())) < 1e-12);
    }
}

TEST_CASE("unilm: cached == teacher-forced logits, bit for bit, where positions turn values, too") {
    for (const AttentionKind& attention : attention_kinds()) {
        BackboneOptions o = of_kind(attention.name, true, true);
        o.rotary_value = true;
        if (attention.rotates) check_cached(o, "unilm", "", -1);
    }
}

TEST_CASE("unilm: cached == teacher-forced logits, bit for bit, for every kind of norm and feed-forward part") {
    for (const AttentionKind& attention : attention_kinds())
        for (bool pre_norm : {false, true})
            if (attention.groups_heads)
                for (const BackboneOptions& o : with_block_kinds(of_kind(attention.name, pre_norm, true)))
                    check_cached(o, "unilm", "", -1);
}

namespace {

// Like check_cached(), for a decoder that reads a [MASK] at the next place. The logits of each token of a target come
// from a pass over the source, the tokens before it and a [MASK].
void check_cached_at_masks(const BackboneOptions& o, const std::string& mask) {
    CAPTURE(o.attention);
    Model m(o);
    const std::vector<Sentence> text = pairs(5, 11);
    ObjectiveOptions by = options();
    if (!mask.empty()) by.masks = std::make_shared<const LayerMasks>(mask, 3);
    std::vector<std::vector<float>> forced;
    Batch all;  // has only the data that check_targets() needs
    for (const Sentence& s : text) {
        for (std::size_t t = 0; t < s.target.size(); t++) {
            Sentence begun = s;
            begun.target.resize(t + 1);
            Example e;
            const int n = int(s.ids.size());
            for (int i = 0; i < n; i++) e.rows.push(s.ids[std::size_t(i)], by.source_type, i, s.name);
            for (std::size_t i = 0; i <= t; i++)
                e.rows.push(i < t ? s.target[i] : by.mask, by.target_type, n + int(i), s.name);
            e.labels.push(e.rows.count() - 1, s.target[t]);
            e.document = {n, int(t) + 1};
            Batch one = pack({e}, 0);
            find_objective("unilm-masked").give_masks(one, by);
            for (int layer : {0, 1})
                if (!find_attention(o.attention).refuses(one.graph_at(layer)).empty()) return;
            forced.push_back(m.forced(one).at(0));
        }
        all.labels.begin.push_back(int(forced.size()));
    }
    ReadingOptions reading;
    reading.masks = by.masks;
    reading.longest = longest;
    reading.mask = by.mask;
    UniLmDecoder decoder(m.model, reading);
    decoder.read(pointers_to(text), int(text.size()));
    check_targets(decoder, 3, text, all, forced);
}

}  // namespace

TEST_CASE("unilm: at a [MASK], cached == forced logits, bit for bit, for every kind of attention") {
    for (const AttentionKind& attention : attention_kinds()) {
        check_cached_at_masks(of_kind(attention.name, false, attention.rotates), "");
        check_cached_at_masks(of_kind(attention.name, true, false),
                              "A full; B causal | layers 1: A full; B causal window=2 sees A[0]");
    }
}

TEST_CASE("unilm: prefixes branch, die and swap; each has the logits it has alone") {
    for (const char* kind : {"softmax", "lsh", "sinkhorn"}) {
        Model m(of_kind(kind, false, true));
        const std::vector<Sentence> text = pairs(2, 5);
        ReadingOptions reading;
        reading.longest = longest;
        for (int mask : {-1, 4}) {
            reading.mask = mask;
            check_branches([&] { return UniLmDecoder(m.model, reading); }, 3, text);
        }
    }
}

namespace {

// Returns texts that end with at least `given` given tokens. Before the given tokens, `missing` tokens are missing:
// [CLS] and ordinary tokens.
constexpr int missing = 6;
std::vector<Sentence> texts_with_endings(int count) {
    std::vector<Sentence> all = pairs(count, 17);
    Sequence random(4, "beginnings");
    for (Sentence& s : all) {
        s.target.clear();
        while (s.size() < missing + 2) s.ids.insert(s.ids.begin() + 1, 5 + int(random.below(V - 5)));
    }
    return all;
}
std::vector<Sentence> endings_of(std::vector<Sentence> all) {
    for (Sentence& s : all) s.ids.erase(s.ids.begin(), s.ids.begin() + missing);
    return all;
}
ReadingOptions backward_reading() {
    ReadingOptions reading;
    reading.backward = true;
    reading.target_type = reading.source_type;
    reading.longest = missing;
    reading.room = 40;
    return reading;
}

}  // namespace

namespace {

// Compares rows up to small errors. A state adds the keys of a text in another order than a pass over the whole text,
// so the last digits may differ.
struct NearRow : std::vector<float> {
    using std::vector<float>::vector;
};
bool operator==(const NearRow& a, const NearRow& b) {
    return std::equal(a.begin(), a.end(), b.begin(), [](float x, float y) { return std::abs(x - y) < 1e-4f; });
}

template <class Row = std::vector<float>>
void check_cached_backward(const BackboneOptions& o) {
    CAPTURE(o.attention);
    Model m(o);
    const std::vector<Sentence> text = texts_with_endings(5), endings = endings_of(text);
    const Batch batch = find_objective("lm-reverse").batch(pointers_to(text), 0, options());
    std::vector<Row> forced;
    for (const auto& row : m.forced(batch)) forced.emplace_back(row.begin(), row.end());
    UniLmDecoder decoder(m.model, backward_reading());
    decoder.read(pointers_to(endings), int(text.size()));
    const auto token = [&](int s, int t) {  // some texts are finished earlier
        return s < t / 2 ? -1 : t == 0 ? 3 : text[std::size_t(s)].ids[std::size_t(missing - t)];
    };
    // Scored row p - 1 predicts the token before place p, because [CLS] has no row.
    const auto row = [&](int s, int t) { return batch.labels.begin[std::size_t(s)] + missing - t - 1; };
    check_steps(decoder, int(text.size()), missing, token, row, forced);
}

}  // namespace

TEST_CASE("unilm: backward, cached == teacher-forced logits, bit for bit, for every ending of a batch") {
    for (bool pre_norm : {false, true})
        for (bool rotary : {false, true}) {
            check_cached_backward(small(pre_norm, rotary));
            for (const char* kind : {"lsh", "sinkhorn"}) check_cached_backward(of_kind(kind, pre_norm, rotary));
        }
}

TEST_CASE("unilm: patterns of attention backward: by distances alone") {
    for (const char* kind : {"window", "strided"}) check_cached_backward(of_kind(kind, false, true));
    check_cached_backward<NearRow>(of_kind("lambda", false, false));
    for (const char* kind : {"longformer", "fixed", "local"})
        CHECK_THROWS_WITH_AS(check_cached_backward(of_kind(kind, false, true)),
                             doctest::Contains("that token is written last"), BadUsage);
}

TEST_CASE("unilm: backward, prefixes branch, die and swap; each has the logits it has alone") {
    Model m(small(false, false));
    check_branches([&] { return UniLmDecoder(m.model, backward_reading()); }, 3, endings_of(texts_with_endings(2)));
}

// UniAE, written as a mask in words. The target learns about the source only from [CLS], and in the lower layers the
// target sees nothing of the source. With one layer, [CLS] has read nothing. With two layers, every row that predicts a
// token depends on each token of the source, but only by way of [CLS].
TEST_CASE("unilm: masks in words stand layer by layer in place of the objective's own") {
    const std::vector<Sentence> text = pairs(2, 4);
    auto logits = [&](int layers, const char* words, int changed) {
        BackboneOptions o = small(false, true);
        o.layers = layers;
        Model m(o, DType::f64);
        ObjectiveOptions by = options();
        if (*words) by.masks = std::make_shared<const LayerMasks>(words, layers);
        Batch batch = find_objective("unilm").batch(pointers_to(text), 0, by);
        if (changed >= 0) batch.rows.ids[std::size_t(changed)] = 7 + (batch.rows.ids[std::size_t(changed)] + 1) % 5;
        m.tape.begin("logits");
        const OnHost all(m.model.backbone.logits(m.tape, m.model.hidden(m.tape, batch))->view());
        std::vector<double> numbers;
        for (std::int64_t i = 0; i < all.view().count(); i++) numbers.push_back(all[i]);
        m.tape.end();
        return numbers;
    };
    const char* uniae = "A full; B causal | layers -1: A full; B causal sees A[0]";
    // Whether the row of the second token of a target depends on token 1 of the source.
    auto hears = [&](int layers, const char* words) {
        const std::vector<double> before = logits(layers, words, -1), after = logits(layers, words, 1);
        return !std::equal(before.begin() + V, before.begin() + 2 * V, after.begin() + V);
    };
    CHECK(hears(1, ""));
    CHECK_FALSE(hears(1, uniae));
    CHECK_FALSE(hears(3, "A full; B causal"));
    CHECK(hears(2, uniae));
    CHECK(logits(2, "A full; B causal sees A", -1) == logits(2, "", -1));
    CHECK(logits(3, "A full; B causal | layers 0:3: A full; B causal sees A", -1) == logits(3, "", -1));
    CHECK_THROWS_WITH_AS(LayerMasks("layers 2 A full", 3), doctest::Contains("\"2\" is no range of layers"), BadUsage);
    for (const char* words : {"A full; B full", "A full; B strict-causal", "A full sees B; B causal", "AB full",
                              "A full; B causal sees A[0], A[2]", "A full; B causal window=2 over=all sees A"})
        CHECK_THROWS_WITH_AS(MaskWords(words).written(5, false), doctest::Contains("written token by token"), BadUsage);
    CHECK(LayerMasks("A full | layers 1:-1: A causal", 4).of_layers() == std::vector<int>{0, 1, 1, 0});
}

TEST_CASE("unilm: the gradient of every objective against the complex step") {
    for (const Objective& objective : objectives()) {
        CAPTURE(std::string(objective.name));
        const std::vector<Sentence> text = pairs(3, 2);
        ObjectiveOptions by = options();
        if (objective.has(Objective::counts)) by.vocabulary = V - 16;  // the other ids are numbers
        const Batch batch = objective.batch(pointers_to(text), 1, by, 16);
        const double smoothing = objective.name == std::string("unilm") ? 0.1 : 0;
        CHECK(gradient_error<Model>(small(true, true), batch, smoothing) <= 1e-11);
    }
}

// The rows of a pass are only those that its factor may see: the sentence with [MASK]s, the tokens of the earlier
// spans, and the pseudo masks of the span that is predicted. In pass 0, the [MASK]s of the sentence predict all spans.
TEST_CASE("unilm: the losses of pmlm are those of its factors, each by a pass of its own") {
    Model m(small(false, true), DType::f64);
    const std::vector<Sentence> text = pairs(1, 6);
    ObjectiveOptions o = options();
    o.hidden = 0.6;
    int most = 0;
    for (std::uint32_t step = 0; step < 6; step++) {
        const Batch batch = find_objective("pmlm").batch(pointers_to(text), step, o);
        m.tape.begin("together");
        const std::vector<double> together = numbers_of(m.model.losses(m.tape, batch).each->view());
        m.tape.end();
        std::map<std::pair<int, bool>, double> found;  // key: position, and whether the row is a pseudo mask
        for (std::size_t i = 0; i < together.size(); i++) {
            const auto row = std::size_t(batch.labels.rows[i]);
            found[{batch.rows.positions[row], batch.rank[row] < 0}] = together[i];
        }
        const int spans = *std::max_element(batch.rank.begin(), batch.rank.end());
        most = std::max(most, spans);
        std::size_t checked = 0;
        for (int span = 0; span <= spans; span++) {
            TokenRows rows;
            std::vector<int> tokens, asked;
            SegmentBuilder build;
            build.next_document();
            std::vector<int> seen;
            const auto add = [&](int weight) {
                const int first = rows.count();
                for (int i = 0; i < batch.rows.count(); i++) {
                    if (batch.rank[std::size_t(i)] != weight) continue;
                    const int position = batch.rows.positions[std::size_t(i)];
                    const int source = int(text[0].ids.size());
                    if (weight < 0 || (span == 0 && batch.rows.ids[std::size_t(i)] == o.mask)) {
                        asked.push_back(rows.count());
                        tokens.push_back(position < source ? text[0].ids[std::size_t(position)]
                                                           : text[0].target[std::size_t(position - source)]);
                    }
                    rows.push_from(batch.rows, i);
                }
                seen.push_back(build.tokens(rows.count() - first));
                build.look(Rule::full, seen.back(), seen);
            };
            add(0);
            for (int earlier = 1; earlier < span; earlier++) add(earlier);
            if (span > 0) add(-span);
            const SegmentGraph graph = build.take();
            const Backbone& stack = m.model.backbone;
            m.tape.begin("alone");
            Tensor* x = stack.head(m.tape, stack.finish(m.tape, stack.run(m.tape, rows, graph)));
            const std::vector<double> logits = numbers_of(stack.logits(m.tape, x)->view());
            for (std::size_t i = 0; i < asked.size(); i++, checked++) {
                const double* row = &logits[std::size_t(asked[i]) * V];
                double sum = 0;
                for (int v = 0; v < V; v++) sum += std::exp(row[v]);
                const double expected = std::log(sum) - row[tokens[i]];
                const auto key = std::pair(rows.positions[std::size_t(asked[i])], span > 0);
                REQUIRE(found.count(key));
                CHECK(std::abs(found[key] - expected) <= 1e-11);
            }
            m.tape.end();
        }
        CHECK(checked == together.size());
    }
    CHECK(most >= 3);
}

TEST_CASE("unilm: two pairs are learned by heart and written again") {
    const std::vector<Sentence> text = pairs(2, 9);
    BackboneOptions o = small(false, true);
    o.deviation = 0.05;
    for (const char* objective : {"unilm", "unilm-masked"}) {
        CAPTURE(std::string(objective));
        const bool masked = find_objective(objective).has(Objective::at_mask);
        Model m(o);
        const double last = learned(m, masked ? 250 : 150, [&](std::uint32_t step) {
            return find_objective(objective).batch(pointers_to(text), step, options());
        });
        CHECK(last < 0.05);
        ReadingOptions reading;
        reading.longest = longest;
        if (masked) reading.mask = options().mask;
        UniLmDecoder decoder(m.model, reading);
        check_written(decoder, 3, text);
    }
}

TEST_CASE("unilm: a mixture takes each objective by its weight, the same one at the same step") {
    const ObjectiveMixture mixture = ObjectiveMixture::parse("mlm:2,unilm:1,lm:1");
    std::map<std::string, int> count;
    for (std::uint32_t step = 0; step < 4000; step++) {
        CHECK(&mixture.at(5, step) == &mixture.at(5, step));
        count[mixture.at(5, step).name]++;
    }
    CHECK(std::abs(count["mlm"] - 2000) <= 0.05 * 2000);
    CHECK(std::abs(count["unilm"] - 1000) <= 0.1 * 1000);
    CHECK(mixture.has(Objective::pairs));
    CHECK_FALSE(ObjectiveMixture::parse("lm").has(Objective::pairs));
    CHECK_THROWS_AS(ObjectiveMixture::parse("mlm:0"), BadUsage);
    CHECK_THROWS_AS(ObjectiveMixture::parse("mlm:1x"), BadUsage);
    CHECK_THROWS_AS(ObjectiveMixture::parse(""), BadUsage);
    CHECK_THROWS_AS(ObjectiveMixture::parse("mlm,nlm"), BadUsage);
}

TEST_CASE("unilm: the losses of ten steps are what they were, all objectives in turn") {
    // Computed in double. If a formula, an initial value, a random number or the order of the data changes, these
    // numbers change. If the change is intended, print them again.
    const std::vector<double> frozen = {4.01985, 3.77311, 3.35834, 3.8848,  3.69598,
                                        3.67778, 3.83595, 3.4221,  3.50392, 3.41944};
    const char* names[] = {"mlm", "lm", "lm-target", "lm-reverse", "prefix-lm", "unilm", "plm", "plm-shuffled"};
    const std::vector<Sentence> text = pairs(30, 13);
    BackboneOptions o = small(false, true);
    o.deviation = 0.2;
    o.dropout = o.attention_dropout = 0.1;
    Model m(o, DType::f64);
    AdamW optimiser(m.parameters, {0.9, 0.98, 1e-8, 0.01, 1});
    SentenceSource source(in_memory(text), 1);
    for (std::uint32_t step = 0; step < 10; step++) {
        const Objective& objective = find_objective(names[step % 8]);
        const Batch batch = objective.batch(source.take(60), step, options(), 16);
        m.tape.begin(batch.bucket, 1, step, true);
        Tensor* loss = m.loss_and_gradient(batch);
        optimiser.update(step + 1, 1e-2);
        const double found = number_at(loss->view(), 0);
        INFO("step ", step, ": ", found);
        CHECK(std::abs(found - frozen[step]) <= 1e-5 * std::abs(frozen[step]));
        m.tape.end();
    }
}
