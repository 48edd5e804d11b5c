// SPDX-License-Identifier: MIT
#include "models/tasks/objective_mixture.h"

#include <algorithm>
#include <cstdlib>
#include <sstream>

#include "engine/base/random.h"

namespace masquerade {
namespace {

double weight_of(const std::string& word, const std::string& words) {
    char* end = nullptr;
    const double weight = std::strtod(word.c_str(), &end);
    if (word.empty() || *end || !(weight > 0) || weight > 1e9)
        throw BadUsage(text("objective ", words, ": ", word,
                            " is no weight; expected a number above 0, as in mlm:2,unilm:1"));
    return weight;
}

}  // namespace

ObjectiveMixture ObjectiveMixture::parse(const std::string& words, const std::vector<Objective>& table) {
    ObjectiveMixture mixture;
    std::istringstream in(words);
    double sum = 0;
    for (std::string word; std::getline(in, word, ',');) {
        const std::size_t colon = word.find(':');
        const double weight = colon == std::string::npos ? 1 : weight_of(word.substr(colon + 1), words);
        mixture.parts.push_back({&find_objective(word.substr(0, colon), table), weight});
        sum += weight;
    }
    if (mixture.parts.empty()) find_objective(words, table);
    for (Part& part : mixture.parts) part.weight /= sum;
    return mixture;
}

const Objective& ObjectiveMixture::at(std::uint64_t seed, std::uint32_t step) const {
    Sequence random(seed, "objective", step);
    double u = random.uniform_double();
    for (const Part& part : parts) {
        if (u < part.weight) return *part.objective;
        u -= part.weight;
    }
    return *parts.back().objective;
}

bool ObjectiveMixture::has(Objective::Trait trait) const {
    return std::any_of(parts.begin(), parts.end(), [&](const Part& p) { return p.objective->has(trait); });
}

}  // namespace masquerade
