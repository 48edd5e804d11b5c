// SPDX-License-Identifier: MIT
// The check of lab 2. The correct gradients come from the complex step through the forward. For a wrong gradient, the
// check reports the cases in which the gradient is right.
#include <cmath>
#include <complex>
#include <random>
#include <vector>

#include "docs/labs/02/lab.h"
#include "docs/labs/check.h"

namespace {

using Complex = std::complex<double>;

const double share = drawn("share", 1, 0.2, 0.8);  // m = share mean(x)

struct Case {
    std::string name;
    int N, C;
    double eps;
    Numbers x, dy, w;
};

// Returns the loss, the sum of dy y over all numbers of y. Its gradient with respect to y is dy.
Complex loss(const Case& c, const std::vector<Complex>& x, const std::vector<Complex>& w,
             const std::vector<Complex>& b) {
    Complex sum = 0;
    for (int row = 0; row < c.N; row++) {
        const auto at = [&](int i) { return std::size_t(row * c.C + i); };
        Complex m = 0, v = 0;
        for (int i = 0; i < c.C; i++) m += share * x[at(i)] / double(c.C);
        for (int i = 0; i < c.C; i++) v += (x[at(i)] - m) * (x[at(i)] - m) / double(c.C);
        for (int i = 0; i < c.C; i++)
            sum += c.dy[at(i)] * ((x[at(i)] - m) / std::sqrt(v + c.eps) * w[std::size_t(i)] + b[std::size_t(i)]);
    }
    return sum;
}

// The gradients dx, dw and db, in this order.
struct Gradients {
    Numbers of[3];
};
Gradients truth(const Case& c) {
    const std::vector<Complex> b(std::size_t(c.C), 0.0);
    std::vector<Complex> inputs[3] = {{c.x.begin(), c.x.end()}, {c.w.begin(), c.w.end()}, b};
    Gradients g;
    for (int k = 0; k < 3; k++)
        for (Complex& each : inputs[k]) {
            each += Complex(0, 1e-30);
            g.of[k].push_back(loss(c, inputs[0], inputs[1], inputs[2]).imag() / 1e-30);
            each = each.real();
        }
    return g;
}
// Before the call, the memory of each gradient contains `garbage`, and `rise` more from one number to the next.
Gradients students(const Case& c, double rise = 0) {
    Gradients g{{Numbers(c.x.size(), garbage), Numbers(c.w.size(), garbage), Numbers(c.w.size(), garbage)}};
    for (Numbers& each : g.of)
        for (std::size_t i = 0; i < each.size(); i++) each[i] += rise * double(i);
    layernorm_backward(c.N, c.C, c.dy.data(), c.x.data(), c.w.data(), c.eps, g.of[0].data(), g.of[1].data(),
                       g.of[2].data());
    return g;
}

// Returns x with each row normalised to mean 0 and variance 1.
Numbers normed(const Case& c) {
    Numbers n = c.x;
    for (int row = 0; row < c.N; row++) {
        double* r = &n[std::size_t(row * c.C)];
        double m = 0, v = 0;
        for (int i = 0; i < c.C; i++) m += r[i] / c.C;
        for (int i = 0; i < c.C; i++) v += (r[i] - m) * (r[i] - m) / c.C;
        for (int i = 0; i < c.C; i++) r[i] = (r[i] - m) / std::sqrt(v);
    }
    return n;
}

// Returns a case with random numbers. Each flag that is true removes the effect of one part of the formula: w is 1; eps
// is 0; the rows of x have mean 0 and variance 1; dy w has mean 0 in every row; dy w is orthogonal to n in every row.
Case some(const std::string& name, int N, bool w_is_1, bool no_eps, bool normal_rows, bool mean_0, bool across) {
    std::mt19937 random(7);
    std::normal_distribution<double> normal;
    Case c{name, N, 6, no_eps ? 0 : 0.3, Numbers(std::size_t(N * 6)), Numbers(std::size_t(N * 6)), Numbers(6, 1)};
    for (double& x : c.x) x = 1 + 2 * normal(random);
    for (double& x : c.dy) x = normal(random);
    for (double& x : c.w) x = w_is_1 ? 1 : 1.5 + std::fabs(normal(random));
    if (normal_rows) c.x = normed(c);
    const Numbers n = normed(c);
    for (int row = 0; row < N && (mean_0 || across); row++) {
        double* dy = &c.dy[std::size_t(row * 6)];
        double mean = 0, along = 0;
        for (int i = 0; i < 6; i++)
            mean += dy[i] * c.w[std::size_t(i)] / 6,
                along += dy[i] * c.w[std::size_t(i)] * n[std::size_t(row * 6 + i)] / 6;
        for (int i = 0; i < 6; i++)
            dy[i] -= ((mean_0 ? mean : 0) + (across ? along * n[std::size_t(row * 6 + i)] : 0)) / c.w[std::size_t(i)];
    }
    return c;
}

// Checks a large case: 4 rows of 40,000 numbers for dx, of 3,000 for dw and db. A backward with C x C derivatives in each
// row takes too long for 40,000 numbers, but not for 3,000: it loses only the points of dx. One forward for each number
// takes too long for both. The complex step is taken for some of the numbers only.
std::string of_large(const std::string& name, int k) {
    std::mt19937 random(3);
    std::normal_distribution<double> normal;
    const int C = k == 0 ? 40000 : 3000;
    const auto width = std::size_t(C);
    Case c{"", 4, C, 0.3, Numbers(4 * width), Numbers(4 * width), Numbers(width)};
    for (Numbers* each : {&c.x, &c.dy, &c.w})
        for (double& x : *each) x = 1 + normal(random);
    const Numbers found = students(c).of[k];
    std::vector<Complex> inputs[3] = {{c.x.begin(), c.x.end()},
                                      {c.w.begin(), c.w.end()},
                                      std::vector<Complex>(c.w.size())};
    Result r;
    for (int n = 0; n < 12; n++) {
        const std::size_t i = random() % found.size();
        inputs[k][i] += Complex(0, 1e-30);
        r.found.push_back(found[i]), r.right.push_back(loss(c, inputs[0], inputs[1], inputs[2]).imag() / 1e-30);
        inputs[k][i] = inputs[k][i].real();
    }
    return alike(r.found, r.right) ? "" : name + " is wrong in 4 rows of " + std::to_string(C) + " numbers\n";
}

std::string seen(int k) {
    const char* const name[] = {"dx", "dw", "db"};
    const auto result = [&](const Case& c) { return Result{c.name, students(c).of[k], truth(c).of[k]}; };
    std::vector<Result> cases;
    for (const Case& c :
         {some("there is one row", 1, false, false, false, false, false),
          some("w is all 1", 3, true, false, false, false, false),
          some("eps is 0", 3, false, true, false, false, false),
          some("rows of x have mean 0 and variance 1, and eps is 0", 3, false, true, true, false, false),
          some("dy w has mean 0 in every row", 3, false, false, false, true, false),
          some("dy w is at right angles to n in every row", 3, false, false, false, false, true),
          some("dy w has mean 0 and is at right angles to n in every row", 3, false, false, false, true, true)})
        cases.push_back(result(c));
    const Case general = some("", 3, false, false, false, false, false);
    const Result any = result(general);
    const std::string s = wrong(name[k], any, cases);
    if (s.empty()) {
        if (const std::string t = inexact(name[k], any.found, any.right); !t.empty()) return t;
        if (!alike(students(general, 1).of[k], any.right))
            return std::string(name[k]) + " depends on what stood in its memory before\n";
        Case far = general;
        for (double& x : far.x) x += 100000;
        if (const Result r = result(far); !alike(r.found, r.right))
            return wrong(name[k], r, {}) + "that is where the rows of x are around 100000\n";
        const std::string t = alone(5, [&] { return of_large(name[k], k); });
        return t.empty() || t.find("is wrong in") != t.npos
                   ? t
                   : std::string("in 4 rows of ") + (k == 0 ? "40000" : "3000") + " numbers: " + t + "\n";
    }
    if (k > 0 || share != 1) return s;
    // If eps is 0, a row of dx must sum to zero and be orthogonal to the normalised row. dy w / sqrt(v), the term that
    // a too simple backward returns, meets neither condition.
    const Case sharp = some("", 1, false, true, false, false, false);
    const Numbers dx = students(sharp).of[0], n = normed(sharp);
    double sum = 0, sum_of_g = 0, along = 0, along_of_g = 0, r = 0;
    for (int i = 0; i < sharp.C; i++) {
        const auto at = std::size_t(i);
        r = (n[at] - n[0]) / (sharp.x[at] - sharp.x[0]);
        sum += dx[at], sum_of_g += sharp.dy[at] * sharp.w[at];
        along += dx[at] * n[at], along_of_g += sharp.dy[at] * sharp.w[at] * n[at];
    }
    const auto ratio = [](double part, double of) {
        return std::fabs(part) < 1e-9 ? std::string("0") : number(part / of);
    };
    return s + "a row of dx sums to " + ratio(sum, r * sum_of_g) +
           " times the sum of dy w / sqrt(v); no y moves when a row of x moves by a constant\n" +
           "where eps is 0, dx goes along n " + ratio(along, r * along_of_g) +
           " times as far as dy w / sqrt(v); no y moves when x - m grows\n";
}

}  // namespace

int main() {
    Lab lab("lab 2: the backward of layer norm");
    lab.part(1, "db", [] { return seen(2); });
    lab.part(2, "dw", [] { return seen(1); });
    lab.part(3, "dx", [] { return seen(0); });
    return lab.status();
}
