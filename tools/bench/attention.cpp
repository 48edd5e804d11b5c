// SPDX-License-Identifier: MIT
// ./bench attention: measures attention alone, forward and backward.
#include <fmt/format.h>

#include <cmath>
#include <memory>

#include "engine/base/named.h"
#include "engine/nn/attention/attention.h"
#include "engine/ops/visible.h"
#include "engine/tensor/numbers.h"
#include "models/masks/mask.h"
#include "tools/bench/attention.h"
#include "tools/bench/measure.h"

namespace masquerade {
namespace {

SegmentGraph graph_of(const AttentionSizes& s) {
    const int half = s.length / 2;
    const Document one = s.mask == "prefix" ? Document{half, s.length - half} : Document{s.length, 0};
    const Documents documents(std::size_t(s.documents), one);
    if (s.mask == "full") return full_mask(documents);
    return s.mask == "causal" ? causal_mask(documents) : unilm_mask(documents);
}

struct CaseOptions {
    std::vector<int> lengths;
    int tokens = 0, heads = 0, size = 64;
    std::string precision = "both";
    KindsOptions kinds;
};

void measure(Bench& bench, const AttentionSizes& s) {
    constexpr double run_seconds = 0.3;
    const Device device = bench.common.device;
    const std::string precision = name_of(s.type);
    AttentionWork work(s, device);
    work.forward();
    work.backward();
    const Json check = {{"y", work.mean_output()}, {"dq", work.mean_gradient()}};
    for (const bool both : {false, true}) {
        auto call = [&] {
            work.forward();
            if (both) work.backward();
        };
        call();
        bench.measure({{"name",
                        fmt::format("{} {} {} {}", s.mask, precision, s.length, both ? "both ways" : "forward")},
                       {"amount", 2e-9 * (both ? 6 : 2) * work.product_work()},
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

void run(Bench& bench, CaseOptions o) {
    if (KindsOptions& k = o.kinds; !k.kinds.empty()) {
        k.heads = o.heads ? o.heads : 4, k.width = k.heads * o.size;
        if (!o.lengths.empty()) k.lengths = o.lengths;
        if (o.precision == "bf16") k.type = DType::bf16;
        return measure_kinds(bench, k);
    }
    if (o.lengths.empty()) o.lengths = {128, 512, 2048};
    if (o.heads == 0) o.heads = 12;
    if (o.tokens == 0) o.tokens = bench.common.device == Device::cuda ? 16384 : 2048;
    bench.begin();
    for (DType type : {DType::bf16, DType::f32})
        for (int length : o.lengths)
            for (const char* mask : {"full", "causal", "prefix"})
                if (o.precision == "both" || o.precision == name_of(type))
                    measure(bench, {mask, std::max(1, o.tokens / length), length, o.heads, o.size, type});
}

}  // namespace

AttentionWork::AttentionWork(const AttentionSizes& s, Device device)
    : sizes_(s),
      device_(device),
      graph_(graph_of(s)),
      pairs_(double(visible_pairs(graph_))),
      rule_{s.heads, 0, {}, {}},
      q_(block(s.width(), s.type, {0})),
      kv_(block(2 * s.width(), s.type, {1, 2})),
      y_(block(s.width(), s.type)),
      lse_(block(s.heads, arithmetic_of(s.type))),
      dy_(block(s.width(), s.type, {3})),
      dq_(block(s.width(), s.type)),
      dkv_(block(2 * s.width(), s.type)) {}

AttentionWork::Block AttentionWork::block(std::int64_t columns, DType type, const std::vector<int>& salts) const {
    Buffer memory(std::size_t(sizes_.rows() * columns) * bytes_of(type), device_);
    const View view{memory.data(), type, device_, {sizes_.rows(), columns}, "attention"};
    const std::int64_t C = sizes_.width();
    std::vector<float> numbers;
    for (std::int64_t row = 0; row < sizes_.rows(); row++)
        for (int salt : salts)
            for (std::int64_t c = 0; c < C; c++)
                numbers.push_back(float((37 * (row * C + c) + 11 * salt) % 97) / 48 - 1);
    if (!numbers.empty()) write_numbers(view, numbers.data());
    return {std::move(memory), view};
}

void AttentionWork::forward() { attention_forward(q_.view, Views{kv_.view}, graph_, rule_, y_.view, lse_.view); }

void AttentionWork::backward() {
    attention_backward(dy_.view, q_.view, Views{kv_.view}, y_.view, lse_.view, graph_, rule_, Grad{dq_.view, false},
                       Grads{Grad{dkv_.view, false}});
}

double AttentionWork::mean_of(const Block& block) {
    double sum = 0;
    for (double x : numbers_of(block.view)) sum += std::fabs(x);
    return sum / double(block.view.count());
}

std::int64_t visible_pairs(const SegmentGraph& graph) {
    std::int64_t pairs = 0;
    for (const QuerySegment& q : graph.queries)
        for (int i = q.begin; i < q.end; i++)
            for (int s = q.sees_begin; s < q.sees_end; s++)
                each_run(graph, q, i, graph.sees[std::size_t(s)], [&](int begin, int end) { pairs += end - begin; });
    return pairs;
}

RunCase attention_case(Options& app) {
    auto o = std::make_shared<CaseOptions>();
    app.number("--lengths", o->lengths, 2, 1 << 20,
               "tokens per document (default: 128,512,2048; with --kinds 256,1024,4096,16384,65536)", "N,...")
        .list();
    app.number("--tokens", o->tokens, 2, 1 << 24,
               "tokens of all documents (default: 2048; with --device cuda 16384); at least one document is run");
    app.number("--heads", o->heads, 1, 1024, "heads (default: 12; with --kinds 4)");
    app.number("--size", o->size, 1, 1024, "numbers per head (default: 64)");
    app.choice("--precision", o->precision, {"f32", "bf16", "both"}, "f32, bf16 or both (default: both)");
    KindsOptions& k = o->kinds;
    std::vector<std::string> names = names_of(attention_kinds());
    names.push_back("all");
    app.value("--kinds", k.kinds, "NAME,...",
              "measure time and memory of softmax and these kinds of attention, or all, against the length")
        .list()
        .one_of(names);
    app.value("--mask", k.mask, "MASK", "with --kinds: a mask by name or in words (default: bert, a full mask)");
    app.number("--limit", k.limit, 0.0, 1e6,
               "with --kinds: skip lengths whose call would take more than S seconds (default: 60)", "S");
    app.output("--plot", k.plot, "FILE", "with --kinds: draw the curves with gnuplot, .svg or .png");
    return [o](Bench& bench) { run(bench, *o); };
}

}  // namespace masquerade
