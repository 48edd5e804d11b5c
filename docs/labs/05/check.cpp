// SPDX-License-Identifier: MIT
// The check of lab 5. The correct results come from the formula and from the complex step through it. For a wrong
// result, the check reports the cases in which the result is right.
// The check runs the lanes of a row one after the other, in random order. The row must have the same bits as if a
// single lane had computed it.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "docs/labs/05/lab.h"
#include "docs/labs/check.h"

using namespace masquerade;

namespace {

constexpr double big = 1000;  // exp(big) overflows

struct Case {
    std::string name;
    int N, F;
    Numbers x, dy;
};
// Returns the index in x of column i of row n: in half b if `b` is true, otherwise in half a.
std::size_t at(const Case& c, int n, int i, bool b) { return std::size_t(n * 2 * c.F + (b ? c.F : 0) + i); }
Case some(const std::string& name, int N = 4, int F = 5) {
    std::mt19937 random(13);
    std::normal_distribution<double> normal;
    Case c{name, N, F, Numbers(std::size_t(N * 2 * F)), Numbers(std::size_t(N * F))};
    for (double& x : c.x) x = 2 * normal(random);
    for (double& x : c.dy) x = normal(random);
    return c;
}
template <class Number>
Case with(const std::string& name, bool half, Number number) {
    Case c = some(name);
    for (int n = 0; n < c.N; n++)
        for (int i = 0; i < c.F; i++) c.x[at(c, n, i, half)] = number(c, n, i);
    return c;
}
Case constant(const std::string& name, bool half, double x) {
    return with(name, half, [x](const Case&, int, int) { return x; });
}
std::vector<Case> special() {
    return {some("there is one row", 1),
            some("F is 1", 4, 1),
            constant("a is 0", false, 0),
            constant("a is 1", false, 1),
            constant("a is so large that s is 1", false, 50),
            constant("b is 0", true, 0),
            constant("b is 1", true, 1),
            with("a and b are equal", true, [](const Case& c, int n, int i) { return c.x[at(c, n, i, false)]; })};
}

// Returns a s(a) b. To avoid overflow, computes s from exp(-a) or exp(a), whichever is at most 1.
Complex swiglu(Complex a, Complex b) {
    const Complex e = std::exp(a.real() > 0 ? -a : a);
    return a * b * (a.real() > 0 ? 1.0 : e) / (1.0 + e);
}
// Returns da (which = 0), db (1) or y (2); each has rows of F numbers.
Numbers truth(const Case& c, int which) {
    Numbers all;
    for (int n = 0; n < c.N; n++)
        for (int i = 0; i < c.F; i++) {
            const double h = 1e-30, a = c.x[at(c, n, i, false)], b = c.x[at(c, n, i, true)];
            const double by = swiglu({a, which == 0 ? h : 0}, {b, which == 1 ? h : 0}).imag() / h;
            all.push_back(which == 2 ? swiglu(a, b).real() : c.dy[std::size_t(n * c.F + i)] * by);
        }
    return all;
}

// Runs the student's ops in type S, and keeps y and dx. Before that, fills the memory of dx with `before`. Behind each
// tensor are 64 further numbers, which the ops must not change.
template <class S>
struct Run {
    std::vector<S> x, dy, y, dx;
    bool inside = true;  // whether the ops wrote nothing except y and dx
    View view(std::vector<S>& v, std::int64_t rows, std::int64_t columns, const char* path) {
        return {v.data(), dtype_of<S>, Device::cpu, {rows, columns}, path};
    }
    Run(const Case& c, bool add, double before) {
        for (double each : c.x) x.push_back(S(each));
        for (double each : c.dy) dy.push_back(S(each));
        const std::size_t X = x.size(), Y = dy.size();
        y.assign(Y + 64, S(garbage)), dx.assign(X + 64, S(before));
        for (auto* each : {&x, &dy}) each->resize(each->size() + 64, S(garbage));
        const std::vector<S> x_was = x, dy_was = dy;
        beside = {0, 64};
        cpu::swiglu_forward(view(x, c.N, 2 * c.F, "x"), view(y, c.N, c.F, "y"));
        cpu::swiglu_backward(view(dy, c.N, c.F, "dy"), view(x, c.N, 2 * c.F, "x"),
                             Grad{view(dx, c.N, 2 * c.F, "dx"), add});
        beside = {};
        for (std::size_t i = 0; i < 64; i++) inside = inside && y[Y + i] == S(garbage) && dx[X + i] == S(before);
        for (std::size_t i = 0; i < x.size(); i++) inside = inside && x[i] == x_was[i];
        for (std::size_t i = 0; i < dy.size(); i++) inside = inside && dy[i] == dy_was[i];
        x.resize(X), dx.resize(X), dy.resize(Y), y.resize(Y);
    }
    Numbers numbers(const Case& c, int which) const {
        Numbers all;
        for (int n = 0; n < c.N; n++)
            for (int i = 0; i < c.F; i++)
                all.push_back(real_of(which == 2 ? y[std::size_t(n * c.F + i)] : dx[at(c, n, i, which == 1)]));
        return all;
    }
    bool written() const {
        return std::any_of(y.begin(), y.end(), [](S each) { return each != S(garbage); });
    }
};

const char* const name[] = {"da", "db", "y"};

std::string seen(int which) {
    const auto result = [&](const Case& c) {
        return Result{c.name, Run<double>(c, false, garbage).numbers(c, which), truth(c, which)};
    };
    std::vector<Result> cases;
    for (const Case& c : special()) cases.push_back(result(c));
    return wrong(name[which], result(some("")), cases, which == 2 ? "the formula says" : "the complex step says");
}

// Returns a line that names the results that are not right yet, or "" if all are right. Other types and large numbers
// are tried only when all are right.
std::string waits() {
    std::string s;
    for (int k : {2, 0, 1})
        if (!seen(k).empty()) s += std::string(s.empty() ? "tried when these are right: " : ", ") + name[k];
    return s;
}

// Calls f in a child process. Returns whether a signal ended the child, as after a segmentation fault.
bool dies(const std::function<void()>& f) {
    std::fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        try {
            f();
        } catch (...) {
        }
        _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFSIGNALED(status);
}

std::string contract() {
    const Case c = some("");
    Run<double> stored(c, false, garbage), again(c, false, -3), added(c, true, 2.5);
    if (!stored.written() || stored.dx == Numbers(c.x.size(), garbage)) return "nothing is written";
    std::string s;
    if (!stored.inside || !added.inside) s += "numbers are written that are neither y nor dx\n";
    for (int k : {0, 1}) {
        const Numbers once = stored.numbers(c, k), twice = again.numbers(c, k), sum = added.numbers(c, k);
        const auto line = [&](const std::string& what) { s += std::string(name[k]) + what + "\n"; };
        if (!alike(once, twice))
            line(" depends on what stood in memory before, where it should be stored");
        else if (alike(sum, once))
            line(" is stored where it should be added");
        else if (!alike(sum, once, 1, 2.5))
            line(" is not added to what stands there");
    }
    const View dy = stored.view(stored.dy, c.N, c.F, "dy"), x = stored.view(stored.x, c.N, 2 * c.F, "x");
    if (dies([&] { cpu::swiglu_backward(dy, x, Grad{}); })) s += "where no dx is wanted, the program ends by a fault\n";
    return s;
}

// Checks that tensors with wrong shapes or types are refused with an Error that names the tensor.
std::string refusals() {
    Numbers x(200), y(200), dx(200);
    std::vector<float> other(200);
    const auto of = [](Numbers& v, int rows, int columns, const char* path) {
        return View{v.data(), DType::f64, Device::cpu, {rows, columns}, path};
    };
    const View fits = of(x, 3, 8, "layer.2.up"), half = of(y, 3, 4, "layer.2.gate");
    const View float_half{other.data(), DType::f32, Device::cpu, {3, 4}, "layer.2.gate"};
    struct Call {
        const char* what;
        View x, y;
        Grad dx;  // absent: the call is a forward
        const char* path;
    };
    const Call calls[] = {
        {"forward, x of 7 columns", of(x, 3, 7, "layer.2.up"), of(y, 3, 3, "layer.2.gate"), {}, "layer.2.up"},
        {"forward, y of too few columns", fits, of(y, 3, 3, "layer.2.gate"), {}, "layer.2.gate"},
        {"forward, y of too few rows", fits, of(y, 2, 4, "layer.2.gate"), {}, "layer.2.gate"},
        {"forward, y of another type than x", fits, float_half, {}, "layer.2.gate"},
        {"backward, x of 7 columns", of(x, 3, 7, "layer.2.up"), of(y, 3, 3, "layer.2.gate"),
         Grad{of(dx, 3, 7, "d"), false}, "layer.2.up"},
        {"backward, dy of too few rows", fits, of(y, 2, 4, "layer.2.gate"), Grad{of(dx, 3, 8, "d"), false},
         "layer.2.gate"},
        {"backward, dx of the shape of dy", fits, half, Grad{of(dx, 3, 4, "layer.2.d"), false}, "layer.2.d"}};
    std::string s;
    for (const Call& c : calls) try {
            c.dx ? cpu::swiglu_backward(c.y, c.x, c.dx) : cpu::swiglu_forward(c.x, c.y);
            s += std::string("not refused: ") + c.what + "\n";
        } catch (const Error& error) {
            if (!std::strstr(error.what(), c.path))
                s += std::string("refused without the path of the tensor: ") + c.what + "\n";
        }
    return s;
}

// Checks the student's ops in another type. The results may differ from the exact results by about one rounding,
// relative to the result (`share_of_result`), plus the rounding errors of float arithmetic.
template <class S>
std::string of_type(const char* type, double share_of_result) {
    Case c = some("", 40, 24);
    for (double& x : c.x) x = double(float(S(x)));
    for (double& x : c.dy) x = double(float(S(x)));
    const Run<S> run(c, false, garbage);
    std::string s;
    for (int k : {2, 0, 1}) {
        const Numbers found = run.numbers(c, k), right = truth(c, k);
        int off = 0;
        for (std::size_t i = 0; i < found.size(); i++) {
            const std::size_t a = at(c, int(i) / c.F, int(i) % c.F, false);
            const double terms =
                (1 + std::fabs(c.x[a])) * (1 + std::fabs(c.x[a + std::size_t(c.F)])) * (1 + std::fabs(c.dy[i]));
            off += !(std::fabs(found[i] - right[i]) <= share_of_result * std::fabs(right[i]) + 1e-6 * terms);
        }
        if (off > 0) s += std::string("numbers of ") + name[k] + " are off by more than a rounding in " + type + "\n";
    }
    return s;
}
std::string types() {
    if (const std::string first = waits(); !first.empty()) return first;
    const Case c = some("");
    std::string s;
    Run<Complex> run(c, false, garbage);
    for (std::size_t half : {0u, 1u}) {
        std::vector<Complex> x = run.x;
        for (std::size_t i = 0; i < x.size(); i++) x[i] += Complex(0, i / std::size_t(c.F) % 2 == half ? 1e-30 : 0);
        std::vector<Complex> y(run.y.size());
        cpu::swiglu_forward(run.view(x, c.N, 2 * c.F, "x"), run.view(y, c.N, c.F, "y"));
        Numbers step;
        for (std::size_t i = 0; i < y.size(); i++) step.push_back(y[i].imag() / 1e-30 * c.dy[i]);
        if (!alike(step, truth(c, int(half))))
            s += std::string("the complex step does not pass through your forward from ") + (half ? "b\n" : "a\n");
    }
    return s + of_type<float>("float", 1e-6) + of_type<bfloat16>("bf16", 1.02 / 256);
}

std::string large() {
    if (const std::string first = waits(); !first.empty()) return first;
    std::string s;
    for (double a : {-big, -50.0, 50.0, big}) {
        const Case c = constant("", false, a);
        const Run<double> run(c, false, garbage);
        for (int k : {2, 0, 1}) {
            const std::string where = std::string(name[k]) + " where a is " + number(a) + "\n";
            const Numbers found = run.numbers(c, k);
            if (!std::all_of(found.begin(), found.end(), [](double x) { return std::isfinite(x); }))
                s += "not finite: " + where;
            else if (!alike(found, truth(c, k)))
                s += "wrong: " + where;
        }
    }
    return s;
}

template <class S>
bool same_bits(const std::vector<S>& a, const std::vector<S>& b) {
    return std::memcmp(a.data(), b.data(), a.size() * sizeof(S)) == 0;
}

std::string lanes() {
    const Case c = some("", 7, 19);
    Run<double> whole(c, false, garbage), sum(c, true, 2.5);
    if (!whole.written()) return "nothing is written";
    std::string s;
    std::mt19937 random(3);
    const auto once = [&](const std::string& line) { s += s.find(line) == s.npos ? line + "\n" : ""; };
    // Computes the rows one by one, each with its own call, from the last row to the first.
    Numbers y(whole.y.size()), dx(whole.dx.size());
    for (int n = c.N - 1; n >= 0; n--) {
        const auto row = [n](View v) { return rows_of(v, n, 1); };
        const View x = row(whole.view(whole.x, c.N, 2 * c.F, "x"));
        cpu::swiglu_forward(x, row(whole.view(y, c.N, c.F, "y")));
        cpu::swiglu_backward(row(whole.view(whole.dy, c.N, c.F, "dy")), x,
                             Grad{row(whole.view(dx, c.N, 2 * c.F, "dx")), false});
    }
    if (!same_bits(y, whole.y)) once("a row alone has another y than among others");
    if (!same_bits(dx, whole.dx)) once("a row alone has another dx than among others");
    for (int count : {1, 3, 32}) {
        std::vector<int> order;
        for (int lane = 0; lane < count; lane++) order.push_back(lane);
        std::shuffle(order.begin(), order.end(), random);
        Numbers rows(whole.y.size(), garbage), stored(whole.dx.size(), garbage), added(whole.dx.size(), 2.5);
        const std::string by = count == 1 ? " by one lane" : " by several lanes";
        for (int n = 0; n < c.N; n++)
            for (int lane : order) {
                const Numbers before = added, y_before = rows;
                const Lane l{lane, count};
                const double *x = &whole.x[at(c, n, 0, false)], *dy = &whole.dy[std::size_t(n * c.F)];
                swiglu_row<double, double>(l, x, &rows[std::size_t(n * c.F)], c.F);
                swiglu_row_grad<double, double>(l, dy, x, &stored[at(c, n, 0, false)], false, c.F);
                swiglu_row_grad<double, double>(l, dy, x, &added[at(c, n, 0, false)], true, c.F);
                for (int i = 0; i < c.F; i++) {
                    const auto moved = [&](const Numbers& now, const Numbers& was, std::size_t k) {
                        return now[k] != was[k] && i % count != lane;
                    };
                    if (moved(rows, y_before, std::size_t(n * c.F + i)))
                        once("a lane writes columns of y that are another lane's");
                    for (bool half : {false, true})
                        if (moved(added, before, at(c, n, i, half)))
                            once(std::string("a lane adds to columns of ") + name[half] + " that are another lane's");
                }
            }
        if (!same_bits(rows, whole.y)) once("a row of y" + by + " is not that of the op");
        if (!same_bits(stored, whole.dx)) once("a row of dx" + by + " is not that of the op, stored");
        if (!same_bits(added, sum.dx)) once("a row of dx" + by + " is not that of the op, added");
    }
    return s;
}

}  // namespace

int main() {
    Lab lab("lab 5: swiglu, for every device");
    lab.part(1, "y", [] { return seen(2); });
    lab.part(2, "da", [] { return seen(0); });
    lab.part(1, "db", [] { return seen(1); });
    lab.part(1, "large", large);
    lab.part(1, "types", types);
    lab.part(1, "add", contract);
    lab.part(1, "refuse", refusals);
    lab.part(2, "lanes", lanes);
    return lab.status();
}
