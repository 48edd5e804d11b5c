// SPDX-License-Identifier: MIT
// The check of lab 7. The correct results come from quadrature, from the complex step and from a joint normal density.
// Means over many draws are compared with their expected values.
#include <algorithm>
#include <complex>
#include <limits>
#include <random>

#include "docs/labs/07/lab.h"
#include "docs/labs/check.h"

namespace {

using Complex = std::complex<double>;
constexpr double infinity = std::numeric_limits<double>::infinity(), pi = 3.14159265358979323846;

std::mt19937 source(11);
double normal() { return std::normal_distribution<double>()(source); }
double uniform(double from, double to) { return std::uniform_real_distribution<double>(from, to)(source); }
Numbers numbers(int count, double size) {
    Numbers x;
    for (int i = 0; i < count; i++) x.push_back(size * normal());
    return x;
}

const char* const nothing = " is 0: not written yet\n";

// Like wrong(). Also reports if all numbers of a result are off by the same amount. `truth` is the source of the
// correct results.
std::string differs(const std::string& name, const std::string& truth, const Result& any,
                    const std::vector<Result>& cases) {
    std::string s = wrong(name, any, cases, truth + " says");
    if (!s.empty() && any.found == Numbers(any.found.size(), 0)) return name + nothing;
    if (!s.empty() && any.found.size() > 1 && std::isfinite(any.found[0]) &&
        alike(any.found, any.right, 1, any.found[0] - any.right[0]))
        s += "everywhere off by the same number, " + number(any.found[0] - any.right[0]) + "\n";
    return s;
}
bool is_nothing(const std::string& s) {
    return s.empty() || s.find(nothing) != std::string::npos || s.find("is not written") != std::string::npos;
}
// Like the function above, for cases with only a few numbers each. Reports for each case whether it is right and, if
// all its numbers are off by the same amount, this amount. Factors are not reported, because they say little about so
// few numbers.
std::string differs(const std::string& name, const std::string& truth, const std::vector<Result>& cases) {
    Result any;
    std::string s;
    for (const Result& c : cases) {
        any.found.insert(any.found.end(), c.found.begin(), c.found.end());
        any.right.insert(any.right.end(), c.right.begin(), c.right.end());
        for (std::size_t i = 0; i < c.found.size(); i++)
            any.places.push_back((c.found.size() > 1 ? "[" + std::to_string(i) + "]" : "") + " where " + c.where);
        const double off = c.found[0] - c.right[0];
        if (alike(c.found, c.right))
            s += "right where " + c.where + "\n";
        else if (!std::isfinite(off))
            s += "not finite where " + c.where + "\n";
        else
            s += (alike(c.found, c.right, 1, off) ? "off by " + number(off) : "wrong") + " where " + c.where + "\n";
    }
    const std::string first = differs(name, truth, any, {});
    return is_nothing(first) ? first : first.substr(0, first.find('\n') + 1) + s;
}

// A mean over draws, and its standard error.
struct Mean {
    double sum = 0, squares = 0;
    int count = 0;
    void add(double x) { sum += x, squares += x * x, count++; }
    double value() const { return sum / count; }
    double error() const { return std::sqrt(std::max(0.0, squares / count - value() * value()) / count); }
    std::string text() const { return number(value()) + " (standard error " + number(error()) + ")"; }
};

// ---- the Gaussian

struct Draw {
    std::string name;
    Numbers mu, l, e, d;  // d: the gradient of the result (z or the KL)
};
Draw draw(const std::string& name, int Z, double of_mu = 1, double of_l = 1, double of_e = 1) {
    source.seed(unsigned(Z));
    return {name, numbers(Z, of_mu), numbers(Z, of_l), numbers(Z, of_e), numbers(Z, 1)};
}
std::vector<Draw> draws() {
    std::vector<Draw> all = {draw("mu is 0", 5, 0),      draw("l is 0", 5, 1, 0), draw("mu and l are 0", 5, 0, 0),
                             draw("e is 0", 5, 1, 1, 0), draw("e is all 1", 5),   draw("what comes in is all 1", 5)};
    all[4].e.assign(5, 1), all[5].d.assign(5, 1);
    return all;
}

// Returns the KL of one number by the trapezoid rule. For a function that decreases as fast as a normal density, this
// rule is exact to the last digits.
Complex kl_of(Complex mu, Complex l) {
    const double middle = mu.real(), deviation = std::exp(l.real() / 2), h = 0.05 * deviation;
    Complex sum = 0;
    for (int i = -260; i <= 260; i++) {
        const double z = middle + i * h;
        const Complex log_q = -(std::log(2 * pi) + l + (z - mu) * (z - mu) * std::exp(-l)) / 2.0,
                      log_p = -(std::log(2 * pi) + z * z) / 2;
        sum += h * std::exp(log_q) * (log_q - log_p);
    }
    return sum;
}
constexpr double tiny = 1e-30;
constexpr Complex i_step{0, tiny};

// `what` selects the result: 0 is z, and 1 and 2 are dmu and dl of z; 3 is the KL, and 4 and 5 are dmu and dl of the
// KL.
Result gaussian(const Draw& c, int what) {
    const int Z = int(c.mu.size()), by = what % 3;
    Numbers y(c.mu.size(), garbage), dmu = y, dl = y;
    if (what == 0)
        gaussian_sample(Z, c.mu.data(), c.l.data(), c.e.data(), y.data());
    else if (what < 3)
        gaussian_sample_backward(Z, c.d.data(), c.l.data(), c.e.data(), dmu.data(), dl.data());
    else if (what == 3)
        gaussian_kl(Z, c.mu.data(), c.l.data(), y.data());
    else
        gaussian_kl_backward(Z, c.d.data(), c.mu.data(), c.l.data(), dmu.data(), dl.data());
    Result r{c.name, by == 0 ? y : by == 1 ? dmu : dl, {}};
    for (std::size_t i = 0; i < y.size(); i++) {
        const Complex mu = c.mu[i] + (by == 1 ? i_step : 0), l = c.l[i] + (by == 2 ? i_step : 0);
        const Complex right = what < 3 ? mu + std::exp(l / 2.0) * c.e[i] : kl_of(mu, l);
        r.right.push_back(by == 0 ? right.real() : c.d[i] * right.imag() / tiny);
    }
    return r;
}
// Checks a gradient for 100,000 numbers. A backward takes milliseconds; one forward for each number takes minutes.
std::string of_many(const std::string& name, int what) {
    const Draw c = draw("", 100000);
    Numbers dmu(c.mu.size(), garbage), dl = dmu;
    const int Z = int(c.mu.size());
    if (what < 3)
        gaussian_sample_backward(Z, c.d.data(), c.l.data(), c.e.data(), dmu.data(), dl.data());
    else
        gaussian_kl_backward(Z, c.d.data(), c.mu.data(), c.l.data(), dmu.data(), dl.data());
    Result r{"", {}, {}};
    for (std::size_t i = 0; i < c.mu.size(); i += 9973) {
        const Complex mu = c.mu[i] + (what % 3 == 1 ? i_step : 0), l = c.l[i] + (what % 3 == 2 ? i_step : 0);
        const Complex y = what < 3 ? mu + std::exp(l / 2.0) * c.e[i] : kl_of(mu, l);
        r.found.push_back((what % 3 == 1 ? dmu : dl)[i]), r.right.push_back(c.d[i] * y.imag() / tiny);
    }
    return alike(r.found, r.right) ? "" : name + " is wrong where Z is 100000\n";
}
std::string of_gaussian(int what) {
    const std::string name = std::vector<const char*>{"z", "dmu", "dl", "kl", "dmu", "dl"}[std::size_t(what)];
    const int by = what % 3;
    std::vector<Result> cases;
    for (const Draw& c : draws()) cases.push_back(gaussian(c, what));
    const Result& still = cases[what < 3 ? 3 : 2];
    const Result any = gaussian(draw("", 7), what);
    const std::string truth = what == 0 ? "the formula" : what == 3 ? "quadrature" : "the complex step";
    const std::string s = differs(name, truth, any, cases);
    Draw wide = draw("l is between -20 and 12", 6);
    wide.l = {-20, -9, -8.1, 8.1, 9, 12};
    if (const Result r = gaussian(wide, what); s.empty() && !alike(r.found, r.right))
        return differs(name, truth, r, {}) + "that is where " + wide.name + "\n";
    if (s.empty() && by > 0) {
        const std::string t = inexact(name, any.found, any.right);
        return t.empty() ? alone(10, [&] { return of_many(name, what); }) : t;
    }
    if (is_nothing(s)) return s;
    if (what > 0) return s + "where " + still.where + ", " + name + "[0] is " + number(still.found[0] + 0.0) + "\n";
    Mean mean, square;
    for (int n = 0; n < 100000; n++) {
        const double z = gaussian({"", {0.5}, {1.2}, {normal()}, {}}, 0).found[0];
        mean.add(z), square.add((z - 0.5) * (z - 0.5));
    }
    return s + "100000 draws with mu = 0.5, exp(l) = " + number(std::exp(1.2)) + ": the mean of z is " + mean.text() +
           ", that of (z - mu)^2 " + square.text() + "\n";
}

// ---- the model whose likelihood is known

// Returns the log density at x (n) of the normal distribution with mean 0 and this covariance (n,n), by its Cholesky
// factor.
double log_normal(int n, Numbers covariance, Numbers x) {
    const auto at = [&](int i, int j) -> double& { return covariance[std::size_t(i * n + j)]; };
    double sum = 0;
    for (int i = 0; i < n; i++) {
        for (int j = 0; j <= i; j++) {
            for (int k = 0; k < j; k++) at(i, j) -= at(i, k) * at(j, k);
            at(i, j) = i == j ? std::sqrt(at(i, i)) : at(i, j) / at(j, j);
        }
        for (int k = 0; k < i; k++) x[std::size_t(i)] -= at(i, k) * x[std::size_t(k)];
        x[std::size_t(i)] /= at(i, i);
        sum -= std::log(2 * pi) / 2 + std::log(at(i, i)) + x[std::size_t(i)] * x[std::size_t(i)] / 2;
    }
    return sum;
}

struct World {
    std::string name;
    int D, Z;
    double s;
    Numbers A, x, mu, l;
    double of_e = 1;
    Model model() const { return {D, Z, A.data(), s}; }
    // Returns log p(x) if z is empty, otherwise log p(x, z). Both are log densities of normal distributions.
    double log_p(const Numbers& z) const {
        const int n = D + int(z.size());
        Numbers covariance, point = x;
        point.insert(point.end(), z.begin(), z.end());
        for (int i = 0; i < n; i++)
            for (int j = 0; j < n; j++) {
                double c = i == j ? (i < D ? s * s : 1) : 0;
                for (int k = 0; k < Z && i < D && j < D; k++)
                    c += A[std::size_t(i * Z + k)] * A[std::size_t(j * Z + k)];
                if (i < D && j >= D) c = A[std::size_t(i * Z + j - D)];
                if (i >= D && j < D) c = A[std::size_t(j * Z + i - D)];
                covariance.push_back(c);
            }
        return log_normal(n, covariance, point);
    }
    double found(const Numbers& e) const { return log_weight(model(), x.data(), mu.data(), l.data(), e.data()); }
    double right(const Numbers& e) const {
        Numbers z;
        double log_q = 0;
        for (int i = 0; i < Z; i++) {
            const auto k = std::size_t(i);
            z.push_back(mu[k] + std::exp(l[k] / 2) * e[k]);
            log_q += log_normal(1, {std::exp(l[k])}, {z[k] - mu[k]});
        }
        return log_p(z) - log_q;
    }
    Result result() const {
        Result r{name, {}, {}};
        World each = *this;
        for (int n = 0; n < 8; n++) {
            const Numbers e = numbers(Z, of_e);
            r.found.push_back(each.found(e)), r.right.push_back(each.right(e));
            each.x = numbers(D, 1);
        }
        return r;
    }
    // Returns a world in which q is the true posterior, except that `wider` is added to its log variances. Number d of
    // x depends only on number d mod Z of z; the other entries of A become 0. Therefore, the numbers of z are
    // independent in the posterior, and each has a normal distribution.
    World with_posterior(double wider) const {
        World w = *this;
        for (int i = 0; i < Z; i++) {
            double precision = 1, pull = 0;
            for (int d = 0; d < D; d++) {
                double& a = w.A[std::size_t(d * Z + i)];
                if (d % Z != i) a = 0;
                precision += a * a / (s * s), pull += a * x[std::size_t(d)] / (s * s);
            }
            w.mu[std::size_t(i)] = pull / precision, w.l[std::size_t(i)] = wider - std::log(precision);
        }
        return w;
    }
};
World world(const std::string& name, int D, int Z, double s, double of_A = 1, double of_q = 1, double of_e = 1) {
    source.seed(unsigned(D * 10 + Z));
    return {name, D, Z, s, numbers(D * Z, of_A), numbers(D, 1), numbers(Z, of_q), numbers(Z, of_q), of_e};
}

std::string of_log_weight() {
    std::vector<Result> cases;
    for (const World& w :
         {world("A is 0", 4, 2, 0.6, 0), world("s is 1", 4, 2, 1), world("mu and l are 0", 4, 2, 0.6, 1, 0),
          world("e is 0", 4, 2, 0.6, 1, 1, 0), world("x and z are one number each", 1, 1, 0.6)})
        cases.push_back(w.result());
    std::string s = differs("log w", "the joint density", world("", 4, 2, 0.6).result(), cases);
    if (is_nothing(s)) return s;
    const auto off = [](int D, int Z) {
        const Result r = world("", D, Z, 0.6).result();
        return r.found[0] - r.right[0];
    };
    if (const double d = off(4, 2); d == 0 || !std::isfinite(d))
        return s;
    else if (std::fabs(off(8, 2) - 2 * d) < 1e-9)
        s += number(d / 4) + " for each number of x\n";
    else if (std::fabs(off(4, 4) - 2 * d) < 1e-9)
        s += number(d / 2) + " for each number of z\n";
    else if (std::fabs(off(8, 4) - 2 * d) < 1e-9)
        s += "the same share for each number of x and of z\n";
    const World before = world("", 4, 2, 0.6);
    World other_q = before, other_x = before;
    const Numbers e = {0.4, -0.7};
    Numbers same_z;  // the noise with which other_q gives the same z as `before` gives with e
    for (std::size_t i = 0; i < 2; i++) {
        other_q.mu[i] += 0.8, other_q.l[i] -= 0.5;
        same_z.push_back((before.mu[i] + std::exp(before.l[i] / 2) * e[i] - other_q.mu[i]) /
                         std::exp(other_q.l[i] / 2));
        other_x.x[i] += 1;
    }
    const auto share = [](double part, double of) { return number(std::fabs(part) < 1e-9 ? 0 : part / of); };
    s += "the same z and another q: log w moves " +
         share(other_q.found(same_z) - before.found(e), other_q.right(same_z) - before.right(e)) +
         " times as far as it should; another x: " +
         share(other_x.found(e) - before.found(e), other_x.right(e) - before.right(e)) + " times\n";
    const World exact = before.with_posterior(0);
    double least = infinity, most = -infinity;
    for (int n = 0; n < 20; n++) {
        const double w = exact.found(numbers(2, 1));
        least = std::min(least, w), most = std::max(most, w);
    }
    return s + "q the true posterior: log w differs by " + number(most - least < 1e-9 ? 0 : most - least) +
           " among 20 draws\n";
}

std::string of_elbo() {
    std::vector<Result> cases;
    for (int S : {1, 2, 9}) {
        const Numbers w = numbers(S, 3);
        double sum = 0;
        for (double each : w) sum += each;
        cases.push_back({S == 1 ? "S is 1" : "S is " + std::to_string(S), {elbo(S, w.data())}, {sum / S}});
    }
    return differs("elbo", "the mean", cases);
}
std::string of_importance() {
    std::vector<Result> cases;
    const auto add = [&](const std::string& name, int S, double size, double about, bool with_zeros) {
        Numbers w = numbers(S, size);
        long double sum = 0;
        for (std::size_t i = 0; i < w.size(); i++) {
            if (with_zeros && i % 2 == 0) w[i] = -infinity;
            sum += std::exp((long double)(w[i]));
            w[i] += about;
        }
        cases.push_back({name, {importance_weighted(S, w.data())}, {double(about + std::log(sum / S))}});
    };
    add("S is 1", 1, 2, 0, false), add("all log w are equal", 5, 0, -3, false),
        add("every log w is about 2", 9, 1, 2, false);
    add("every log w is about -100000", 9, 2, -100000, false), add("every log w is about 100000", 9, 2, 100000, false);
    add("some log w are minus infinity", 8, 2, 0, true), add("log w differ by hundreds", 9, 300, 0, false);
    add("log w differ by thousands", 9, 2000, 0, false);
    const std::string s = differs("importance_weighted", "the sum in long double", cases);
    const Numbers none(3, -infinity);
    if (const double found = importance_weighted(3, none.data()); s.empty() && found != -infinity)
        return "importance_weighted is " + number(found) +
               " where every log w is minus infinity, so that every w is 0\n";
    return s;
}
// Checks log_weight(), elbo() and importance_weighted() together, over many draws.
std::string of_bounds() {
    const World w = world("", 3, 2, 0.7).with_posterior(1), exact = w.with_posterior(0);
    if (w.found({1, 1}) == 0) return "there is no log w yet";
    const double log_p = w.log_p({});
    Mean bound, four, sixteen, weight;
    double worst = 0;
    for (int n = 0; n < 4000; n++) {
        Numbers log_w;
        for (int k = 0; k < 16; k++) log_w.push_back(w.found(numbers(2, 1)));
        bound.add(elbo(16, log_w.data())), four.add(importance_weighted(4, log_w.data())),
            sixteen.add(importance_weighted(16, log_w.data()));
        double sum = 0;
        for (double each : log_w) sum += std::exp(each - log_p) / 16;
        weight.add(sum);
        if (n >= 20) continue;
        for (double& each : log_w) each = exact.found(numbers(2, 1));
        worst = std::max(worst, std::fabs(importance_weighted(16, log_w.data()) - log_p));
    }
    const auto above = [](const Mean& a, double limit, double error) {
        return !(a.value() <= limit + 5 * (a.error() + error));
    };
    std::string s;
    if (above(bound, four.value(), four.error()))
        s += "the mean of elbo is above that of importance_weighted with 4 draws\n";
    if (above(four, sixteen.value(), sixteen.error())) s += "importance_weighted falls from 4 to 16 draws\n";
    if (above(sixteen, log_p, 0)) s += "the mean of importance_weighted is above log p(x)\n";
    if (!(std::fabs(weight.value() - 1) <= 5 * weight.error()))
        s += "the mean of w is not p(x), but " + number(weight.value()) + " times that\n";
    if (!(worst <= 1e-9)) s += "q the true posterior: importance_weighted is off by " + number(worst) + "\n";
    if (s.empty()) return s;
    return s + "4000 times: elbo " + bound.text() + ", 4 draws " + four.text() + ", 16 draws " + sixteen.text() +
           "; log p(x) is " + number(log_p) + "\n";
}

// ---- the price of the KL

std::string of_kl_weight() {
    const auto result = [](const std::string& name, int steps, int cycles, double rise) {
        Result r{name, {}, {}};
        for (int step = 0; step < steps + 5; step++) {
            const int place = step * cycles % steps;  // position in the cycle, from 0 to steps - 1
            r.found.push_back(kl_weight(step, steps, cycles, rise));
            r.right.push_back(step >= steps || place >= rise * steps ? 1 : place / (rise * steps));
        }
        return r;
    };
    const Result any = result("", 64, 4, 0.3);
    for (const auto& [steps, cycles] : {std::pair(50, 7), {20, 6}})
        if (const Result uneven = result("", steps, cycles, 0.4);
            alike(any.found, any.right) && !alike(uneven.found, uneven.right))
            return differs("kl_weight", "the definition", uneven, {}) + "that is where " + std::to_string(steps) +
                   " steps have " + std::to_string(cycles) + " cycles\n";
    const std::string s = differs("kl_weight", "the definition", any,
                                  {result("there is one cycle", 64, 1, 0.3), result("rise is 1", 50, 4, 1),
                                   result("there is one cycle and rise is 1", 64, 1, 1)});
    if (is_nothing(s)) return s;
    const auto at = [&](std::size_t step) { return number(any.found[step]); };
    return s + "64 steps, 4 cycles, rise 0.3: " + at(0) + " at step 0, " + at(8) +
           " in the middle of the first cycle, " + at(16) + " where the second begins, " + at(66) + " after the end, " +
           number(*std::max_element(any.found.begin(), any.found.end())) + " at most\n";
}

struct Batch {
    std::string name;
    int B;
    double weight, least;
    Numbers kl;  // (B,4)
};
// The KL of number z is about 1 + z on average over the sentences. The larger `spread` is, the more the sentences
// differ.
Batch batch(const std::string& name, int B, double weight, double least, double spread = 0.8) {
    Batch c{name, B, weight, least, {}};
    source.seed(5);
    for (int b = 0; b < B; b++)
        for (int z = 0; z < 4; z++)
            c.kl.push_back((1 + z) * (1 + (B == 1 ? 0 : spread * (2.0 * b / (B - 1) - 1))) + uniform(0, 0.1));
    return c;
}
Complex price(const Batch& c, const std::vector<Complex>& kl) {
    Complex all = 0;
    for (std::size_t z = 0; z < 4; z++) {
        Complex mean = 0;
        for (int b = 0; b < c.B; b++) mean += kl[std::size_t(b) * 4 + z] / double(c.B);
        all += c.weight * (mean.real() > c.least ? mean : c.least);
    }
    return all;
}
std::string of_free_bits(bool gradient) {
    const auto result = [&](const Batch& c) {
        Result prices{c.name, {}, {}}, gradients = prices;
        for (double size : {1.0, 0.7, 1.6}) {
            Numbers kl = c.kl, dkl(kl.size(), garbage);
            for (double& each : kl) each *= size;
            std::vector<Complex> moved(kl.begin(), kl.end());
            prices.found.push_back(free_bits(c.B, 4, c.weight, c.least, kl.data(), dkl.data()));
            prices.right.push_back(price(c, moved).real());
            for (std::size_t i = 0; i < kl.size(); i++) {
                moved[i] += i_step;
                gradients.found.push_back(dkl[i]), gradients.right.push_back(price(c, moved).imag() / tiny);
                moved[i] = kl[i];
            }
        }
        return gradient ? gradients : prices;
    };
    std::vector<Result> cases;
    for (const Batch& c : {batch("there is one sentence", 1, 0.4, 2.5), batch("the weight is 1", 3, 1, 2.5),
                           batch("least is 0", 3, 0.4, 0), batch("all means are below", 3, 0.4, 50),
                           batch("all sentences are nearly alike", 3, 0.4, 2.5, 0)})
        cases.push_back(result(c));
    const Result any = result(batch("", 3, 0.4, 2.5));
    const std::string s =
        differs(gradient ? "dkl" : "price", gradient ? "the complex step" : "the definition", any, cases);
    return s.empty() && gradient ? inexact("dkl", any.found, any.right) : s;
}

// ---- the sphere

// Returns the integral of f(1 - w) p(w) over w from -1 to `to`, where p(w) ~ exp(kappa w) is a density on -1 ... 1. The
// integral is computed by Simpson's rule over t = kappa (1 - w).
double over_w(double kappa, double to, const std::function<double(double)>& f) {
    const auto simpson = [&](double from, const std::function<double(double)>& g) {
        const double until = std::min(2 * kappa, from + 50), h = (until - from) / 20000;
        double sum = 0;
        for (int i = 0; i <= 20000; i++) sum += (i == 0 || i == 20000 ? 1 : i % 2 ? 4 : 2) * g(from + i * h) * h / 3;
        return sum;
    };
    return simpson(kappa * (1 - to), [&](double t) { return std::exp(-t) * f(t / kappa); }) /
           simpson(0, [](double t) { return std::exp(-t); });
}
double dot(const double* a, const double* b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }

std::string of_vmf_sample() {
    std::vector<Result> along, across, lengths;
    for (double kappa : {0.01, 1.0, 20.0, 3000.0}) {
        const std::string name = "kappa is " + number(kappa);
        Result share{name, {}, {}}, direction{name, {}, {}}, length{name, {}, {}};
        for (int n = 0; n < 5; n++) {
            Numbers mu = numbers(3, 1), e = numbers(3, 1), z(3, garbage), nu(3);
            const double u = uniform(0.01, 0.99), size = std::sqrt(dot(mu.data(), mu.data()));
            for (double& each : mu) each /= size;
            vmf_sample(kappa, mu.data(), u, e.data(), z.data());
            if (z == Numbers(3, garbage)) return "z is not written\n";
            if (!std::isfinite(z[0] + z[1] + z[2]))
                return "z is not finite where " + name + " and u is " + number(u) + "\n";
            const double w = dot(mu.data(), z.data());
            share.found.push_back(std::fabs(w) <= 1 ? over_w(kappa, w, [](double) { return 1; }) : w),
                share.right.push_back(u);
            length.found.push_back(std::sqrt(dot(z.data(), z.data()))), length.right.push_back(1);
            for (std::size_t i = 0; i < 3; i++) nu[i] = e[i] - dot(e.data(), mu.data()) * mu[i];
            // The direction of the part of z across mu, whatever the length of this part is.
            Numbers rest(3);
            for (std::size_t i = 0; i < 3; i++) rest[i] = z[i] - w * mu[i];
            const double of_nu = std::sqrt(dot(nu.data(), nu.data())),
                         of_rest = std::sqrt(dot(rest.data(), rest.data()));
            for (std::size_t i = 0; i < 3; i++)
                direction.found.push_back(of_rest == 0 ? 0 : rest[i] / of_rest),
                    direction.right.push_back(nu[i] / of_nu);
        }
        along.push_back(share), across.push_back(direction), lengths.push_back(length);
    }
    // A z that is not on the sphere says nothing about w: its product with mu need not be w.
    std::string s = differs("|z|", "the sphere", lengths);
    if (s.empty()) s = differs("P(w < mu . z)", "u", along);
    s += differs("nu", "the noise", across);
    if (s.empty()) {
        // Small u. The probability is compared by its logarithm, because P and u are nearly 0.
        std::vector<Result> small;
        for (double kappa : {20.0, 3000.0})
            for (double u : {1e-6, 1e-12}) {
                const Numbers mu = {0, 0.6, 0.8}, e = {0.3, -1, 0.7};
                Numbers z(3, garbage);
                vmf_sample(kappa, mu.data(), u, e.data(), z.data());
                small.push_back({"kappa is " + number(kappa) + " and u is " + number(u),
                                 {std::log(over_w(kappa, dot(mu.data(), z.data()), [](double) { return 1; }))},
                                 {std::log(u)}});
            }
        return differs("log P(w < mu . z)", "log u", small);
    }
    Mean w, length, low;
    for (int n = 0; n < 20000; n++) {
        const Numbers mu = {0, 0.6, 0.8}, e = numbers(3, 1);
        Numbers z(3);
        const double u = uniform(0, 1);
        vmf_sample(5, mu.data(), u, e.data(), z.data());
        w.add(dot(mu.data(), z.data())), length.add(std::sqrt(dot(z.data(), z.data())));
        if (u < 0.5) low.add(dot(mu.data(), z.data()));
    }
    return s + "20000 draws with kappa = 5: mu . z has the mean " + w.text() + ", of the distribution it is " +
           number(over_w(5, 1, [](double v) { return 1 - v; })) + "; |z| has the mean " + length.text() +
           "; where u < 0.5, mu . z has the mean " + low.text() + "\n";
}
std::string of_vmf_kl() {
    std::vector<Result> cases;
    for (double kappa : {0.01, 1.0, 20.0, 3000.0}) {
        // The log of the integral of exp(kappa (w - 1)) over w from -1 to 1.
        const double log_all = std::log(-std::expm1(-2 * kappa) / kappa);
        cases.push_back({"kappa is " + number(kappa), {vmf_kl(kappa)}, {over_w(kappa, 1, [&](double v) {
                             return std::log(2.0) - kappa * v - log_all;
                         })}});
    }
    const std::string s = differs("vmf_kl", "quadrature", cases);
    return is_nothing(s) ? s
                         : s + "where kappa is 0.01, and z nearly uniform, it is " + number(cases[0].found[0]) + "\n";
}

}  // namespace

int main() {
    Lab lab("lab 7: a latent");
    lab.part(1, "z", [] { return of_gaussian(0); });
    lab.part(1, "z back", [] { return of_gaussian(1) + of_gaussian(2); });
    lab.part(1, "kl", [] { return of_gaussian(3); });
    lab.part(1, "kl back", [] { return of_gaussian(4) + of_gaussian(5); });
    lab.part(2, "log w", of_log_weight);
    lab.part(1, "elbo", of_elbo);
    lab.part(1, "iw", of_importance);
    lab.part(1, "bounds", of_bounds);
    lab.part(1, "anneal", of_kl_weight);
    lab.part(2, "price", [] { return of_free_bits(false) + of_free_bits(true); });
    lab.part(2, "vmf", of_vmf_sample);
    lab.part(1, "vmf kl", of_vmf_kl);
    return lab.status();
}
