// SPDX-License-Identifier: MIT
// The check of lab 11. Moments are compared with sums over all steps, and roundings with the nearest of all bf16
// numbers. Numbers of parameters are those that the engine prints.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "docs/labs/11/lab.h"
#include "docs/labs/check.h"

namespace {

using namespace lab;
using Bits = std::vector<std::uint16_t>;
using Floats = std::vector<float>;

const double nu = drawn("nu", 1, 0.2, 0.8);  // the step goes along nu m' + (1 - nu) c g (Ma & Yarats 2018)

// Replaces the source of the right numbers that check.h names.
std::string by_formula(std::string s) {
    const std::string from = "the complex step says", to = "the formula says";
    for (std::size_t at; (at = s.find(from)) != s.npos;) s.replace(at, from.size(), to);
    return s;
}

// ---- 1. AdamW

struct Case {
    std::string where;
    int N, matrices;
    Rule rule;
    std::vector<Numbers> g;  // of each step
    Numbers p;               // before the first step
};
Case some(const std::string& where, int steps, double decay, double clip, unsigned seed = 3) {
    Case c{where, 7, 4, {0.02, 0.9, 0.98, 1e-3, decay, clip}, {}, {}};
    std::mt19937 random(seed);
    std::normal_distribution<double> normal;
    for (int i = 0; i < c.N; i++) c.p.push_back(1 + normal(random));
    for (int t = 0; t < steps; t++) {
        c.g.emplace_back();
        for (int i = 0; i < c.N; i++) c.g.back().push_back(0.5 + normal(random));
    }
    return c;
}
double right_factor(const Numbers& g, double clip) {
    double norm = 0;
    for (double x : g) norm = std::hypot(norm, x);
    return clip > 0 && norm > clip ? clip / norm : 1;
}
struct State {
    Numbers p, m, v;
};
// A moment after t steps is a weighted sum of what came in; no moment of an earlier step is used.
State truth(const Case& c) {
    State s{c.p, {}, {}};
    const auto decayed = [&](std::size_t i, int t, double beta, bool squares) {
        double sum = 0;
        for (int k = 1; k <= t; k++) {
            const Numbers& g = c.g[std::size_t(k - 1)];
            const double d = right_factor(g, c.rule.clip) * g[i];
            sum += std::pow(beta, t - k) * (1 - beta) * (squares ? d * d : d);
        }
        return sum;
    };
    const int steps = int(c.g.size());
    for (std::size_t i = 0; i < c.p.size(); i++) {
        for (int t = 1; t <= steps; t++) {
            const Numbers& g = c.g[std::size_t(t - 1)];
            const double m = decayed(i, t, c.rule.beta1, false) / (1 - std::pow(c.rule.beta1, t)),
                         v = decayed(i, t, c.rule.beta2, true) / (1 - std::pow(c.rule.beta2, t)),
                         along = nu * m + (1 - nu) * right_factor(g, c.rule.clip) * g[i];
            s.p[i] -=
                c.rule.rate * (along / (std::sqrt(v) + c.rule.eps) + (int(i) < c.matrices ? c.rule.decay * s.p[i] : 0));
        }
        s.m.push_back(decayed(i, steps, c.rule.beta1, false)), s.v.push_back(decayed(i, steps, c.rule.beta2, true));
    }
    return s;
}
State students(const Case& c) {
    State s{c.p, Numbers(c.p.size(), 0), Numbers(c.p.size(), 0)};
    for (std::size_t t = 0; t < c.g.size(); t++)
        adamw(c.N, c.matrices, c.rule, int(t + 1), c.g[t].data(), s.p.data(), s.m.data(), s.v.data());
    return s;
}
// Returns a message if p moves in the right direction, or the opposite one, but not as far as it should.
std::string moved(const Case& c, Numbers found, Numbers right) {
    for (std::size_t i = 0; i < found.size(); i++) found[i] -= c.p[i], right[i] -= c.p[i];
    const double f = Result{"", found, right}.factor();
    return f != 0 && alike(found, right, f) ? "p moves " + number_unlike(f, 1) + " times as far as it should\n" : "";
}
// Compares m, v and p, in this order. If one of them is wrong, also compares it in the special cases.
std::string compared(const Case& c, const std::vector<Case>& special) {
    const State found = students(c), right = truth(c);
    if (alike(found.p, c.p) && alike(found.m, Numbers(found.m.size(), 0))) return "adamw is not written";
    const std::pair<const char*, Numbers State::*> all[] = {{"m", &State::m}, {"v", &State::v}, {"p", &State::p}};
    for (const auto& [name, of] : all) {
        std::vector<Result> cases;
        for (const Case& each : special) cases.push_back({each.where, students(each).*of, truth(each).*of});
        if (const std::string s = wrong(name, {"", found.*of, right.*of}, cases); !s.empty())
            return by_formula(s) + (of == &State::p ? moved(c, found.p, right.p) : "");
        if (const std::string s = inexact(name, found.*of, right.*of); !s.empty())
            return std::string(name) + " is right to nine digits, not to twelve\n";
    }
    return "";
}
Case with(Case c, const std::string& where, const std::function<void(Case&)>& change) {
    change(c);
    c.where = where;
    return c;
}
std::vector<Case> special_of(const Case& c) {
    return {with(c, "beta1 is 0", [](Case& x) { x.rule.beta1 = 0; }),
            with(c, "beta2 is 0", [](Case& x) { x.rule.beta2 = 0; }),
            with(c, "eps is 0", [](Case& x) { x.rule.eps = 0; }),
            with(c, "there is one step", [](Case& x) { x.g.resize(1); }),
            with(c, "all gradients are 1",
                 [](Case& x) {
                     for (Numbers& g : x.g) std::fill(g.begin(), g.end(), 1.0);
                 }),
            with(c, "decay is 0", [](Case& x) { x.rule.decay = 0; }),
            with(c, "the rate is 1", [](Case& x) { x.rule.rate = 1; }),
            with(c, "all parameters are matrices", [](Case& x) { x.matrices = x.N; }),
            with(c, "no parameter is a matrix", [](Case& x) { x.matrices = 0; }),
            with(c, "nothing is clipped", [](Case& x) { x.rule.clip = 0; }),
            with(c, "only matrices have a gradient", [](Case& x) {
                for (Numbers& g : x.g) std::fill(g.begin() + x.matrices, g.end(), 0.0);
            })};
}

std::string clips() {
    std::string s;
    const Numbers g = {3, -4, 12};
    if (clip_factor(3, g.data(), 0) == 0 && clip_factor(3, g.data(), 1) == 0) return "clip_factor is not written";
    const auto is = [&](const char* where, const Numbers& numbers, double clip, double right) {
        const double found = clip_factor(int(numbers.size()), numbers.data(), clip);
        if (!(std::fabs(found - right) <= twelve_digits * right))
            s += std::string("the factor is wrong where ") + where + "\nit is " + number_unlike(found, right) +
                 "; the formula says " + number_unlike(right, found) + "\n";
    };
    is("the norm is above clip", g, 6.5, 0.5);
    is("the norm is below clip", g, 20, 1);
    is("the norm is clip", g, 13, 1);
    is("clip is 0", g, 0, 1);
    is("all gradients are 0", {0, 0}, 1, 1);
    is("all gradients are 0 and clip is 0", {0, 0}, 0, 1);
    is("there is one number", {-4}, 1, 0.25);
    return s;
}
std::string first() {
    const Case c = some("", 1, 0, 0);
    return compared(c, special_of(c));
}
std::string steps() {
    const Case c = some("", 20, 0, 0);
    return compared(c, special_of(c));
}
std::string decays() {
    const Case c = some("", 20, 0.3, 0);
    return compared(c, special_of(c));
}
std::string whole() {
    const Case c = some("", 20, 0.3, 2);
    if (const std::string s = compared(c, special_of(c)); !s.empty()) return s;
    Numbers g = c.g[0];
    State s{c.p, Numbers(7, 0), Numbers(7, 0)};
    adamw(c.N, c.matrices, c.rule, 1, g.data(), s.p.data(), s.m.data(), s.v.data());
    if (g != c.g[0]) return "the gradients have changed";
    // After a million steps, the corrections have no effect any more.
    s.m.assign(7, 0.5), s.v.assign(7, 4);
    adamw(c.N, 0, {0.02, 0.9, 0.999, 0, 0, 0}, 1000000, g.data(), s.p.data(), s.m.data(), s.v.data());
    for (double x : s.p)
        if (!std::isfinite(x)) return "p is not finite in step 1000000";
    return "";
}

// ---- 2. bf16

float number_of(std::uint32_t bits) {
    float x;
    std::memcpy(&x, &bits, sizeof x);
    return x;
}
std::uint32_t bits_of(float x) {
    std::uint32_t bits;
    std::memcpy(&bits, &x, sizeof bits);
    return bits;
}
double value_of(std::uint16_t x) {  // infinity counts as the number that would come next
    const double sign = x & 0x8000 ? -1 : 1;
    return (x & 0x7fff) == 0x7f80 ? sign * std::ldexp(1.0, 128) : double(number_of(std::uint32_t(x) << 16));
}
bool is_nan(std::uint16_t x) { return (x & 0x7fff) > 0x7f80; }
// Returns the nearest bf16 number: one of the two neighbours of x, both with the sign of x.
std::uint16_t nearest(double x, bool negative) {
    std::uint16_t below = 0;
    while (std::fabs(value_of(std::uint16_t(below + 0x80))) <= std::fabs(x) && below < 0x7f00)
        below = std::uint16_t(below + 0x80);
    while (below < 0x7f80 && value_of(std::uint16_t(below + 1)) <= std::fabs(x)) below++;
    const auto above = std::uint16_t(below < 0x7f80 ? below + 1 : below);
    const double under = std::fabs(x) - value_of(below), over = value_of(above) - std::fabs(x);
    const std::uint16_t found = under < over || (under == over && below % 2 == 0) ? below : above;
    return std::uint16_t(found | (negative ? 0x8000 : 0));
}
std::uint16_t nearest(float x) { return nearest(double(x), std::signbit(x)); }

std::string roundings() {
    std::string s;
    std::mt19937 random(7);
    if (to_bf16(1) == 0 && from_bf16(0x3f80) == 0) return "to_bf16 and from_bf16 are not written";
    const auto all = [&](const char* where, int count, const std::function<std::uint32_t()>& bits) {
        for (int i = 0; i < count; i++) {
            const float x = number_of(bits());
            const std::uint16_t found = to_bf16(x), right = nearest(x);
            if (found == right) continue;
            char line[200];
            std::snprintf(line, sizeof line,
                          "to_bf16 is wrong where %s\nto_bf16(%.9g) is %04x; the formula says %04x\n", where, double(x),
                          found, right);
            s += line;
            return;
        }
    };
    const auto any = [&] { return std::uint32_t(random()); };
    const auto normal = [&] { return (any() & 0x807fffff) | (100 + any() % 50) << 23; };  // 2^-27 ... 2^23
    all("x is positive", 300, [&] { return normal() & 0x7fffffff; });
    all("x is negative", 300, [&] { return normal() | 0x80000000; });
    all("x is a bf16 number", 100, [&] { return normal() & 0xffff0000; });
    all("x is in the middle between two bf16 numbers", 100, [&] { return (normal() & 0xffff0000) | 0x8000; });
    all("x rounds up to a power of two", 20, [&] { return normal() | 0x007fff00; });
    all("x is smaller than 2^-126", 100, [&] { return any() & 0x807fffff; });
    all("x is beyond the largest bf16 number", 20, [&] { return (any() & 0x8000ffff) | 0x7f7f0000; });
    all("x is infinite", 1, [] { return 0x7f800000u; });
    all("x is 0", 1, [] { return 0u; });
    all("x is -0", 1, [] { return 0x80000000u; });
    for (std::uint32_t nan : {0x7fc00000u, 0x7f800001u, 0x7fffffffu, 0xffffffffu})
        if (!is_nan(to_bf16(number_of(nan)))) {
            s += "to_bf16 of a NaN is no NaN\n";
            break;
        }
    for (std::uint32_t x = 0; x < 0x10000; x++) {
        const float found = from_bf16(std::uint16_t(x));
        if (is_nan(std::uint16_t(x)) ? !std::isnan(found) : bits_of(found) != x << 16)
            return s + "from_bf16 is wrong\n";
    }
    return s;
}
std::string lost() {
    std::string s;
    std::mt19937 random(9);
    const auto seen = [&](const char* where, bool power, bool negative) {
        Result r;
        for (int i = 0; i < 100; i++) {
            const auto exponent = std::uint16_t(127 - 90 + random() % 180);
            const auto x = std::uint16_t(exponent << 7 | (power ? 0 : 1 + random() % 127) | (negative ? 0x8000 : 0));
            const double w = value_of(x), up = std::fabs(value_of(std::uint16_t(x + 1)) - w),
                         down = std::fabs(value_of(std::uint16_t(x - 1)) - w);
            r.found.push_back(double(lost_below(float(w))) / std::min(up, down) * 2), r.right.push_back(1);
        }
        if (r.found == r.right) return;
        if (const double f = r.factor(); f != 0 && alike(r.found, r.right, f))
            s += number_unlike(f, 1) + " times what it should be where " + where + "\n";
        else
            s += std::string("wrong where ") + where + "\n";
    };
    if (lost_below(1) == 0) return "lost_below is not written";
    seen("w is no power of two", false, false);
    seen("w is a power of two", true, false);
    seen("w is negative", false, true);
    return s;
}

struct Mixed {
    Floats p, m, v;
    Bits copy;
};
Floats floats(const Numbers& x) { return {x.begin(), x.end()}; }
Numbers numbers(const Floats& x) { return {x.begin(), x.end()}; }
// Makes all numbers of a case floats, so that the same numbers go into the reference.
Case in_float(Case c) {
    c.p = numbers(floats(c.p));
    for (Numbers& g : c.g) g = numbers(floats(g));
    return c;
}
Mixed students_mixed(const Case& c) {
    Mixed s{floats(c.p), Floats(c.p.size(), 0), Floats(c.p.size(), 0), Bits(c.p.size(), 0x4242)};
    for (std::size_t t = 0; t < c.g.size(); t++)
        mixed_step(c.N, c.matrices, c.rule, int(t + 1), floats(c.g[t]).data(), s.p.data(), s.m.data(), s.v.data(),
                   s.copy.data());
    return s;
}
// Returns a case of `steps` steps with gradient 1 that move one weight by 1e-4 each; the weight begins at 1.
Case small_steps(int steps) {
    return {"", 1, 1, {1e-4, 0.9, 0.98, 1e-8, 0, 0}, std::vector<Numbers>(std::size_t(steps), {1}), {1}};
}
constexpr double six_digits = 1e-5;  // of float

std::string masters() {
    std::string s;
    const auto seen = [&](const Case& c, const char* where) {
        const Mixed found = students_mixed(c);
        const State right = truth(c);
        if (found.p == floats(c.p) && found.m == Floats(found.m.size(), 0))
            return s += "mixed_step is not written\n", false;
        const std::pair<const char*, std::pair<Numbers, Numbers>> all[] = {{"m", {numbers(found.m), right.m}},
                                                                           {"v", {numbers(found.v), right.v}},
                                                                           {"p", {numbers(found.p), right.p}}};
        for (const auto& [name, both] : all)
            if (first_unlike(both.first, both.second, six_digits) < both.second.size())
                return s += std::string(name) + " is wrong " + where + "\n", false;
        for (std::size_t i = 0; i < found.p.size(); i++)
            if (found.copy[i] == 0x4242) return s += std::string("the copy is not written ") + where + "\n", false;
        for (std::size_t i = 0; i < found.p.size(); i++)
            if (found.copy[i] != nearest(found.p[i]))
                return s += std::string("the copy is not p, rounded, ") + where + "\n", false;
        return true;
    };
    if (!seen(in_float(some("", 1, 0.3, 2)), "after a step")) return s;
    if (!seen(in_float(some("", 20, 0.3, 2)), "after twenty steps")) return s;
    Case large = in_float(some("", 1, 0, 1));
    for (double& g : large.g[0]) g = double(float(1e25 * g));
    if (!seen(large, "where a gradient is 1e25, and clipped")) return s;
    // 1,000 steps, each of which bf16 would lose.
    const Mixed small = students_mixed(small_steps(1000));
    if (!(std::fabs(double(small.p[0]) - 0.9) < 1e-3))
        s += "after 1,000 steps of 0.0001, a weight of 1 is " + number(double(small.p[0])) + "\n";
    else if (small.copy[0] != nearest(small.p[0]))
        s += "after 1,000 steps of 0.0001, the copy is not p, rounded\n";
    return s;
}

std::string bare() {
    std::string s;
    const auto seen = [&](const Case& c, const char* where) {
        Bits p;
        for (double x : c.p) p.push_back(nearest(float(x)));
        const Bits before = p;
        Case from = c;
        for (std::size_t i = 0; i < p.size(); i++) from.p[i] = value_of(p[i]);
        Floats m(c.p.size(), 0), v(c.p.size(), 0);
        step_without_master(c.N, c.matrices, c.rule, 1, floats(c.g[0]).data(), p.data(), m.data(), v.data());
        const State right = truth(from);
        if (p == before && m == Floats(m.size(), 0)) return s += "step_without_master is not written\n", false;
        for (std::size_t i = 0; i < p.size(); i++) {
            const double x = right.p[i], margin = 1e-5 * (std::fabs(x) + c.rule.rate);
            if (p[i] != nearest(x - margin, x - margin < 0) && p[i] != nearest(x + margin, x + margin < 0))
                return s += std::string("p is not the new weight, rounded, ") + where + "\n", false;
        }
        if (first_unlike(numbers(m), right.m, six_digits) < right.m.size() ||
            first_unlike(numbers(v), right.v, six_digits) < right.v.size())
            return s += std::string("m or v is wrong ") + where + "\n", false;
        return true;
    };
    if (!seen(in_float(some("", 1, 0.3, 2)), "after a step")) return s;
    Case larger = in_float(some("", 1, 0, 0, 11));
    larger.rule.rate = 0.5;
    if (!seen(larger, "after a step of 0.5")) return s;
    Bits p = {0x3f80};
    Floats m(1, 0), v(1, 0);
    const Case c = small_steps(1);
    for (int t = 1; t <= 1000; t++) {
        const float g = 1;
        step_without_master(1, 1, c.rule, t, &g, p.data(), m.data(), v.data());
    }
    if (p[0] != 0x3f80)
        s += "a weight of 1 has moved to " + number(value_of(p[0])) + " by steps of 0.0001, each of which is lost\n";
    return s;
}

// ---- 3. Costs

const Sizes base = {3, 64, 4, 256, 200, 100};

// Compares a number with the right one, and says which changes of the sizes have the right effect.
std::string counted(const std::string& name, const std::function<std::int64_t(const Sizes&)>& found,
                    const std::function<std::int64_t(const Sizes&)>& right) {
    for (const Sizes& s : {base, Sizes{12, 768, 12, 3072, 21128, 512}, Sizes{1, 32, 2, 64, 200, 0}}) {
        const double a = double(found(s)), b = double(right(s));
        if (a == b) continue;
        if (a == 0 && found(base) == 0) return name + " is not written";
        std::string line = name + " is " + number_unlike(a, b) + "; the engine says " + number_unlike(b, a) + "\n";
        const std::pair<const char*, int Sizes::*> all[] = {{"one more layer", &Sizes::L},
                                                            {"one more head", &Sizes::H},
                                                            {"a wider feed-forward part", &Sizes::F},
                                                            {"one more token in the vocabulary", &Sizes::V},
                                                            {"one more position", &Sizes::P}};
        if (found(base) == right(base)) return line + "right for small sizes";
        const double f = double(found(base)) / double(right(base));
        if (double(found(s)) == f * double(right(s)))
            line += "everywhere " + number_unlike(f, 1) + " times what it should be\n";
        for (const auto& [what, field] : all) {
            Sizes more = base;
            more.*field += 1;
            const std::int64_t adds = found(more) - found(base), should = right(more) - right(base);
            if (adds == should)
                line += should == 0 ? "" : std::string("right: what ") + what + " adds\n";
            else
                line += std::string("wrong: what ") + what + " adds" +
                        (should != 0 && adds % should == 0
                             ? ", " + std::to_string(adds / should) + " times what it should be"
                             : "") +
                        "\n";
        }
        return line;
    }
    return "";
}
// The lists of tensors and products, as ./inspect program shows them.
struct Product {
    int in, out;
};
std::vector<Product> of_layer(const Sizes& s) {
    return {{s.C, s.C}, {s.C, s.C}, {s.C, s.C}, {s.C, s.C}, {s.C, s.F}, {s.F, s.C}};
}
std::int64_t right_parameters(const Sizes& s) {
    std::int64_t n = 0, norms = 2 + 2 * s.L;  // each has 2 C numbers
    const auto product = [&](Product p) { n += std::int64_t(p.in) * p.out + p.out; };
    for (int i = 0; i < s.L; i++)
        for (Product p : of_layer(s)) product(p);
    product({s.C, s.C}), product({s.C, s.V});
    return n + std::int64_t(2 + s.P) * s.C + 2 * norms * s.C;
}
std::int64_t right_work(const Sizes& s, std::int64_t N) {
    std::int64_t n = 0;
    std::vector<Product> all = {{s.C, s.C}, {s.C, s.V}};
    for (int i = 0; i < s.L; i++)
        for (Product p : of_layer(s)) all.push_back(p);
    for (Product p : all)
        for (int k = 0; k < 3; k++) n += N * p.in * p.out;
    return n;
}
// Eight values have width C: the input, q, k, v, attention's result, both sums, and the first norm. Two have width F: u
// and gelu(u). Always in f32: one number for each head, and mean and 1 / deviation of both norms.
std::int64_t right_kept(const Sizes& s, std::int64_t N, bool mixed) {
    const std::int64_t of_storage = 8 * s.C + 2 * s.F, of_arithmetic = s.H + 2 * 2;
    return N * (of_storage * (mixed ? 2 : 4) + of_arithmetic * 4);
}

std::string count() {
    // These two numbers are what `./inspect program lm` prints.
    if (right_parameters({1, 32, 2, 64, 200, 0}) != 16392 || right_parameters({3, 64, 4, 256, 200, 0}) != 167496)
        return "the check is wrong";
    return counted("parameters", parameters, right_parameters);
}
std::string work() {
    std::string s;
    for (std::int64_t N : {1, 64, 1 << 20})
        if (s = counted(
                "product_work", [N](const Sizes& x) { return product_work(x, N); },
                [N](const Sizes& x) { return right_work(x, N); });
            !s.empty())
            break;
    if (!s.empty() && s.back() != '\n') s += "\n";
    return s + counted(
                   "attention_work", [](const Sizes& x) { return attention_work(x, 82432); },
                   [](const Sizes& x) { return std::int64_t(82432) * x.C * x.L * (2 + 4); });
}
std::string state() {
    std::string s;
    for (bool mixed : {false, true}) {
        const std::int64_t n = 3000000000, found = state_bytes(n, mixed), right = mixed ? 18 * n : 16 * n;
        if (found == right) continue;
        if (found == 0) return "state_bytes is not written";
        s += number(double(found) / double(n)) + " bytes for each parameter in " + (mixed ? "mixed precision" : "f32") +
             " are wrong\n";
    }
    return s;
}
std::string kept() {
    std::string s;
    for (bool mixed : {false, true})
        if (const std::string t = counted(
                "kept_bytes", [=](const Sizes& x) { return kept_bytes(x, 4096, mixed); },
                [=](const Sizes& x) { return right_kept(x, 4096, mixed); });
            !t.empty())
            s += std::string("in ") + (mixed ? "mixed precision:" : "f32:") + "\n" + t + (t.back() == '\n' ? "" : "\n");
    return s;
}

}  // namespace

int main() {
    Lab lab("lab 11: an optimiser and mixed precision");
    lab.part(1, "clip", clips);
    lab.part(1, "first", first);
    lab.part(2, "steps", steps);
    lab.part(1, "decay", decays);
    lab.part(1, "whole", whole);
    lab.part(1, "bf16", roundings);
    lab.part(1, "lost", lost);
    lab.part(2, "master", masters);
    lab.part(1, "bare", bare);
    lab.part(1, "count", count);
    lab.part(1, "work", work);
    lab.part(1, "state", state);
    lab.part(1, "kept", kept);
    return lab.status();
}
