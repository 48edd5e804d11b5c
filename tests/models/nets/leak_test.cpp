// SPDX-License-Identifier: MIT
// Tests that no information flows around a mask, for every kind of attention in stacks of several layers, under every
// mask that it honours. If the masks of the layers let no information flow from an input row to an output row, the
// output row must not depend on the input row: it keeps its bits when the input row changes, and its gradient with
// respect to the input row is 0.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <functional>

#include "engine/ops/visible.h"
#include "models/masks/words.h"
#include "models/nets/encoder_decoder.h"

using namespace masquerade;

namespace {

constexpr int V = 11;
const Documents documents = {{4, 3}, {2, 2}, {1, 1}};

using Heard = std::vector<std::vector<char>>;  // heard[row][input]: whether the row may depend on the input row

// Returns the dependences before the first layer: row i depends only on input first + i.
Heard alone(int rows, int inputs, int first = 0) {
    Heard h(std::size_t(rows), std::vector<char>(std::size_t(inputs), 0));
    for (int i = 0; i < rows; i++) h[std::size_t(i)][std::size_t(first + i)] = 1;
    return h;
}

// Returns the dependences after one attention and its residual, if those before are x. `sources` are the key tensors,
// in the order of the graph.
Heard after(Heard x, const SegmentGraph& graph, const std::vector<const Heard*>& sources) {
    for (const QuerySegment& q : graph.queries)
        for (int row = q.begin; row < q.end; row++)
            for (int i = q.sees_begin; i < q.sees_end; i++) {
                const int k = graph.sees[std::size_t(i)];
                const KeySegment& keys = graph.keys[std::size_t(k)];
                for (int j = keys.begin; j < keys.end; j++)
                    if (visible(graph, q, row, k, j))
                        for (std::size_t c = 0; c < x[0].size(); c++)
                            x[std::size_t(row)][c] |= (*sources[std::size_t(keys.source)])[std::size_t(j)][c];
            }
    return x;
}

// Every input row has its own token type. To change a row, the test changes its type. The gradients of the rows are the
// gradient of the table of types. Type `inputs` is the type of a changed row.
struct Net {
    Parameters parameters;
    Arena arena{Device::cpu, Blocks::loose};
    Tape tape{arena, DType::f32};
    int inputs;
    explicit Net(int count) : inputs(count) {}

    // Returns the head's output for every row, (N,E).
    using Run = std::function<Tensor*(const std::vector<int>& types)>;
    struct Counts {
        // Numbers of (row, input) pairs; heard and unheard count only pairs that may depend on each other.
        int leaked = 0, heard = 0, unheard = 0;
    };
    Counts walk(const Backbone& predicts, const Heard& hears, const Run& run) {
        Counts counts;
        const int N = int(hears.size());
        std::vector<int> usual;
        for (int j = 0; j < inputs; j++) usual.push_back(j);
        const auto rows = [&](const std::vector<int>& types) {
            tape.begin("rows");
            const View h = run(types)->view();
            std::vector<std::vector<float>> all;
            for (int i = 0; i < N; i++)
                all.emplace_back(h.as<float>() + i * h.columns(), h.as<float>() + (i + 1) * h.columns());
            tape.end();
            return all;
        };
        const auto count = [&](int i, int j, bool reached, bool itself) {
            const bool may = hears[std::size_t(i)][std::size_t(j)];
            counts.leaked += reached && !may;
            if (may && !itself) (reached ? counts.heard : counts.unheard)++;
        };
        const auto plain = rows(usual);
        for (int j = 0; j < inputs; j++) {
            std::vector<int> types = usual;
            types[std::size_t(j)] = inputs;
            const auto changed = rows(types);
            for (int i = 0; i < N; i++)
                count(i, j,
                      std::memcmp(plain[std::size_t(i)].data(), changed[std::size_t(i)].data(),
                                  plain[0].size() * sizeof(float)) != 0,
                      i == j);
        }
        const Tensor* table = parameters.find("embedding.type.weight");
        for (int i = 0; i < N; i++) {
            tape.begin("gradient");
            std::vector<double> weights(std::size_t(N), 0.0);
            weights[std::size_t(i)] = 1;
            std::vector<int> targets(std::size_t(N), i % V);
            Tensor* h = run(usual);
            Tensor* weight = tape.constant("weights", {N}, DType::f32, weights.data());
            parameters.start_gradients();
            tape.backward(predicts.loss(tape, h, targets, weight, "loss"));
            parameters.finish_gradients();
            for (int j = 0; j < inputs; j++) {
                const float* g = table->grad_view().as<float>() + j * table->columns();
                count(i, j, std::any_of(g, g + table->columns(), [](float each) { return each != 0; }), i == j);
            }
            tape.end();
        }
        return counts;
    }
};

BackboneOptions small(const AttentionKind& kind, int form, int layers, int inputs) {
    BackboneOptions o;
    o.vocabulary = V, o.width = 8, o.heads = 2, o.inner = 12, o.layers = layers, o.positions = 16, o.deviation = 0.4;
    o.types = inputs + 1;
    o.attention = kind.name;
    o.rotary = form == 0 && kind.rotates;
    o.pre_norm = form == 1;
    AttentionOptions& a = o.attention_options;
    a = {{"slots", 3}, {"features", 8}, {"window", 2}, {"stride", 2}, {"reach", form == 0 ? 2 : 0}};
    a["buckets"] = a["chunk"] = 2;
    if (form == 1)
        a["contextual"] = false, a["tied"] = a["gate"] = true, a["pack"] = "softmax",
        a["feature_map"] = "trigonometric";
    return o;
}

TokenRows rows_of_types(const Documents& of, const std::vector<int>& types, int first = 0) {
    TokenRows rows;
    for (std::size_t d = 0; d < of.size(); d++)
        for (int i = 0; i < of[d].source + of[d].target; i++)
            rows.push((3 * i + int(d)) % V, types[std::size_t(first + rows.count())], i, int(d));
    return rows;
}

// A stack, and the graphs of its layers. If `latent` is not -1, then from this layer on, separate inputs (one per
// document) replace the rows [CLS], as UniVAE's latents do. If `memory` is true, these inputs are an extra key of every
// layer instead.
struct Masked {
    std::string name;
    Documents documents;
    std::vector<SegmentGraph> graphs;
    int latent = -1;
    bool memory = false;
};

std::vector<Masked> masks() {
    std::vector<Masked> all;
    for (const NamedMask& mask : named_masks()) {
        if (mask.rows == MaskRows::decoded || mask.rows == MaskRows::cross) continue;
        const bool source = mask.rows == MaskRows::source, part = source || mask.rows != MaskRows::tokens;
        const SegmentGraph graph = make_mask(mask.name, documents, example_details(documents));
        all.push_back({mask.name,
                       source ? sources_of(documents)
                       : part ? targets_of(documents)
                              : documents,
                       {graph, graph},
                       -1,
                       mask.rows == MaskRows::latent});
    }
    const auto add = [&](const std::vector<const char*>& words, int latent) {
        Masked m{"", documents, {}, latent};
        for (const char* each : words) {
            m.name += text(each, " | ");
            m.graphs.push_back(MaskWords(each)(documents));
        }
        all.push_back(m);
    };
    // Masks with which some rows see different keys in different layers. If rows that see the same keys (a group) see
    // these keys in the layer before, too, Luna must continue the group's packed rows P. Otherwise, it must begin with
    // the learned P.
    add({"A full; B full", "A full; B full sees A[0]", "A full; B full sees A[0]"}, -1);
    add({"A full; B none", "A none; B full sees A[0]", "A none; B none"}, -1);
    add({"A full; B full sees A[1:]", "A full sees B; B full", "A full; B full"}, -1);
    add({"A causal; B causal", "A full; B causal sees A[0], A[-1]", "A anticausal; B strict-causal"}, -1);
    // UniAE's masks: in two or more layers, B sees a latent in place of [CLS].
    add({"A full; B causal", "A full; B causal sees A[0]", "A full; B causal sees A[0]"}, 1);
    add({"A full; B causal", "A full; B causal", "A causal; B causal sees A[0]", "A full; B causal sees A[0]",
         "A full; B causal sees A[0]"},
        2);
    add({"A full; B full", "A full; B full sees A[0]", "A full; B full sees A[0]", "A full; B full sees A[0]"}, 1);
    add({"A full; B none", "A full; B none sees A[0]", "A full; B none sees A[0]"}, 1);
    return all;
}

struct Stack : Net {
    const Masked& mask;
    int rows, extra;
    Backbone stack;
    Stack(const AttentionKind& kind, int form, const Masked& m)
        : Net(rows_of(m.documents) + int(m.documents.size()) * (m.memory || m.latent >= 0)),
          mask(m),
          rows(rows_of(m.documents)),
          extra(inputs - rows),
          stack(parameters, small(kind, form, int(m.graphs.size()), inputs)) {
        parameters.allocate(5);
    }
    // For each row that is [CLS], the number of its document; for other rows, -1.
    std::vector<int> documents_of_cls() const {
        std::vector<int> which;
        for (std::size_t d = 0; d < mask.documents.size(); d++) {
            which.push_back(int(d));
            which.resize(which.size() + std::size_t(mask.documents[d].source + mask.documents[d].target - 1), -1);
        }
        return which;
    }
    Heard hears() const {
        Heard x = alone(rows, inputs);
        const Heard latents = alone(extra, inputs, rows);
        const std::vector<int> which = documents_of_cls();
        for (std::size_t i = 0; i < mask.graphs.size(); i++) {
            for (std::size_t r = 0; mask.latent >= 0 && int(i) >= mask.latent && r < x.size(); r++)
                if (which[r] >= 0) x[r] = latents[std::size_t(which[r])];
            const Heard before = x;
            x = after(x, mask.graphs[i],
                      mask.memory ? std::vector<const Heard*>{&latents, &before} : std::vector<const Heard*>{&before});
        }
        return x;
    }
    Counts walk() {
        const std::vector<int> which = documents_of_cls();
        return Net::walk(stack, hears(), [&](const std::vector<int>& types) {
            const TokenRows& tokens = tape.hold(rows_of_types(mask.documents, types));
            Tensor* latents =
                extra ? embedding(tape, tape.ints(tape.hold(std::vector<int>(types.begin() + rows, types.end()))),
                                  parameters.find("embedding.type.weight"), "latents")
                      : nullptr;
            Tensor* x =
                stack.run(tape, tokens, stack.pass(tape, tokens, mask.graphs[0]), [&](int i, Tensor*& h, Pass& pass) {
                    pass.graph = &mask.graphs[std::size_t(i)];
                    if (mask.memory) pass.memory = latents;
                    if (mask.latent >= 0 && i >= mask.latent)
                        h = replace_rows(tape, h, tape.ints(which), latents, text("replaced.", i));
                });
            return stack.head(tape, stack.finish(tape, x));
        });
    }
};

}  // namespace

TEST_CASE(
    "leak: a row hears what the masks of its layers let through and nothing else, by every kind; its gradient too") {
    const std::vector<Masked> all = masks();
    for (const AttentionKind& kind : attention_kinds())
        for (int form : {0, 1}) {
            CAPTURE(std::string(kind.name));
            CAPTURE(form);
            const Masked one{"AB full", documents, {full_mask(documents)}};
            const auto honours = [&](const Masked& mask) {
                return std::all_of(mask.graphs.begin(), mask.graphs.end(),
                                   [&](const SegmentGraph& g) { return kind.refuses(g).empty(); });
            };
            // kinds with their own patterns do not see all keys
            const bool hears_all = honours(one) && Stack(kind, form, one).walk().unheard == 0;
            int walked = 0;
            for (const Masked& mask : all) {
                CAPTURE(mask.name);
                if (!honours(mask)) continue;
                const Net::Counts counts = Stack(kind, form, mask).walk();
                CHECK(counts.leaked == 0);
                CHECK(counts.heard > 0);
                if (hears_all) CHECK(counts.unheard == 0);
                walked++;
            }
            CHECK(walked >=
                  4);  // every kind honours the masks of bert, mlm, an encoder and a source, or the causal masks
        }
}

TEST_CASE("leak: nothing of A but what stands for [CLS] reaches B under UniAE's masks, whatever packs it") {
    int honoured = 0;
    for (const Masked& mask : masks()) {
        if (mask.latent < 0) continue;
        const Heard hears = Stack(find_attention("softmax"), 0, mask).hears();
        int row = 0;
        for (std::size_t d = 0; d < mask.documents.size(); d++) {
            const int a = row, b = a + mask.documents[d].source;
            row = b + mask.documents[d].target;
            for (int i = b; i < row; i++) {
                for (int j = a; j < b; j++) CHECK(!hears[std::size_t(i)][std::size_t(j)]);
                CHECK(hears[std::size_t(i)][std::size_t(rows_of(mask.documents)) + d]);
            }
        }
        for (const AttentionKind& kind : attention_kinds())
            honoured += std::all_of(mask.graphs.begin(), mask.graphs.end(),
                                    [&](const SegmentGraph& g) { return kind.refuses(g).empty(); });
    }
    CHECK(honoured > 0);
}

TEST_CASE(
    "leak: two stacks, every kind: a row of the decoder hears what its masks let through of both, and nothing else") {
    const Documents sources = sources_of(documents), targets = targets_of(documents);
    for (const AttentionKind& kind : attention_kinds())
        for (int form : {0, 1})
            for (const char* words : {"", "B causal sees A[1:]", "A full window=1; B causal window=1 sees A[0]",
                                      "A none; B none sees A[-1]",
                                      "layers 1: A full; B causal sees A[0] | layers -1: A full; B causal sees A"}) {
                CAPTURE(std::string(kind.name));
                CAPTURE(std::string(words));
                Batch batch;
                batch.source_graph = full_mask(sources), batch.graph = causal_mask(targets),
                batch.cross_graph = cross_mask(documents);
                const LayerMasks of_encoder(words, 2, StackRows::encoder), of_decoder(words, 3, StackRows::decoder);
                batch.source_masks = of_encoder.graphs(sources), batch.masks = of_decoder.graphs(targets),
                batch.cross_masks = of_decoder.cross(documents);
                const int Ns = rows_of(sources), N = rows_of(targets);
                for (int row = 0; row < N; row++) batch.labels.push(row, 0);  // the head reads all rows
                Net net(Ns + N);
                EncoderDecoderOptions o;
                o.stack = small(kind, form, 2, net.inputs);
                o.decoder_layers = 3;
                Heard read = alone(Ns, net.inputs), x = alone(N, net.inputs, Ns);
                bool honoured = true;
                const auto see = [&](const AttentionKind& by, Heard& h, const SegmentGraph& graph,
                                     const Heard& source) {
                    honoured &= by.refuses(graph).empty();
                    h = after(h, graph, {&source});
                };
                for (int i = 0; i < 2; i++) see(kind, read, batch.source_masks.at(i, batch.source_graph), Heard(read));
                for (int i = 0; i < 3; i++) {
                    see(self_attention(kind.name, true), x, batch.graph_at(i), Heard(x));
                    see(cross_attention(kind.name), x, batch.cross_masks.at(i, batch.cross_graph), read);
                }
                if (!honoured) {
                    CHECK((*words != '\0' || !cross_attention(kind.name).refuses(batch.cross_graph).empty()));
                    continue;
                }
                const EncoderDecoder model(net.parameters, o);
                net.parameters.allocate(5);
                const Net::Counts counts = net.walk(model.head_stack(), x, [&](const std::vector<int>& types) {
                    batch.source = rows_of_types(sources, types), batch.rows = rows_of_types(targets, types, Ns);
                    return model.hidden(net.tape, batch);
                });
                CHECK(counts.leaked == 0);
                CHECK(counts.heard > 0);
            }
}
