// SPDX-License-Identifier: MIT
// ./inspect plot: draws the numbers in the log.jsonl files of runs. Each number has one plot, with one curve per run.
#include "tools/plot/plot.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "engine/base/log.h"
#include "engine/base/named.h"
#include "engine/io/file.h"
#include "engine/io/run_folder.h"
#include "tools/inspect/inspect.h"
#include "tools/program.h"

namespace masquerade {
namespace {

// Returns the y that belongs to x on the straight line between the points before and after x or, beyond the last point,
// on the line through the last two. There must be at least two points, in the order of their x.
double interpolated(const Points& points, double x) {
    const auto after = std::lower_bound(points.begin() + 1, points.end() - 1, Point(x, -INFINITY));
    const auto& [x0, y0] = after[-1];
    const auto& [x1, y1] = after[0];
    return x1 > x0 ? y0 + (x - x0) / (x1 - x0) * (y1 - y0) : y1;
}

}  // namespace

std::string name_of_folder(const std::string& path) {
    return std::filesystem::absolute(path + "/.").parent_path().filename().string();
}

// Skips lines whose x is neither there nor can be interpolated, and a last line that is incomplete because the run
// crashed.
Curves curves_of(const std::string& path, const std::string& x) {
    std::vector<nlohmann::json> lines;
    const std::string bytes = read_file(path);
    for (std::size_t begin = 0, end; (end = bytes.find('\n', begin)) != bytes.npos; begin = end + 1) {
        nlohmann::json line;
        if (parse_bounded(std::string_view(bytes).substr(begin, end - begin), line).empty() && line.is_object())
            lines.push_back(std::move(line));
    }
    const auto has = [](const nlohmann::json& line, const std::string& key) {
        return line.contains(key) && line[key].is_number();
    };
    Points known = {{0, 0}};  // steps and their x; training begins with 0 tokens, at 0 seconds
    for (const nlohmann::json& line : lines)
        if (has(line, "step") && has(line, x)) known.emplace_back(line["step"].get<double>(), line[x].get<double>());
    Curves curves;
    for (const nlohmann::json& line : lines) {
        if (!has(line, x) && !(has(line, "step") && known.size() > 1)) continue;
        const double place = has(line, x) ? line[x].get<double>() : interpolated(known, line["step"].get<double>());
        for (const auto& [key, value] : line.items())
            if (value.is_number()) curves[key].emplace_back(place, value.get<double>());
    }
    return curves;
}

bool is_of_model(const std::string& name) {
    static const std::set<std::string> others = {"step",   "tokens",       "seconds", "tokens_per_second",
                                                 "memory", "learning_rate"};
    return others.count(name) == 0;
}

void plot_runs(const PlotSettings& s) {
    check_picture(s.out);
    std::vector<std::pair<std::string, Curves>> runs;
    std::set<std::string> names;
    for (const std::string& run : s.runs) {
        runs.emplace_back(name_of_folder(run), curves_of(RunFolder::open(run).file("log.jsonl"), s.x));
        for (const auto& [name, points] : runs.back().second) names.insert(name);
    }
    Strings shown = s.numbers;
    for (const std::string& name : shown)
        if (names.count(name) == 0)
            throw BadUsage("--numbers: no log has ", name, "; there are ",
                           names.empty() ? "none" : joined({names.begin(), names.end()}));
    for (const std::string& name : names)
        if (s.numbers.empty() && name != "norm" && is_of_model(name)) shown.push_back(name);
    if (shown.empty()) throw BadInput(s.runs[0], ": its log.jsonl holds no number over ", s.x);
    std::vector<Plot> plots;
    for (const std::string& name : shown) {
        Plot plot{name, s.x, name, false, {}};  // title, x, y; the axes are not logarithmic
        for (const auto& [run, curves] : runs)
            if (const auto found = curves.find(name); found != curves.end())
                plot.curves.push_back({run, found->second});
        plots.push_back(plot);
    }
    draw(s.out, plots);
    log_line("drew ", counted(plots.size(), "plot"), " into ", s.out);
}

}  // namespace masquerade
