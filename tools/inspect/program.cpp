// SPDX-License-Identifier: MIT
// ./inspect program: prints one training step of a small model, and draws the graph of its ops, its memory and a
// timeline.
#include <memory>
#include <nlohmann/json.hpp>

#include "engine/base/write_file.h"
#include "engine/tape/plan.h"
#include "engine/tape/trace.h"
#include "engine/tensor/copy.h"
#include "tools/inspect/inspect.h"
#include "tools/inspect/page.h"
#include "tools/inspect/small_model.h"
#include "tools/program.h"
#include "tools/say.h"

namespace masquerade {
namespace {

// Returns the names of the scopes that contain a path. Example: for encoder.layer.0.attention.query, they are encoder,
// layer.0 and attention.
Strings scopes_of(const std::string& path) {
    Strings all;
    for (std::size_t begin = 0, end; (end = path.find('.', begin)) != path.npos; begin = end + 1) {
        const std::string word = path.substr(begin, end - begin);
        const bool number = word.find_first_not_of("0123456789") == word.npos;
        if (number && !all.empty())
            all.back() += "." + word;
        else
            all.push_back(word);
    }
    return all;
}

std::string last_name(const std::string& path) { return path.substr(path.rfind('.') + 1); }

// Draws the ops of the tape as a graph with Graphviz. Boxes around the ops show their scopes. An edge is blue if a
// gradient flows back along it; otherwise, it is grey.
void draw_graph_of(const Tape& tape, const std::string& file) {
    const std::vector<Record>& records = tape.records();
    std::string nodes, edges;
    std::map<const Tensor*, std::size_t> made_by;
    Strings open;
    for (std::size_t i = 0; i < records.size(); i++) {
        const Record& r = records[i];
        const Strings scopes = scopes_of(r.out[0]->path);
        std::size_t same = 0;
        while (same < std::min(open.size(), scopes.size()) && open[same] == scopes[same]) same++;
        for (; open.size() > same; open.pop_back()) nodes += "}\n";
        for (; open.size() < scopes.size(); open.push_back(scopes[open.size()]))
            nodes += fmt::format(
                "subgraph cluster_{}_{} {{ label={}; style=rounded; color=\"#bbbbbb\"; fontcolor=\"#666666\";\n", i,
                open.size(), dot_string(scopes[open.size()]));
        std::string weights;
        for (const Tensor* t : r.in) {
            if (!t) continue;
            const auto from = made_by.find(t);
            if (from == made_by.end()) {
                weights += t->parameter ? (weights.empty() ? "" : ", ") + last_name(t->path) : "";
                continue;
            }
            const bool back = r.backward && t->needs_grad;
            edges += fmt::format("n{} -> n{} [color=\"{}\", tooltip={}];\n", from->second, i,
                                 back ? "#2b5d8a" : "#aaaaaa", dot_string(text(t->path, " ", t->shape)));
        }
        std::string label =
            dot_string(r.op) + "+\"\\n\"+" + dot_string(text(last_name(r.out[0]->path), " ", r.out[0]->shape));
        if (!weights.empty()) label += "+\"\\n\"+" + dot_string("by " + weights);
        nodes += fmt::format("n{} [label={}, tooltip={}];\n", i, label, dot_string(r.out[0]->path));
        for (const Tensor* t : r.out) made_by[t] = i;
    }
    for (; !open.empty(); open.pop_back()) nodes += "}\n";
    const std::string script =
        R"(digraph tape { node [shape=box, style="rounded,filled", fillcolor="#eef2f6", color="#2b5d8a", fontname="sans-serif", )"
        "fontsize=11, height=0.3]; fontname=\"sans-serif\"; fontsize=11; nodesep=0.25; ranksep=0.3; edge [arrowsize=0.6];\n" +
        nodes + edges + "}\n";
    draw_by(dot, "-T" + file.substr(file.size() - 3), file, script);
}

// Returns an SVG picture of the memory plan. Each block is a rectangle. The x axis is time, which advances by a tick
// for each op: first in the forward, then in the backward. The y axis is the offset in the arena.
std::string memory_picture(const Tape& tape, const std::vector<ArenaBlock>& plan) {
    // Index of a memory block in `plan` -> path of its tensor, and whether the block holds the gradient of this tensor.
    // Blocks that an op uses only internally are not in this map.
    std::map<int, std::pair<std::string, bool>> names;
    for (const Record& r : tape.records())
        for (const Record::Tensors* some : {&r.in, &r.out})
            for (const Tensor* t : *some)
                if (t) names[t->value_block] = {t->path, false}, names[t->grad_block] = {t->path, true};
    int ticks = 1;
    std::size_t bytes = 1;
    for (const ArenaBlock& b : plan) ticks = std::max(ticks, b.last + 1), bytes = std::max(bytes, b.offset + b.bytes);
    constexpr double width = 900, height = 420, left = 70, top = 40;
    std::string s = fmt::format(
        R"(<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {} {}" font-family="sans-serif" font-size="12">)"
        R"(<rect width="100%" height="100%" fill="white"/>)"
        "\n",
        left + width + 12, top + height + 40);
    const auto words = [&](double x, double y, const char* anchor, const std::string& what) {
        s += fmt::format(R"(<text x="{:.1f}" y="{:.1f}" text-anchor="{}">{}</text>)"
                         "\n",
                         x, y, anchor, letters(what));
    };
    words(12, 20, "start",
          fmt::format("{} blocks in {:.1f} KiB: values blue, gradients orange; point at one to read its name",
                      plan.size(), double(bytes) / 1024));
    for (std::size_t i = 0; i < plan.size(); i++) {
        const ArenaBlock& b = plan[i];
        const auto found = names.find(i);
        const bool gradient = found != names.end() && found->second.second;
        const double tall = height * double(b.bytes) / double(bytes);
        s += fmt::format(
            R"(<rect x="{:.1f}" y="{:.2f}" width="{:.1f}" height="{:.2f}" fill="{}" fill-opacity="0.75" stroke="white" stroke-width="0.5"><title>{}, {} bytes</title></rect>)"
            "\n",
            left + width * b.first / ticks, top + height - height * double(b.offset) / double(bytes) - tall,
            width * (b.last + 1 - b.first) / ticks, tall, gradient ? "#c2571a" : "#2b5d8a",
            letters(found == names.end() ? "of an op alone" : found->second.first + (gradient ? ", its gradient" : "")),
            b.bytes);
    }
    const double turn = left + width * double(tape.records().size()) / ticks;
    s += fmt::format(R"(<path d="M{0:.1f} {1}V{2}" stroke="#222" stroke-dasharray="4 3"/>)"
                     "\n",
                     turn, top, top + height);
    words(turn - 6, top + height + 18, "end", "forward");
    words(turn + 6, top + height + 18, "start", "backward");
    words(left - 6, top + height, "end", "0");
    words(left - 6, top + 10, "end", fmt::format("{:.0f} KiB", double(bytes) / 1024));
    return s + "</svg>\n";
}

// Records when each op began and ended, in microseconds since clear(). json() returns the events in Chrome's trace
// event format.
class Timeline : public Observer {
  public:
    void before(const Record& r, bool) override {
        wait_for(r.out[0]->device);
        start_ = microseconds();
    }
    void after(const Record& r, bool backward) override {
        wait_for(r.out[0]->device);
        events_.push_back({{"name", r.op},
                           {"cat", backward ? "backward" : "forward"},
                           {"ph", "X"},
                           {"ts", start_},
                           {"dur", microseconds() - start_},
                           {"pid", 0},
                           {"tid", 0},
                           {"args", {{"path", r.out[0]->path}, {"shape", text(r.out[0]->shape)}}}});
    }
    void clear() { events_.clear(), first_ = steady_seconds(); }
    std::string json() const {
        return nlohmann::json({{"traceEvents", events_}, {"displayTimeUnit", "ms"}}).dump() + "\n";
    }

  private:
    double microseconds() const { return 1e6 * (steady_seconds() - first_); }
    nlohmann::json events_ = nlohmann::json::array();
    double first_ = 0, start_ = 0;
};

void print_times(const Clock& clock, int steps) {
    double total = 0;
    for (const auto& [op, share] : clock.shares()) total += share.forward + share.backward;
    say("{:16}{:>8}{:>14}{:>14}{:>9}\n", "op", "calls", "forward ms", "backward ms", "share");
    for (const auto& [op, share] : clock.shares())
        say("{:16}{:8}{:14.3f}{:14.3f}{:8.1f}%\n", op, share.calls / steps, 1e3 * share.forward / steps,
            1e3 * share.backward / steps, 100 * (share.forward + share.backward) / total);
    say("{:16}{:8}{:14.3f} ms a step, forward and backward\n", "all", "", 1e3 * total / steps);
}

}  // namespace

void print_program(const ProgramSettings& s, std::uint64_t seed) {
    if (!s.graph.empty()) check_picture(s.graph, dot);
    SmallStep step(s.words, seed);
    if (!s.memory.empty() && !step.settings->train.plan_memory)
        throw BadUsage(
            "--memory draws the plan of the memory, and plan_memory=false makes none: leave out one of them");
    Clock clock;
    Timeline timeline;
    std::unique_ptr<Dump> dump;
    if (!s.dump.empty()) {
        dump = std::make_unique<Dump>(s.dump);
        step.tape.observe(dump.get());
    }
    if (s.time) step.tape.observe(&clock);
    if (!s.timeline.empty()) step.tape.observe(&timeline);
    const int steps = s.time || !s.timeline.empty() ? 4 : 1;  // the first step is not timed, because it plans memory
    for (int i = 0; i < steps; i++) {
        if (i == 1) clock.clear();
        timeline.clear();
        step.backward(step.loss());
        step.tape.end();
    }
    if (!s.graph.empty()) draw_graph_of(step.tape, s.graph);
    if (!s.memory.empty()) replace_file(s.memory, memory_picture(step.tape, *step.arena.plan(step.bucket)));
    if (!s.timeline.empty()) replace_file(s.timeline, timeline.json());
    if (s.time) return print_times(clock, steps - 1);
    if (dump) dump->write_program(step.tape);
    say("{}\n{}: {}\n{} parameters; {} tokens are asked for, of a batch in bucket {}\n", Lines{step.tape.program()},
        step.kind.name, step.run->description(), step.run->parameters.count(), step.task->batch_tokens(), step.bucket);
    say("values and gradients: {:.1f} KiB as planned, {:.1f} side by side\n", double(step.arena.planned_bytes()) / 1024,
        double(step.arena.unplanned_bytes()) / 1024);
    if (dump) say("every value and gradient: {}/<path>.npy and <path>.grad.npy\n", s.dump);
}

}  // namespace masquerade
