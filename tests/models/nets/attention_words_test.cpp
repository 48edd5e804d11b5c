// SPDX-License-Identifier: MIT
// Tests kinds of attention by layer and part: the words that choose them; that a row in a stack of mixed kinds gets the
// result of its own kind in each layer; and that a document alone gives the same as in a batch.
#include <doctest/doctest.h>

#include <cstring>

#include "engine/tensor/numbers.h"
#include "models/masks/mask.h"
#include "tests/models/nets/random_kinds.h"
#include "tests/train/files.h"

using namespace masquerade;

namespace {

std::string kinds_of(const std::string& words, int layers) {
    const AttentionWords kinds(words, layers);
    std::string all;
    for (int i = 0; i < layers; i++) all += text(i ? ", " : "", kinds.of(i, 0).name, "/", kinds.of(i, 1).name);
    return all;
}

BackboneOptions small(int layers, bool pre_norm) {
    BackboneOptions o;
    o.vocabulary = 20, o.width = 8, o.heads = 2, o.inner = 12, o.layers = layers, o.positions = 16, o.deviation = 0.3;
    o.pre_norm = pre_norm;
    return o;
}

TokenRows rows_of_documents(const Documents& documents, int first = 0) {
    TokenRows rows;
    for (std::size_t d = 0; d < documents.size(); d++)
        for (int i = 0; i < documents[d].source + documents[d].target; i++)
            rows.push(3 + (5 * i + 3 * (int(d) + first)) % 17, i >= documents[d].source, i, int(d) + first);
    return rows;
}

using Rows = std::vector<double>;

// Computes the stack layer by layer. For each of the two parts, a layer that has only the part's kind, with the part's
// weights, computes all rows. Then each row is taken from the layer of its part.
Rows by_hand(const Backbone& stack, const Parameters& weights, Tape& tape, const TokenRows& rows,
             const SegmentGraph& graph, const std::vector<char>& parts) {
    const BackboneOptions& o = stack.options;
    const AttentionWords kinds(o.attention, o.layers);
    Pass passes[2] = {stack.pass(tape, rows, graph), stack.pass(tape, rows, graph)};
    Rows x = numbers_of(stack.embed(tape, rows)->view());
    for (int i = 0; i < o.layers; i++) {
        Rows next = x;
        for (int part : {0, 1}) {
            BlockShape shape = stack.layers[std::size_t(i)].shape;
            shape.kind = kinds.of(i, part).name, shape.target_kind = "";
            Parameters own;
            const Block block(own, text("layer.", i), shape);
            own.allocate(1);
            for (const Tensor& p : own.all()) {
                std::string path = p.path;
                const std::size_t at = path.find(".attention.");
                if (part && at != path.npos && weights.find(text("layer.", i, ".target_attention.output.weight")))
                    path.insert(at + 1, "target_");
                const Tensor* from = weights.find(path);
                REQUIRE_MESSAGE(from, path);
                write_numbers(own.master(p), numbers_of(from->view()).data());
            }
            SegmentGraph mine = graph;
            if (!kinds.of(i, part).refuses(graph).empty()) {  // this kind cannot compute the rows of the other part
                mine.queries.clear();
                for (const QuerySegment& q : graph.queries)
                    if (parts[std::size_t(q.begin)] == part) mine.queries.push_back(q);
            }
            passes[part].graph = &tape.hold(std::move(mine));
            Tensor* in = tape.constant("x", {rows.count(), o.width}, tape.dtype, x.data());
            const Rows out = numbers_of(block(tape, in, passes[part])->view());
            for (int row = 0; row < rows.count(); row++)
                if (parts[std::size_t(row)] == part)
                    std::copy_n(out.begin() + row * o.width, o.width, next.begin() + row * o.width);
        }
        x = next;
    }
    return x;
}

}  // namespace

TEST_CASE("attention words: kinds by layer and part, by the grammar of masks; what is left out is softmax") {
    CHECK(kinds_of("lsh", 2) == "lsh/lsh, lsh/lsh");
    CHECK(kinds_of("A lsh; B linear", 2) == "lsh/linear, lsh/linear");
    CHECK(kinds_of("A lsh", 1) == "lsh/softmax");
    CHECK(kinds_of("B lsh", 1) == "softmax/lsh");
    CHECK(kinds_of("AB lsh", 1) == "lsh/lsh");
    CHECK(kinds_of("window | layers 1:2: A lsh; B rfa", 3) == "window/window, lsh/rfa, window/window");
    CHECK(kinds_of("layers 0:2 window", 3) == "window/window, window/window, softmax/softmax");
    CHECK(kinds_of("window | layers -1:: B linear", 2) == "window/window, window/linear");
    for (const auto& [given, why] :
         {std::pair("A lsh; B lhs", "there is no attention lhs; there are softmax"),
          {"C lsh; B linear", "\"C lsh\" is no kind of a part; expected a kind alone, or \"A KIND; B KIND\""},
          {"A lsh; A linear", "expected A and B, each once, or a kind alone"},
          {"A lsh; linear", "expected A and B, each once, or a kind alone"},
          {"window | layers 2 linear", "attention \"window | layers 2 linear\": \"2\" is no range of layers"},
          {"", "expected a kind"}}) {
        const std::string words = given;
        CAPTURE(words);
        CHECK_SAYS(message_of<BadUsage>([&] { AttentionWords(words, 3); }), why);
    }
}

TEST_CASE("attention words: parts share the parameters of kinds that have the same, and no others") {
    const auto count = [](const std::string& words, const char* part) {
        BackboneOptions o = small(2, false);
        o.attention = words;
        Parameters parameters;
        const Backbone stack(parameters, o);
        int found = 0;
        for (const Tensor& p : parameters.all()) found += p.path.find(part) != std::string::npos;
        return found;
    };
    for (const char* words : {"softmax", "A window; B softmax", "A sinkhorn; B window | layers 1: A local"}) {
        CAPTURE(std::string(words));
        CHECK(count(words, ".attention.") == 2 * 6);
        CHECK(count(words, ".target_attention.") == 0);
    }
    CHECK(count("A lsh; B softmax", ".target_attention.") == 2 * 6);
    CHECK(count("A lsh; B softmax | layers 1:: softmax", ".target_attention.") == 6);
}

TEST_CASE(
    "attention words: a row of mixed kinds has the bits that its kinds give it; a document alone those in a batch") {
    Sequence random(8, "kinds");
    int mixed = 0;
    for (int round = 0; round < 24; round++) {
        // A and B are one segment, which must be cut; in every second of these rounds, it has a bit mask.
        const bool one_segment = round % 3 == 2;
        BackboneOptions o = small(1 + int(random.below(3)), round % 2);
        o.rotary = round % 4 < 3;
        const Documents documents = {{3, 2}, {1 + int(random.below(6)), 1 + int(random.below(5))}, {2, 3}};
        const char* const mask = !one_segment ? "unilm" : round % 2 ? "lm" : "k-bert";
        const SegmentGraph graph = make_mask(mask, documents, example_details(documents));
        SegmentGraph of_a = graph;
        if (!one_segment) of_a = full_mask(documents);
        const auto honours = [](const SegmentGraph& g) {
            return [&g](const AttentionKind& kind) { return kind.refuses(g).empty(); };
        };
        draw_kinds(random, o, honours(of_a), honours(graph), o.layers);
        CAPTURE(o.attention);
        CAPTURE(o.pre_norm);
        Parameters parameters;
        const Backbone stack(parameters, o);
        parameters.allocate(3);
        mixed += stack.has_parts();
        Arena arena(Device::cpu, Blocks::loose);
        Tape tape(arena, DType::f32);
        const auto run = [&](const Documents& some, int first) {
            const TokenRows& rows = tape.hold(rows_of_documents(some, first));
            const SegmentGraph& own = tape.hold(make_mask(mask, some, example_details(some)));
            Pass pass = stack.pass(tape, rows, own);
            const std::vector<char> parts = parts_of_rows(some);
            pass.parts = &parts;
            return numbers_of(stack.run(tape, rows, pass)->view());
        };
        tape.begin("mixed");
        const Rows all = run(documents, 0);
        const TokenRows rows = rows_of_documents(documents);
        CHECK(all == by_hand(stack, parameters, tape, rows, graph, parts_of_rows(documents)));
        for (std::size_t d = 0, row = 0; d < documents.size(); d++) {
            const Rows one = run({documents[d]}, int(d));
            CHECK(std::equal(one.begin(), one.end(), all.begin() + std::ptrdiff_t(row) * o.width));
            row += one.size() / std::size_t(o.width);
        }
    }
    CHECK(mixed > 15);
}

TEST_CASE("attention words: a refusal names the layer and the kind") {
    BackboneOptions o = small(3, false);
    const Documents documents = {{3, 2}};
    const TokenRows rows = rows_of_documents(documents);
    const auto refused = [&](const std::string& words, const char* mask) {
        o.attention = words;
        o.rotary = true;
        const AttentionWords kinds(words, 0);
        for (const AttentionKind* kind : kinds.named()) o.rotary &= kind->rotates;
        Parameters parameters;
        const Backbone stack(parameters, o);
        parameters.allocate(3);
        Arena arena(Device::cpu, Blocks::loose);
        Tape tape(arena, DType::f32);
        tape.begin("refused");
        const SegmentGraph graph = make_mask(mask, documents);
        const std::vector<char> parts = parts_of_rows(documents);
        Pass pass = stack.pass(tape, rows, graph);
        pass.parts = &parts;
        return message_of<BadUsage>([&] { stack.run(tape, rows, pass); });
    };
    CHECK_SAYS(refused("A softmax; B softmax | layers 1:2: B luna", "unilm"),
               "attention luna of layer.1 does not support this mask: ");
    CHECK_SAYS(refused("window | layers 2:: B luna", "unilm"),
               "attention luna of layer.2 does not support this mask: ");
    CHECK_SAYS(refused("luna", "unilm"), "attention luna does not support this mask: ");
    o.rotary = true, o.attention = "softmax | layers 1: A luna";
    Parameters parameters;
    CHECK_SAYS(message_of<BadUsage>([&] { Backbone(parameters, o); }),
               "attention luna has no place for rotary positions");
}
