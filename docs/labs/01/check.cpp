// SPDX-License-Identifier: MIT
// The check of lab 1. The correct results come from a second version of the model, which has plain loops over complex
// numbers, and from the complex step through this version. For a wrong gradient, the check reports the cases in which
// the gradient is right. If treating some tensor as a constant would explain the error, the check also names this
// tensor.
#include <algorithm>
#include <complex>
#include <random>

#include "docs/labs/01/lab.h"
#include "docs/labs/check.h"

using namespace lab;

namespace {

using Complex = std::complex<double>;
using Row = std::vector<Complex>;
using Rows = std::vector<Row>;

std::vector<Matrix*> values_of(Model& m) {
    return {&m.norm1.mean, &m.norm1.rstd, &m.norm2.mean, &m.norm2.rstd, &m.norm3.mean, &m.norm3.rstd, &m.x,
            &m.n1,         &m.q,          &m.kv,         &m.attended,   &m.lse,        &m.projected,  &m.s1,
            &m.n2,         &m.u,          &m.a,          &m.outer,      &m.s2,         &m.h,          &m.losses,
            &m.lse_words,  &m.loss,       &m.h1,         &m.token1,     &m.bias1};
}

// A model with random parameters, and a batch for it.
struct Case {
    std::string name;
    Model m;
    Batch batch;
    Case(std::string title, const Documents& documents, int heads = 2, unsigned seed = 17, int words = 7, int width = 4)
        : name(std::move(title)),
          m({rows_of(documents), words, width, heads, width + 1}),
          batch{documents, {}, {}, {"weights", {m.size.N}}} {
        std::mt19937 random(seed);
        std::normal_distribution<double> normal;
        const double size = 0.6 * std::sqrt(4.0 / width);
        for (Matrix* p : m.parameters())
            for (std::int64_t i = 0; i < p->shape.count(); i++)
                p->numbers[i] = size * normal(random) + (p->path.find("norm") == 0 && p->path.back() == 'w' ? 1 : 0);
        for (int n = 0; n < m.size.N; n++) {
            batch.ids.push_back(int(random() % unsigned(words)));
            batch.targets.push_back(int(random() % unsigned(words)));
            batch.weights.numbers[n] = n == 1 ? 0 : 0.1 + double(random() % 8) / 20;
        }
    }
};
const Documents some = {{3, 1}, {2, 0}, {1, 2}};
std::vector<Case> special(unsigned seed = 17) {
    std::vector<Case> cases;
    cases.emplace_back("there is one row", Documents{{1, 0}}, 2, seed);
    cases.emplace_back("each document has one row", Documents{{1, 0}, {1, 0}, {1, 0}, {1, 0}}, 2, seed);
    cases.emplace_back("there is one document", Documents{{5, 0}}, 2, seed);
    cases.emplace_back("there is one head", some, 1, seed);
    for (Linear Model::*zero : {&Model::output, &Model::up, &Model::down}) {
        cases.emplace_back("", some, 2, seed);
        Linear& l = cases.back().m.*zero;
        cases.back().name = l.w.path.substr(0, l.w.path.size() - 2) + " is 0";
        std::fill_n(l.w.numbers.get(), l.w.shape.count(), 0.0);
        std::fill_n(l.b.numbers.get(), l.b.shape.count(), 0.0);
    }
    return cases;
}

// Places at which a tensor is read. loss_of() can treat the tensor as a constant at one of these places; elsewhere, the
// tensor stays a variable. A student who forgets a part of a gradient gets the gradient of such a loss.
const char* const reads[] = {"the residual x of s1",
                             "the x that norm1 reads",
                             "the residual s1 of s2",
                             "the s1 that norm2 reads",
                             "the n1 that query reads",
                             "the n1 that key_value reads",
                             "the token that is the embedding",
                             "the token that is the last matrix"};
constexpr int nothing = -1;

using Made = std::vector<std::pair<const Matrix Model::*, Rows>>;
// Returns the loss. `p` has the numbers of all parameters, in the order of Model::parameters(). `constant` is an index
// into `reads`, or `nothing`. If `made` is not null, it receives the values that the forward computed.
Complex loss_of(const Sizes& size, const Batch& batch, const Rows& p, int constant, Made* made = nullptr) {
    const auto read = [&](int place, const Rows& x) {
        Rows y = x;
        if (place == constant)
            for (Row& row : y)
                for (Complex& each : row) each = each.real();
        return y;
    };
    const auto linear = [](const Row& w, const Row& b, const Rows& x) {
        Rows y;
        for (const Row& row : x) {
            y.push_back(b);
            for (std::size_t o = 0; o < b.size(); o++)
                for (std::size_t i = 0; i < row.size(); i++) y.back()[o] += w[o * row.size() + i] * row[i];
        }
        return y;
    };
    const auto norm = [](const Row& w, const Row& b, const Rows& x) {
        Rows y = x;
        for (Row& row : y) {
            Complex mean = 0, variance = 0;
            for (const Complex& each : row) mean += each / double(row.size());
            for (const Complex& each : row) variance += (each - mean) * (each - mean) / double(row.size());
            for (std::size_t c = 0; c < row.size(); c++)
                row[c] = (row[c] - mean) / std::sqrt(variance + eps) * w[c] + b[c];
        }
        return y;
    };
    const auto sum = [](const Rows& a, const Rows& b) {
        Rows y = a;
        for (std::size_t n = 0; n < y.size(); n++)
            for (std::size_t c = 0; c < y[n].size(); c++) y[n][c] += b[n][c];
        return y;
    };
    const std::size_t C = std::size_t(size.C), D = C / std::size_t(size.H);
    Rows x;
    const Row embedding = read(6, {p[0]})[0], last = read(7, {p[0]})[0];
    for (int id : batch.ids) x.emplace_back(embedding.begin() + id * size.C, embedding.begin() + (id + 1) * size.C);
    const Rows n1 = norm(p[1], p[2], read(1, x)), q = linear(p[3], p[4], read(4, n1)),
               kv = linear(p[5], p[6], read(5, n1));
    Rows attended;
    std::size_t first = 0;  // first row of the document
    for (const Document& d : batch.documents) {
        for (std::size_t i = first; i < first + std::size_t(d.source + d.target); i++) {
            Row y(C);
            for (std::size_t head = 0; head < C; head += D) {
                Complex total = 0;
                for (std::size_t j = first; j <= i; j++) {
                    Complex score = 0;
                    for (std::size_t c = head; c < head + D; c++) score += q[i][c] * kv[j][c] / std::sqrt(double(D));
                    total += std::exp(score);
                    for (std::size_t c = head; c < head + D; c++) y[c] += std::exp(score) * kv[j][C + c];
                }
                for (std::size_t c = head; c < head + D; c++) y[c] /= total;
            }
            attended.push_back(y);
        }
        first = attended.size();
    }
    const Rows projected = linear(p[7], p[8], attended), s1 = sum(read(0, x), projected),
               n2 = norm(p[9], p[10], read(3, s1));
    const Rows u = linear(p[11], p[12], n2);
    Rows a = u;
    // GELU. std::erfc has no complex form, so the imaginary part, in which the complex step carries the derivative, is
    // multiplied by the derivative of GELU here.
    for (Row& row : a)
        for (Complex& each : row) {
            const double r = each.real(), cdf = std::erfc(-r / std::sqrt(2.0)) / 2;
            each = {r * cdf, each.imag() * (cdf + r * std::exp(-r * r / 2) / std::sqrt(8 * std::atan(1.0)))};
        }
    const Rows outer = linear(p[13], p[14], a), s2 = sum(read(2, s1), outer), h = norm(p[15], p[16], s2);
    const Rows logits = linear(last, p[17], h);
    if (made)
        *made = {{&Model::x, x},
                 {&Model::n1, n1},
                 {&Model::q, q},
                 {&Model::kv, kv},
                 {&Model::attended, attended},
                 {&Model::projected, projected},
                 {&Model::s1, s1},
                 {&Model::n2, n2},
                 {&Model::u, u},
                 {&Model::a, a},
                 {&Model::outer, outer},
                 {&Model::s2, s2},
                 {&Model::h, h}};
    Complex loss = 0;
    for (std::size_t n = 0; n < logits.size(); n++) {
        Complex total = 0;
        for (const Complex& each : logits[n]) total += std::exp(each);
        loss += batch.weights.numbers[n] * (std::log(total) - logits[n][std::size_t(batch.targets[n])]);
    }
    return loss;
}
Rows numbers_of(Case& c) {
    Rows p;
    for (const Matrix* each : c.m.parameters())
        p.emplace_back(each->numbers.get(), each->numbers.get() + each->shape.count());
    return p;
}
// truth() and students() return the gradients of the parameters with these names, one after the other.
using Names = std::vector<std::string>;
bool among(const Names& names, const std::string& path) {
    return std::find(names.begin(), names.end(), path) != names.end();
}
Numbers truth(Case& c, const Names& names, int constant = nothing) {
    Rows p = numbers_of(c);
    Numbers g;
    for (std::size_t k = 0; k < p.size(); k++)
        for (Complex& each : p[k]) {
            if (!among(names, c.m.parameters()[k]->path)) break;
            each += Complex(0, 1e-30);
            g.push_back(loss_of(c.m.size, c.batch, p, constant).imag() / 1e-30);
            each = each.real();
        }
    return g;
}

// Fills the memory of all gradients with the number `before`, and the memory of all values with `garbage`. Then
// runs the student's forward and, if `both` is true, the student's backward. Returns the loss.
double run(Case& c, double before, bool both) {
    for (Matrix* each : values_of(c.m)) std::fill_n(each->numbers.get(), each->shape.count(), garbage);
    for (const auto& list : {values_of(c.m), c.m.parameters()})
        for (Matrix* each : list) std::fill_n(each->gradient.get(), each->shape.count(), before);
    const double loss = forward(c.m, c.batch);
    if (both) backward(c.m, c.batch);
    return loss;
}
Numbers students(Case& c, const Names& names, double before = garbage) {
    run(c, before, true);
    Numbers g;
    for (const Matrix* p : c.m.parameters())
        if (among(names, p->path)) g.insert(g.end(), p->gradient.get(), p->gradient.get() + p->shape.count());
    return g;
}

// Each case has three models with different seeds, and so three losses. A single wrong loss would always be a multiple
// of the right loss, and the report would show this factor as if it meant something.
std::string of_loss() {
    Result found;
    std::vector<Result> cases;
    const auto add = [](Result& to, Case& c) {
        to.where = c.name;
        to.found.push_back(run(c, garbage, false));
        to.right.push_back(loss_of(c.m.size, c.batch, numbers_of(c), nothing).real());
    };
    for (unsigned seed : {17u, 18u, 19u}) {
        Case any("", some, 2, seed);
        add(found, any);
        std::vector<Case> more = special(seed);
        cases.resize(more.size());
        for (std::size_t k = 0; k < more.size(); k++) add(cases[k], more[k]);
    }
    const std::string s = wrong("loss", found, cases, "the formula in plain loops gives");
    bool nearly = !s.empty();
    for (std::size_t k = 0; k < 3; k++) nearly = nearly && std::fabs(found.found[k] / found.right[k] - 1) < 0.002;
    if (s.empty()) return s;
    Case any("", some);
    Made made;
    loss_of(any.m.size, any.batch, numbers_of(any), nothing, &made);
    run(any, garbage, false);
    std::string right = "values that are right:";
    for (const auto& [value, rows] : made) {
        const Matrix& m = any.m.*value;
        Numbers should;
        for (const Row& row : rows)
            for (const Complex& each : row) should.push_back(each.real());
        if (!alike({m.numbers.get(), m.numbers.get() + m.shape.count()}, should))
            return s + right + "; the first that is wrong: " + m.path + (nearly ? ", by little\n" : "\n");
        right += " " + m.path;
    }
    return s + "values up to h are right\n";
}
bool loss_holds() {
    try {
        return of_loss().empty();
    } catch (const std::exception&) {
        return false;
    }
}

// Checks the gradients of a model with 50,000 parameters. A backward takes milliseconds; one forward for each parameter
// takes minutes. The complex step is taken for one number of each parameter only.
std::string of_large(const Names& names) {
    Case c("", {{20, 20}, {0, 16}}, 2, 3, 400, 64);
    const std::string s = alone(10, [&] {
        run(c, garbage, true);
        Rows p = numbers_of(c);
        for (std::size_t k = 0; k < p.size(); k++) {
            const Matrix& m = *c.m.parameters()[k];
            if (!among(names, m.path)) continue;
            const std::size_t i = 7919 % p[k].size();
            p[k][i] += Complex(0, 1e-30);
            const double right = loss_of(c.m.size, c.batch, p, nothing).imag() / 1e-30;
            p[k][i] = p[k][i].real();
            if (!alike({m.gradient[i]}, {right})) return m.path + " is wrong\n";
        }
        return std::string();
    });
    return s.empty() ? "" : "in a model with a width of 64: " + s;
}

int right_parts = 0;  // the number of calls of of_gradients() that found no error

std::string of_gradients(const Names& names) {
    if (!loss_holds()) return "tried when the loss is right";
    Case any("", some);
    Names bad;  // the wrong gradients, in the order of a backward: from the end of the model to its beginning
    for (auto name = names.rbegin(); name != names.rend(); ++name)
        if (!alike(students(any, {*name}), truth(any, {*name}))) bad.push_back(*name);
    for (const std::string& name : names) {
        if (!bad.empty()) break;
        if (const std::string t = inexact(name, students(any, {name}), truth(any, {name})); !t.empty()) return t;
    }
    if (bad.empty()) {
        const std::string large = of_large(names);
        right_parts += large.empty();
        return large;
    }
    std::string s = "wrong:", right = "right:";
    for (const std::string& name : names) (among(bad, name) ? s : right) += " " + name;
    s += "\n" + (bad.size() < names.size() ? right + "\n" : "");
    std::vector<Result> cases;
    for (Case& c : special()) cases.push_back({c.name, students(c, {bad[0]}), truth(c, {bad[0]})});
    s += wrong(bad[0], {"", students(any, {bad[0]}), truth(any, {bad[0]})}, cases);
    if (alike(students(any, names, 0), truth(any, names)))
        s += "all of them are right if every gradient is 0 beforehand\n";
    for (int place = 0; place < 8; place++)
        if (alike(students(any, names), truth(any, names, place)))
            s += std::string("all of them are as if ") + reads[place] + " were a constant\n";
    return s;
}

const Names head = {"norm3.w", "norm3.b", "bias"}, token = {"token"},
            feed_forward = {"norm2.w", "norm2.b", "up.w", "up.b", "down.w", "down.b"},
            attention = {"norm1.w",     "norm1.b",     "query.w",  "query.b",
                         "key_value.w", "key_value.b", "output.w", "output.b"};

std::string learns() {
    Case c("", some);
    std::mt19937 random(2);
    std::normal_distribution<double> normal;
    const Rows before = numbers_of(c);
    Names still, off;
    double factor = 0;
    for (Matrix* p : c.m.parameters())
        for (std::int64_t i = 0; i < p->shape.count(); i++) p->gradient[i] = normal(random);
    Rows gradients;  // an update may change the gradients
    for (const Matrix* p : c.m.parameters())
        gradients.emplace_back(p->gradient.get(), p->gradient.get() + p->shape.count());
    update(c.m, 0.25);
    for (std::size_t k = 0; k < before.size(); k++) {
        const Matrix& p = *c.m.parameters()[k];
        const auto moved = [&](std::int64_t i) {
            return (before[k][std::size_t(i)].real() - p.numbers[i]) / (0.25 * gradients[k][std::size_t(i)].real());
        };
        factor = moved(0);
        bool right = true, moves = false;
        for (std::int64_t i = 0; i < p.shape.count(); i++) {
            right = right && std::fabs(moved(i) - 1) < 1e-9;
            moves = moves || moved(i) != 0;
        }
        if (!right) (moves ? off : still).push_back(p.path);
    }
    if (still.size() == before.size()) return "update is not written";
    std::string s;
    for (const auto& [names, said] : {std::pair(still, "not updated:"), std::pair(off, "wrongly updated:")}) {
        if (names.empty()) continue;
        s += said;
        for (const std::string& name : names) s += " " + name;
        s += "\n";
    }
    if (off.size() == before.size()) s += "the step is " + number(factor) + " times what it should be\n";
    if (!s.empty()) return s;
    if (right_parts < 4) return "tried when all gradients are right";
    const double first = run(c, garbage, true);
    for (int step = 0; step < 60; step++) backward(c.m, c.batch), update(c.m, 0.2), forward(c.m, c.batch);
    const double share = c.m.loss.numbers[0] / first;
    return share < 1.0 / 3 ? "" : "after 60 updates the loss is " + number(share) + " times the first one";
}

}  // namespace

int main() {
    Lab lab("lab 1: a step of a Transformer, without a tape");
    lab.part(3, "loss", of_loss);
    lab.part(1, "head", [] { return of_gradients(head); });
    lab.part(2, "feed", [] { return of_gradients(feed_forward); });
    lab.part(2, "attend", [] { return of_gradients(attention); });
    lab.part(1, "token", [] { return of_gradients(token); });
    lab.part(1, "learns", learns);
    return lab.status();
}
