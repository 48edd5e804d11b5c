// SPDX-License-Identifier: MIT
// Draws curves as a picture with gnuplot.
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
    bool logarithmic = false;  // both axes, of x to the base 2
    std::vector<Curve> curves;
};
// A drawing program, which reads a script on standard input and writes a picture to standard output. It is started
// without a shell and never receives the name of a file.
struct Drawer {
    const char *name, *package, *what;  // package: in Debian; what: for the message if it is missing
};
constexpr Drawer gnuplot{"gnuplot", "gnuplot-nox", "pictures are"}, dot{"dot", "graphviz", "graphs are"};
// Throws BadUsage if the name of `file` ends neither in .svg nor in .png, and BadInput if the program is missing. Call
// this before long work.
void check_picture(const std::string& file, const Drawer& by = gnuplot);
// Draws into `file`. If this fails, `file` is unchanged and the error shows what the program printed.
void draw_by(const Drawer& by, const std::vector<std::string>& arguments, const std::string& file,
             const std::string& script);
// Draws the plots one below the other into a .svg or .png file.
void draw(const std::string& file, const std::vector<Plot>& plots);

// Quotes text as a string of a script. All characters except letters and digits are escaped, so that none of them has a
// special meaning for the program.
std::string gnuplot_string(const std::string& words);
std::string dot_string(const std::string& words);

}  // namespace masquerade
