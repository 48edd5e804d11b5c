// SPDX-License-Identifier: MIT
// Finds the sentences of a corpus whose vectors have the largest cosine similarity with the vectors of the input lines.
// If the option --vectors is given, also saves the vectors of the input lines.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "data/text.h"
#include "engine/base/named.h"
#include "engine/tape/trace.h"
#include "models/latent/latent.h"
#include "models/runs/writer.h"

namespace masquerade {
namespace {

// Scales a vector to length 1. A vector of zeros stays as it is: its cosine with any other vector is 0.
void scale_to_unit(Numbers& v) {
    const double length = std::sqrt(std::inner_product(v.begin(), v.end(), v.begin(), 0.0));
    for (double& x : v) x /= length > 0 ? length : 1;
}

class Neighbours {
  public:
    Neighbours(const Run& run, const Writing& how) : run_(run), how_(how) {
        which_.set_state(how.states);
        which_.drawn = how.posterior;
        which_.seed = how.seed;
        if (how.nearest.empty() && how.vectors.empty())
            throw BadUsage("--states chooses the vectors of --vectors and --nearest: give one of the two options");
        const Vectors some = run.vectors({""}, which_);
        if (some.empty()) refuse();
        columns_ = std::int64_t(some[0].size());
        if (how.nearest.empty()) return;
        for (std::string& line : at_tabs(read_text(how.nearest).source).left)
            if (!line.empty()) corpus_.push_back(std::move(line));
        corpus_vectors_ = run.vectors(corpus_, which_);
        for (Numbers& v : corpus_vectors_) scale_to_unit(v);
    }

    std::string write(const Strings& given, std::uint32_t first) {
        const Strings lines = at_tabs(given).left;
        which_.first_line = first;
        Vectors vectors = run_.vectors(lines, which_);
        std::string all;
        for (std::size_t i = 0; i < lines.size(); i++) {
            if (!how_.vectors.empty()) append(rows_, vectors[i]);
            if (how_.nearest.empty()) continue;
            scale_to_unit(vectors[i]);
            if (!lines[i].empty()) all += nearest_to(vectors[i]);
            all += '\n';
        }
        return all;
    }

    void finish() {
        const auto rows = std::int64_t(rows_.size()) / columns_;
        if (!how_.vectors.empty())
            write_npy(how_.vectors, {rows_.data(), DType::f64, Device::cpu, {rows, columns_}, "vectors"});
    }

  private:
    [[noreturn]] void refuse() const {
        const std::string run = text(how_.run, " is a run of ", run_.common().family());
        if (how_.posterior) {
            Strings kinds;
            for (const LatentKindRow& row : latent_kinds())
                if (row.has(LatentKindRow::noise)) kinds.emplace_back(row.name);
            throw BadUsage("--posterior: ", run, " whose vectors have no noise; expected a univae with one of ",
                           "these kinds of latents: ", joined(kinds));
        }
        throw BadUsage(!how_.states.empty()   ? "--states"
                       : how_.nearest.empty() ? "--vectors"
                                              : "--nearest",
                       ": ", run, " that has no vectors of lines; expected unilm, seq2seq, insertion, classify ",
                       "with a folder of single texts, or univae with latents and without conditional=true");
    }
    // Returns the nearest sentences, best first, each followed by a tab and its cosine. Sentences with equal cosines
    // keep the order of the corpus.
    std::string nearest_to(const Numbers& v) const {
        std::vector<std::pair<double, std::size_t>> all;  // minus the cosine, and the index of the sentence in corpus_
        for (std::size_t i = 0; i < corpus_.size(); i++)
            all.emplace_back(-std::inner_product(v.begin(), v.end(), corpus_vectors_[i].begin(), 0.0), i);
        const auto best = all.begin() + std::min(std::ptrdiff_t(how_.neighbours), std::ptrdiff_t(all.size()));
        std::partial_sort(all.begin(), best, all.end());
        std::string line;
        for (auto at = all.begin(); at < best; at++)
            line += fmt::format("{}{}\t{:.4f}", line.empty() ? "" : "\t", corpus_[at->second], -at->first);
        return line;
    }

    const Run& run_;
    const Writing how_;
    VectorChoice which_;
    Strings corpus_;
    Vectors corpus_vectors_;  // scaled to length 1
    Numbers rows_;            // the vectors of the input lines, one after another
    std::int64_t columns_;    // the numbers of a vector
};

}  // namespace

RunWriter neighbour_writer(const Run& run, const Writing& how) {
    const auto found = std::make_shared<Neighbours>(run, how);
    return {0, [=](const Strings& lines, std::uint32_t first) { return found->write(lines, first); },
            [=] { found->finish(); }};
}

}  // namespace masquerade
