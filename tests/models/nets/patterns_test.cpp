// SPDX-License-Identifier: MIT
// Tests patterns of attention: they give the bits of softmax under a bit matrix of the papers' index sets. Also tests
// heads with different patterns, gradients, and refusals.
#include <doctest/doctest.h>

#include <cstdlib>
#include <cstring>

#include "engine/base/random.h"
#include "engine/tensor/numbers.h"
#include "models/masks/mask.h"
#include "models/masks/words.h"
#include "models/nets/unilm.h"
#include "tests/models/runs/small_pairs.h"
#include "tests/train/files.h"

using namespace masquerade;

namespace {

struct Pattern {
    const char* kind;
    bool (*has)(int i, int j);  // whether place i sees place j, for the options below
};
const Pattern patterns[] = {
    {"window", [](int i, int j) { return std::abs(i - j) <= 6 && (i - j) % 2 == 0; }},
    {"longformer", [](int i, int j) { return (std::abs(i - j) <= 6 && (i - j) % 2 == 0) || i < 2 || j < 2; }},
    {"strided", [](int i, int j) { return std::abs(i - j) < 4 || (i - j) % 4 == 0; }},
    {"fixed", [](int i, int j) { return i / 4 == j / 4 || j % 4 >= 4 - 2; }},
    {"local", [](int i, int j) { return i / 3 == j / 3 || i / 3 == j / 3 + 1; }},
};

BackboneOptions small(const std::string& attention, int layers) {
    BackboneOptions o;
    o.vocabulary = small_pairs::V, o.width = 16, o.heads = 2, o.inner = 12, o.layers = layers, o.positions = 48,
    o.deviation = 0.3;
    o.attention = attention;
    o.attention_options = {{"window", 3}, {"dilation", 2}, {"globals", 2}, {"stride", 4}};
    return o;
}

// A stack with one kind of attention. Its results are the output rows.
struct Stack {
    Parameters parameters;
    Backbone stack;
    Arena arena{Device::cpu, Blocks::loose};
    Tape tape{arena, DType::f32};
    Stack(const std::string& attention, int layers) : stack(parameters, small(attention, layers)) {
        parameters.allocate(5);
    }
    std::vector<std::vector<float>> operator()(const TokenRows& rows, const SegmentGraph& graph) {
        tape.begin("rows");
        const Tensor* x = stack.run(tape, rows, graph);
        std::vector<std::vector<float>> all;
        for (std::int64_t i = 0; i < x->rows(); i++)
            all.emplace_back(x->view().as<float>() + i * x->columns(), x->view().as<float>() + (i + 1) * x->columns());
        tape.end();
        return all;
    }
};

const Documents documents = {{19, 14}, {1, 0}, {3, 20}};

TokenRows tokens() {
    TokenRows rows;
    for (std::size_t d = 0; d < documents.size(); d++)
        for (int i = 0; i < documents[d].source + documents[d].target; i++)
            rows.push(5 + (7 * i + int(d)) % 31, i >= documents[d].source, i, int(d));
    return rows;
}

// Whether row i sees row j of the same document, by the mask and the pattern. `source` is the number of source rows.
// This is written independently of the engine.
bool sees(const std::string& mask, const Pattern& pattern, int source, int i, int j) {
    if (mask == "mlm") return pattern.has(i, j);
    if (mask == "lm") return j <= i && pattern.has(i, j);
    if (mask == "lm-reverse") return j >= i && pattern.has(i, j);
    if (i < source) return j < source && pattern.has(i, j);  // the mask of UniLM: A full; B causal sees A
    return j < source || (j <= i && pattern.has(i - source, j - source));
}

}  // namespace

TEST_CASE("patterns: each has the bits of softmax under the paper's index set") {
    for (const Pattern& pattern : patterns) {
        Stack narrowed(pattern.kind, 2), dense("softmax", 2);
        for (const std::string mask : {"mlm", "lm", "lm-reverse", "unilm"}) {
            CAPTURE(std::string(pattern.kind));
            CAPTURE(mask);
            // For each row: the first row of its document, and the number of its source rows.
            std::vector<int> first, source;
            int next = 0;
            for (const Document& d : documents) {
                const std::size_t rows = first.size() + std::size_t(d.source + d.target);
                first.resize(rows, next), source.resize(rows, d.source);
                next = int(rows);
            }
            const SegmentGraph bits = bits_mask(documents, [&](int i, int j) {
                const int start = first[std::size_t(i)];
                return sees(mask, pattern, source[std::size_t(i)], i - start, j - start);
            });
            CHECK(narrowed(tokens(), make_mask(mask, documents)) == dense(tokens(), bits));
        }
    }
}

TEST_CASE("patterns: the stride follows from the positions") {
    BackboneOptions by_root = small("strided", 1), by_hand = by_root;
    by_root.attention_options["stride"] = 0;
    by_hand.attention_options["stride"] = 7;  // the square root of 48 positions, rounded up
    Parameters p, q;
    const Backbone a(p, by_root), b(q, by_hand);
    p.allocate(1), q.allocate(1);
    Arena arena(Device::cpu, Blocks::loose);
    Tape tape(arena, DType::f32);
    const SegmentGraph graph = causal_mask(documents);
    tape.begin("stride");
    const Tensor *x = a.run(tape, tokens(), graph), *y = b.run(tape, tokens(), graph);
    CHECK(std::memcmp(x->value, y->value, x->bytes()) == 0);
}

namespace {

// Returns the outputs of each head of an attention layer. The output matrix of the layer is the identity. The rows are
// those of tokens(). `dropout` is the dropout rate of the attention probabilities.
std::vector<std::vector<float>> heads_of(const std::string& kind, const std::string& words, int heads, int kv_heads,
                                         const SegmentGraph& graph, float dropout) {
    constexpr int C = 16;
    AttentionShape shape{C, heads, 0.5, false, 48, {{"window", 3}, {"dilation", 2}, {"stride", 4}, {"globals", 2}}};
    shape.options["patterns"] = words;
    shape.kv_heads = kv_heads;
    Parameters parameters;
    const auto layer = find_attention(kind).make(parameters, "layer", "attention", shape);
    parameters.allocate(7);
    std::vector<double> one(C * C, 0);
    for (int i = 0; i < C; i++) one[std::size_t(i * C + i)] = 1;
    write_numbers(parameters.master(*parameters.find("layer.attention.output.weight")), one.data());
    const TokenRows rows = tokens();
    std::vector<double> numbers;
    Sequence random(9, "rows");
    for (int i = 0; i < rows.count() * C; i++) numbers.push_back(2 * random.uniform() - 1);
    Arena arena(Device::cpu, Blocks::loose);
    Tape tape(arena, DType::f32);
    tape.begin("heads", 3, 1, dropout > 0);
    Tensor* x = tape.constant("x", {rows.count(), C}, DType::f32, numbers.data());
    AttentionContext context;
    context.rows = rows.names(tape);
    context.graph = &graph;
    context.dropout = dropout;
    Queries queries{x};
    const Tensor* y = (*layer)(tape, queries, {x, context.rows.position}, context);
    std::vector<std::vector<float>> all(static_cast<std::size_t>(heads));
    for (std::int64_t i = 0; i < y->shape.count(); i++)
        all[std::size_t(i % C / (C / heads))].push_back(y->view().as<float>()[i]);
    tape.end();
    return all;
}

}  // namespace

TEST_CASE("patterns: a head of by_head has the bits that its pattern gives where all heads have it") {
    const struct {
        const char* kind;
        const char* words;  // words that describe the same pattern
    } same[] = {{"window", "window=3 dilation=2"}, {"longformer", "window=3 dilation=2 globals=2"},
                {"strided", "window=3 stride=4"},  {"fixed", "block=4 last=2"},
                {"local", "block=3 before=1"},     {"softmax", "full"}};
    for (const std::string mask : {"mlm", "lm", "unilm", "plm"})
        for (const int kv_heads : {0, 2, 1}) {
            CAPTURE(mask);
            CAPTURE(kv_heads);
            const SegmentGraph graph = make_mask(mask, documents, example_details(documents));
            for (const auto& a : same)
                for (const auto& b : same) {
                    // Heads 0, 2 and 3 have pattern a, and head 1 has pattern b. With two key heads, heads of both
                    // patterns read the same key head.
                    const std::string words = text("0: ", a.words, " | 1:2 ", b.words);
                    CAPTURE(words);
                    const auto mixed = heads_of("by_head", words, 4, kv_heads, graph, 0),
                               of_a = heads_of(a.kind, "", 4, kv_heads, graph, 0),
                               of_b = heads_of(b.kind, "", 4, kv_heads, graph, 0);
                    for (std::size_t h = 0; h < 4; h++) CHECK(mixed[h] == (h == 1 ? of_b : of_a)[h]);
                }
        }
}

TEST_CASE("patterns: heads that all have one pattern have the bits of its kind, dropout included; halves by default") {
    const SegmentGraph graph = causal_mask(documents);
    CHECK(heads_of("by_head", "0:2 window=3 dilation=2 | 2: window=3 dilation=2", 4, 0, graph, 0.3f) ==
          heads_of("window", "", 4, 0, graph, 0.3f));
    CHECK(heads_of("by_head", ":1,full", 4, 2, graph, 0.3f) == heads_of("softmax", "", 4, 2, graph, 0.3f));
    CHECK(heads_of("by_head", "", 4, 0, graph, 0) ==
          heads_of("by_head", "0:2 window=6 | 2:4 stride=7", 4, 0, graph, 0));  // 7: the square root of 48, rounded up
    const auto dropped = heads_of("by_head", "", 4, 0, graph, 0.3f);
    CHECK(dropped != heads_of("by_head", "", 4, 0, graph, 0));
}

TEST_CASE("patterns: what the words of by_head must not say") {
    for (const auto& [given, why] : {
             std::pair("window=3", "\"window=3\" is no range of heads; expected I:J, as in 0:2 window=8"),
             {"0:2", "heads 0:2 have no pattern; expected full, or KEY=NUMBER as in window=8"},
             {"4:6 full", "\"4:6\" names none of the 4 heads"},
             {"0:2 windw=3", "\"windw=3\" is neither full nor window=, dilation=, stride=, globals=, block=, before="},
             {"0:2 window=x", "\"window=x\": a whole number from 0 to 16384 is expected"},
             {"0:2 stride=0", "\"stride=0\": a whole number from 1 to 16384 is expected"},
             {"0:2 window=99999", "\"window=99999\": a whole number from 0 to 16384 is expected"},
             {"0:2 full window=3", "heads 0:2: full stands alone"},
             {"0:2 dilation=3", "heads 0:2: dilation= needs window="},
             {"0:2 last=3", "heads 0:2: before= and last= need block="},
             {"0:2 full | | 2:4 full", "\"\" is no range of heads"},
         }) {
        const std::string words = given;
        CAPTURE(words);
        CHECK_SAYS(message_of<BadUsage>([&] { heads_of("by_head", words, 4, 0, causal_mask(documents), 0); }),
                   text("patterns \"", words, "\": ", why));
    }
}

TEST_CASE("patterns: gradients by complex step, the graph of the call kept until then") {
    using Model = small_pairs::Small<UniLm, BackboneOptions>;
    const std::vector<Sentence> text = small_pairs::pairs(3, 2, {18, 18});
    for (const Pattern& pattern : patterns)
        for (const char* objective : {"unilm", "plm", "mlm"}) {
            const Batch batch = find_objective(objective).batch(pointers_to(text), 1, small_pairs::options(), 16);
            CHECK(small_pairs::gradient_error<Model>(small(pattern.kind, 2), batch) <= 1e-11);
        }
    BackboneOptions by_head = small("by_head", 2);
    by_head.heads = 4, by_head.kv_heads = 2;
    by_head.attention_options["patterns"] = std::string("0:3 window=2 | 3: stride=3 globals=1");
    const Batch batch = find_objective("unilm").batch(pointers_to(text), 1, small_pairs::options(), 16);
    CHECK(small_pairs::gradient_error<Model>(by_head, batch) <= 1e-11);
}

TEST_CASE("patterns: a mask with a window of its own is refused") {
    for (const Pattern& pattern : patterns) {
        Stack stack(pattern.kind, 1);
        Window window;
        window.radius = 3;
        CHECK_SAYS(message_of<BadUsage>([&] { stack(tokens(), with_window(causal_mask(documents), window)); }),
                   std::string("attention ") + pattern.kind +
                       " does not support this mask: the mask has a window already");
    }
}
