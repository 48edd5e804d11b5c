// SPDX-License-Identifier: MIT
// ./bench attention --kinds: measures time and peak memory of the chosen kinds of attention, for each document length.
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>

#include "engine/nn/attention/attention.h"
#include "engine/base/named.h"
#include "engine/tape/rehearsal.h"
#include "engine/tape/trace.h"
#include "models/masks/mask.h"
#include "tools/bench/attention.h"
#include "tools/bench/measure.h"
#include "tools/plot/plot.h"

namespace masquerade {
namespace {

// Measures one forward and backward of self-attention of one kind on one document. The input has one row per token,
// shape.positions rows in all. The rows are looked up in a parameter, so that the backward also computes the gradient
// of the input. Neither the look-up nor the loss counts as time. In the result, "inside_ms" is the time without linear
// projections, in ms, and "mib" is the peak memory, in MiB.
Json row_of(const AttentionKind& kind, const SegmentGraph& graph, const AttentionShape& shape, DType type,
            const Bench& bench) {
    const Device device = bench.common.device;
    const int N = shape.positions;
    forget_peak();
    const std::int64_t before = memory_taken(device);
    Parameters p(type, device);
    Tensor* rows = p.add("rows", {N, shape.width}, {Init::normal, 1});
    const auto attention = kind.make(p, "layer", "attention", shape);
    const std::shared_ptr<Companion> companion = kind.companion ? kind.companion(p, "slots", shape) : nullptr;
    Tensor* head = p.add("head", {2, shape.width}, {Init::normal, 0.02});
    p.allocate(1);
    std::vector<int> zeros(N, 0), places = zeros;
    std::iota(places.begin(), places.end(), 0);
    const std::vector<double> ones(N, 1.0 / N);
    Arena arena(device);
    Tape tape(arena, type);
    const auto step = [&](int number) {
        run_step(tape, "one", 1, number, false, [&] {
            const std::shared_ptr<Companion> stream = companion ? companion->start() : nullptr;
            Tensor* x = embedding(tape, tape.ints(places), rows, "x");
            Queries queries{x};
            AttentionContext context{{tape.ints(zeros), tape.ints(places)}, &graph};
            context.companion = stream.get();
            Tensor* y = (*attention)(tape, queries, {x, tape.ints(places)}, context);
            Tensor* weights = tape.constant("weights", {N}, arithmetic_of(type), ones.data());
            p.start_gradients();
            tape.backward(cross_entropy(tape, y, head, nullptr, tape.ints(zeros), weights, "loss"));
            p.finish_gradients();
        });
        tape.end();
    };
    step(0);  // the first step plans the memory of the later steps
    forget_peak();
    step(1);
    const double memory = double(memory_taken(device) - before) / (1 << 20);
    Clock clock;
    tape.observe(&clock);
    std::vector<double> all, inside;
    for (int i = 0; i < bench.options.repeats; i++) {
        clock.clear();
        step(2 + i);
        double seconds = 0, products = 0;
        for (const auto& [op, share] : clock.shares()) {
            if (op == "cross_entropy" || op == "embedding") continue;
            seconds += share.forward + share.backward;
            if (op.rfind("linear", 0) == 0 || op == "query_key_value") products += share.forward + share.backward;
        }
        all.push_back(1e3 * seconds), inside.push_back(1e3 * (seconds - products));
    }
    return {{"kind", kind.name},
            {"length", N},
            {"ms", spread_of(all).median},
            {"inside_ms", spread_of(inside).median},
            {"mib", memory}};
}

// Returns, as text, the slope of log y over log x by least squares: the exponent a if y grows as x^a. Only points with
// x >= 1024 count. Returns "-" if they have no slope, for example because there are fewer than two.
std::string slope_of(const Curve& c) {
    double n = 0, x = 0, y = 0, xx = 0, xy = 0;
    for (const auto& [length, value] : c.points) {
        if (length < 1024) continue;
        const double a = std::log(length), b = std::log(value);
        n++, x += a, y += b, xx += a * a, xy += a * b;
    }
    const double slope = (n * xy - x * y) / (n * xx - x * x);
    return std::isfinite(slope) ? fmt::format("{:.2f}", slope) : "-";
}

// Returns the x from which curve `of` stays below curve `other`. Between two points, the logarithms are interpolated
// linearly. Returns nullopt if `of` does not end below `other`.
std::optional<double> crossing(const Curve& of, const Curve& other) {
    const auto gap = [&](std::size_t i) { return std::log(of.points[i].second / other.points[i].second); };
    const std::size_t count = std::min(of.points.size(), other.points.size());
    std::size_t i = count;
    while (i > 0 && gap(i - 1) < 0) i--;
    if (i == count) return std::nullopt;
    if (i == 0) return of.points[0].first;
    const double a = std::log(of.points[i - 1].first), b = std::log(of.points[i].first);
    return std::exp(a + gap(i - 1) / (gap(i - 1) - gap(i)) * (b - a));
}

}  // namespace

void measure_kinds(Bench& bench, const AttentionCase& o) {
    bench.has_peer = false;
    if (!o.plot.empty()) check_picture(o.plot);
    if (o.precision == "both")
        throw BadUsage("--precision is both, expected f32 or bf16, as --kinds measures only one");
    const DType type = storage_of(o.precision);
    AttentionShape shape;
    shape.heads = o.heads ? o.heads : 4, shape.width = shape.heads * o.size;
    const std::vector<int> lengths = o.lengths.empty() ? std::vector<int>{256, 1024, 4096, 16384, 65536} : o.lengths;
    if (o.alone) {
        if (o.kinds.size() != 1 || o.kinds[0] == "all" || lengths.size() != 1)
            throw BadUsage("--alone measures one kind on one length: found --kinds ",
                           fmt::format("{}", fmt::join(o.kinds, ",")), " and ", counted(lengths.size(), "length"),
                           ", expected such as --kinds luna --lengths 1024");
        shape.positions = lengths[0];
        const SegmentGraph graph = make_mask(o.mask, {{shape.positions, 0}});
        const Json row = row_of(find_attention(o.kinds[0]), graph, shape, type, bench);
        return bench.add(row, row.dump() + '\n');
    }
    constexpr const char* form = "{:<12}{:>8}{:>11}{:>11}{:>10}{:>11}\n";
    // Each kind is measured at each length in a new process, because the working memory of ops stays allocated.
    const std::string mask = printable(o.mask),
                      alone =
                          text("/proc/$PPID/exe attention --alone --device ", name_of(bench.common.device),
                               " --threads ", threads(), " --repeats ", bench.options.repeats, " --heads ", shape.heads,
                               " --size ", o.size, " --precision ", name_of(type), " --mask ", shell_word(o.mask));
    bench.begin({{"mask", mask}, {"width", shape.width}, {"heads", shape.heads}, {"precision", name_of(type)}},
                text("attention   ", mask, " mask, width ", shape.width, ", ", shape.heads, " heads, ", name_of(type),
                     ", forward and backward\n"),
                fmt::format(form, "", "length", "ms", "inside ms", "MiB", "softmax /"));
    std::vector<Curve> times, memories;
    const auto measure = [&](const AttentionKind& kind) {
        Curve time{kind.name, {}}, memory = time;
        for (int N : lengths) {
            const SegmentGraph graph = make_mask(o.mask, {{N, 0}});
            if (const std::string why = kind.refuses(graph); !why.empty())
                return bench.show(fmt::format("{:<12}refuses: {}\n", kind.name, why));
            const std::size_t n = time.points.size();
            if (n >= 2) {  // extrapolate the time from two lengths; stop if it exceeds the limit
                const auto& [x0, y0] = time.points[n - 2];
                const auto& [x1, y1] = time.points[n - 1];
                if (y1 * std::pow(N / x1, std::log(y1 / y0) / std::log(x1 / x0)) > 1e3 * o.limit) break;
            }
            bench.progress(text(kind.name, ": ", N));
            const std::string line =
                first_line_of(text(alone, " --kinds ", kind.name, " --lengths ", N, " 2>&1 | grep '^{\\|^error: '"));
            if (line.substr(0, 1) != "{") {
                bench.progress("");  // throws Stopped after Ctrl-C, which the other process has received, too
                throw Error(kind.name, " on ", N, " tokens was not measured: ", line);
            }
            const Json row = Json::parse(line);
            const double inside = row["inside_ms"], mib = row["mib"];
            time.points.emplace_back(N, inside), memory.points.emplace_back(N, mib);
            const bool compared = !times.empty() && n < times[0].points.size();
            bench.add(row, fmt::format(form, kind.name, N, figures(row["ms"]), figures(inside), figures(mib),
                                       compared ? figures(times[0].points[n].second / inside) : ""));
        }
        times.push_back(time), memories.push_back(memory);
    };
    const auto asked = [&](const std::string& name) { return contains(o.kinds, name); };
    measure(find_attention("softmax"));
    for (const AttentionKind& kind : attention_kinds())
        if (kind.name != std::string("softmax") && (asked("all") || asked(kind.name))) measure(kind);
    bench.show(fmt::format("\n{:<12}{:>14}{:>14}{:>26}\n", "from 1024 on", "time ~ N^", "memory ~ N^",
                           "faster than softmax from"));
    for (std::size_t i = 0; i < times.size(); i++) {
        const auto from = crossing(times[i], times[0]);
        bench.show(fmt::format("{:<12}{:>14}{:>14}{:>26}\n", times[i].name, slope_of(times[i]), slope_of(memories[i]),
                               i == 0 ? ""
                               : from ? fmt::format("{:.0f}", *from)
                                      : "never here"));
    }
    if (!o.plot.empty())
        draw(o.plot, {{"attention without its projections, forward and backward", "length", "ms", true, times},
                      {"memory at the peak", "length", "MiB", true, memories}});
}

}  // namespace masquerade
