// SPDX-License-Identifier: MIT
#include "tools/inspect/pictures.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "engine/tensor/copy.h"
#include "tools/inspect/page.h"
#include "tools/plot/plot.h"

namespace masquerade {
namespace {

// Returns the names of the scopes that contain a path. Example: for encoder.layer.0.attention.query, they are encoder,
// layer.0 and attention.
std::vector<std::string> scopes_of(const std::string& path) {
    std::vector<std::string> all;
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

}  // namespace

void draw_graph_of(const Tape& tape, const std::string& file) {
    const std::vector<Record>& records = tape.records();
    std::string nodes, edges;
    std::map<const Tensor*, std::size_t> made_by;
    std::vector<std::string> open;
    for (std::size_t i = 0; i < records.size(); i++) {
        const Record& r = records[i];
        const std::vector<std::string> scopes = scopes_of(r.out[0]->path);
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
        "digraph tape { node [shape=box, style=\"rounded,filled\", fillcolor=\"#eef2f6\", color=\"#2b5d8a\", fontname=\"sans-serif\", "
        "fontsize=11, height=0.3]; fontname=\"sans-serif\"; fontsize=11; nodesep=0.25; ranksep=0.3; edge [arrowsize=0.6];\n" +
        nodes + edges + "}\n";
    draw_by(dot, {"-T" + file.substr(file.size() - 3)}, file, script);
}

std::string memory_picture(const Tape& tape, const std::vector<ArenaBlock>& plan) {
    // For each block, by number: the path of its tensor, and whether the block holds the gradient of this tensor.
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
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" font-family=\"sans-serif\" font-size=\"12\">"
        "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
        left + width + 12, top + height + 40);
    const auto words = [&](double x, double y, const char* anchor, const std::string& what) {
        s += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", x, y, anchor, letters(what));
    };
    words(12, 20, "start",
          fmt::format("{} blocks in {:.1f} KiB: values blue, gradients orange; point at one to read its name",
                      plan.size(), double(bytes) / 1024));
    for (std::size_t i = 0; i < plan.size(); i++) {
        const ArenaBlock& b = plan[i];
        const auto found = names.find(int(i));
        const bool gradient = found != names.end() && found->second.second;
        const double tall = height * double(b.bytes) / double(bytes);
        s += fmt::format(
            "<rect x=\"{:.1f}\" y=\"{:.2f}\" width=\"{:.1f}\" height=\"{:.2f}\" fill=\"{}\" fill-opacity=\"0.75\" stroke=\"white\" stroke-width=\"0.5\"><title>{}, {} bytes</title></rect>\n",
            left + width * b.first / ticks, top + height - height * double(b.offset) / double(bytes) - tall,
            width * (b.last + 1 - b.first) / ticks, tall, gradient ? "#c2571a" : "#2b5d8a",
            letters(found == names.end() ? "of an op alone" : found->second.first + (gradient ? ", its gradient" : "")),
            b.bytes);
    }
    const double turn = left + width * double(tape.records().size()) / ticks;
    s += fmt::format("<path d=\"M{0:.1f} {1}V{2}\" stroke=\"#222\" stroke-dasharray=\"4 3\"/>\n", turn, top,
                     top + height);
    words(turn - 6, top + height + 18, "end", "forward");
    words(turn + 6, top + height + 18, "start", "backward");
    words(left - 6, top + height, "end", "0");
    words(left - 6, top + 10, "end", fmt::format("{:.0f} KiB", double(bytes) / 1024));
    return s + "</svg>\n";
}

double Timeline::microseconds() const {
    return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - first_).count();
}

void Timeline::before(const Record& r, bool) {
    wait_for(r.out[0]->device);
    start_ = microseconds();
}

void Timeline::after(const Record& r, bool backward) {
    wait_for(r.out[0]->device);
    const double end = microseconds();
    events_.push_back({{"name", r.op},
                       {"cat", backward ? "backward" : "forward"},
                       {"ph", "X"},
                       {"ts", start_},
                       {"dur", end - start_},
                       {"pid", 0},
                       {"tid", 0},
                       {"args", {{"path", r.out[0]->path}, {"shape", text(r.out[0]->shape)}}}});
}

std::string Timeline::json() const {
    return nlohmann::json({{"traceEvents", events_}, {"displayTimeUnit", "ms"}}).dump() + "\n";
}

}  // namespace masquerade
