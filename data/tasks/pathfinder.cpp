// SPDX-License-Identifier: MIT
// Pathfinder (Linsley et al. 2018), a task of Long Range Arena with 32 x 32 pixels and, under the name Path-X, with
// 128 x 128. A picture has two long dashed curves, two discs, and short dashed curves as distractors. The discs mark
// either both ends of one long curve or one end of each long curve; the model must tell which. The tokens are the grey
// levels of the pixels, row by row.
#include <algorithm>
#include <cmath>

#include "data/tasks/examples.h"

namespace masquerade {
namespace {

// side: width and height of the picture, in the unit of all lengths here. The picture is drawn with TaskOptions::side
// pixels along each side, so a pixel is side / TaskOptions::side units wide.
// turns: number of angles at which the next dash of a curve may turn. attempts: largest number of places at which the
// second long curve is tried; also the largest number of places per distractor, on average over all distractors.
constexpr int side = 32, distractors = 5, turns = 12, attempts = 20;
// Lengths. length: length of a dash. gap: distance between neighbouring dashes where a curve is straight; the
// curve turns in the middle of a gap, which makes the distance smaller. apart: smallest distance between two dashes
// that are not neighbours. border: smallest distance from a dash to the border of the picture. seeds: distance between
// the starts of the two long curves. disc: radius of a disc.
constexpr double length = 2, gap = 2, apart = 1.5, border = 1.5, seeds = 7, disc = 1.5;
constexpr double pi = 3.14159265358979323846;

struct Point {
    double x, y;
};
struct Dash {
    Dash(Point m, double a) : middle(m), angle(a), along{std::cos(a), std::sin(a)} {}
    Point middle;
    double angle;
    Point along;
    Point at(double t) const { return {middle.x + t * along.x, middle.y + t * along.y}; }
    Point tail() const { return at(-length / 2); }
    Point tip() const { return at(length / 2); }
};
using Curve = std::vector<Dash>;

double distance(Point a, Point b) { return std::sqrt((a.x - b.x) * (a.x - b.x) + (a.y - b.y) * (a.y - b.y)); }
double distance(const Dash& d, Point p) {
    const double t = (p.x - d.middle.x) * d.along.x + (p.y - d.middle.y) * d.along.y;
    return distance(d.at(std::clamp(t, -length / 2, length / 2)), p);
}

// Whether a new dash is far enough from the border, from all dashes of other curves, and from all dashes of its own
// curve except the last one, which the new dash follows.
bool fits(const Dash& d, const std::vector<Curve>& others, const Curve& own) {
    for (Point p : {d.tail(), d.tip()})
        if (std::min(p.x, p.y) < border || std::max(p.x, p.y) > side - border) return false;
    const auto clear = [&](const Dash& other) {
        return distance(d.middle, other.middle) >= length + apart ||
               std::min({distance(other, d.tail()), distance(other, d.middle), distance(other, d.tip()),
                         distance(d, other.tail()), distance(d, other.tip())}) >= apart;
    };
    for (const Curve& c : others)
        if (!std::all_of(c.begin(), c.end(), clear)) return false;
    return own.empty() || std::all_of(own.begin(), own.end() - 1, clear);
}

// Returns a random curve of `dashes` dashes whose first dash has its middle at `start`; an empty curve if there is no
// room. Each dash turns by an angle t from the previous dash. There are 12 possible angles (`turns`); t is one of those
// at which the dash fits. Each of these angles is drawn with a probability proportional to cos^2 t.
Curve grown(Point start, int dashes, const std::vector<Curve>& others, Sequence& random) {
    Curve own = {Dash(start, 2 * pi * random.uniform_double())};
    if (!fits(own[0], others, {})) return {};
    while (int(own.size()) < dashes) {
        Curve next;
        double sum[turns], total = 0;
        const Dash last = own.back();
        for (int k = 0; k < turns; k++) {
            const double turn = (k + 0.5) * pi / turns - pi / 2, half = (length + gap) / 2;
            next.emplace_back(Dash(last.at(half), last.angle + turn).at(half), last.angle + turn);
            if (fits(next.back(), others, own)) total += std::cos(turn) * std::cos(turn);
            sum[k] = total;
        }
        if (total == 0) return {};
        const double u = total * random.uniform_double();
        own.push_back(next[std::upper_bound(sum, sum + turns, u) - sum]);
    }
    return own;
}

// Returns two long curves that start near each other, then five short curves (`distractors`), or fewer if there is no
// room.
std::vector<Curve> curves(int dashes, Sequence& random) {
    const auto place = [&] { return side * random.uniform_double(); };
    for (;;) {
        const Point seed = {place(), place()};  // in braces, x is drawn before y with every compiler
        std::vector<Curve> all = {grown(seed, dashes, {}, random)};
        for (int i = 0; i < attempts && !all[0].empty() && all.size() == 1; i++) {
            const Dash away(seed, 2 * pi * random.uniform_double());
            if (Curve c = grown(away.at(seeds), dashes, all, random); !c.empty()) all.push_back(c);
        }
        if (all.size() == 1) continue;
        for (int i = 0; i < distractors * attempts && int(all.size()) < 2 + distractors; i++)
            if (Curve c = grown({place(), place()}, std::max(1, dashes / 3), all, random); !c.empty()) all.push_back(c);
        return all;
    }
}

}  // namespace

WordList grey_levels(const TaskOptions& o) {
    WordList words = {"apart", "joined"};
    add_numbered(words, "", o.levels);
    return words;
}

Solved pathfinder(const TaskOptions& o, Sequence& random) {
    const std::vector<Curve> all = curves(o.dashes, random);
    const std::size_t from = random.below(2);
    const bool joined = random.below(2) == 1;
    const Point discs[] = {all[from].front().tail(), all[joined ? from : 1 - from].back().tip()};
    Solved s{{cls_id}, {0}, {first_word + joined}};  // tokens, rows, answers
    const double per_pixel = double(side) / o.side;
    for (int i = 0; i < o.side * o.side; i++) {
        const int column = i % o.side, row = i / o.side;
        const Point pixel = {(column + 0.5) * per_pixel, (row + 0.5) * per_pixel};
        // Brightness from 0 to 1. A dash is half a unit thick, and 3/4 as bright as a disc. At an edge, the brightness
        // falls to 0 over one unit, so a dash ends 0.25 + 1 units from its middle line.
        double bright = 0;
        for (const Curve& c : all)
            for (const Dash& d : c)
                if (distance(d.middle, pixel) < length / 2 + 1.25)
                    bright = std::max(bright, 0.75 * std::clamp(1.25 - distance(d, pixel), 0.0, 1.0));
        for (Point p : discs) bright = std::max(bright, std::clamp(disc + 0.5 - distance(p, pixel), 0.0, 1.0));
        s.tokens.push_back(first_word + 2 + std::lround(bright * (o.levels - 1)));
    }
    return s;
}

// A clue for a baseline: an estimate of the distance between the discs. The estimate is the distance, in the unit of
// `side`, rounded down, from the first of the brightest pixels to the brightest pixel that is farthest away.
int disc_distance(const Solved& s) {
    const int brightest = *std::max_element(s.tokens.begin(), s.tokens.end());
    const int pixels = int(s.tokens.size()) - 1, width = int(std::lround(std::sqrt(pixels)));
    int first = -1;
    double far = 0;
    for (int i = 0; i < pixels; i++) {
        if (s.tokens[i + 1] != brightest) continue;
        if (first < 0) first = i;
        far = std::max(far, std::hypot(i % width - first % width, i / width - first / width));
    }
    return int(far * side / width);
}

}  // namespace masquerade
