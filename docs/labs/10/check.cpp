// SPDX-License-Identifier: MIT
// The check of lab 10. All numbers in A and B are multiples of 1/4, so every sum is exact in float, in any order, and
// must equal the sum in double. For a wrong product, the check reports the cases in which the product is right.
#include <cstdlib>
#include <cstring>
#include <random>

#include "docs/labs/10/launch.h"
#include "docs/labs/10/speed.h"
#include "docs/labs/check.h"

namespace {

std::mt19937 random_bits(10);
int between(int low, int high) { return low + int(random_bits() % unsigned(high - low + 1)); }
int odd_between(int low, int high) { return between(low / 2, (high - 1) / 2) * 2 + 1; }

struct Case {
    std::string name;
    int M, N, K;
    Numbers A, B;
    Numbers right{};  // A B; cases_of() computes it
    std::string sizes() const {
        return "M is " + std::to_string(M) + ", N is " + std::to_string(N) + ", K is " + std::to_string(K);
    }
};
Case some(const std::string& name, int M, int N, int K) {
    Case c{name, M, N, K, Numbers(std::size_t(M * K)), Numbers(std::size_t(K * N))};
    for (Numbers* each : {&c.A, &c.B})
        for (double& x : *each) x = between(1, 8) * (between(0, 1) - 0.5) / 2;
    return c;
}
Numbers truth(const Case& c) {
    Numbers C(std::size_t(c.M * c.N));
    for (int i = 0; i < c.M; i++)
        for (int k = 0; k < c.K; k++)
            for (int j = 0; j < c.N; j++)
                C[std::size_t(i * c.N + j)] += c.A[std::size_t(i * c.K + k)] * c.B[std::size_t(k * c.N + j)];
    return C;
}
// Returns a case with general sizes, and then special cases in which a part of the work has no effect. For example, if
// a size is a multiple of the tile's size, no tile is cut off at an edge. Usual tile sizes divide `step` (for M and N)
// and `step_of_k`.
std::vector<Case> cases_of(int step, int step_of_k) {
    const auto any = [=] { return odd_between(step + 1, 2 * step - 1); };
    const int M = any(), N = any() + step - step % 2, K = step_of_k / 2 + odd_between(1, step_of_k / 4), n = any();
    const std::string of = "a multiple of " + std::to_string(step);
    std::vector<Case> all = {some("", M, N, K),
                             some("all sizes are below 8", odd_between(2, 7), odd_between(2, 7), odd_between(2, 7)),
                             some("M is 1", 1, N, between(20, 60)),
                             some("N is 1", M, 1, between(20, 60)),
                             some("K is 1", M, N, 1),
                             some("K is at most 32", M, N, odd_between(20, 31)),
                             some("M is " + of, step, N, K),
                             some("N is " + of, M, step, K),
                             some("K is " + std::to_string(step_of_k), odd_between(9, 31), odd_between(9, 31),
                                  step_of_k),
                             some("all sizes are such", step, step, step_of_k),
                             some("M, N and K are equal", n, n, n),
                             some("they are, and B is symmetric", n, n, n)};
    for (int i = 0; i < n; i++)
        for (int j = 0; j < i; j++) all.back().B[std::size_t(i * n + j)] = all.back().B[std::size_t(j * n + i)];
    for (Case& c : all) c.right = truth(c);
    return all;
}

struct Outcome {
    Numbers C;
    std::string fault;
};
// Runs a product on arrays between margins, which the product must not write. The arrays are aligned like single floats
// only, not like vectors.
Outcome run(Product product, const Case& c) {
    constexpr std::size_t margin = 4096 + 1;
    const auto laid = [&](const Numbers& x, float beside) {
        std::vector<float> all(x.size() + 2 * margin, beside);
        std::copy(x.begin(), x.end(), all.begin() + margin);
        return all;
    };
    const std::vector<float> A = laid(c.A, NAN), B = laid(c.B, NAN);
    std::vector<float> C = laid(Numbers(std::size_t(c.M * c.N), garbage), -0.0f);
    beside = {margin, margin};
    product(c.M, c.N, c.K, A.data() + margin, B.data() + margin, C.data() + margin);
    beside = {};
    const auto end = C.end() - margin;
    const auto touched = [](float x) { return x != 0 || !std::signbit(x); };  // also detects that 0 was added to -0
    Outcome out{{C.begin() + margin, end}, ""};
    if (std::any_of(C.begin(), C.begin() + margin, touched))
        out.fault = "writes before the first number of C";
    else if (std::any_of(end, C.end(), touched))
        out.fault = "writes behind the last number of C";
    else if (std::any_of(out.C.begin(), out.C.end(), [](double x) { return std::isnan(x); }))
        out.fault = "C has numbers from outside of A and B in it";
    return out;
}
long loads_of[2];  // of the last launch: Launched::loads_of_A and loads_of_B
Outcome run_kernel(const Case& c) {
    static bool from_the_last = false;
    from_the_last = !from_the_last;
    Launched done = launch(c.M, c.N, c.K, c.A, c.B, from_the_last);
    loads_of[0] = done.loads_of_A, loads_of[1] = done.loads_of_B;
    return {done.C.size() == std::size_t(c.M * c.N) ? done.C : Numbers(std::size_t(c.M * c.N)), done.fault};
}

std::string where_wrong(const Case& c, const Numbers& found, const Numbers& right) {
    int count = 0, rows[2] = {c.M, -1}, columns[2] = {c.N, -1};
    for (int i = 0; i < c.M * c.N; i++)
        if (found[std::size_t(i)] != right[std::size_t(i)]) {
            count++;
            rows[0] = std::min(rows[0], i / c.N), rows[1] = std::max(rows[1], i / c.N);
            columns[0] = std::min(columns[0], i % c.N), columns[1] = std::max(columns[1], i % c.N);
        }
    const auto range = [](const int(&r)[2]) { return std::to_string(r[0]) + " to " + std::to_string(r[1]); };
    return std::to_string(count) + " of " + std::to_string(c.M * c.N) + " numbers of C are wrong, in rows " +
           range(rows) + " and columns " + range(columns) + ", where " + c.sizes() + "\n";
}
template <class Way>
std::string seen(const std::vector<Case>& cases, const Way& way) {
    std::string s, right_where;
    for (const Case& c : cases) {
        const Outcome out = way(c);
        const Result r{c.name, out.C, c.right};
        const std::string& fault = out.fault;
        const bool first = &c == &cases.front(), right = fault.empty() && alike(r.found, r.right);
        if (first && fault.empty() && alike(r.found, Numbers(r.found.size(), garbage))) return "C is not written";
        if (right && !first) right_where += "right where " + c.name + "\n";
        if (right || !(first || s.empty())) continue;
        if (!first) s += "wrong where " + c.name + "\n";
        if (!fault.empty())
            s += fault + "\n";
        else if (alike(r.found, r.right, 1, garbage))
            s += "what stood in memory before is still in it\n";
        else if (const double f = r.factor(); f != 0 && alike(r.found, r.right, f))
            s += "everywhere " + number(f) + " times what it should be\n";
        else
            s += where_wrong(c, r.found, r.right);
    }
    return s.empty() ? s : s + (right_where.empty() ? "wrong in all special cases that were tried\n" : right_where);
}

std::string of_count() {
    const auto right = [](bool of_flops, double M, double N, double K) {
        return of_flops ? 2 * M * N * K : 4 * (M * K + K * N + M * N);
    };
    std::string s;
    for (bool of_flops : {true, false}) {
        const auto found = of_flops ? flops : bytes;
        Result small{"", {}, {}}, large{"", {}, {}};
        double added[3][2] = {};  // how much the result grows if M, N or K grows by 1: {found, right} for each of them
        for (int i = 0; i < 8; i++) {
            Result& r = i < 4 ? small : large;
            const int low = i < 4 ? 2 : 30000, high = i < 4 ? 99 : 99999;
            const int size[3] = {between(low, high), between(low, high), between(low, high)};
            r.found.push_back(found(size[0], size[1], size[2]));
            r.right.push_back(right(of_flops, size[0], size[1], size[2]));
            for (int k = 0; k < 3 && i == 0; k++) {
                const int M = size[0] + (k == 0), N = size[1] + (k == 1), K = size[2] + (k == 2);
                added[k][0] = found(M, N, K) - small.found[0], added[k][1] = right(of_flops, M, N, K) - small.right[0];
            }
        }
        if (alike(small.found, small.right) && alike(large.found, large.right)) continue;
        const std::string name = of_flops ? "flops" : "bytes";
        const double f = small.factor();
        if (alike(small.found, small.right))
            s += name + ": right where sizes are below 100, wrong where they are above 30,000\n";
        else if (alike(small.found, small.right, 0))
            s += name + " is 0\n";
        else if (alike(small.found, small.right, f))
            s += name + ": " + number(f) + " times what it should be\n";
        else
            for (int k = 0; k < 3; k++)
                s += name + ": what one more of " + "MNK"[k] + " adds is " + number(added[k][0] / added[k][1]) +
                     " times what it should be\n";
    }
    return s;
}
std::string of_bound() {
    if (!of_count().empty()) return "flops and bytes are not right yet";
    std::string s;
    for (bool by_memory : {false, true}) {
        Numbers found, right;
        double doubled[2] = {};  // the factor by which the bound grows if the bandwidth, or the peak, is doubled
        for (int i = 0; i < 6; i++) {
            const int M = between(2, 3000), N = between(2, 3000), K = between(2, 3000);
            const double ratio = flops(M, N, K) / bytes(M, N, K), peak = 1e9 * between(1, 100), far = between(3, 12);
            const double bandwidth = peak / ratio * (by_memory ? 1 / far : far);
            found.push_back(bound(peak, bandwidth, M, N, K));
            right.push_back(std::min(peak, bandwidth * ratio));
            doubled[0] = bound(peak, 2 * bandwidth, M, N, K) / found.back();
            doubled[1] = bound(2 * peak, bandwidth, M, N, K) / found.back();
        }
        if (alike(found, right)) continue;
        s += std::string("wrong where ") + (by_memory ? "memory" : "arithmetic") + " is the limit\n";
        if (found[0] != 0)
            s += "twice the bandwidth makes it " + number(doubled[0]) + " times as much there, twice the peak " +
                 number(doubled[1]) + " times\n";
    }
    return s;
}

std::string of_loads() {
    for (const Case& c : cases_of(T, 4 * T)) {
        const Outcome out = run_kernel(c);
        if (!out.fault.empty() || !alike(out.C, c.right)) return "the kernel is not right yet";
        const long blocks[2] = {(c.N + T - 1) / T, (c.M + T - 1) / T};
        for (int k : {0, 1})
            if (loads_of[k] > blocks[k])
                return std::string("a number of ") + "AB"[k] + " is loaded " + std::to_string(loads_of[k]) +
                       " times, where " + c.sizes() + "; " + std::to_string(blocks[k]) +
                       (blocks[k] == 1 ? " block needs it" : " blocks need it");
    }
    return "";
}

}  // namespace

int main() {
    Lab lab("lab 10: a product, made fast");
    const std::vector<Case> cases = cases_of(192, 1280);
    std::vector<bool> right;
    const auto product = [&](int points, const char* name, Product each) {
        const std::string wrong = alone(30, [&] { return seen(cases, [&](const Case& c) { return run(each, c); }); });
        right.push_back(wrong.empty());
        lab.part(points, name, [&] { return wrong; });
    };
    product(1, "naive", naive);
    product(1, "ordered", ordered);
    product(3, "tiled", tiled);
    Speeds speeds(right);
    lab.part(1, "rows", [&] { return speeds.of_rows(); });
    for (int share : {20, 40, 60, 80})
        lab.part(1, (std::to_string(share) + " %").c_str(), [&] { return speeds.of_share(share / 100.0); });
    lab.part(1, "count", of_count);
    lab.part(1, "bound", of_bound);
    lab.part(2, "kernel", [] { return alone(30, [] { return seen(cases_of(T, 4 * T), run_kernel); }); });
    lab.part(1, "loads", [] { return alone(30, of_loads); });
    speeds.print();
    if (caught(of_bound).empty())
        caught([&] {
            speeds.draw();
            return std::string();
        });
    return lab.status();
}
