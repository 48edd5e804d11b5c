// SPDX-License-Identifier: MIT
#include "models/density/prior.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <sstream>

#include "engine/io/file.h"
#include "engine/io/safetensors.h"

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

std::string hexadecimal(std::uint64_t n) { return fmt::format("{:016x}", n); }

}  // namespace

LatentPrior LatentPrior::fit(const LatentSpace& space, const View& codes, std::uint64_t seed, const std::vector<int>& lengths) {
    const std::int64_t N = codes.rows(), D = codes.columns();
    if (D != space.numbers())
        throw Error(text("a prior was given codes ", codes.shape, "; expected (N, ", space.numbers(), ")"));
    MixtureOptions options;
    const std::int64_t held_out = std::min(N / held_out_share, most_held_out);
    options.components = int(std::max<std::int64_t>(1, (N - held_out) / rows_a_component));
    options.rounds = rounds;
    // Fewer codes than dimensions leave directions in which nothing varies; others will.
    options.floor = std::max(options.floor, double(D) / double(N));
    options.seed = seed;
    GaussianMixture fitted = GaussianMixture::fit(rows_of(codes, 0, N - held_out), options);
    if (held_out > 0) fitted = fitted.widened(rows_of(codes, N - held_out, held_out));
    // The file holds means in float: from here on they are what a reader of it will see.
    std::vector<double> means(fitted.means());
    for (double& m : means) m = double(float(m));
    LatentPrior prior(space, GaussianMixture(fitted.weights(), std::move(means), fitted.factor()));
    for (int n : lengths) {
        prior.with_length_.resize(std::max(prior.with_length_.size(), std::size_t(n) + 1));
        prior.with_length_[std::size_t(n)]++;
    }
    return prior;
}

int LatentPrior::draw_length(std::uint64_t seed, std::uint32_t line) const {
    const int all = std::accumulate(with_length_.begin(), with_length_.end(), 0);
    int rest = all == 0 ? 0 : int(Sequence(seed, "latent.length", line).below(std::uint32_t(all)));
    for (std::size_t n = 0; n < with_length_.size(); n++)
        if (rest -= with_length_[n]; rest < 0) return int(n);
    return 0;
}

std::vector<double> LatentPrior::draw(std::uint64_t seed, std::uint32_t line, std::uint32_t number,
                                      double temperature) const {
    return projected(codes_.draw(make_stream(seed, "latent.fitted", number), line, temperature));
}

std::vector<double> LatentPrior::draw_rest(const std::vector<double>& known, int from, int to, std::uint64_t seed, std::uint32_t line,
                                           std::uint32_t number, double temperature) const {
    return projected(codes_.draw_rest(known, from, to, make_stream(seed, "latent.fitted", number), line, temperature));
}

std::vector<double> LatentPrior::projected(std::vector<double> code) const {
    space_.project(code);
    return code;
}

void LatentPrior::save(const std::string& path, std::uint64_t model) const {
    const std::int64_t M = codes_.components(), D = codes_.dimensions();
    std::vector<float> means(codes_.means().begin(), codes_.means().end());
    std::string lengths;
    for (int n : with_length_) lengths += text(lengths.empty() ? "" : " ", n);
    replace_file(path, [&](const std::string& place) {
        write_safetensors(place,
                          {stored("weights", codes_.weights()), stored("means", view_of(means, {M, D}, "means")),
                           {"factor", Element::f64, {D, D}, codes_.factor().data()}},
                          {{"format", "pt"},
                           {"kind", "mixture of Gaussians with one covariance"},
                           {"layers", std::to_string(space_.layers())},
                           {"size", space_.sizes()},
                           {"lengths", lengths},
                           {"model", hexadecimal(model)}});
    });
}

LatentPrior LatentPrior::load(const std::string& path, const LatentSpace& space, std::uint64_t model) {
    TensorFile file(path);
    auto said = [&](const char* key) {
        auto found = file.metadata().find(key);
        return found == file.metadata().end() ? std::string("nothing") : found->second;
    };
    const std::int64_t D = space.numbers();
    if (said("layers") != std::to_string(space.layers()) || said("size") != space.sizes())
        throw BadInput(text(path, " is a prior of ", said("layers"), " latent layers of ", said("size"),
                            " numbers, the model has ", space.layers(), " of ", space.sizes()));
    if (said("model") != hexadecimal(model))
        throw BadInput(text(path,
                            " was fitted to other weights than those beside it; make it anew with ./train "
                            "--fit-prior RUN, or remove it"));
    const std::int64_t M = file.at("weights").shape.count();
    std::vector<float> means(std::size_t(M * D));
    file.copy_to("means", view_of(means, {M, D}, "means"));
    std::vector<double> weights = file.reals("weights"), factor(std::size_t(D * D));
    View to;
    to.data = factor.data();
    to.dtype = DType::f64;
    to.shape = {D, D};
    file.copy_to("factor", to);
    try {
        LatentPrior prior(space, GaussianMixture(std::move(weights), {means.begin(), means.end()}, std::move(factor)));
        std::istringstream lengths(file.metadata().count("lengths") ? said("lengths") : "");
        for (int n = 0; lengths >> n && n >= 0;) prior.with_length_.push_back(n);
        return prior;
    } catch (const BadInput& e) {
        throw BadInput(text(path, ": ", e.what()));
    }
}

}  // namespace masquerade
