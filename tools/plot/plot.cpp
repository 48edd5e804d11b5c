// SPDX-License-Identifier: MIT
#include "tools/plot/plot.h"

#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "engine/base/error.h"
#include "engine/base/printable.h"
#include "engine/base/write_file.h"

namespace masquerade {
namespace {

constexpr std::size_t longest_name = 200;  // bytes; a longer title or label is shortened in the middle

bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == ' ' || c == '.' ||
           c == '_';
}

// A temporary file without a name, for data to or from the drawing program. Writers and readers begin at offset 0.
struct TemporaryFile {
    const std::string what;
    FILE* const file = std::tmpfile();
    const int number = file ? fileno(file) : -1;

    explicit TemporaryFile(const std::string& picture) : what("a temporary file for " + picture) {
        if (!file) fail_to("make", what);
    }
    TemporaryFile(const TemporaryFile&) = delete;
    ~TemporaryFile() { std::fclose(file); }
    void write(const std::string& bytes) const {
        if (std::fwrite(bytes.data(), 1, bytes.size(), file) != bytes.size() || std::fflush(file) != 0)
            fail_to("write", what);
        ::lseek(number, 0, SEEK_SET);
    }
    std::string read() const {
        std::string bytes;
        char some[1 << 16];
        for (ssize_t n; (n = ::pread(number, some, sizeof some, off_t(bytes.size()))) > 0;)
            bytes.append(some, std::size_t(n));
        return bytes;
    }
};

bool ends_with(const std::string& s, const std::string& end) {
    return s.size() >= end.size() && s.compare(s.size() - end.size(), end.size(), end) == 0;
}

std::string script(const std::string& file, const std::vector<Plot>& plots) {
    const char* terminal = ends_with(file, ".svg") ? "svg background 'white'" : "pngcairo";
    std::string s =
        fmt::format("set encoding utf8\nset terminal {} noenhanced size 900,{}\nset multiplot layout {},1\n", terminal,
                    460 * plots.size(), plots.size());
    s += "set grid\nset key outside right\n";
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
    if (!ends_with(file, ".svg") && !ends_with(file, ".png"))
        throw BadUsage(text(file, " ends neither in .svg nor in .png, the two kinds of picture there are"));
    if (std::system(text("command -v ", by.name, " >/dev/null 2>&1").c_str()) != 0)
        throw BadInput(
            text(by.what, " drawn by ", by.name, ", which is missing here (Debian: apt-get install ", by.package, ")"));
}

void draw_by(const Drawer& by, const std::vector<std::string>& arguments, const std::string& file,
             const std::string& script) {
    const auto not_drawn = [&](const std::string& why) { return BadInput(text(file, " was not drawn: ", why)); };
    const TemporaryFile in(file), out(file), said(file);
    in.write(script);
    std::vector<char*> words = {const_cast<char*>(by.name)};
    for (const std::string& word : arguments) words.push_back(const_cast<char*>(word.c_str()));
    words.push_back(nullptr);
    posix_spawn_file_actions_t streams;
    posix_spawn_file_actions_init(&streams);
    for (const auto& [stream, of] : {std::pair{STDIN_FILENO, &in}, {STDOUT_FILENO, &out}, {STDERR_FILENO, &said}})
        posix_spawn_file_actions_adddup2(&streams, of->number, stream);
    pid_t child = 0;
    const int failed = posix_spawnp(&child, by.name, &streams, nullptr, words.data(), environ);
    posix_spawn_file_actions_destroy(&streams);
    if (failed != 0) throw not_drawn(text(by.name, ": ", std::strerror(failed)));
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
    const std::string picture = out.read();
    const bool whole =
        ends_with(file, ".png") ? picture.find("IEND") != picture.npos : picture.find("</svg>") != picture.npos;
    if (status != 0 || !whole) {
        std::string reason = said.read();
        std::replace(reason.begin(), reason.end(), '\n', ' ');
        throw not_drawn(text(by.name, reason.empty() ? " did not end well" : " says: ", reason));
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

void draw(const std::string& file, const std::vector<Plot>& plots) { draw_by(gnuplot, {}, file, script(file, plots)); }

}  // namespace masquerade
