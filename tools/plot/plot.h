// SPDX-License-Identifier: MIT
// Draws curves with gnuplot and graphs with Graphviz.
#pragma once
#include <string>
#include <utility>
#include <vector>

namespace masquerade {

using Point = std::pair<double, double>;
using Points = std::vector<Point>;
struct Curve {
    std::string name;
    Points points;
};
struct Plot {
    std::string title, x, y;
    bool logarithmic = false;  // whether both axes are logarithmic: x to base 2, y to base 10
    std::vector<Curve> curves;
};
// A drawing program. It reads a script from standard input and writes a picture to standard output. It never receives
// the name of a file, so special characters in names are harmless.
struct Drawer {
    const char *name, *package, *what;  // package: Debian's package; what: first words of the error message
};
constexpr Drawer gnuplot{"gnuplot", "gnuplot-nox", "pictures are"}, dot{"dot", "graphviz", "graphs are"};
// Throws BadUsage if the name of `file` ends neither in .svg nor in .png. Throws BadInput if the program `by` is not
// installed. Call this before long work.
void check_picture(const std::string& file, const Drawer& by = gnuplot);
// Runs the program `by` on the script and writes the picture to `file`. If this fails, throws BadInput with what the
// program printed, and `file` is unchanged.
void draw_by(const Drawer& by, const std::string& options, const std::string& file, const std::string& script);
// Draws the plots one below the other with gnuplot, into a .svg or .png file.
void draw(const std::string& file, const std::vector<Plot>& plots);

// Quotes text as a string in a script of gnuplot or dot (Graphviz). All characters except ASCII letters, digits,
// spaces, '.' and '_' are escaped, so that none of them has a special meaning for the program.
std::string gnuplot_string(const std::string& words);
std::string dot_string(const std::string& words);

}  // namespace masquerade
