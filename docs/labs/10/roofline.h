// SPDX-License-Identifier: MIT
// Measures the speed of one core and of its memory, and draws the roofline with the measured products below it.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include <time.h>

#include "docs/labs/check.h"

namespace roofline {

#if defined(__AVX512F__)
constexpr int lanes = 16;
#elif defined(__AVX__)
constexpr int lanes = 8;
#else
constexpr int lanes = 4;
#endif
typedef float Vector __attribute__((vector_size(4 * lanes)));

// Returns the processor time, in seconds, of all threads of this program (and of the student's process, if there is
// one). Unlike the elapsed time, this time hardly depends on other programs.
inline double now() {
    timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return double(t.tv_sec) + 1e-9 * double(t.tv_nsec) + elsewhere;
}
template <class F>
double seconds(const F& f) {
    const double start = now();
    f();
    return now() - start;
}
// Returns the shortest of several runs. Runs without any time are left out: on some virtual machines, the clock of a
// process stands still for a while.
template <class F>
double best_of(int runs, const F& f) {
    double best = 1e300;
    for (int i = 0; i < runs; i++)
        if (const double time = seconds(f); time > 0) best = std::min(best, time);
    return best;
}
inline volatile float sink;  // results are stored here, so that the compiler cannot remove their computation

// Measures the largest number of flops per second, with chains of multiply-adds that do not depend on each other and
// use no memory.
inline double peak() {
    constexpr int chains = 12, steps = 100000;
    const Vector factor = Vector{} + 0.5f + 0 * sink, more = Vector{} + 1.0f;
    const double time = best_of(100, [=] {
        Vector sum[chains];
        for (int i = 0; i < chains; i++) sum[i] = Vector{} + float(i);
        for (int step = 0; step < steps; step++)
#pragma GCC unroll 12
            for (int i = 0; i < chains; i++) sum[i] = sum[i] * factor + more;
        for (int i = 1; i < chains; i++) sum[0] += sum[i];
        sink = sum[0][0];
    });
    return 2.0 * chains * lanes * steps / time;
}

// Measures the bytes per second at which `numbers` can be read. Each number is read once. There should be more numbers
// than fit into the caches.
inline double bandwidth(const std::vector<float>& numbers) {
    const double time = best_of(8, [&] {
        Vector sum[4] = {};
        for (std::size_t i = 0; i + 4 * lanes <= numbers.size(); i += 4 * lanes)
            for (std::size_t j = 0; j < 4; j++) {
                Vector v;
                __builtin_memcpy(&v, &numbers[i + j * lanes], sizeof v);
                sum[j] += v;
            }
        sink = (sum[0] + sum[1] + sum[2] + sum[3])[0];
    });
    return 4.0 * double(numbers.size()) / time;
}

struct Point {
    char letter;
    std::string name;
    double intensity, speed;  // flops per byte; flops per second
};

// Both axes are logarithmic, to base 2. The x axis goes from 1/4 to 512 flops per byte. The y axis goes from below the
// slowest point to above the roof.
struct Drawing {
    double peak, bandwidth;
    std::vector<Point> points;
    static constexpr double least_x = -2, most_x = 9;

    double roof(double log_x) const { return std::log2(std::min(peak, bandwidth * std::exp2(log_x)) / 1e9); }
    double top() const { return std::ceil(std::log2(peak / 1e9)); }
    double bottom() const {
        double y = roof(least_x);
        for (const Point& p : points) y = std::min(y, std::log2(p.speed / 1e9));
        return std::max(std::floor(y), top() - 24);
    }

    // Every line whose numbers depend on the machine contains "flops a byte" or "GFLOP/s". tests/labs.sh skips such
    // lines.
    void print() const {
        constexpr int columns = 66;
        for (double y = top(); y >= bottom(); y -= 0.5) {
            std::string line(columns, ' ');
            for (int c = 0; c < columns; c++) {
                const double x = least_x + (c + 0.5) / 6, here = roof(x);
                if (std::fabs(here - y) <= 0.25) line[std::size_t(c)] = here >= roof(most_x) ? '-' : '/';
            }
            for (const Point& p : points) {
                const double c = std::floor((std::log2(p.intensity) - least_x) * 6);
                const double at = std::min(std::log2(p.speed / 1e9), roof(std::log2(p.intensity)));
                if (std::fabs(at - y) <= 0.25 && c >= 0 && c < columns) line[std::size_t(c)] = p.letter;
            }
            std::printf("%12.3g GFLOP/s |%s\n", std::exp2(y), line.c_str());
        }
        std::printf("%*s1/4   1/2   1     2     4     8     16    32    64    128   256  flops a byte\n", 22, "");
        for (const Point& p : points)
            std::printf("         %c  %-16s %6.3g flops a byte, %6.3g GFLOP/s, %3.0f %% of the bound\n", p.letter,
                        p.name.c_str(), p.intensity, p.speed / 1e9,
                        100 * p.speed / 1e9 / std::exp2(roof(std::log2(p.intensity))));
    }

    bool write_svg(const char* path) const {
        std::FILE* file = std::fopen(path, "w");
        if (!file) return false;
        const auto px = [&](double x) { return 60 + 50 * (x - least_x); };
        const auto py = [&](double y) { return 20 + 40 * (top() - y); };
        const double ridge = std::log2(peak / bandwidth), low = py(bottom()), right = px(most_x);
        const auto words = [&](double x, double y, const char* anchor, const std::string& text) {
            std::fprintf(file, "<text x='%.0f' y='%.0f' text-anchor='%s'>%s</text>\n", x, y, anchor, text.c_str());
        };
        const auto power = [](double x) { return (x < 0 ? "1/" : "") + std::to_string(1 << int(std::fabs(x))); };
        std::fprintf(file,
                     "<svg xmlns='http://www.w3.org/2000/svg' width='%.0f' height='%.0f' font-family='sans-serif' "
                     "font-size='12'>\n<rect width='100%%' height='100%%' fill='white'/>\n",
                     right + 20, low + 50);
        std::fprintf(file, "<path d='M60 20V%.0fH%.0f' fill='none' stroke='gray'/>\n", low, right);
        std::fprintf(file, "<path d='M%.1f %.1fL%.1f %.1fH%.1f' fill='none' stroke='black' stroke-width='2'/>\n",
                     px(least_x), py(roof(least_x)), px(ridge), py(roof(most_x)), right);
        for (double x = least_x; x <= most_x; x++) words(px(x), low + 16, "middle", power(x));
        for (double y = bottom(); y <= top(); y++) words(52, py(y) + 4, "end", power(y));
        words(right, low + 36, "end", "flops a byte");
        words(64, 14, "start", "GFLOP/s");
        for (const Point& p : points) {
            const double x = px(std::log2(p.intensity)), y = py(std::log2(p.speed / 1e9));
            std::fprintf(file, "<circle cx='%.1f' cy='%.1f' r='4'/>\n", x, y);
            words(x + 8, y + (p.letter == 'e' || p.letter == 'E' ? -5 : 11), "start", p.name);
        }
        std::fprintf(file, "</svg>\n");
        return std::fclose(file) == 0;
    }
};

}  // namespace roofline
