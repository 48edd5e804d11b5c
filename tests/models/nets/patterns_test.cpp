// SPDX-License-Identifier: MIT
// Patterns of attention: the bits of softmax under a bit matrix of the papers' index sets; gradients; what is refused.
#include <doctest/doctest.h>

#include <cstdlib>
#include <cstring>

#include "models/masks/mask.h"
#include "models/masks/words.h"
#include "models/nets/unilm.h"
#include "tests/models/runs/small_pairs.h"
#include "tests/train/files.h"

using namespace masquerade;

namespace {

struct Pattern {
    const char* kind;
    bool (*has)(int i, int j);  // whether place i has place j, by the options below
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

// A stack of one kind of attention, and its rows of output.
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

// Whether a mask and a pattern let row i of a document of so many source rows see row j: said a second time.
bool sees(const std::string& mask, const Pattern& pattern, int source, int i, int j) {
    if (mask == "mlm") return pattern.has(i, j);
    if (mask == "lm") return j <= i && pattern.has(i, j);
    if (mask == "lm-reverse") return j >= i && pattern.has(i, j);
    if (i < source) return j < source && pattern.has(i, j);  // UniLM: A full; B causal sees A
    return j < source || (j <= i && pattern.has(i - source, j - source));
}

}  // namespace

TEST_CASE("patterns: each has the bits of softmax under the paper's index set") {
    for (const Pattern& pattern : patterns) {
        Stack narrowed(pattern.kind, 2), dense("softmax", 2);
        for (const std::string mask : {"mlm", "lm", "lm-reverse", "unilm"}) {
            CAPTURE(std::string(pattern.kind));
            CAPTURE(mask);
            std::vector<int> first, source;  // of every row, those of its document
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
    by_hand.attention_options["stride"] = 7;  // the root of 48
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

TEST_CASE("patterns: gradients by complex step, the graph of the call kept until then") {
    using Model = small_pairs::Small<UniLm, BackboneOptions>;
    const std::vector<Sentence> text = small_pairs::pairs(3, 2, {18, 18});
    for (const Pattern& pattern : patterns)
        for (const char* objective : {"unilm", "plm", "mlm"}) {
            const Batch batch = find_objective(objective).batch(pointers_to(text), 1, small_pairs::options(), 16);
            CHECK(small_pairs::gradient_error<Model>(small(pattern.kind, 2), batch) <= 1e-11);
        }
}

TEST_CASE("patterns: a mask with a window of its own is refused") {
    for (const Pattern& pattern : patterns) {
        Stack stack(pattern.kind, 1);
        Window window;
        window.radius = 3;
        CHECK_SAYS(message_of<BadUsage>([&] { stack(tokens(), with_window(causal_mask(documents), window)); }),
                   std::string("attention ") + pattern.kind + " does not support this mask: it has a window already");
    }
}
