// SPDX-License-Identifier: MIT
#include "models/density/directions.h"

#include <algorithm>
#include <cmath>

#include "engine/base/error.h"
#include "engine/ops/cpu/parallel.h"
#include "engine/ops/ops.h"
#include "models/density/cholesky.h"
#include "models/density/rows.h"

namespace masquerade {
namespace {

constexpr std::int64_t chunk = 256;  // rows at a time
constexpr double ignored = 16;  // nats: components so far below the best one at equal lengths are left out
constexpr int newton_steps = 60;

const double log_two_pi = std::log(2 * 3.14159265358979323846);

// log of the integral over r > 0 of exp(-r'Ar/2 + b'r) (r_1 ... r_K)^power. Newton from r = 1; the function is concave, so
// a step that would leave r > 0 is shortened and the rest is safe.
double log_integral(const double* a, const double* b, int K, double power) {
    std::vector<double> r(std::size_t(K), 1.0), step(std::size_t(K), 0.0), curvature(std::size_t(K * K));
    auto value = [&](const std::vector<double>& at) {
        double sum = 0;
        for (int i = 0; i < K; i++) {
            double row = 0;
            for (int j = 0; j < K; j++) row += a[i * K + j] * at[std::size_t(j)];
            sum += at[std::size_t(i)] * (b[i] - 0.5 * row) + power * std::log(at[std::size_t(i)]);
        }
        return sum;
    };
    double now = value(r);
    for (int iteration = 0; iteration < newton_steps; iteration++) {
        for (int i = 0; i < K; i++) {
            double row = 0;
            for (int j = 0; j < K; j++) {
                row += a[i * K + j] * r[std::size_t(j)];
                curvature[std::size_t(i * K + j)] = a[i * K + j];
            }
            const double x = r[std::size_t(i)];
            curvature[std::size_t(i * K + i)] += power / (x * x);
            step[std::size_t(i)] = b[i] - row + power / x;
        }
        std::vector<double> gradient(step);
        if (!cholesky(curvature.data(), K)) throw Error("the lengths of a direction have no peak");
        solve_cholesky(curvature.data(), K, step.data(), 1);
        double gain = 0, size = 1;
        for (int i = 0; i < K; i++) {
            gain += gradient[std::size_t(i)] * step[std::size_t(i)];
            if (step[std::size_t(i)] < 0)
                size = std::min(size, -0.9 * r[std::size_t(i)] / step[std::size_t(i)]);
        }
        if (gain < 1e-10) break;
        std::vector<double> next(r);
        for (double then;; size /= 2) {
            for (int i = 0; i < K; i++)
                next[std::size_t(i)] = r[std::size_t(i)] + size * step[std::size_t(i)];
            then = value(next);
            if (then >= now || size < 1e-9) {
                now = then;
                break;
            }
        }
        r = next;
    }
    double determinant = 0;  // of the curvature at the peak, whose factor the last round left
    for (int i = 0; i < K; i++) determinant += 2 * std::log(curvature[std::size_t(i * K + i)]);
    return now + 0.5 * K * log_two_pi - 0.5 * determinant;
}

}  // namespace

std::vector<double> log_density_of_directions(const GaussianMixture& mixture, int K, const View& u) {
    const std::int64_t N = u.rows(), D = u.columns(), M = mixture.components(), Z = D / std::max(1, K);
    if (K < 1 || D != mixture.dimensions() || Z * K != D || Z < 2)
        throw Error(text("directions in ", K, " spheres were asked for of rows ", u.shape,
                         ", a mixture over ", mixture.dimensions()));
    const GaussianMixture::Whitened& w = mixture.whitened();
    // |x - m_k|^2 whitened is |V r - q - c_k|^2: column l of V (D,K) the inverse factor times u_l, q that times the
    // middle, c_k the whitened mean. So A = V'V, b = V'q + V'c_k, and |q + c_k|^2 is left over.
    std::vector<double> q(std::size_t(D), 0.0), left(std::size_t(M), 0.0);
    for (std::int64_t i = 0; i < D; i++)
        for (std::int64_t j = 0; j <= i; j++)
            q[std::size_t(i)] += double(w.inverse[std::size_t(i * D + j)]) * w.middle[std::size_t(j)];
    for (std::int64_t k = 0; k < M; k++)
        for (std::int64_t i = 0; i < D; i++) {
            double sum = q[std::size_t(i)] + double(w.means[std::size_t(k * D + i)]);
            left[std::size_t(k)] += sum * sum;
        }
    std::vector<double> log_p(static_cast<std::size_t>(N));
    std::vector<float> one, inverse(std::size_t(D * Z));
    std::vector<std::vector<float>> v(static_cast<std::size_t>(K)), dots(static_cast<std::size_t>(K));
    for (std::int64_t first = 0; first < N; first += chunk) {
        const std::int64_t n = std::min(chunk, N - first);
        for (int l = 0; l < K; l++) {
            one.resize(std::size_t(n * Z));
            for (std::int64_t r = 0; r < n; r++)
                std::copy_n(u.as<float>() + (first + r) * D + l * Z, Z, one.begin() + r * Z);
            for (std::int64_t i = 0; i < D; i++)
                std::copy_n(w.inverse.begin() + i * D + l * Z, Z, inverse.begin() + i * Z);
            v[std::size_t(l)].resize(std::size_t(n * D));
            dots[std::size_t(l)].resize(std::size_t(n * M));
            View to = view_of(v[std::size_t(l)], {n, D}, "directions.whitened");
            linear_forward(view_of(one, {n, Z}, "directions.one"), view_of(inverse, {D, Z}, "directions.inverse"),
                           View{}, to);
            linear_forward(to, view_of(w.means, {M, D}, "directions.means"), View{},
                           view_of(dots[std::size_t(l)], {n, M}, "directions.dots"));
        }
        parallel_for(n, 1, [&](std::int64_t begin, std::int64_t end) {
            std::vector<double> a(std::size_t(K * K)), shared(std::size_t(K), 0.0), b(std::size_t(K), 0.0),
                scores, kept;
            for (std::int64_t r = begin; r < end; r++) {
                double all = 0;  // of A: r'Ar at r = 1
                for (int l = 0; l < K; l++) {
                    const float* left_column = v[std::size_t(l)].data() + r * D;
                    shared[std::size_t(l)] = 0;
                    for (std::int64_t i = 0; i < D; i++)
                        shared[std::size_t(l)] += double(left_column[i]) * q[std::size_t(i)];
                    for (int m = 0; m < K; m++) {
                        const float* right_column = v[std::size_t(m)].data() + r * D;
                        double sum = 0;
                        for (std::int64_t i = 0; i < D; i++)
                            sum += double(left_column[i]) * double(right_column[i]);
                        a[std::size_t(l * K + m)] = sum;
                        all += sum;
                    }
                }
                auto dot = [&](std::int64_t k, int l) {
                    return shared[std::size_t(l)] + double(dots[std::size_t(l)][std::size_t(r * M + k)]);
                };
                // The peak over equal lengths r: of -r^2 all / 2 + r toward + power log r.
                const double power = double(K * (Z - 1));
                scores.clear();
                for (std::int64_t k = 0; k < M; k++) {
                    double toward = 0;
                    for (int l = 0; l < K; l++) toward += dot(k, l);
                    const double length = (toward + std::sqrt(toward * toward + 4 * all * power)) / (2 * all);
                    scores.push_back(std::log(mixture.weights()[std::size_t(k)]) -
                                     0.5 * left[std::size_t(k)] + length * (toward - 0.5 * length * all) +
                                     power * std::log(length));
                }
                const double best = *std::max_element(scores.begin(), scores.end());
                kept.clear();
                for (std::int64_t k = 0; k < M; k++) {
                    if (scores[std::size_t(k)] < best - ignored) continue;
                    for (int l = 0; l < K; l++) b[std::size_t(l)] = dot(k, l);
                    kept.push_back(std::log(mixture.weights()[std::size_t(k)]) - 0.5 * left[std::size_t(k)] +
                                   log_integral(a.data(), b.data(), K, double(Z - 1)));
                }
                const double top = *std::max_element(kept.begin(), kept.end());
                double sum = 0;
                for (double each : kept) sum += std::exp(each - top);
                log_p[std::size_t(first + r)] = w.constant + top + std::log(sum);
            }
        });
    }
    return log_p;
}

}  // namespace masquerade
