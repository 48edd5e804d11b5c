// SPDX-License-Identifier: MIT
// Gaussian latents whose prior is a normalising flow f: if z is a sample of the prior, f(z) is a sample of N(0, 1).
// y holds the means mu of q(z | y), then the log variances l:
//   z = mu + exp(l/2) e,   log p(z) = log N(f(z); 0, 1) + log |det df/dz|       e: normal noise
// Each step of f is a linear map u = W z + b, which mixes the numbers, followed by a coupling layer: a small net
// computes from the first half of u the scale and the shift of the second half. To draw a sample z = f^-1(n), where n
// is normal, f is inverted step by step.
// Dinh et al. 2016; Kingma & Dhariwal 2018
#include <algorithm>
#include <cmath>

#include "models/latent/kinds.h"

namespace masquerade {
namespace {

// Solves w x = y for x by Gaussian elimination with pivoting. w is (n,n), and n is the length of y. Returns x, and sets
// `log_det` to log |det w| unless it is null.
Numbers solve(Numbers w, Numbers y, double* log_det = nullptr) {
    const std::size_t n = y.size();
    double logs = 0;
    for (std::size_t k = 0; k < n; k++) {
        std::size_t pivot = k;
        for (std::size_t r = k + 1; r < n; r++)
            if (std::fabs(w[r * n + k]) > std::fabs(w[pivot * n + k])) pivot = r;
        for (std::size_t c = 0; c < n; c++) std::swap(w[k * n + c], w[pivot * n + c]);
        std::swap(y[k], y[pivot]);
        logs += std::log(std::fabs(w[k * n + k]));
        for (std::size_t r = k + 1; r < n; r++) {
            const double times = w[r * n + k] / w[k * n + k];
            for (std::size_t c = k; c < n; c++) w[r * n + c] -= times * w[k * n + c];
            y[r] -= times * y[k];
        }
    }
    for (std::size_t k = n; k-- > 0;) {
        for (std::size_t c = k + 1; c < n; c++) y[k] -= w[k * n + c] * y[c];
        y[k] /= w[k * n + k];
    }
    if (log_det) *log_det = logs;
    return y;
}

// A linear map whose weight is never rounded to bf16, since rounding would make the flow's inverse inexact. The weight
// is declared as a vector, because only matrices are rounded.
struct Unrounded {
    Tensor *weight, *bias;  // weight (O * I): the (O,I) matrix, row by row; bias (O)
    int out, in;
    Unrounded(Parameters& p, const std::string& path, int I, int O, Init init)
        : weight(p.add(path + ".weight", {std::int64_t(O) * I}, std::move(init))),
          bias(p.add(path + ".bias", {O}, {Init::zeros})),
          out(O),
          in(I) {}
    Tensor* matrix(Tape& tape, const std::string& name) const {
        return reshape(tape, weight, {out, in}, name + ".weight");
    }
    Numbers operator()(const Numbers& x) const { return affine(weight, bias, x); }
};

struct Step {
    Unrounded mix, hidden, st;
};

class Flow : public Latent {
  public:
    Flow(Parameters* p, const std::string& path, const LatentOptions& o, const Latent* before)
        : Latent(p, path, o, before), from_(o.size - o.size / 2) {
        if (!p) return;
        if (o.size > 1024) throw BadUsage(text("latent_size ", o.size, ": a flow is of at most 1024 numbers"));
        for (int s = 0; s < o.flow_steps; s++) {
            const std::string name = text(path, ".flow.", s);
            const auto rotation = [Z = o.size, name](std::uint64_t seed, std::uint32_t) {
                Numbers w = random_features(Z, 1, Z, {true, true, 1}, seed, name);
                for (double& x : w) x /= std::sqrt(double(Z));
                return w;
            };
            steps_.push_back(
                {Unrounded(*p, name + ".mix", o.size, o.size, {Init::made, 0, rotation}),
                 Unrounded(*p, name + ".hidden", o.size, o.flow_width, {Init::normal, 1 / std::sqrt(double(o.size))}),
                 Unrounded(*p, name + ".st", o.flow_width, o.size / 2 * 2, {Init::zeros})});
        }
    }
    int inputs() const override { return 2 * options.size; }
    LatentSample sample(Tape& tape, Tensor* y, const LatentNoise* noise, int layer,
                        const std::vector<LatentSample>&) const override {
        Tensor* e = noise_of(tape, y, noise, layer, options.size);
        Numbers first(options.size, 0);
        std::fill_n(first.begin(), from_, 1.0);
        Tensor* half = tape.constant("first_half", {options.size}, y->dtype, first.data());
        LatentSample s;
        s.y = y;
        s.z = gaussian_sample(tape, y, e, "z");  // (B,Z): Z numbers per document
        Tensor *u = s.z, *log_dets = nullptr, *log_dets_of_mix = nullptr;
        for (std::size_t i = 0; i < steps_.size(); i++) {
            const std::string name = text("flow.", i);
            const Step& step = steps_[i];
            Tensor* w = step.mix.matrix(tape, name + ".mix");
            u = linear(tape, u, w, step.mix.bias, name + ".mix");
            Tensor* x = scale_columns(tape, u, half, name + ".first");
            x = tanh(tape,
                     linear(tape, x, step.hidden.matrix(tape, name + ".hidden"), step.hidden.bias, name + ".hidden"),
                     name + ".tanh");
            const Coupled c =
                coupling(tape, u, linear(tape, x, step.st.matrix(tape, name + ".st"), step.st.bias, name + ".st"),
                         name);
            u = c.y;
            Tensor* of_mix = log_det(tape, w, name + ".log_det_mix");
            log_dets = log_dets ? add(tape, log_dets, c.log_det, name + ".log_dets") : c.log_det;
            log_dets_of_mix = log_dets_of_mix ? add(tape, log_dets_of_mix, of_mix, name + ".log_dets_mix") : of_mix;
        }
        s.kl = flow_kl(tape, y, e, u, log_dets, log_dets_of_mix, "kl");  // (B), an estimate from the sample z
        return s;
    }
    double log_ratio(const double* z, const double* y, const double*) const override {
        double log_det = 0, log_p = 0;
        for (double u : forward({z, z + options.size}, log_det)) log_p -= u * u / 2;
        return log_posterior(z, y) - log_p - log_det;
    }
    double log_posterior(const double* z, const double* y) const override {
        double sum = 0;
        for (int i = 0; i < options.size; i++) {
            const double l = std::clamp(y[options.size + i], -8.0, 8.0), d = z[i] - y[i];
            sum -= 0.5 * (d * d * std::exp(-l) + l);
        }
        return sum;
    }
    void draw(double* z) const override {
        Numbers u(z, z + options.size);
        for (std::size_t i = steps_.size(); i-- > 0;) {
            const Numbers st = net(steps_[i], u);
            for (std::size_t k = 0; k < st.size() / 2; k++) {
                double& b = u[from_ + k];
                b = (b - st[st.size() / 2 + k]) * std::exp(-2 * std::tanh(st[k] / 2));
            }
            const OnHost bias(steps_[i].mix.bias->view());
            for (std::size_t k = 0; k < u.size(); k++) u[k] -= bias[std::int64_t(k)];
            u = solve(numbers_of(steps_[i].mix.weight->view()), std::move(u));
        }
        std::copy(u.begin(), u.end(), z);
    }

  private:
    Numbers net(const Step& step, Numbers u) const {
        std::fill(u.begin() + from_, u.end(), 0.0);
        Numbers h = step.hidden(u);
        for (double& x : h) x = std::tanh(x);
        return step.st(h);
    }
    Numbers forward(Numbers u, double& log_det) const {
        for (const Step& step : steps_) {
            double of_mix = 0;
            solve(numbers_of(step.mix.weight->view()), u, &of_mix);
            u = step.mix(u);
            const Numbers st = net(step, u);
            for (std::size_t k = 0; k < st.size() / 2; k++) {
                const double s = 2 * std::tanh(st[k] / 2);
                double& b = u[from_ + k];
                b = b * std::exp(s) + st[st.size() / 2 + k];
                log_det += s;
            }
            log_det += of_mix;
        }
        return u;
    }

    int from_;  // index of the first number of the second half
    std::vector<Step> steps_;
};

}  // namespace

const MakeLatent make_flow = make_latent<Flow>;

}  // namespace masquerade
