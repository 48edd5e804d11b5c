// SPDX-License-Identifier: MIT
#include "models/density/prior.h"

#include <algorithm>
#include <numeric>
#include <sstream>

#include "engine/io/checksum.h"
#include "engine/io/file.h"
#include "engine/io/safetensors.h"
#include "input/number.h"

namespace masquerade {
namespace {

// Number of codes (latent vectors of training sentences) per component of the prior. Ten times fewer components would
// give a higher held-out likelihood. But then samples near the means would all be alike, and samples far from the means
// would be word salad (docs/results/univae-default.md).
constexpr int rows_a_component = 4;
constexpr double least_floor = 1e-4;
constexpr int held_out_share = 20;            // one code in 20 is held out, for GaussianMixture::widened()
constexpr std::int64_t most_held_out = 2000;  // maximum number of held-out codes; widened() fits one number to them

// Parses a list such as "3 0 12". Entry n, counted from 0, is the number of training sentences with n tokens.
std::vector<std::uint32_t> numbers_in(const std::string& lengths) {
    std::vector<std::uint32_t> all;
    std::istringstream in(lengths);
    for (std::string word; in >> word;)
        if (!read_number(word, all.emplace_back()))
            throw BadInput("lengths hold ", clipped(word), ", expected whole numbers from 0 to ", UINT32_MAX);
    return all;
}

}  // namespace

MixturePrior MixturePrior::fit(const LatentSpace& space, const View& codes, std::uint64_t seed,
                               const std::vector<int>& lengths) {
    const std::int64_t N = codes.rows(), D = codes.columns();
    if (D != space.numbers())
        throw Error("a prior was given codes ", codes.shape, "; expected (N, ", space.numbers(), ")");
    const std::int64_t held_out = std::min(N / held_out_share, most_held_out);
    const int components = std::max<std::int64_t>(1, (N - held_out) / rows_a_component);
    // N is the number of codes, and D the number of dimensions. If N is small compared with D, the N codes hardly vary
    // in some directions, although the codes of other sentences do. The floor, a share of the mean variance, is
    // therefore at least D / N.
    const double floor = std::max(least_floor, double(D) / N);
    GaussianMixture fitted = GaussianMixture::fit(rows_of(codes, 0, N - held_out), components, floor, seed);
    if (held_out > 0) fitted = fitted.widened(rows_of(codes, N - held_out, held_out));
    // save() stores the means as float. They are rounded here, so that this prior equals the prior loaded from a file.
    Numbers means(fitted.means());
    for (double& m : means) m = float(m);
    MixturePrior prior(space, GaussianMixture(fitted.weights(), std::move(means), fitted.factor()));
    std::vector<std::uint32_t> with_length;
    for (int n : lengths) {
        with_length.resize(std::max<std::size_t>(with_length.size(), n + 1));
        with_length[n]++;
    }
    prior.know_lengths(std::move(with_length));
    return prior;
}

int MixturePrior::draw_length(std::uint64_t seed, std::uint32_t line) const {
    if (with_any_length_ == 0) return 0;
    std::uint32_t rest = Sequence(seed, "latent.length", line).below(with_any_length_);
    std::size_t n = 0;
    while (rest >= with_length_[n]) rest -= with_length_[n++];
    return n;
}

void MixturePrior::know_lengths(std::vector<std::uint32_t> with_length) {
    const std::uint64_t all = std::accumulate(with_length.begin(), with_length.end(), std::uint64_t(0));
    if (all > UINT32_MAX) throw BadInput("its lengths are of ", all, " sentences, expected at most ", UINT32_MAX);
    with_length_ = std::move(with_length);
    with_any_length_ = all;
}

Numbers LatentPrior::draw_rest(const Numbers&, int, int, const PriorDraw&) const {
    throw Error("this prior draws whole codes; it cannot draw some numbers of a code given the others");
}

Numbers MixturePrior::draw(const PriorDraw& how) const {
    return projected(codes_.draw(make_stream(how.seed, "latent.fitted", how.number), how.line,
                                 how.temperature.value_or(default_temperature)));
}

Numbers MixturePrior::draw_rest(const Numbers& known, int from, int to, const PriorDraw& how) const {
    return projected(codes_.draw_rest(known, from, to, make_stream(how.seed, "latent.fitted", how.number), how.line,
                                      how.temperature.value_or(default_temperature)));
}

Numbers MixturePrior::projected(Numbers code) const {
    space_.project(code);
    return code;
}

void MixturePrior::save(const std::string& path, std::uint64_t model) const {
    const std::int64_t M = codes_.components(), D = codes_.dimensions();
    std::vector<float> means(codes_.means().begin(), codes_.means().end());
    std::string lengths;
    for (std::uint32_t n : with_length_) lengths += text(lengths.empty() ? "" : " ", n);
    replace_file(path, [&](const std::string& place) {
        write_safetensors(place,
                          {stored("weights", codes_.weights()),
                           stored("means", view_of(means, {M, D}, "means")),
                           {"factor", Element::f64, {D, D}, codes_.factor().data()}},
                          {{"format", "pt"},
                           {"kind", "mixture of Gaussians with one covariance"},
                           {"layers", std::to_string(space_.layers())},
                           {"size", space_.sizes()},
                           {"lengths", lengths},
                           {"model", hexadecimal(model)}});
    });
}

MixturePrior MixturePrior::load(const std::string& path, const LatentSpace& space, std::uint64_t model) {
    TensorFile file(path);
    auto said = [&](const char* key) {
        auto found = file.metadata().find(key);
        return found == file.metadata().end() ? std::string("nothing") : found->second;
    };
    const std::int64_t D = space.numbers();
    if (said("layers") != std::to_string(space.layers()) || said("size") != space.sizes())
        throw BadInput(path, " is a prior of ", said("layers"), " latent layers of ", said("size"),
                       " numbers, the model has ", space.layers(), " of ", space.sizes());
    if (said("model") != hexadecimal(model))
        throw BadInput(path,
                       " was fitted to other weights than those beside it; fit it again with ./train "
                       "--fit-prior RUN, or remove it");
    const std::int64_t M = file.at("weights").shape.count();
    file.expect("means", {M, D}, DType::f32);  // a wrong shape is found before memory is allocated
    file.expect("factor", {D, D}, DType::f64);
    std::vector<float> means(M * D);
    file.copy_to("means", view_of(means, {M, D}, "means"));
    Numbers weights = file.reals("weights"), factor = file.reals("factor");
    try {
        MixturePrior prior(space, GaussianMixture(std::move(weights), {means.begin(), means.end()}, std::move(factor)));
        prior.know_lengths(numbers_in(file.metadata().count("lengths") ? said("lengths") : ""));
        return prior;
    } catch (const BadInput& e) {
        throw BadInput(path, ": ", e.what());
    }
}

}  // namespace masquerade
