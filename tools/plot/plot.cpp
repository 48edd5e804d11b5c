// SPDX-License-Identifier: MIT
#include "tools/plot/plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>

#include "engine/base/error.h"
#include "engine/base/printable.h"
#include "engine/base/write_file.h"
#include "engine/io/file.h"

namespace masquerade {
namespace {

constexpr std::size_t longest_name = 200;  // bytes; a longer title or label is shortened in the middle

bool is_letter(char c) { return std::isalnum(std::uint8_t(c)) || c == ' ' || c == '.' || c == '_'; }

bool is_svg(const std::string& file) { return std::filesystem::path(file).extension() == ".svg"; }

std::string script(const std::string& file, const std::vector<Plot>& plots) {
    std::string s = fmt::format(
        "set encoding utf8\nset terminal {} noenhanced size 900,{}\nset multiplot layout {},1\nset grid\nset key outside "
        "right\n",
        is_svg(file) ? "svg background 'white'" : "pngcairo", 460 * plots.size(), plots.size());
    for (const Plot& plot : plots) {
        s += fmt::format("unset logscale\nset title {}\nset xlabel {}\nset ylabel {}\n", gnuplot_string(plot.title),
                         gnuplot_string(plot.x), gnuplot_string(plot.y));
        if (plot.logarithmic) s += "set logscale x 2\nset logscale y\n";
        std::string data, lines;
        for (std::size_t i = 0; i < plot.curves.size(); i++) {
            lines += fmt::format("{}'-' with linespoints linetype {} dashtype {} pointtype {} title {}",
                                 i ? ", " : "plot ", i % 8 + 1, i / 8 + 1, i + 1, gnuplot_string(plot.curves[i].name));
            for (const auto& [x, y] : plot.curves[i].points) data += fmt::format("{} {}\n", x, y);
            data += "e\n";
        }
        s += lines + '\n' + data;
    }
    return s;
}

}  // namespace

void check_picture(const std::string& file, const Drawer& by) {
    if (!is_svg(file) && std::filesystem::path(file).extension() != ".png")
        throw BadUsage(file, " ends neither in .svg nor in .png, the two kinds of picture there are");
    if (std::system(text("command -v ", by.name, " >/dev/null 2>&1").c_str()) != 0)
        throw BadInput(by.what, " drawn by ", by.name, ", which is missing here (Debian: apt-get install ", by.package,
                       ")");
}

void draw_by(const Drawer& by, const std::string& options, const std::string& file, const std::string& script) {
    const PrivateFolder folder(std::filesystem::temp_directory_path().string(), file);
    write_as(file, folder.file("script"), [&](const std::string& place) { write_file(place, script); });
    const int status = std::system(
        text("cd ", shell_word(folder.file("")), " && exec ", by.name, " ", options, " <script >picture 2>said")
            .c_str());
    const std::string picture = read_file(folder.file("picture"));
    if (status != 0 || picture.find(is_svg(file) ? "</svg>" : "IEND") == picture.npos) {
        std::string reason = read_file(folder.file("said"));
        std::replace(reason.begin(), reason.end(), '\n', ' ');
        throw BadInput(file, " was not drawn: ", by.name, reason.empty() ? " did not end well" : " says: ", reason);
    }
    replace_file(file, picture);
}

std::string gnuplot_string(const std::string& words) {
    std::string s = "\"";
    for (char c : printable(words, longest_name))
        s += is_letter(c) ? std::string(1, c) : fmt::format("\\{:03o}", std::uint8_t(c));
    return s + "\"";
}

// Special characters become character codes such as &#34;, and \ is doubled, because \ starts an escape in Graphviz.
std::string dot_string(const std::string& words) {
    const std::string name = printable(words, longest_name);
    std::string s = "\"";
    each_character(name, [&](char32_t c, std::string_view bytes) {
        s += bytes == "\\" ? "\\\\" : is_letter(bytes[0]) ? std::string(bytes) : fmt::format("&#{};", std::uint32_t(c));
    });
    return s + "\"";
}

void draw(const std::string& file, const std::vector<Plot>& plots) { draw_by(gnuplot, "", file, script(file, plots)); }

}  // namespace masquerade
