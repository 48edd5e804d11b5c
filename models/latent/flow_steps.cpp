// SPDX-License-Identifier: MIT
#include "models/latent/flow_steps.h"

#include <algorithm>
#include <cmath>

#include "engine/base/error.h"
#include "engine/nn/functions.h"
#include "engine/tensor/numbers.h"
#include "models/latent/kinds.h"

namespace masquerade {
namespace {

// A square matrix w = P L U on the host. `lu` holds L below its diagonal, and U on and above its diagonal; the diagonal
// of L is 1. Row i of w is row order[i] of L U.
struct Factors {
    Numbers lu;
    std::vector<std::size_t> order;

    double log_det() const {
        double sum = 0;
        for (std::size_t k = 0, n = order.size(); k < n; k++) sum += std::log(std::fabs(lu[k * n + k]));
        return sum;
    }
    Numbers times(const Numbers& x) const {
        const std::size_t n = order.size();
        Numbers of_u(n), y(n);
        for (std::size_t k = 0; k < n; k++)
            for (std::size_t c = k; c < n; c++) of_u[k] += lu[k * n + c] * x[c];
        for (std::size_t i = 0; i < n; i++) {
            const std::size_t r = order[i];
            y[i] = of_u[r];
            for (std::size_t k = 0; k < r; k++) y[i] += lu[r * n + k] * of_u[k];
        }
        return y;
    }
    // Solves w x = y for x.
    Numbers solve(const Numbers& y) const {
        const std::size_t n = order.size();
        Numbers x(n);
        for (std::size_t i = 0; i < n; i++) x[order[i]] = y[i];
        for (std::size_t r = 0; r < n; r++)
            for (std::size_t k = 0; k < r; k++) x[r] -= lu[r * n + k] * x[k];
        for (std::size_t k = n; k-- > 0;) {
            for (std::size_t c = k + 1; c < n; c++) x[k] -= lu[k * n + c] * x[c];
            x[k] /= lu[k * n + k];
        }
        return x;
    }
};

// Returns the factors of w (n,n), by Gaussian elimination with partial pivoting.
Factors factors_of(Numbers w, std::size_t n) {
    std::vector<std::size_t> row(n);  // row[r]: which row of the original w is now row r
    for (std::size_t r = 0; r < n; r++) row[r] = r;
    for (std::size_t k = 0; k < n; k++) {
        std::size_t pivot = k;
        for (std::size_t r = k + 1; r < n; r++)
            if (std::fabs(w[r * n + k]) > std::fabs(w[pivot * n + k])) pivot = r;
        for (std::size_t c = 0; c < n; c++) std::swap(w[k * n + c], w[pivot * n + c]);
        std::swap(row[k], row[pivot]);
        for (std::size_t r = k + 1; r < n; r++) {
            const double times = w[r * n + k] /= w[k * n + k];
            for (std::size_t c = k + 1; c < n; c++) w[r * n + c] -= times * w[k * n + c];
        }
    }
    Factors f{std::move(w), row};
    for (std::size_t r = 0; r < n; r++) f.order[row[r]] = r;
    return f;
}

Factors factors_of(const Tensor* weight, const Tensor* order, std::size_t n) {
    if (!order) return factors_of(numbers_of(weight->view()), n);
    Factors f{numbers_of(weight->view()), {}};
    for (double r : numbers_of(order->view())) {
        if (!(r >= 0 && r < double(n)))
            throw Error(order->path, " holds ", r, "; expected rows of a matrix, which are 0 to ", n - 1);
        f.order.push_back(r);
    }
    return f;
}

}  // namespace

FlowSteps::Linear::Linear(Parameters& p, const std::string& path, int I, int O, Init init, bool has_bias)
    : weight(p.add(path + ".weight", {std::int64_t(O) * I}, std::move(init))),
      bias(has_bias ? p.add(path + ".bias", {O}, {Init::zeros}) : nullptr),
      out(O),
      in(I) {}

Tensor* FlowSteps::Linear::matrix(Tape& tape, const std::string& name) const {
    return reshape(tape, weight, {out, in}, name + ".weight");
}

Numbers FlowSteps::Linear::operator()(const Numbers& x) const { return affine(weight, bias, x); }

FlowSteps::FlowSteps(Parameters& p, const std::string& path, int size, const FlowOptions& o)
    : size_(size), from_(size - size / 2) {
    if (size > 1024) throw BadUsage("a flow of vectors with ", size, " numbers: expected at most 1024");
    const bool lu = o.linear == "lu";
    for (int s = 0; s < o.steps; s++) {
        const std::string name = text(path, ".", s);
        const auto rotation = [=](std::uint64_t seed, std::uint32_t) {
            Numbers w = random_features(size, 1, size, {true, true, 1}, seed, name);
            for (double& x : w) x /= std::sqrt(size);
            return w;
        };
        const auto factors = [=](std::uint64_t seed, std::uint32_t) { return factors_of(rotation(seed, 0), size).lu; };
        const auto order = [=](std::uint64_t seed, std::uint32_t) {
            const Factors f = factors_of(rotation(seed, 0), size);
            return Numbers(f.order.begin(), f.order.end());
        };
        Tensor *scale = nullptr, *shift = nullptr;
        if (o.actnorm) {
            scale = p.add(name + ".actnorm.weight", {size}, {Init::ones});
            shift = p.add(name + ".actnorm.bias", {size}, {Init::zeros});
        }
        const Linear mix(p, name + ".mix", size, size,
                         lu ? Init{Init::made, 0, factors} : Init{Init::made, 0, rotation}, !o.actnorm);
        steps_.push_back({scale, shift, mix,
                          lu ? p.add_state(name + ".mix.order", {size}, {Init::made, 0, order}) : nullptr,
                          Linear(p, name + ".hidden", size, o.width, {Init::normal, 1 / std::sqrt(size)}),
                          Linear(p, name + ".st", o.width, size / 2 * 2, {Init::zeros})});
    }
    if (o.actnorm) started_ = p.add_state(path + ".started", {1}, {Init::zeros});
}

FlowSteps::Mapped FlowSteps::operator()(Tape& tape, Tensor* z) const {
    Numbers first(size_, 0);
    std::fill_n(first.begin(), from_, 1.0);
    Tensor* half = tape.constant("first_half", {size_}, z->dtype, first.data());
    Mapped to{z, nullptr, nullptr};
    const auto add_to = [&tape](Tensor*& sum, Tensor* term, const std::string& name) {
        sum = sum ? add(tape, sum, term, name) : term;
    };
    for (std::size_t i = 0; i < steps_.size(); i++) {
        const std::string name = text("flow.", i);
        const Step& step = steps_[i];
        if (step.scale) {
            const WithLogDet scaled = actnorm(tape, to.u, step.scale, step.shift, name + ".actnorm");
            to.u = scaled.value;
            add_to(to.log_det, scaled.log_det, name + ".log_dets_actnorm");
        }
        WithLogDet w{step.mix.matrix(tape, name + ".mix"), nullptr};
        if (step.order) w = lu_matrix(tape, w.value, step.order, name + ".mix.product");
        to.u = linear(tape, to.u, w.value, step.mix.bias, name + ".mix");
        Tensor* x = scale_columns(tape, to.u, half, name + ".first");
        x = tanh(tape, linear(tape, x, step.hidden.matrix(tape, name + ".hidden"), step.hidden.bias, name + ".hidden"),
                 name + ".tanh");
        const WithLogDet c =
            coupling(tape, to.u, linear(tape, x, step.st.matrix(tape, name + ".st"), step.st.bias, name + ".st"), name);
        to.u = c.value;
        if (!step.order) w.log_det = log_det(tape, w.value, name + ".log_det_mix");
        add_to(to.log_dets, c.log_det, name + ".log_dets");
        add_to(to.log_det, w.log_det, name + ".log_dets_mix");
    }
    return to;
}

// Runs the net of the coupling layer on the first half of u. Returns r, then t. The coupling layer multiplies the
// second half of u by exp(2 tanh(r/2)), and then adds t.
Numbers FlowSteps::net(const Step& step, Numbers u) const {
    std::fill(u.begin() + from_, u.end(), 0.0);
    Numbers h = step.hidden(u);
    for (double& x : h) x = std::tanh(x);
    return step.st(h);
}

Numbers FlowSteps::forward(const Step& step, Numbers u, double& log_det) const {
    if (step.scale) {
        const OnHost scale(step.scale->view()), shift(step.shift->view());
        for (int k = 0; k < size_; k++) {
            u[k] = scale[k] * u[k] + shift[k];
            log_det += std::log(std::fabs(scale[k]));
        }
    }
    const Factors w = factors_of(step.mix.weight, step.order, u.size());
    if (!step.order) {
        u = step.mix(u);
    } else {
        u = w.times(u);
        const Numbers bias = step.mix.bias ? numbers_of(step.mix.bias->view()) : Numbers(u.size(), 0);
        for (std::size_t k = 0; k < u.size(); k++) u[k] += bias[k];
    }
    const Numbers st = net(step, u);
    for (std::size_t k = 0; k < st.size() / 2; k++) {
        const double s = 2 * std::tanh(st[k] / 2);
        double& b = u[from_ + k];
        b = b * std::exp(s) + st[st.size() / 2 + k];
        log_det += s;
    }
    log_det += w.log_det();
    return u;
}

Numbers FlowSteps::forward(Numbers z, double& log_det) const {
    for (const Step& step : steps_) z = forward(step, std::move(z), log_det);
    return z;
}

Numbers FlowSteps::inverse(Numbers u) const {
    for (std::size_t i = steps_.size(); i-- > 0;) {
        const Step& step = steps_[i];
        const Numbers st = net(step, u);
        for (std::size_t k = 0; k < st.size() / 2; k++) {
            double& b = u[from_ + k];
            b = (b - st[st.size() / 2 + k]) * std::exp(-2 * std::tanh(st[k] / 2));
        }
        if (step.mix.bias) {
            const OnHost bias(step.mix.bias->view());
            for (std::size_t k = 0; k < u.size(); k++) u[k] -= bias[k];
        }
        u = factors_of(step.mix.weight, step.order, u.size()).solve(u);
        if (!step.scale) continue;
        const OnHost scale(step.scale->view()), shift(step.shift->view());
        for (int k = 0; k < size_; k++) u[k] = (u[k] - shift[k]) / scale[k];
    }
    return u;
}

bool FlowSteps::waits_for_data() const { return started_ && numbers_of(started_->view())[0] == 0; }

void FlowSteps::start(Vectors rows) const {
    for (const Step& step : steps_) {
        Numbers scale, shift;
        for (int k = 0; k < size_; k++) {
            double mean = 0, variance = 0;
            for (const Numbers& row : rows) mean += row[k] / rows.size();
            for (const Numbers& row : rows) variance += (row[k] - mean) * (row[k] - mean) / rows.size();
            scale.push_back(variance > 1e-12 ? 1 / std::sqrt(variance) : 1);  // scale 1 if the column is constant
            shift.push_back(-mean * scale.back());
        }
        write_numbers(step.scale->view(), scale.data());
        write_numbers(step.shift->view(), shift.data());
        double log_det = 0;
        for (Numbers& row : rows) row = forward(step, std::move(row), log_det);
    }
    const double one = 1;
    write_numbers(started_->view(), &one);
}

}  // namespace masquerade
