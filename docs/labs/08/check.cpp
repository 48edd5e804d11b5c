// SPDX-License-Identifier: MIT
// The check of lab 8. The correct results come from the sums over all pairs of rows, and from the complex step through
// these sums. For a wrong result, the check reports the cases in which the result is right.
#include <algorithm>
#include <complex>
#include <random>

#include "docs/labs/08/lab.h"
#include "docs/labs/check.h"
#include "docs/labs/memory.h"

namespace {

using Complex = std::complex<double>;
constexpr int M = 3, D = 4;

struct Case {
    std::string name;
    int N;
    Numbers in[4];  // a, b, v, dy
};

std::vector<Complex> rows_of(const Case& c, const std::vector<Complex> (&in)[3]) {
    std::vector<Complex> y(std::size_t(c.N * D));
    for (int i = 0; i < c.N; i++) {
        Complex sum = 0;
        for (int j = 0; j <= i; j++) {
            Complex weight = 0;
            for (int m = 0; m < M; m++) weight += in[0][std::size_t(i * M + m)] * in[1][std::size_t(j * M + m)];
            sum += weight;
            for (int d = 0; d < D; d++) y[std::size_t(i * D + d)] += weight * in[2][std::size_t(j * D + d)];
        }
        for (int d = 0; d < D; d++) y[std::size_t(i * D + d)] /= sum;
    }
    return y;
}
// Returns da (which = 0), db (1), dv (2) or y (3).
Numbers truth(const Case& c, int which) {
    std::vector<Complex> in[3];
    for (int k = 0; k < 3; k++) in[k].assign(c.in[k].begin(), c.in[k].end());
    Numbers g;
    if (which == 3) {
        for (const Complex& y : rows_of(c, in)) g.push_back(y.real());
        return g;
    }
    for (Complex& each : in[which]) {
        each += Complex(0, 1e-30);
        const std::vector<Complex> y = rows_of(c, in);
        double sum = 0;
        for (std::size_t i = 0; i < y.size(); i++) sum += y[i].imag() * c.in[3][i];
        g.push_back(sum / 1e-30);
        each = each.real();
    }
    return g;
}
Numbers students(const Case& c, int which) {
    Numbers g[4];
    for (int k : {0, 1, 2, 3}) g[k].assign(c.in[k].size(), garbage);
    if (which == 3)
        linear_attention(c.N, M, D, c.in[0].data(), c.in[1].data(), c.in[2].data(), g[3].data());
    else
        linear_attention_backward(c.N, M, D, c.in[0].data(), c.in[1].data(), c.in[2].data(), c.in[3].data(),
                                  g[0].data(), g[1].data(), g[2].data());
    return g[which];
}

Case some(const std::string& name, int N) {
    std::mt19937 random(3);
    std::normal_distribution<double> normal;
    Case c{name, N, {}};
    for (int k = 0; k < 4; k++)
        for (int i = 0; i < N * (k < 2 ? M : D); i++)
            c.in[k].push_back(k < 2 ? 0.3 + std::fabs(normal(random)) : normal(random));
    return c;
}
Case with_equal_rows(const std::string& name, int k) {
    Case c = some(name, 5);
    for (std::size_t i = 0, width = k < 2 ? M : D; i < c.in[k].size(); i++) c.in[k][i] = c.in[k][i % width];
    return c;
}
Case with_dy_of(const std::string& name, int row) {
    Case c = some(name, 5);
    for (int i = 0; i < 5 * D; i++)
        if (i / D != row) c.in[3][std::size_t(i)] = 0;
    return c;
}

std::string seen(int which) {
    const char* const name[] = {"da", "db", "dv", "y"};
    const auto result = [&](const Case& c) { return Result{c.name, students(c, which), truth(c, which)}; };
    std::vector<Result> cases;
    for (const Case& c :
         {some("there is one row", 1), with_equal_rows("all a are equal", 0), with_equal_rows("all b are equal", 1),
          with_equal_rows("all values are equal", 2), with_dy_of("only the first row has a gradient", 0),
          with_dy_of("only the last row has a gradient", 4)})
        cases.push_back(result(c));
    const std::string s =
        wrong(name[which], result(some("", 5)), cases, which == 3 ? "the formula says" : "the complex step says");
    if (s.empty() || which > 1) return s;
    const double still = students(with_equal_rows("", 2), which)[1];
    return s + "where all values are equal, " + name[which] + "[1] is " + number(std::fabs(still) < 1e-9 ? 0 : still) +
           "; no y moves there when a weight does\n";
}

std::string of_features() {
    std::mt19937 random(9);
    std::normal_distribution<double> normal;
    const auto result = [&](const std::string& name, double size_of_x, double size_of_w, int count = 12) {
        Numbers w(std::size_t(count * D)), x(D), phi(std::size_t(count), garbage), right;
        for (double& each : w) each = size_of_w * normal(random);
        for (double& each : x) each = size_of_x * normal(random);
        features(count, D, w.data(), x.data(), phi.data());
        for (int m = 0; m < count; m++) {
            double dot = 0, square = 0;
            for (int d = 0; d < D; d++)
                dot += w[std::size_t(m * D + d)] * x[std::size_t(d)], square += x[std::size_t(d)] * x[std::size_t(d)];
            right.push_back(std::exp(dot - square / 2) / std::sqrt(double(count)));
        }
        return Result{name, phi, right};
    };
    const std::string s =
        wrong("phi", result("", 1, 1), {result("x is 0", 0, 1), result("w is 0", 1, 0)}, "the formula says");
    if (s.empty()) {
        const std::string of_other = wrong("phi", result("", 1, 1, 5), {}, "the formula says");
        return of_other.empty() ? "" : of_other + "that is where M is 5; where M is 12, it is right\n";
    }
    Numbers w(1, 0), x(1, 1), phi(1, garbage);
    features(1, 1, w.data(), x.data(), phi.data());
    return s + "the feature of x = 1 by w = 0 is " + number(phi[0]) + "\n";
}

std::string long_rows() {
    std::size_t bytes[2];
    for (int k : {0, 1}) {
        const Case c = some("", k ? 40000 : 20000);
        // A part of the bytes that students() allocates for the results. The rest of them is counted as the student's
        // memory; it grows in proportion to the number of rows, as the student's memory may, too.
        const std::size_t of_check = 8 * c.in[0].size() * 4;
        Numbers y, dv;
        const std::size_t all = memory_of([&] { y = students(c, 3), dv = students(c, 2); });
        if (alike(y, Numbers(y.size(), garbage)) || alike(dv, Numbers(dv.size(), garbage)))
            return "nothing is computed yet";
        bytes[k] = all > of_check ? all - of_check : 0;
    }
    return bytes[1] > 3 * bytes[0] + 1000000 ? "twice as many rows take more than three times the memory" : "";
}

}  // namespace

int main() {
    Lab lab("lab 8: linear attention");
    lab.part(1, "phi", of_features);
    lab.part(1, "y", [] { return seen(3); });
    lab.part(1, "da", [] { return seen(0); });
    lab.part(2, "db", [] { return seen(1); });
    lab.part(1, "dv", [] { return seen(2); });
    lab.part(2, "long", [] { return alone(10, long_rows); });
    return lab.status();
}
