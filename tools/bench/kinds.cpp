// SPDX-License-Identifier: MIT
// ./bench attention --kinds: measures time and peak memory of the chosen kinds of attention, for each document length.
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <fstream>
#include <optional>

#include "engine/base/memory.h"
#include "engine/nn/attention/attention.h"
#include "engine/tape/rehearsal.h"
#include "engine/tape/trace.h"
#include "models/masks/mask.h"
#include "tools/bench/attention.h"
#include "tools/bench/measure.h"
#include "tools/plot/plot.h"

namespace masquerade {
namespace {

// The cost of one forward and backward. all: milliseconds. inside: milliseconds without linear projections. memory:
// peak memory in MiB.
struct Cost {
    double all, inside, memory;
};

std::int64_t resident_bytes() {
    long long pages = 0, all = 0;
    std::ifstream("/proc/self/statm") >> all >> pages;
    return pages * sysconf(_SC_PAGESIZE);
}

// Measures self-attention of one kind on one document of N rows. The rows are a parameter, so that the backward also
// computes their gradient.
Cost cost_of(const AttentionKind& kind, const SegmentGraph& graph, int N, int width, int heads, DType type,
             Device device, int repeats) {
    const std::int64_t before = resident_bytes();
    Parameters p(type, device);
    AttentionShape shape{width, heads};
    shape.positions = N;
    Tensor* rows = p.add("rows", {N, width}, {Init::normal, 1});
    const auto attention = kind.make(p, "layer", "attention", shape);
    const std::shared_ptr<Companion> companion = kind.companion ? kind.companion(p, "slots", shape) : nullptr;
    Tensor* head = p.add("head", {2, width}, {Init::normal, 0.02});
    p.allocate(1);
    std::vector<int> zeros(std::size_t(N), 0), places = zeros;
    for (int i = 0; i < N; i++) places[std::size_t(i)] = i;
    const std::vector<double> ones(std::size_t(N), 1.0 / N);
    Arena arena(device);
    Tape tape(arena, type);
    Clock clock;
    const auto step = [&](int number) {
        run_step(tape, "one", 1, std::uint32_t(number), false, [&] {
            const std::shared_ptr<Companion> stream = companion ? companion->start() : nullptr;
            Queries queries{rows};
            AttentionContext context{{tape.ints(zeros), tape.ints(places)}, &graph};
            context.companion = stream.get();
            Tensor* y = (*attention)(tape, queries, {rows, tape.ints(places)}, context);
            Tensor* weights = tape.constant("weights", {N}, arithmetic_of(type), ones.data());
            p.start_gradients();
            tape.backward(cross_entropy(tape, y, head, nullptr, tape.ints(zeros), weights, "loss"));
            p.finish_gradients();
        });
        tape.end();
    };
    step(0);  // this step plans the memory
    std::ofstream("/proc/self/clear_refs") << "5";
    step(1);
    const double memory = double(peak_resident_bytes() - before) / (1 << 20);
    tape.observe(&clock);
    std::vector<double> all, inside;
    for (int i = 0; i < repeats; i++) {
        clock.clear();
        step(2 + i);
        double seconds = 0, products = 0;
        for (const auto& [op, share] : clock.shares()) {
            if (op == "cross_entropy") continue;
            seconds += share.forward + share.backward;
            if (op.rfind("linear", 0) == 0) products += share.forward + share.backward;
        }
        all.push_back(1e3 * seconds), inside.push_back(1e3 * (seconds - products));
    }
    return {spread_of(all).median, spread_of(inside).median, memory};
}

// Runs measure() in a child process, so that the measured peak memory does not include earlier work.
Cost apart(const std::function<Cost()>& measure) {
    int ends[2];
    if (pipe(ends) != 0) throw BadInput("no pipe can be made");
    const pid_t child = fork();
    if (child < 0) throw BadInput("no process can be made");
    if (child == 0) {
        int status = 1;
        try {
            const Cost cost = measure();
            status = write(ends[1], &cost, sizeof cost) == sizeof cost ? 0 : 1;
        } catch (const std::exception& e) {
            log_line("error: ", e.what());
        }
        _exit(status);
    }
    close(ends[1]);
    Cost cost{};
    const bool whole = read(ends[0], &cost, sizeof cost) == sizeof cost;
    close(ends[0]);
    waitpid(child, nullptr, 0);
    if (!whole) throw Stopped{};
    return cost;
}

// Returns the slope of log y over log x by least squares: the exponent a if y grows as x^a. Only points with x >= 1024
// count; if there are fewer than two, returns NaN.
double slope_of(const Curve& c) {
    double n = 0, x = 0, y = 0, xx = 0, xy = 0;
    for (const auto& [a, b] : c.points) {
        if (a < 1024) continue;
        n++, x += std::log(a), y += std::log(b), xx += std::log(a) * std::log(a), xy += std::log(a) * std::log(b);
    }
    return n < 2 ? NAN : (n * xy - x * y) / (n * xx - x * x);
}

// Returns the x from which curve `of` stays below curve `other`. Between two points, the logarithms are interpolated
// linearly. Empty if `of` does not end below `other`.
std::optional<double> crossing(const Curve& of, const Curve& other) {
    const std::size_t n = std::min(of.points.size(), other.points.size());
    const auto gap = [&](std::size_t i) { return std::log(of.points[i].second / other.points[i].second); };
    if (n == 0 || gap(n - 1) >= 0) return std::nullopt;
    std::size_t i = n - 1;
    while (i > 0 && gap(i - 1) < 0) i--;
    if (i == 0) return of.points[0].first;
    const double a = std::log(of.points[i - 1].first), b = std::log(of.points[i].first),
                 share = gap(i - 1) / (gap(i - 1) - gap(i));
    return std::exp(a + share * (b - a));
}

}  // namespace

void measure_kinds(Bench& bench, const KindsOptions& o) {
    if (!o.plot.empty()) check_picture(o.plot);
    const std::string mask = printable(o.mask);
    bench.begin({{"mask", mask}, {"width", o.width}, {"heads", o.heads}, {"precision", name_of(o.type)}},
                fmt::format("attention   {} mask, width {}, {} heads, {}, forward and backward\n", mask, o.width,
                            o.heads, name_of(o.type)),
                fmt::format("{:<12}{:>8}{:>11}{:>11}{:>10}{:>11}\n", "", "length", "ms", "inside ms", "MiB",
                            "softmax /"));
    std::vector<Curve> times, memories;
    const auto row_of = [&](const AttentionKind& kind) {
        Curve time{kind.name, {}}, memory = time;
        for (int N : o.lengths) {
            const SegmentGraph graph = make_mask(o.mask, {{N, 0}});
            if (const std::string why = kind.refuses(graph); !why.empty()) {
                bench.table(fmt::format("{:<12}refuses: {}\n", kind.name, why));
                return;
            }
            const std::size_t n = time.points.size();
            if (n >= 2) {  // extrapolate the time from two lengths; stop if it exceeds the limit
                const auto& [x0, y0] = time.points[n - 2];
                const auto& [x1, y1] = time.points[n - 1];
                if (y1 * std::pow(N / x1, std::log(y1 / y0) / std::log(x1 / x0)) > 1e3 * o.limit) break;
            }
            bench.progress(fmt::format("{}: {}", kind.name, N));
            const Cost cost = apart([&] {
                return cost_of(kind, graph, N, o.width, o.heads, o.type, bench.common.device, bench.options.repeats);
            });
            time.points.emplace_back(N, cost.inside), memory.points.emplace_back(N, cost.memory);
            const double ratio =
                !times.empty() && n < times[0].points.size() ? times[0].points[n].second / cost.inside : NAN;
            const std::string line =
                fmt::format("{:<12}{:>8}{:>11}{:>11}{:>10}{:>11}\n", kind.name, N, figures(cost.all),
                            figures(cost.inside), figures(cost.memory), std::isnan(ratio) ? "" : figures(ratio));
            bench.add({{"kind", kind.name},
                       {"length", N},
                       {"ms", cost.all},
                       {"inside_ms", cost.inside},
                       {"mib", cost.memory}},
                      line);
        }
        times.push_back(time), memories.push_back(memory);
    };
    row_of(find_attention("softmax"));
    for (const AttentionKind& kind : attention_kinds())
        if (kind.name != std::string("softmax") &&
            (o.kinds == std::vector<std::string>{"all"} || std::count(o.kinds.begin(), o.kinds.end(), kind.name)))
            row_of(kind);
    bench.table(
        fmt::format("\n{:<12}{:>14}{:>14}{:>26}\n", "", "time ~ N^", "memory ~ N^", "faster than softmax from"));
    for (std::size_t i = 0; i < times.size(); i++) {
        const auto from = crossing(times[i], times[0]);
        const double time = slope_of(times[i]), memory = slope_of(memories[i]);
        bench.table(fmt::format("{:<12}{:>14.2f}{:>14.2f}{:>26}\n", times[i].name, time, memory,
                                i == 0 ? ""
                                : from ? fmt::format("{:.0f}", *from)
                                       : "never here"));
    }
    if (!o.plot.empty())
        draw(o.plot, {{"attention without its projections, forward and backward", "length", "ms", true, times},
                      {"memory at the peak", "length", "MiB", true, memories}});
}

}  // namespace masquerade
