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

void check_picture(const std::string& file) {
    if (!ends_with(file, ".svg") && !ends_with(file, ".png"))
        throw BadUsage(text(file, " ends neither in .svg nor in .png, the two kinds of picture there are"));
    if (std::system("gnuplot --version >/dev/null 2>&1") != 0)
        throw BadInput("pictures are drawn by gnuplot, which is missing here (Debian: apt-get install gnuplot-nox)");
}

void draw(const std::string& file, const std::vector<Plot>& plots) {
    FILE* gnuplot = popen("gnuplot", "w");
    const auto before = std::signal(SIGPIPE, SIG_IGN);
    const std::string all = script(file, plots);
    const bool written = gnuplot && std::fwrite(all.data(), 1, all.size(), gnuplot) == all.size();
    const int status = gnuplot ? pclose(gnuplot) : -1;
    std::signal(SIGPIPE, before);
    if (!written || status != 0)
        throw BadInput(text(file, " was not drawn: gnuplot, which said why, did not end well"));
}

}  // namespace masquerade
