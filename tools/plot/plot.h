// SPDX-License-Identifier: MIT
// Curves as a picture, drawn by gnuplot.
#pragma once
#include <string>
#include <utility>
#include <vector>

namespace masquerade {

struct Curve {
    std::string name;
    std::vector<std::pair<double, double>> points;
};
struct Plot {
    std::string title, x, y;
    bool log_x = false, log_y = false;
    std::vector<Curve> curves;
};
// A program that draws what a script on its standard input says, and writes the picture to its standard output. It
// learns no name of a file, and no shell stands between.
struct Drawer {
    const char *name, *package, *what;  // of Debian, if it is missing; what it draws
};
constexpr Drawer gnuplot{"gnuplot", "gnuplot-nox", "pictures are"}, dot{"dot", "graphviz", "graphs are"};
// BadUsage where `file` ends neither in .svg nor in .png, BadInput where the program is missing: to be asked before
// long work.
void check_picture(const std::string& file, const Drawer& by = gnuplot);
// The whole picture, or an error and the old file. What the drawer says is shown only where it fails.
void draw_by(const Drawer& by, const std::vector<std::string>& arguments, const std::string& file,
             const std::string& script);
// Draws plots one below the other into such a file.
void draw(const std::string& file, const std::vector<Plot>& plots);

// Words as a string of a script, in letters, digits and escapes alone: no byte of them means anything to the drawer.
std::string gnuplot_string(const std::string& words);
std::string dot_string(const std::string& words);

}  // namespace masquerade
