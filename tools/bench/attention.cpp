// SPDX-License-Identifier: MIT
// ./bench attention: measures attention alone, forward and backward.
#include "tools/bench/attention.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>

#include "engine/base/named.h"
#include "engine/nn/attention/attention.h"
#include "engine/ops/visible.h"
#include "engine/tensor/numbers.h"
#include "models/masks/mask.h"
#include "tools/bench/measure.h"

namespace masquerade {
namespace {

SegmentGraph graph_of(const AttentionSizes& s) {
    const int half = s.length / 2;
    const Document one = s.mask == "prefix" ? Document{half, s.length - half} : Document{s.length, 0};
    const Documents documents(s.documents, one);
    if (s.mask == "full") return full_mask(documents);
    return s.mask == "causal" ? causal_mask(documents) : unilm_mask(documents);
}

void measure(Bench& bench, const AttentionSizes& s) {
    constexpr double run_seconds = 0.3;
    const Device device = bench.common.device;
    const std::string precision = name_of(s.type);
    const AttentionWork work(s, device);
    work.forward();
    work.backward();
    const Json check = {{"y", mean_size(work.y)}, {"dq", mean_size(work.dq)}};
    for (const bool both : {false, true}) {
        auto call = [&] {
            work.forward();
            if (both) work.backward();
        };
        call();
        bench.measure({{"name", text(s.mask, ' ', precision, ' ', s.length, both ? " both ways" : " forward")},
                       {"amount", 2e-9 * (both ? 6 : 2) * work.product_work},
                       {"unit", "GFLOP"},
                       {"mask", s.mask},
                       {"precision", precision},
                       {"length", s.length},
                       {"documents", s.documents},
                       {"heads", s.heads},
                       {"size", s.size},
                       {"both_ways", both},
                       {"check", check}},
                      {{"budget", run_seconds}}, [&] { return seconds_of(call, run_seconds, device); });
    }
}

void run(Bench& bench, AttentionCase o) {
    if (!o.kinds.empty()) {
        if (o.mask.empty()) o.mask = "bert";
        return measure_kinds(bench, o);
    }
    if (o.lengths.empty()) o.lengths = {128, 512, 2048};
    if (o.heads == 0) o.heads = 12;
    if (o.tokens == 0) o.tokens = bench.common.device == Device::cuda ? 16384 : 2048;
    bench.begin(Json::object());
    Strings masks = {"full", "causal", "prefix"};
    if (!o.mask.empty()) {
        if (!std::count(masks.begin(), masks.end(), o.mask))
            throw Error("--mask is ", o.mask, ", expected full, causal or prefix; other masks need --kinds");
        masks = {o.mask};
    }
    for (DType type : {DType::bf16, DType::f32})
        for (int length : o.lengths)
            for (const std::string& mask : masks)
                if (o.precision.empty() || o.precision == "both" || o.precision == name_of(type))
                    measure(bench,
                            {mask, std::max(1, o.tokens / length), length, o.heads, o.size, type, float(o.dropout)});
}

}  // namespace

AttentionWork::AttentionWork(const AttentionSizes& s, Device device)
    : graph(graph_of(s)), rule{s.heads, s.dropout, make_stream(1, "attention", 0), {}}, names(device) {
    const std::int64_t N = s.documents * s.length, C = s.heads * s.size;
    for (std::int64_t row = 0; row < N; row++)
        document.push_back(int(row / s.length)), position.push_back(int(row % s.length));
    rule.rows = {names.ints(document), names.ints(position)};
    product_work = double(visible_pairs(graph) * C);
    // Returns a tensor of N rows, with C columns for each salt, side by side. The numbers follow the formula in
    // attention.h. In the formula, q, keys, values and dy have different salts, so that their numbers differ.
    const auto filled = [&](const std::vector<int>& salts) {
        std::vector<float> numbers;
        for (std::int64_t row = 0; row < N; row++)
            for (int salt : salts)
                for (std::int64_t i = row * C; i < (row + 1) * C; i++)
                    numbers.push_back(float((37 * i + 11 * salt) % 97) / 48 - 1);
        return make_tensor({N, std::int64_t(salts.size()) * C}, s.type, device, numbers);
    };
    q = filled({0}), kv = filled({1, 2}), dy = filled({3});
    for (OwnedTensor* tensor : {&y, &dq}) *tensor = make_tensor({N, C}, s.type, device);
    dkv = make_tensor({N, 2 * C}, s.type, device);
    lse = make_tensor({N, s.heads}, arithmetic_of(s.type), device);
}

void AttentionWork::forward() const { attention_forward(q.view, Views{kv.view}, graph, rule, y.view, lse.view); }

void AttentionWork::backward() const {
    attention_backward(dy.view, q.view, Views{kv.view}, y.view, lse.view, graph, rule, Grad{dq.view, false},
                       Grads{Grad{dkv.view, false}});
}

double mean_size(const OwnedTensor& tensor) {
    double sum = 0;
    for (double x : numbers_of(tensor.view)) sum += std::fabs(x);
    return sum / double(tensor.view.count());
}

std::int64_t visible_pairs(const SegmentGraph& graph) {
    std::int64_t pairs = 0;
    for (const QuerySegment& q : graph.queries)
        for (int i = q.begin; i < q.end; i++)
            for (int s = q.sees_begin; s < q.sees_end; s++)
                each_run(graph, q, i, graph.sees[s], [&](int begin, int end) { pairs += end - begin; });
    return pairs;
}

RunCase attention_case(Options& app) {
    auto o = std::make_shared<AttentionCase>();
    app.number("--lengths", o->lengths, 2, 1 << 20,
               "tokens per document (default: 128,512,2048; with --kinds 256,1024,4096,16384,65536)", "N,...")
        .list();
    const Option tokens =
        app.number("--tokens", o->tokens, 2, 1 << 24,
                   "tokens of all documents (default: 2048; with --device cuda 16384); at least one document is run; "
                   "not with --kinds");
    app.number("--heads", o->heads, 1, 1024, "heads (default: 12; with --kinds 4)");
    app.number("--size", o->size, 1, 1024, "numbers per head (default: 64)");
    app.choice("--precision", o->precision, {"f32", "bf16", "both"},
               "f32, bf16 or both (default: both); with --kinds f32 or bf16 (default: f32)");
    Strings names = names_of(attention_kinds());
    names.push_back("all");
    const Option kinds =
        app.value("--kinds", o->kinds, "NAME,...",
                  "measure time and memory of softmax and these kinds of attention, or all, against the length")
            .list()
            .one_of(names)
            .excludes(tokens);
    app.value(
        "--mask", o->mask, "MASK",
        "measure only this mask: full, causal or prefix; with --kinds any mask, by name or in words (default: bert)");
    app.number("--dropout", o->dropout, 0.0, 0.99, "dropout rate of the probabilities, not with --kinds (default: 0)")
        .excludes(kinds);
    const Option limit = app.number("--limit", o->limit, 0.0, 1e6,
                                    "skip lengths whose call would take more than S seconds (default: 60)", "S")
                             .needs(kinds);
    const Option plot =
        app.output("--plot", o->plot, "FILE", "draw the curves with gnuplot, .svg or .png").needs(kinds);
    app.flag("--alone", o->alone, "measure only one kind on one length, and print the row as JSON")
        .needs(kinds)
        .excludes(limit)
        .excludes(plot);
    return [o](Bench& bench) { run(bench, *o); };
}

}  // namespace masquerade
