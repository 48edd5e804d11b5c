// SPDX-License-Identifier: MIT
#include "tools/plot/plot.h"

#include <fmt/format.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "engine/base/error.h"

namespace masquerade {
namespace {

// A string that gnuplot takes letter by letter.
std::string quoted(const std::string& words) {
    std::string s = "'";
    for (char c : words) s += c == '\'' ? "''" : std::string(1, c);
    return s + "'";
}

bool ends_with(const std::string& s, const std::string& end) {
    return s.size() >= end.size() && s.compare(s.size() - end.size(), end.size(), end) == 0;
}

std::string script(const std::string& file, const std::vector<Plot>& plots) {
    const char* terminal = ends_with(file, ".svg") ? "svg background 'white'" : "pngcairo";
    std::string s = fmt::format("set terminal {} noenhanced size 900,{}\nset output {}\nset multiplot layout {},1\n", terminal,
                                460 * plots.size(), quoted(file), plots.size());
    s += "set grid\nset key outside right\n";
    for (const Plot& plot : plots) {
        s += fmt::format("unset logscale\nset title {}\nset xlabel {}\nset ylabel {}\n", quoted(plot.title), quoted(plot.x),
                         quoted(plot.y));
        if (plot.log_x) s += "set logscale x 2\n";
        if (plot.log_y) s += "set logscale y\n";
        std::string data, lines;
        for (std::size_t i = 0; i < plot.curves.size(); i++) {
            lines += fmt::format("{}'-' with linespoints linetype {} dashtype {} pointtype {} title {}", i ? ", " : "plot ",
                                 i % 8 + 1, i / 8 + 1, i + 1, quoted(plot.curves[i].name));
            for (const auto& [x, y] : plot.curves[i].points) data += fmt::format("{} {}\n", x, y);
            data += "e\n";
        }
        s += lines + '\n' + data;
    }
    return s;
}

}  // namespace

void check_picture(const std::string& file, const Drawer& by) {
    if (!ends_with(file, ".svg") && !ends_with(file, ".png"))
        throw BadUsage(text(file, " ends neither in .svg nor in .png, the two kinds of picture there are"));
    if (std::system(text("command -v ", by.name, " >/dev/null 2>&1").c_str()) != 0)
        throw BadInput(text(by.what, " drawn by ", by.name, ", which is missing here (Debian: apt-get install ", by.package, ")"));
}

void draw_by(const Drawer& by, const std::string& arguments, const std::string& file, const std::string& script) {
    FILE* to = popen(text(by.name, " ", arguments).c_str(), "w");
    const auto before = std::signal(SIGPIPE, SIG_IGN);
    const bool written = to && std::fwrite(script.data(), 1, script.size(), to) == script.size();
    const int status = to ? pclose(to) : -1;
    std::signal(SIGPIPE, before);
    if (!written || status != 0) throw BadInput(text(file, " was not drawn: ", by.name, ", which said why, did not end well"));
}

void draw(const std::string& file, const std::vector<Plot>& plots) { draw_by(gnuplot, "", file, script(file, plots)); }

}  // namespace masquerade
