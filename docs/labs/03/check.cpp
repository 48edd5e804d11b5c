// SPDX-License-Identifier: MIT
// The check of lab 3. The correct gradients come from the complex step through the forward. For a wrong gradient, the
// check reports the cases in which the gradient is right.
#include <algorithm>
#include <complex>
#include <random>

#include "docs/labs/03/lab.h"
#include "docs/labs/check.h"
#include "docs/labs/memory.h"

namespace {

using Complex = std::complex<double>;

const double sharpness = drawn("sharpness", 1, 0.4, 2.5);

struct Case {
    std::string name;
    int N, D;
    Numbers in[4];  // q, k, v, dy
};

// Returns the loss, the sum of dy o over all numbers of o. Its gradient with respect to o is dy.
Complex loss(const Case& c, const std::vector<Complex> (&in)[3]) {
    const auto at = [&](int row, int d) { return std::size_t(row * c.D + d); };
    Complex all = 0;
    for (int i = 0; i < c.N; i++) {
        std::vector<Complex> s;
        double top = -1e300;
        for (int j = 0; j <= i; j++) {
            Complex dot = 0;
            for (int d = 0; d < c.D; d++) dot += in[0][at(i, d)] * in[1][at(j, d)];
            s.push_back(sharpness * dot / std::sqrt(double(c.D)));
            top = std::max(top, s.back().real());
        }
        Complex sum = 0, along = 0;
        for (int j = 0; j <= i; j++) {
            const Complex e = std::exp(s[std::size_t(j)] - top);
            sum += e;
            for (int d = 0; d < c.D; d++) along += e * in[2][at(j, d)] * c.in[3][at(i, d)];
        }
        all += along / sum;
    }
    return all;
}
Numbers truth(const Case& c, int which) {
    std::vector<Complex> in[3];
    for (int k = 0; k < 3; k++) in[k].assign(c.in[k].begin(), c.in[k].end());
    Numbers g;
    for (Complex& each : in[which]) {
        each += Complex(0, 1e-30);
        g.push_back(loss(c, in).imag() / 1e-30);
        each = each.real();
    }
    return g;
}
Numbers students(const Case& c, int which) {
    Numbers g[3];
    for (Numbers& each : g) each.assign(c.in[0].size(), garbage);
    attention_backward(c.N, c.D, c.in[0].data(), c.in[1].data(), c.in[2].data(), c.in[3].data(), g[0].data(),
                       g[1].data(), g[2].data());
    return g[which];
}

Case some(const std::string& name, int N, int D, double size = 1) {
    std::mt19937 random(5);
    std::normal_distribution<double> normal;
    Case c{name, N, D, {}};
    for (int k = 0; k < 4; k++)
        for (int i = 0; i < N * D; i++) c.in[k].push_back((k < 2 ? size : 1) * normal(random));
    return c;
}
Case with_equal_rows(const std::string& name, int k) {
    Case c = some(name, 5, 4);
    for (std::size_t i = 0; i < c.in[k].size(); i++) c.in[k][i] = c.in[k][i % 4];
    return c;
}
// Returns a case in which q is 0, so that each row gives equal weights to all rows that it sees. The row of dy is
// orthogonal to the row of o.
Case across() {
    Case c = some("q is 0 and dy at right angles to o", 5, 4);
    std::fill(c.in[0].begin(), c.in[0].end(), 0);
    for (std::size_t i = 0; i < 5; i++) {
        double o[4] = {}, along = 0, square = 0;
        for (std::size_t d = 0; d < 4; d++) {
            for (std::size_t j = 0; j <= i; j++) o[d] += c.in[2][j * 4 + d] / double(i + 1);
            along += o[d] * c.in[3][i * 4 + d], square += o[d] * o[d];
        }
        for (std::size_t d = 0; d < 4; d++) c.in[3][i * 4 + d] -= along / square * o[d];
    }
    return c;
}
Case zero(const std::string& name, int k) {
    Case c = some(name, 5, 4);
    std::fill(c.in[k].begin(), c.in[k].end(), 0);
    return c;
}

std::string seen(int which) {
    const char* const name[] = {"dq", "dk", "dv"};
    const auto result = [&](const Case& c) { return Result{c.name, students(c, which), truth(c, which)}; };
    std::vector<Result> cases;
    for (const Case& c : {some("there is one row", 1, 4), some("D is 1", 5, 1),
                          zero("q is 0: all weights of a row are alike", 0), with_equal_rows("all keys are equal", 1),
                          with_equal_rows("all values are equal", 2), across(), zero("dy is 0", 3)})
        cases.push_back(result(c));
    Case last = some("", 5, 4);  // dy is 0 except in the last row, which sees all rows
    std::fill_n(last.in[3].begin(), 16, 0);
    last.name = "only the last row has a gradient";
    cases.push_back(result(last));
    const std::string s = wrong(name[which], result(some("", 5, 4)), cases);
    if (s.empty()) {
        const std::string of_other = wrong(name[which], result(some("", 6, 3)), {});
        return of_other.empty() ? "" : of_other + "that is where D is 3; where D is 4, it is right\n";
    }
    if (which > 0) return s;
    const Case equal = with_equal_rows("", 1);
    const Numbers dq = students(equal, 0);
    double along = 0;
    for (std::size_t d = 0; d < 4; d++) along += equal.in[3][4 + d] * (equal.in[2][d] + equal.in[2][4 + d]) / 2;
    return s + "where all keys are equal, a row of dq is " +
           number(std::fabs(dq[4]) < 1e-9 ? 0 : dq[4] / (along / 2 * equal.in[1][0])) +
           " times k (dy . o) / sqrt(D); no weight moves there when q does\n";
}

std::string large() {
    const Case c = some("", 5, 4, 60);
    std::string s;
    for (int which : {0, 1, 2})
        for (double x : students(c, which))
            if (!std::isfinite(x)) return "scores of a thousand give numbers that are not finite";
    for (int which : {0, 1, 2})
        if (const std::string w = wrong(which == 0   ? "dq"
                                        : which == 1 ? "dk"
                                                     : "dv",
                                        {"", students(c, which), truth(c, which)}, {});
            !w.empty())
            return "wrong where scores are large\n";
    return s;
}

std::string memory() {
    std::size_t bytes[2];
    for (int k : {0, 1}) {
        const Case c = some("", k ? 2000 : 1000, 4);
        Numbers g[3];
        for (Numbers& each : g) each.assign(c.in[0].size(), garbage);
        bytes[k] = memory_of([&] {
            attention_backward(c.N, c.D, c.in[0].data(), c.in[1].data(), c.in[2].data(), c.in[3].data(), g[0].data(),
                               g[1].data(), g[2].data());
        });
        if (alike(g[0], Numbers(g[0].size(), garbage))) return "nothing is computed yet";
    }
    if (double(bytes[1]) < 3 * double(bytes[0]) || bytes[1] < 1000000) return "";
    return "twice as many rows take " + number(double(bytes[1]) / double(bytes[0])) +
           " times the memory: " + number(double(bytes[1]) / 1e6) + " MB for 2000";
}

}  // namespace

int main() {
    Lab lab("lab 3: the backward of attention");
    lab.part(1, "dv", [] { return seen(2); });
    lab.part(2, "dq", [] { return seen(0); });
    lab.part(2, "dk", [] { return seen(1); });
    lab.part(1, "large", large);
    lab.part(2, "memory", memory);
    return lab.status();
}
