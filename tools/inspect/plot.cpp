// SPDX-License-Identifier: MIT
// ./inspect plot: draws the numbers in the log.jsonl files of runs. Each number has one plot, with one curve per run.
#include "tools/plot/plot.h"

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

std::string name_of_folder(const std::string& path) {
    return std::filesystem::absolute(path + "/.").parent_path().filename().string();
}

// Skips each line whose JSON object has no number with the key `x`, and a last line that is incomplete because the run
// crashed.
Curves curves_of(const std::string& path, const std::string& x) {
    Curves curves;
    const std::string bytes = read_file(path);
    for (std::size_t begin = 0, end; (end = bytes.find('\n', begin)) != bytes.npos; begin = end + 1) {
        nlohmann::json line;
        if (!parse_bounded(std::string_view(bytes).substr(begin, end - begin), line).empty() || !line.is_object() ||
            !line.contains(x) || !line[x].is_number())
            continue;
        for (const auto& [key, value] : line.items())
            if (value.is_number()) curves[key].emplace_back(line[x].get<double>(), value.get<double>());
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
