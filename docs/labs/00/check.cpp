// SPDX-License-Identifier: MIT
// The check of lab 0. The correct gradients come from the complex step. Most programs use an op of the check, which
// counts how often its forward and its backward are called.
#include <algorithm>
#include <complex>
#include <random>
#include <stdexcept>

#include "docs/labs/00/play.h"
#include "docs/labs/check.h"

namespace {

using namespace lab;
using Complex = std::complex<double>;

const double slope = drawn("slope", 1, 0.4, 2.5);  // tanh_op computes tanh(slope a)

const char* const op_names[own_ops] = {"add_op", "subtract_op", "multiply_op", "divide_op",
                                       "exp_op", "log_op",      "tanh_op"};
Complex computed(int code, Complex a, Complex b) {
    switch (code) {
        case add_code: return a + b;
        case subtract_code: return a - b;
        case multiply_code: return a * b;
        case divide_code: return a / b;
        case exp_code: return std::exp(a);
        case log_code: return std::log(a);
        case tanh_code: return std::tanh(slope * a);
        case asked_code: return 0.6 * std::sin(a) + (0.4 + 0.05 * a) * b;
        default: return -a;
    }
}
const double step = 1e-30;
Pair derivatives(int code, double a, double b) {
    return {computed(code, Complex(a, step), b).imag() / step, computed(code, a, Complex(b, step)).imag() / step};
}

// Builds a program line by line.
struct Lines {
    Program p;
    int add(int op, int a, int b, double given) {
        p.op.push_back(op), p.a.push_back(a), p.b.push_back(b), p.given.push_back(given);
        return int(p.op.size()) - 1;
    }
    int number(double x) { return add(number_code, -1, -1, x); }
    int own(int op, int a, int b = -1) { return add(op, a, b, 0); }
    int asked(int a, int b) { return add(asked_code, a, b, 0); }
};

// Computes all numbers of a program. The number of line `moved` is moved by i `step`; -1: none.
std::vector<Complex> all_numbers(const Program& p, int moved) {
    std::vector<Complex> x(p.op.size());
    for (std::size_t i = 0; i < x.size(); i++) {
        const auto input = [&](int line) { return line < 0 ? Complex(0) : x[std::size_t(line)]; };
        x[i] = p.op[i] == number_code ? Complex(p.given[i]) : computed(p.op[i], input(p.a[i]), input(p.b[i]));
        if (int(i) == moved) x[i] += Complex(0, step);
    }
    return x;
}
Numbers right_values(const Program& p) {
    Numbers values;
    for (const Complex& x : all_numbers(p, -1)) values.push_back(x.real());
    return values;
}
// Returns which lines the loss depends on.
std::vector<bool> below(const Program& p, int loss) {
    std::vector<bool> is(p.op.size());
    is[std::size_t(loss)] = true;
    for (int i = loss; i >= 0; i--)
        for (int input : {p.a[std::size_t(i)], p.b[std::size_t(i)]})
            if (is[std::size_t(i)] && input >= 0) is[std::size_t(input)] = true;
    return is;
}
Numbers right_gradients(const Program& p, int loss) {
    Numbers gradients;
    for (std::size_t i = 0; i < p.op.size(); i++)
        gradients.push_back(all_numbers(p, int(i))[std::size_t(loss)].imag() / step);
    return gradients;
}

// The results of a program, and how often the check's op was called.
struct Run {
    Played played;
    long forwards = 0, backwards = 0;
};
Run run(const Program& p, const std::vector<int>& losses) {
    Run r;
    const long most = 20 * long(p.op.size() + 1) * long(losses.size());
    const auto count = [most](long& calls, const char* what) {
        if (++calls > most)
            throw std::runtime_error(std::string("stopped: the ") + what +
                                     " of the records is called more than 20 times as often as there are records");
    };
    try {
        r.played = play(
            p, losses,
            [&](double a, double b) {
                count(r.forwards, "forward");
                return computed(asked_code, a, b).real();
            },
            [&](double a, double b, double, double dy) {
                count(r.backwards, "backward");
                const Pair d = derivatives(asked_code, a, b);
                return Pair{dy * d.a, dy * d.b};
            });
    } catch (const std::runtime_error& error) {
        r.played.fault = error.what();
    }
    return r;
}

struct Test {
    std::string where;
    Program p;
    int loss;
};
// The programs. In a special one, a part of the work has no effect.
Test one_record() {
    Lines l;
    const int a = l.number(0.7), b = l.number(-1.2);
    const int loss = l.asked(a, b);
    return {"there is a single record", l.p, loss};
}
Test tree() {
    Lines l;
    std::vector<int> row;
    for (double x : {0.3, -0.8, 1.1, 0.5, -0.2, 0.9, 1.3, -0.6}) row.push_back(l.number(x));
    while (row.size() > 1) {
        std::vector<int> next;
        for (std::size_t i = 0; i < row.size(); i += 2) next.push_back(l.asked(row[i], row[i + 1]));
        row = next;
    }
    return {"no number is read twice", l.p, row[0]};
}
Test line() {
    Lines l;
    int x = l.number(0.4);
    for (int i = 0; i < 6; i++) x = l.own(sign_code, x);
    return {"each record has one input, which nothing else reads", l.p, x};
}
Test square() {
    Lines l;
    int x = l.number(0.4);
    for (int i = 0; i < 4; i++) x = l.asked(x, x);
    return {"a record reads a number twice", l.p, x};
}
Test two_readers() {
    Lines l;
    const int a = l.number(0.4), b = l.number(1.1), x = l.asked(a, b);
    const int y = l.asked(x, b), z = l.asked(a, x);
    const int loss = l.asked(y, z);
    return {"two records read a number", l.p, loss};
}
// The loss reads a number both directly and through a long way.
Test shortcut() {
    Lines l;
    const int a = l.number(0.6), b = l.number(-0.3), x = l.asked(a, b);
    int y = l.asked(x, l.number(0.2));
    for (int i = 0; i < 5; i++) y = l.asked(y, l.number(0.1 * i));
    const int loss = l.asked(x, y);
    return {"a short way and a long way lead to a number", l.p, loss};
}
Test beside_the_loss() {
    Lines l;
    const int a = l.number(0.6), b = l.number(-0.3), x = l.asked(a, b);
    const int other = l.asked(x, a);
    l.asked(other, l.number(2));
    const int loss = l.asked(x, b);
    l.asked(loss, other);
    return {"the loss does not depend on some records", l.p, loss};
}
Test any() {
    Lines l;
    std::mt19937 random(5);
    for (int i = 0; i < 6; i++) l.number(0.3 * i - 0.8);
    for (int i = 6; i < 40; i++) l.asked(int(random() % unsigned(i)), i - 1 - int(random() % 3));
    return {"", l.p, int(l.p.op.size()) - 1};
}
std::vector<Test> special() {
    return {one_record(), tree(), line(), square(), two_readers(), shortcut(), beside_the_loss()};
}

std::string line_of(std::size_t i) { return "number " + std::to_string(i); }

// ---- the parts

std::string ops() {
    std::string s;
    std::mt19937 random(3);
    std::uniform_real_distribution<double> uniform(0.3, 2);
    int unwritten = 0;
    for (int code = 0; code < own_ops; code++) {
        const std::string name = op_names[code];
        Result y, of[2];
        bool zero = true, large = true;
        for (int n = 0; n < 20; n++) {
            const bool two = code <= divide_code;
            double a = uniform(random), b = two ? uniform(random) : 0;
            const double dy = uniform(random) - 3;
            if (n % 2 && code != log_code) a = -a;
            if (n % 3 == 0 && two) b = -b;
            const double right = computed(code, a, b).real(), value = forward_of(code, a, b);
            const Pair d = backward_of(code, a, b, right, dy), truth = derivatives(code, a, b);
            y.found.push_back(value), y.right.push_back(right);
            of[0].found.push_back(d.a), of[0].right.push_back(dy * truth.a);
            if (two) of[1].found.push_back(d.b), of[1].right.push_back(dy * truth.b);
            zero = zero && value == 0 && d.a == 0 && d.b == 0;
        }
        if (zero) {
            unwritten++;
            continue;
        }
        if (const std::size_t i = first_unlike(y.found, y.right, twelve_digits); i < y.found.size())
            s += name + ": the forward is wrong\n" + name + " is " + number_unlike(y.found[i], y.right[i]) +
                 "; the formula says " + number_unlike(y.right[i], y.found[i]) + "\n";
        for (int k = 0; k < 2; k++) {
            const Result& r = of[k];
            const std::string gradient = std::string("the part of ") + (k ? "b" : "a");
            const std::size_t i = first_unlike(r.found, r.right, twelve_digits);
            if (i == r.found.size()) continue;
            const double f = r.factor();
            s += name + ": " + gradient + " is " + number_unlike(r.found[i], r.right[i]) + "; the complex step says " +
                 number_unlike(r.right[i], r.found[i]) + "\n";
            s += name + ": " + gradient +
                 (alike(r.found, r.right) ? " is right to nine digits, not to twelve"
                  : f != 0 && alike(r.found, r.right, f)
                      ? " is everywhere " + number_unlike(f, 1) + " times what it should be"
                      : " is wrong") +
                 "\n";
        }
        // tanh of 20 is 1 - 8e-18, exp(-700) is 1e-304: dy times the derivative is still a number.
        for (double a : {-700.0, 700.0})
            if (code == exp_code || code == tanh_code)
                large = large && std::isfinite(backward_of(code, a, 0, computed(code, a, 0).real(), 1).a);
        if (!large) s += name + ": not finite where a is large\n";
    }
    if (unwritten > 0) s += std::to_string(unwritten) + " of 7 ops are not written\n";
    return s;
}

std::string records() {
    std::string s;
    for (const Test& t : {any(), tree(), line()}) {
        const Run r = run(t.p, {t.loss});
        if (!r.played.fault.empty() && r.played.values.empty()) return r.played.fault;
        const Numbers right = right_values(t.p);
        if (const std::size_t i = first_unlike(r.played.values, right, twelve_digits); i < right.size())
            return line_of(i) + " is " + number_unlike(r.played.values[i], right[i]) + "; the formula says " +
                   number_unlike(right[i], r.played.values[i]) + "\nthe value of a record is wrong";
        const long records = std::count(t.p.op.begin(), t.p.op.end(), asked_code);
        if (r.forwards != records)
            return "the forward is called " + number(double(r.forwards) / double(records)) +
                   " times for each record, the backward included; once is asked";
    }
    return s;
}

std::string orders() {
    std::string s;
    const auto seen = [](const Test& t) -> std::string {
        const Run r = run(t.p, {t.loss});
        if (!r.played.fault.empty()) return r.played.fault;
        const std::vector<int>& order = r.played.order;
        if (order.empty()) return "order is not written";
        std::vector<int> place(t.p.op.size(), -1);
        const std::vector<bool> is_below = below(t.p, t.loss);
        for (std::size_t k = 0; k < order.size(); k++) {
            if (order[k] < 0) return "a node in the order is not on the tape";
            int& at = place[std::size_t(order[k])];
            if (at >= 0) return "a node occurs twice";
            if (!is_below[std::size_t(order[k])]) return "a node occurs that the loss does not depend on";
            at = int(k);
        }
        for (std::size_t i = 0; i < place.size(); i++)
            if (is_below[i] && place[i] < 0)
                return t.p.op[i] == number_code ? "a given number is missing" : "a record is missing";
        if (order.front() == t.loss && order.size() > 1) return "the loss is the first node";
        for (std::size_t i = 0; i < place.size(); i++)
            for (int input : {t.p.a[i], t.p.b[i]})
                if (is_below[i] && input >= 0 && place[std::size_t(input)] > place[i])
                    return "a node stands in front of one of its inputs";
        return "";
    };
    const std::string wrong = seen(any());
    if (wrong.empty()) return "";
    s = wrong + "\n";
    for (const Test& t : special())
        if (seen(t).empty()) s += "right where " + t.where + "\n";
    return s;
}

// Compares the gradients of a program after backward() has been called for each of the losses.
std::string gradients(const Test& t, const std::vector<int>& losses) {
    const Run r = run(t.p, losses);
    if (!r.played.fault.empty()) return r.played.fault;
    const Numbers& found = r.played.gradients;
    if (alike(found, Numbers(found.size(), 0))) return "no gradient is written";
    Numbers right(found.size(), 0);
    for (int loss : losses) {
        const std::vector<bool> is_below = below(t.p, loss);
        const Numbers of_this = right_gradients(t.p, loss);
        for (std::size_t i = 0; i < right.size(); i++)
            if (is_below[i]) right[i] = of_this[i];
    }
    const std::size_t i = first_unlike(found, right, twelve_digits);
    if (i == found.size()) return "";
    std::string s = "the gradient of " + line_of(i) + " is " + number_unlike(found[i], right[i]) +
                    "; the complex step says " + number_unlike(right[i], found[i]) + "\n";
    if (alike(found, right)) return s + "right to nine digits, not to twelve";
    if (const double f = Result{"", found, right}.factor(); f != 0 && alike(found, right, f))
        return s + "everywhere " + number_unlike(f, 1) + " times what it should be";
    return s;
}
std::string gradients(const Test& t) { return gradients(t, {t.loss}); }
std::string with_cases(std::string s) {
    if (s.empty()) return s;
    s += "\n";
    for (const Test& t : special())
        if (gradients(t).empty()) s += "right where " + t.where + "\n";
    return s;
}

std::string unshared() {
    for (const Test& t : {tree(), line(), one_record()})
        if (const std::string s = gradients(t); !s.empty()) return with_cases(s) + "that is where " + t.where;
    return "";
}
std::string shared() {
    for (const Test& t : {any(), square(), two_readers(), shortcut(), beside_the_loss()})
        if (const std::string s = gradients(t); !s.empty())
            return with_cases(s) + (t.where.empty() ? "" : "that is where " + t.where);
    return "";
}
// A formula of all seven ops: tanh(a a b + c) / (exp(a) - log(d)).
std::string formula() {
    Lines l;
    const int a = l.number(0.7), b = l.number(-0.4), c = l.number(0.9), d = l.number(1.7);
    const int square = l.own(multiply_code, a, a),
              up = l.own(tanh_code, l.own(add_code, l.own(multiply_code, square, b), c));
    const int down = l.own(subtract_code, l.own(exp_code, a), l.own(log_code, d));
    const int loss = l.own(divide_code, up, down);
    const std::string s = gradients({"", l.p, loss});
    return s.empty() ? s : s + (ops().empty() ? "\nall seven ops are right" : "\nsome of the seven ops are wrong");
}

std::string again() {
    const Test t = any(), beside = beside_the_loss();
    if (const std::string s = gradients(t); !s.empty()) return "the first call is not right yet";
    if (const std::string s = gradients(t, {t.loss, t.loss}); !s.empty())
        return s + "\nthat is after a second call of backward";
    if (const std::string s = gradients(beside, {int(beside.p.op.size()) - 1, beside.loss}); !s.empty())
        return s + "\nthat is after backward from one loss, then from another loss of the same tape";
    return "";
}

// 40 numbers, then 64 records that each read the one before twice: 2^64 ways lead from the loss to a number.
std::string diamonds() {
    Lines l;
    int x = l.number(0.5);
    for (int i = 1; i < 40; i++) x = l.asked(x, l.number(0.02 * i));
    for (int i = 0; i < 64; i++) x = l.asked(x, x);
    const Test t{"", l.p, x};
    const Run r = run(t.p, {t.loss});
    if (!r.played.fault.empty()) return r.played.fault + "\n2^64 ways lead from the loss to a number";
    if (r.backwards != 103)
        return "the backward is called " + std::to_string(r.backwards) + " times for 103 records; once each is asked";
    return gradients(t);
}

// A million records in a row.
std::string chain() {
    const rlimit stack{8 << 20, 8 << 20};  // also for the student's process, which starts after this
    setrlimit(RLIMIT_STACK, &stack);
    constexpr int n = 1000000;
    Lines l;
    int x = l.number(0.5);
    for (int i = 0; i < n; i++) x = l.own(sign_code, x);
    const Run r = run(l.p, {x});
    if (!r.played.fault.empty()) return r.played.fault;
    for (int i = 0; i <= n; i++)
        if (r.played.gradients[std::size_t(i)] != (i % 2 ? -1.0 : 1.0))
            return "a gradient is wrong in a chain of a million records";
    if (int(r.played.order.size()) != n + 1) return "the order of a chain of a million records is not complete";
    return "";
}
std::string whole_chain() {
    if (const std::string s = gradients(line()); !s.empty()) return "six records in a row are not right yet";
    std::string s = alone(30, chain);
    if (s.find("an index past the end") != s.npos || s.find("the program ends there") != s.npos)
        s = "the program ends in a chain of a million records; six records in a row are right. The stack has 8 MiB";
    return s;
}

}  // namespace

int main() {
    Lab lab("lab 0: the tape in sixty lines");
    lab.part(1, "ops", ops);
    lab.part(1, "record", records);
    lab.part(2, "order", orders);
    lab.part(1, "walk", unshared);
    lab.part(1, "shared", shared);
    lab.part(1, "formula", formula);
    lab.part(1, "again", again);
    lab.part(1, "diamond", diamonds);
    lab.part(1, "chain", whole_chain);
    return lab.status();
}
