// SPDX-License-Identifier: MIT
// Builds the parts of an HTML page. The page is self-contained: pictures are embedded, and a browser loads no other
// file. letters() (engine/base/printable.h) escapes text for HTML.
#pragma once
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "data/sentences.h"
#include "engine/base/printable.h"
#include "tools/plot/plot.h"

namespace masquerade {

// The range of a coordinate of some points. If all values are equal, the range is 1 wide around this value.
struct Range {
    double low = 1e300, high = -1e300;
    Range(const Points& points, double Point::*coordinate) {
        for (const Point& p : points) low = std::min(low, p.*coordinate), high = std::max(high, p.*coordinate);
        if (!(high > low)) low -= 0.5, high = low + 1;
    }
    // Maps v linearly: the low end of the range becomes 0, and the high end becomes `length`.
    double place(double v, double length) const { return length * (v - low) / (high - low); }
};

// Scales points into a picture of fixed size. The first coordinate points to the right, and the second one upwards.
struct Frame {
    static constexpr int width = 420, height = 260, side = 56;
    const Range across, up;  // of the first and of the second coordinate
    explicit Frame(const Points& points) : across(points, &Point::first), up(points, &Point::second) {}
    double x(double v) const { return side + across.place(v, width - side - 10); }
    double y(double v) const { return height - 30 - up.place(v, height - 60); }
    // Returns the picture as SVG: `inner`, and axes that show the smallest and the largest value of each coordinate.
    std::string picture(const std::string& title, const std::string& inner) const {
        std::string s = fmt::format(
            R"(<svg viewBox="0 0 {} {}" role="img"><title>{}</title><text x="10" y="18" class="title">{}</text>)",
            width, height, letters(title), letters(title));
        s += fmt::format(R"(<path d="M{} 26V{}H{}" class="axis"/>)", side, height - 26, width - 6);
        for (const auto& [right, above, anchor] :
             {std::tuple(across.low, up.low, "start"), {across.high, up.high, "end"}})
            s += fmt::format(R"(<text x="{}" y="{:.1f}" text-anchor="end">{:.3g}</text>)"
                             R"(<text x="{:.1f}" y="{}" text-anchor="{}">{:.4g}</text>)",
                             side - 4, y(above) + 4, above, x(right), height - 10, anchor, right);
        return s + inner + "</svg>\n";
    }
};

inline const char* colour(std::size_t i) {
    constexpr const char* all[] = {"#2b5d8a", "#c2571a", "#3c7d3c", "#8a2b6d", "#8a7a2b",
                                   "#2b8a84", "#8a2b2b", "#5d5d5d", "#6a4fb0", "#b04f8f"};
    return all[i % std::size(all)];
}

inline std::string line_chart(const std::string& title, const Points& points) {
    const Frame frame(points);
    std::string path;
    for (const auto& [x, y] : points)
        path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : "L", frame.x(x), frame.y(y));
    return frame.picture(title, fmt::format(R"(<path d="{}" class="line"/>)", path));
}

// Draws points, each in the colour of its group. A browser shows words[i] when the mouse pointer is over point i.
inline std::string scatter(const std::string& title, const Points& points, const std::vector<std::size_t>& group,
                           const Strings& words) {
    const Frame frame(points);
    std::string inner;
    for (std::size_t i = 0; i < points.size(); i++)
        inner += fmt::format(R"(<circle cx="{:.1f}" cy="{:.1f}" r="3.5" fill="{}"><title>{}</title></circle>)",
                             frame.x(points[i].first), frame.y(points[i].second), colour(group[i]), letters(words[i]));
    return frame.picture(title, inner);
}

// Draws a function f of two coordinates, such as a density, over the smallest rectangle that contains the points
// `corners`. The larger the value, the darker the colour. f must not be negative, and must be positive somewhere.
template <class F>
std::string field(const std::string& title, const Points& corners, F f) {
    constexpr int cells = 64;
    const Frame frame(corners);
    const auto& [across, up] = frame;
    Numbers values;
    for (int i = 0; i < cells * cells; i++)
        values.push_back(f(across.low + (across.high - across.low) * (i % cells + 0.5) / cells,
                           up.low + (up.high - up.low) * (i / cells + 0.5) / cells));
    const double most = *std::max_element(values.begin(), values.end());
    const double width = (frame.x(across.high) - frame.x(across.low)) / cells,
                 height = (frame.y(up.low) - frame.y(up.high)) / cells;
    std::string inner;
    for (int i = 0; i < cells * cells; i++)
        if (const double share = values[i] / most; share > 0.01)
            inner += fmt::format(
                R"(<rect x="{:.1f}" y="{:.1f}" width="{:.2f}" height="{:.2f}" fill="#2b5d8a" fill-opacity="{:.2f}"/>)",
                frame.x(across.low) + width * (i % cells), frame.y(up.low) - height * (i / cells + 1), width, height,
                share);
    return frame.picture(title, inner);
}

inline std::string bars(const std::string& title, const std::vector<std::pair<std::string, double>>& values) {
    double most = 1e-300;
    for (const auto& [name, value] : values) most = std::max(most, value);
    std::string s = "<table class=\"bars\"><caption>" + letters(title) + "</caption>";
    for (const auto& [name, value] : values)
        s += fmt::format("<tr><th>{}</th><td><span style=\"width:{:.1f}%\"></span></td><td>{:.3g}</td></tr>",
                         letters(name), 100 * std::max(0.0, value) / most, value);
    return s + "</table>\n";
}

// Returns an HTML table. The first row is the table's head.
inline std::string table(const std::vector<Strings>& rows) {
    std::string s = "<table>";
    for (std::size_t r = 0; r < rows.size(); r++) {
        s += "<tr>";
        for (const std::string& cell : rows[r]) s += fmt::format("<{0}>{1}</{0}>", r == 0 ? "th" : "td", letters(cell));
        s += "</tr>";
    }
    return s + "</table>\n";
}

inline std::string section(const std::string& heading, const std::string& what, const std::string& body) {
    return "<section><h2>" + letters(heading) + "</h2><p>" + letters(what) + "</p>" + body + "</section>\n";
}

inline std::string page(const std::string& title, const std::string& body) {
    constexpr const char* style =
#include "tools/inspect/page_style.txt"
        ;
    return fmt::format(
        R"(<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">)"
        "<title>{0}</title><style>{1}</style></head><body><h1>{0}</h1>\n{2}</body></html>\n",
        letters(title), style, body);
}

}  // namespace masquerade
