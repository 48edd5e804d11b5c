// SPDX-License-Identifier: MIT
// Tests Luna's packed rows against a reference in plain loops, in which every row computes its own packed rows. Also
// tests gradients, numbers of parameters, and writing with slots.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <map>

#include "engine/ops/visible.h"
#include "models/masks/words.h"
#include "models/nets/unilm.h"
#include "models/writing/seq2seq_decoder.h"
#include "tests/models/nets/small_stacks.h"
#include "tests/train/files.h"

using namespace masquerade;
using namespace masquerade::small_pairs;

namespace {

using Row = std::vector<double>;

BackboneOptions small_luna(bool pre_norm, bool contextual, bool tied) {
    BackboneOptions o;
    o.vocabulary = V, o.width = 8, o.heads = 2, o.inner = 12, o.layers = 3, o.positions = 40, o.deviation = 0.4;
    o.attention = "luna", o.rotary = false, o.pre_norm = pre_norm;
    o.attention_options = {{"slots", 3}, {"contextual", contextual}, {"tied", tied}};
    return o;
}

// Masks that luna honours, one for each of the three layers. If two layers have different masks, some rows see
// different keys in these layers.
const std::vector<std::vector<const char*>> masks = {
    {"AB full", "AB full", "AB full"},
    {"A full; B full sees A", "A full; B full sees A", "A full; B full sees A"},
    {"A full; B none sees A", "A full; B none sees A", "A full; B none sees A"},
    {"A full; B none", "A none; B full sees A[0]", "A none; B none"},
    {"A full; B full", "A full; B full sees A[0]", "A full; B full sees A[0]"},
    {"A full; B full sees A[1:]", "A full sees B; B full", "A full; B full"},
};
const Documents documents = {{4, 3}, {2, 5}, {1, 1}};

struct Luna {
    Parameters parameters;
    Backbone stack;
    Arena arena;
    Tape tape;
    Luna(const BackboneOptions& o, DType type)
        : parameters(type), stack(parameters, o), arena(Device::cpu, Blocks::loose), tape(arena, type) {
        parameters.allocate(5);
        if (type != DType::f64) return;
        Sequence random(4, "parameters");  // changes the parameters, because all norms start equal
        const View p = parameters.values();
        for (std::int64_t i = 0; i < p.count(); i++) p.as<double>()[i] += 0.4 * (2 * random.uniform_double() - 1);
    }
    static TokenRows rows(const Documents& of, int first_name = 0) {
        TokenRows rows;
        for (std::size_t d = 0; d < of.size(); d++)
            for (int i = 0; i < of[d].source + of[d].target; i++)
                rows.push(5 + (7 * i + 3 * (first_name + int(d))) % 30, i >= of[d].source, i, first_name + int(d));
        return rows;
    }
    static std::vector<SegmentGraph> graphs(const std::vector<const char*>& words, const Documents& of) {
        std::vector<SegmentGraph> all;
        for (const char* each : words) all.push_back(MaskWords(each)(of));
        return all;
    }
    std::vector<Row> run(const TokenRows& rows, const std::vector<SegmentGraph>& graphs, bool training = false) {
        tape.begin("luna", 1, 1, training);
        const auto before = [&](int i, Tensor*&, Pass& pass) { pass.graph = &graphs[std::size_t(i)]; };
        const std::vector<Row> found = numbers(stack.run(tape, rows, stack.pass(tape, rows, graphs[0]), before));
        tape.end();
        return found;
    }
    static std::vector<Row> numbers(const Tensor* t) {
        std::vector<Row> all(std::size_t(t->rows()));
        for (std::int64_t i = 0; i < t->shape.count(); i++)
            all[std::size_t(i / t->columns())].push_back(number_at(t->view(), i));
        return all;
    }
    std::vector<Row> values(const std::string& path) { return numbers(parameters.find(path)); }
};

// Returns the keys that a row sees, in order.
std::vector<int> seen_by(const SegmentGraph& graph, int row) {
    std::vector<int> seen;
    for (const QuerySegment& q : graph.queries)
        for (int i = q.sees_begin; i < q.sees_end && row >= q.begin && row < q.end; i++) {
            const int k = graph.sees[std::size_t(i)];
            for (int j = graph.keys[std::size_t(k)].begin; j < graph.keys[std::size_t(k)].end; j++)
                if (visible(graph, q, row, k, j)) seen.push_back(j);
        }
    return seen;
}

// Computes the layers in plain loops. Every row has its own packed rows; they continue in the next layer if the row
// sees the same keys there.
struct Reference {
    Luna& m;
    const BackboneOptions& o = m.stack.options;

    Row linear(const std::string& path, const Row& x) {
        const std::vector<Row> w = m.values(path + ".weight"), b = m.values(path + ".bias");
        Row y;
        for (std::size_t i = 0; i < w.size(); i++) {
            y.push_back(b[0][i]);
            for (std::size_t j = 0; j < x.size(); j++) y[i] += w[i][j] * x[j];
        }
        return y;
    }
    Row norm(const std::string& path, const Row& x) {
        const Row w = m.values(path + ".weight")[0], b = m.values(path + ".bias")[0];
        double mean = 0, square = 0;
        for (double each : x) mean += each / double(x.size());
        for (double each : x) square += (each - mean) * (each - mean) / double(x.size());
        Row y;
        for (std::size_t i = 0; i < x.size(); i++)
            y.push_back((x[i] - mean) / std::sqrt(square + m.stack.layers[0].shape.eps) * w[i] + b[i]);
        return y;
    }
    static Row plus(Row a, const Row& b) {
        for (std::size_t i = 0; i < a.size(); i++) a[i] += b[i];
        return a;
    }
    // Returns the key and the value of x. If the option `tied` is set, one matrix computes both.
    std::pair<Row, Row> key_value(const std::string& path, const Row& x) {
        const Row y = linear(path, x);
        if (std::get<bool>(o.attention_options.at("tied"))) return {y, y};
        return {Row(y.begin(), y.begin() + o.width), Row(y.begin() + o.width, y.end())};
    }
    Row attend(const Row& q, const std::vector<std::pair<Row, Row>>& keys) {
        Row y(q.size(), 0.0);
        const std::size_t D = q.size() / std::size_t(o.heads);
        for (std::size_t h = 0; h < q.size(); h += D) {
            Row weight;
            double sum = 0;
            for (const auto& [k, v] : keys) {
                double s = 0;
                for (std::size_t i = h; i < h + D; i++) s += q[i] * k[i];
                weight.push_back(std::exp(s / std::sqrt(double(D))));
                sum += weight.back();
            }
            for (std::size_t j = 0; j < keys.size(); j++)
                for (std::size_t i = h; i < h + D; i++) y[i] += weight[j] / sum * keys[j].second[i];
        }
        return y;
    }
    std::vector<Row> run(std::vector<Row> x, const std::vector<SegmentGraph>& graphs) {
        const std::size_t N = x.size();
        const bool pre = o.pre_norm, contextual = std::get<bool>(o.attention_options.at("contextual"));
        std::vector<std::vector<Row>> P(N);
        std::vector<std::vector<int>> saw(N, {-1});
        for (std::size_t layer = 0; layer < graphs.size(); layer++) {
            const std::string at = text("layer.", layer), a = at + ".attention";
            std::vector<Row> h, next;
            for (const Row& each : x) h.push_back(pre ? norm(at + ".norm1", each) : each);
            for (std::size_t n = 0; n < N; n++) {
                const std::vector<int> seen = seen_by(graphs[layer], int(n));
                if (seen != saw[n]) P[n] = m.values("embedding.slots");
                saw[n] = seen;
                std::vector<std::pair<Row, Row>> keys, slots;
                for (int j : seen) keys.push_back(key_value(a + ".pack_key_value", h[std::size_t(j)]));
                for (Row& p : P[n]) {
                    const Row y =
                        attend(linear(a + ".pack_query", pre && contextual ? norm(a + ".norm_packed", p) : p), keys);
                    if (slots.size() < keys.size()) slots.push_back(key_value(a + ".key_value", y));
                    if (contextual) p = pre ? plus(p, y) : norm(a + ".norm_packed", plus(p, y));
                }
                const Row y = linear(a + ".output", attend(linear(a + ".query", h[n]), slots));
                Row r = plus(x[n], y);
                if (!pre) r = norm(at + ".norm1", r);
                Row f = linear(at + ".ffn.up", pre ? norm(at + ".norm2", r) : r);
                for (double& u : f) u *= 0.5 * (1 + std::erf(u / std::sqrt(2.0)));
                r = plus(r, linear(at + ".ffn.down", f));
                next.push_back(pre ? r : norm(at + ".norm2", r));
            }
            x = next;
        }
        return x;
    }
};

struct MaskedModel : Small<UniLm, BackboneOptions> {
    using Small::Small;
};

EncoderDecoderOptions two_lunas(bool pre_norm, bool contextual, bool tied) {
    EncoderDecoderOptions o = small_stacks::small(pre_norm, false, false);
    o.stack.attention = "luna";
    o.stack.attention_options = {{"slots", 4}, {"contextual", contextual}, {"tied", tied}};
    return o;
}

}  // namespace

TEST_CASE("luna: the layers are the formula in loops, where every row packs what it sees for itself, 1e-12") {
    for (const auto& words : masks)
        for (int form = 0; form < 8; form++) {
            CAPTURE(std::string(words[1]));
            CAPTURE(form);
            Luna m(small_luna(form & 1, form & 2, form & 4), DType::f64);
            const TokenRows rows = Luna::rows(documents);
            const std::vector<SegmentGraph> graphs = Luna::graphs(words, documents);
            m.tape.begin("embedded");
            const std::vector<Row> embedded = Luna::numbers(m.stack.embed(m.tape, rows));
            m.tape.end();
            const std::vector<Row> expected = Reference{m}.run(embedded, graphs), found = m.run(rows, graphs);
            double worst = 0;
            for (std::size_t n = 0; n < found.size(); n++)
                for (std::size_t c = 0; c < found[n].size(); c++)
                    worst = std::max(worst, std::abs(found[n][c] - expected[n][c]));
            CHECK(worst < 1e-12);
        }
}

TEST_CASE("luna: a document alone has its bits in a batch, dropped out or not") {
    for (const auto& words : masks)
        for (int form = 0; form < 4; form++) {
            CAPTURE(std::string(words[1]));
            CAPTURE(form);
            BackboneOptions o = small_luna(form & 1, form & 2, form == 3);
            o.dropout = o.attention_dropout = 0.3;
            Luna m(o, DType::f32);
            const TokenRows rows = Luna::rows(documents);
            const std::vector<SegmentGraph> graphs = Luna::graphs(words, documents);
            const std::vector<Row> plain = m.run(rows, graphs);
            for (bool training : {false, true}) {
                const std::vector<Row> together = m.run(rows, graphs, training);
                std::size_t row = 0;
                for (std::size_t d = 0; d < documents.size(); d++) {
                    const Documents one = {documents[d]};
                    for (const Row& alone : m.run(Luna::rows(one, int(d)), Luna::graphs(words, one), training))
                        CHECK(alone == together[row++]);
                }
                CHECK((together == plain) == !training);
            }
        }
}

TEST_CASE("luna: gradients of one stack and of two against the complex step, with dropout") {
    for (int form = 0; form < 8; form++) {
        CAPTURE(form);
        const std::vector<Sentence> text = pairs(3, 2);
        BackboneOptions one = small_luna(form & 1, form & 2, form & 4);
        one.dropout = one.attention_dropout = 0.2;
        CHECK(gradient_error<MaskedModel>(one, find_objective("mlm").batch(pointers_to(text), 1, options(), 16), 0,
                                          true) <= 1e-11);
        EncoderDecoderOptions two = two_lunas(form & 1, form & 2, form & 4);
        two.stack.dropout = two.stack.attention_dropout = 0.2;
        const Batch batch = find_objective("seq2seq", true).batch(pointers_to(text), 1, options(), 16);
        CHECK(gradient_error<small_stacks::Model>(two, batch, 0, true) <= 1e-11);
        small_stacks::Model m(two);
        m.tape.begin("reached");
        m.loss_and_gradient(batch);
        for (const Tensor& p : m.parameters.all()) {  // nothing reads the packed rows of the last layer
            CAPTURE(p.path);
            const bool last =
                p.path.find("decoder.layer.2.cross.norm_packed") != std::string::npos && !two.stack.pre_norm;
            bool reached = false;
            for (std::int64_t i = 0; i < p.shape.count(); i++) reached |= number_at(p.grad_view(), i) != 0;
            if (p.path.find("packed") != std::string::npos || p.path.find("slots") != std::string::npos)
                CHECK(reached != last);
        }
    }
}

TEST_CASE("luna: in bf16 the gradient is about that of f32, tied or not") {
    for (bool tied : {false, true}) {
        BackboneOptions o = small_luna(false, true, tied);
        o.deviation = 0.2;
        MaskedModel exact(o), rounded(o, DType::bf16);
        const std::vector<Sentence> text = pairs(8, 2);
        const Batch batch = find_objective("mlm").batch(pointers_to(text), 1, options());
        for (MaskedModel* m : {&exact, &rounded}) {
            m->tape.begin("gradient");
            m->loss_and_gradient(batch);
        }
        const View g = exact.parameters.gradients(), r = rounded.parameters.gradients();
        double gg = 0, rr = 0, gr = 0;
        for (std::int64_t i = 0; i < g.count(); i++) {
            const double a = g.as<float>()[i], b = r.as<float>()[i];
            gg += a * a, rr += b * b, gr += a * b;
        }
        CHECK(gr / std::sqrt(gg * rr) > 0.999);
    }
}

TEST_CASE("luna: causal parts, windows and bits are refused in words; rotary positions have no place") {
    const Documents d = {{4, 3}};
    CHECK(find_attention("luna").refuses(full_mask(d)).empty());
    CHECK(find_attention("luna").refuses(cross_mask(d)).empty());
    for (const char* name : {"lm", "unilm", "uniae", "plm", "lm-reverse"})
        CHECK_SAYS(find_attention("luna").refuses(make_mask(name, d, example_details(d))),
                   "a segment is causal, but slots pack what all rows of a segment see; use luna_causal");
    CHECK_SAYS(find_attention("luna").refuses(make_mask("window", d)), "the mask has a window");
    CHECK_SAYS(find_attention("luna").refuses(make_mask("k-bert", d, example_details(d))),
               "the rows of a segment see different keys");
    BackboneOptions o = small_luna(false, true, false);
    MaskedModel m(o);
    const std::vector<Sentence> text = pairs(2, 2);
    const Batch batch = find_objective("unilm").batch(pointers_to(text), 0, options());
    m.tape.begin("refused");
    CHECK_SAYS(message_of<BadUsage>([&] { m.model.hidden(m.tape, batch); }),
               "attention luna does not support this mask: a segment is causal");
    o.rotary = true;
    Parameters p;
    CHECK_SAYS(message_of<BadUsage>([&] { Backbone(p, o); }), "no place for rotary");
}

// In the paper's table, a Transformer has 64.9 M parameters, Luna has 69.6 M, and Luna without tied matrices has 77.5
// M.
TEST_CASE("luna: of 6 and 6 layers of width 512, matrices have 18 C^2 more than softmax's, untied 48 C^2") {
    const auto matrices = [](const char* attention, bool tied) {
        EncoderDecoderOptions o;
        o.stack.width = 512, o.stack.heads = 8, o.stack.inner = 2048, o.stack.layers = o.decoder_layers = 6;
        o.stack.attention = attention, o.stack.rotary = false, o.stack.attention_options["tied"] = tied;
        Parameters parameters;
        const EncoderDecoder model(parameters, o);
        std::int64_t count = 0;
        for (const Tensor& p : parameters.all())
            if (p.shape.rank == 2 && p.path.find("slots") == std::string::npos) count += p.shape.count();
        return count;
    };
    const std::int64_t transformer = matrices("softmax", false), C2 = 512 * 512;
    CHECK(matrices("luna", true) - transformer == 18 * C2);
    CHECK(matrices("luna", false) - transformer == 48 * C2);
}

TEST_CASE("luna: of two stacks, cached == teacher-forced logits, bit for bit") {
    for (int form = 0; form < 8; form++)
        for (const char* words :
             {"", "layers 1: B causal sees A[0] | layers -1: B causal sees A", "B causal sees A[1:]"}) {
            CAPTURE(form);
            CAPTURE(std::string(words));
            small_stacks::Model m(two_lunas(form & 1, form & 2, form & 4));
            const std::vector<Sentence> text = pairs(5, 11);
            ObjectiveOptions by = options();
            by.encoder_masks = std::make_shared<const LayerMasks>(words, 2, StackRows::encoder);
            by.masks = std::make_shared<const LayerMasks>(words, 3, StackRows::decoder);
            const Batch batch = find_objective("seq2seq", true).batch(pointers_to(text), 0, by);
            const auto forced = m.logits(batch);
            Seq2SeqDecoder decoder(m.model, by, longest);
            decoder.read(pointers_to(text), int(text.size()));
            check_targets(decoder, 2, text, batch, forced);
        }
}

TEST_CASE("luna: prefixes branch; two pairs are learned by heart and written again; a masked model learns") {
    EncoderDecoderOptions o = two_lunas(false, true, true);
    o.stack.deviation = 0.05;
    small_stacks::Model m(o);
    check_branches([&] { return Seq2SeqDecoder(m.model, {}, longest); }, 2, pairs(2, 5));
    const std::vector<Sentence> text = pairs(2, 9);
    CHECK(learned(m, 200, [&](std::uint32_t step) {
              return find_objective("seq2seq", true).batch(pointers_to(text), step, options());
          }) < 0.05);
    Seq2SeqDecoder decoder(m.model, {}, longest);
    check_written(decoder, 2, text);
    BackboneOptions one = small_luna(false, true, false);
    one.deviation = 0.1, one.width = 16;
    MaskedModel masked(one);
    CHECK(learned(masked, 200,
                  [&](std::uint32_t) { return find_objective("mlm").batch(pointers_to(text), 1, options()); }) < 0.3);
}
