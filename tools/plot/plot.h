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
// BadUsage where `file` ends neither in .svg nor in .png, BadInput where gnuplot is missing: to be asked before long work.
void check_picture(const std::string& file);
// Draws plots one below the other into such a file.
void draw(const std::string& file, const std::vector<Plot>& plots);

}  // namespace masquerade
