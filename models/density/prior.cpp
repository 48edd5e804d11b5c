// SPDX-License-Identifier: MIT
#include "models/density/prior.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "engine/ops/ops.h"
#include "engine/io/file.h"
#include "engine/io/safetensors.h"
#include "models/density/cholesky.h"
#include "models/density/directions.h"
#include "models/density/rows.h"

namespace masquerade {
namespace {

// A component for every so many rows: held-out likelihood would have ten times fewer, but then draws near the means are all
// alike, and far from them word salad (docs/results/univae-default.md).
constexpr int rows_a_component = 4;
// Components start as codes of sentences. A round makes them the means of their surroundings; held-out likelihood does
// not rise after it.
constexpr int rounds = 2;
constexpr int held_out_share = 20;            // one code in so many only says how wide the components are,
constexpr std::int64_t most_held_out = 2000;  // but no more: one number is asked for
constexpr double least_noise = 1e-6;

// Columns of a matrix of n rows: their means, and the rows without them.
std::vector<double> centre(const View& x, std::vector<float>& centred) {
    const std::int64_t N = x.rows(), D = x.columns();
    const float* from = x.as<float>();
    std::vector<double> mean(std::size_t(D), 0.0);
    for (std::int64_t i = 0; i < N * D; i++) mean[std::size_t(i % D)] += double(from[i]) / double(N);
    centred.resize(std::size_t(N * D));
    for (std::int64_t i = 0; i < N * D; i++)
        centred[std::size_t(i)] = float(double(from[i]) - mean[std::size_t(i % D)]);
    return mean;
}

// (D,D) = a^T b / n
std::vector<double> mean_products(const View& a, const View& b) {
    std::vector<float> sums(std::size_t(a.columns() * b.columns()));
    View to = view_of(sums, {a.columns(), b.columns()}, "prior.products");
    linear_backward(a, b, to, Grad{}, Grad{to, false}, Grad{});  // of the weight only the shape is read
    std::vector<double> means(sums.begin(), sums.end());
    for (double& m : means) m /= double(a.rows());
    return means;
}

void raise_diagonal(std::vector<double>& a, std::int64_t n, double by) {
    for (std::int64_t i = 0; i < n; i++) a[std::size_t(i * n + i)] += by;
}

// The posterior samples of a mixture of codes: every component sent through z = shift + B code + e.
GaussianMixture sent(const GaussianMixture& codes, const std::vector<double>& shift,
                     const std::vector<double>& slope, const std::vector<double>& noise) {
    const std::size_t D = shift.size(), M = codes.weights().size();
    std::vector<double> means, spread(D * D, 0), covariance(D * D, 0);
    for (std::size_t k = 0; k < M; k++)
        for (std::size_t i = 0; i < D; i++) {
            double sum = shift[i];
            for (std::size_t j = 0; j < D; j++) sum += slope[i * D + j] * codes.means()[k * D + j];
            means.push_back(sum);
        }
    for (std::size_t i = 0; i < D; i++)
        for (std::size_t l = 0; l < D; l++)
            for (std::size_t j = 0; j <= l; j++)
                spread[i * D + j] += slope[i * D + l] * codes.factor()[l * D + j];
    for (std::size_t i = 0; i < D; i++)
        for (std::size_t j = 0; j <= i; j++)
            for (std::size_t l = 0; l < D; l++)
                covariance[i * D + j] +=
                    spread[i * D + l] * spread[j * D + l] + noise[i * D + l] * noise[j * D + l];
    if (!cholesky(covariance.data(), int(D)))
        throw BadInput("the noise of a prior's channel is no covariance");
    return GaussianMixture(codes.weights(), std::move(means), std::move(covariance));
}

// A file that is gone afterwards, unless it has got another name.
// z = shift + slope code + e, e of the covariance noise noise^T.
struct Channel {
    std::vector<double> shift, slope, noise;
};

// From codes and samples (n,D) of the same sentences. The slope is least squares over the first half of them, with
// D rows more that say what one number for all of it would be; the noise is what it leaves of the other half, which
// it has not seen, with D rows more that are alike in all directions. So both are sound where n is not much above D.
Channel channel_of(const View& codes, const View& samples) {
    const std::int64_t n = samples.rows(), D = samples.columns(), half = (n + 1) / 2;
    std::vector<float> x, y;
    View first = codes;
    first.shape = {n, D};
    Channel channel;
    std::vector<double> x_mean = centre(first, x);
    channel.shift = centre(samples, y);
    View xs = view_of(x, {half, D}, "prior.codes"), ys = view_of(y, {half, D}, "prior.samples");
    std::vector<double> factor = mean_products(xs, xs), across = mean_products(xs, ys);
    double variance = 0, covariance = 0;
    for (std::int64_t i = 0; i < D * D; i += D + 1) {
        variance += factor[std::size_t(i)] / double(D);
        covariance += across[std::size_t(i)] / double(D);
    }
    variance = std::max(variance, least_noise);
    raise_diagonal(factor, D, double(D) / double(half) * variance);
    raise_diagonal(across, D, double(D) / double(half) * covariance);
    if (!cholesky(factor.data(), int(D)))
        throw BadInput("the codes of a prior hold numbers that are not finite");
    solve_cholesky(factor.data(), int(D), across.data(), int(D));
    for (std::int64_t i = 0; i < D; i++)
        for (std::int64_t j = 0; j < D; j++) {
            channel.slope.push_back(across[std::size_t(j * D + i)]);
            channel.shift[std::size_t(i)] -= channel.slope.back() * x_mean[std::size_t(j)];
        }

    const std::int64_t unseen = n > 1 ? half : 0, rest = n - unseen;  // a single row is all there is
    std::vector<float> rounded(channel.slope.begin(), channel.slope.end()), predicted(std::size_t(rest * D));
    std::vector<float> left(y.begin() + std::ptrdiff_t(unseen * D), y.end());
    View others = xs, residuals = view_of(left, {rest, D}, "prior.residuals");
    others.data = x.data() + unseen * D;
    others.shape = {rest, D};
    linear_forward(others, view_of(rounded, {D, D}, "prior.slope"), View{},
                   view_of(predicted, {rest, D}, "prior.predicted"));
    for (std::size_t i = 0; i < left.size(); i++) left[i] -= predicted[i];
    channel.noise = mean_products(residuals, residuals);
    double square = 0;
    for (std::int64_t i = 0; i < D * D; i += D + 1) square += channel.noise[std::size_t(i)] / double(D);
    const double share = double(rest) / double(rest + D);
    for (double& c : channel.noise) c *= share;
    raise_diagonal(channel.noise, D, (1 - share) * square + least_noise);
    if (!cholesky(channel.noise.data(), int(D)))
        throw BadInput("the samples of a prior hold numbers that are not finite");
    return channel;
}

std::string hexadecimal(std::uint64_t n) { return fmt::format("{:016x}", n); }

}  // namespace

LatentPrior::LatentPrior(const LatentSpace& space, GaussianMixture codes, std::vector<double> shift,
                         std::vector<double> slope, std::vector<double> noise)
    : space_(space),
      codes_(std::move(codes)),
      samples_(sent(codes_, shift, slope, noise)),
      shift_(std::move(shift)),
      slope_(std::move(slope)),
      noise_(std::move(noise)) {}

LatentPrior LatentPrior::fit(const LatentSpace& space, const View& codes, const View& samples,
                             std::uint64_t seed) {
    const std::int64_t N = codes.rows(), n = samples.rows(), D = codes.columns();
    if (samples.columns() != D || n < 1 || n > N || D != std::int64_t(space.layers()) * space.size())
        throw Error(text("a prior was given codes ", codes.shape, " and samples ", samples.shape,
                         "; expected (N, ", space.layers(), " x ", space.size(), ") and no more rows"));
    MixtureOptions options;
    const std::int64_t held_out = std::min(N / held_out_share, most_held_out);
    View fitted_rows = codes, other_rows = codes;
    fitted_rows.shape = {N - held_out, D};
    other_rows.shape = {held_out, D};
    other_rows.data = codes.as<float>() + (N - held_out) * D;
    options.components = int(std::max<std::int64_t>(1, (N - held_out) / rows_a_component));
    options.rounds = rounds;
    // Fewer codes than dimensions leave directions in which nothing varies; others will.
    options.floor = std::max(options.floor, double(D) / double(N));
    options.seed = seed;
    GaussianMixture fitted = GaussianMixture::fit(fitted_rows, options);
    if (held_out > 0) fitted = fitted.widened(other_rows);
    // The file holds means in float: from here on they are what a reader of it will see.
    std::vector<double> means(fitted.means());
    for (double& m : means) m = double(float(m));

    Channel channel = channel_of(codes, samples);
    return LatentPrior(space, GaussianMixture(fitted.weights(), std::move(means), fitted.factor()),
                       std::move(channel.shift), std::move(channel.slope), std::move(channel.noise));
}

std::vector<double> LatentPrior::draw(std::uint64_t seed, std::uint32_t line, std::uint32_t number,
                                      double temperature) const {
    std::vector<double> code = codes_.draw(make_stream(seed, "latent.fitted", number), line, temperature);
    space_.project(code);
    return code;
}

std::vector<double> LatentPrior::log_gains(const View& z) const {
    std::vector<double> gains = space_.spherical() ? log_density_of_directions(samples_, space_.layers(), z)
                                                   : samples_.log_densities(z);
    std::vector<double> row(static_cast<std::size_t>(z.columns()));
    for (std::int64_t n = 0; n < z.rows(); n++) {
        const float* from = z.as<float>() + n * z.columns();
        std::copy(from, from + z.columns(), row.begin());
        gains[std::size_t(n)] -= space_.log_prior(row);
    }
    return gains;
}

void LatentPrior::save(const std::string& path, std::uint64_t model) const {
    const std::int64_t M = codes_.components(), D = codes_.dimensions();
    std::vector<float> means(codes_.means().begin(), codes_.means().end());
    auto square = [&](const char* name, const std::vector<double>& numbers) {
        return StoredTensor{name, Element::f64, {D, D}, numbers.data()};
    };
    replace_file(path, [&](const std::string& place) {
        write_safetensors(
            place,
            {stored("weights", codes_.weights()), stored("means", view_of(means, {M, D}, "means")),
             square("factor", codes_.factor()), stored("channel.shift", shift_), square("channel.slope", slope_),
             square("channel.noise", noise_)},
            {{"format", "pt"},
             {"kind", "mixture of Gaussians with one covariance"},
             {"layers", std::to_string(space_.layers())},
             {"size", std::to_string(space_.size())},
             {"model", hexadecimal(model)}});
    });
}

LatentPrior LatentPrior::load(const std::string& path, const LatentSpace& space, std::uint64_t model) {
    TensorFile file(path);
    auto said = [&](const char* key) {
        auto found = file.metadata().find(key);
        return found == file.metadata().end() ? std::string("nothing") : found->second;
    };
    const std::int64_t D = std::int64_t(space.layers()) * space.size();
    if (said("layers") != std::to_string(space.layers()) || said("size") != std::to_string(space.size()))
        throw BadInput(text(path, " is a prior of ", said("layers"), " latent layers of ", said("size"),
                            " numbers, the model has ", space.layers(), " of ", space.size()));
    if (said("model") != hexadecimal(model))
        throw BadInput(text(path,
                            " was fitted to other weights than those beside it; make it anew with ./train "
                            "--fit-prior RUN, or remove it"));
    const std::int64_t M = file.at("weights").shape.count();
    std::vector<float> means(std::size_t(M * D));
    file.copy_to("means", view_of(means, {M, D}, "means"));
    auto square = [&](const char* name) {
        std::vector<double> numbers(std::size_t(D * D));
        View to;
        to.data = numbers.data();
        to.dtype = DType::f64;
        to.shape = {D, D};
        file.copy_to(name, to);
        return numbers;
    };
    std::vector<double> shift = file.reals("channel.shift");
    if (std::int64_t(shift.size()) != D)
        throw BadInput(text(path, ": tensor channel.shift has ", shift.size(), " numbers, expected ", D));
    try {
        return LatentPrior(
            space, GaussianMixture(file.reals("weights"), {means.begin(), means.end()}, square("factor")),
            std::move(shift), square("channel.slope"), square("channel.noise"));
    } catch (const BadInput& e) {
        std::string what = e.what();
        throw BadInput(what.rfind(path, 0) == 0 ? what : text(path, ": ", what));
    }
}

}  // namespace masquerade
