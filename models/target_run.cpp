// SPDX-License-Identifier: MIT
#include "models/target_run.h"

#include <algorithm>

namespace masquerade {

std::vector<Sentence> TargetRun::beginnings(const std::vector<std::string>& lines) const {
    std::vector<Sentence> all = sentences(lines);
    for (Sentence& s : all) s.ids.pop_back();
    return all;
}

SearchSource TargetRun::search_source(const Sentence& s, int begin, int maximum) const {
    SearchSource source;
    source.line = std::uint32_t(s.name);
    source.begin = begin;
    source.ends = {tokenizer.vocabulary().sep()};
    source.maximum = std::max(1, maximum);
    source.tokens = s.ids;
    return source;
}

std::vector<std::vector<Hypothesis>> TargetRun::written(SourceReader& reader,
                                                        const std::vector<SearchSource>& about,
                                                        const std::vector<const Sentence*>& sources,
                                                        SearchOptions options, std::uint64_t seed) const {
    constexpr std::size_t at_a_time = 64;
    for (int id : special_tokens())
        if (id != tokenizer.vocabulary().sep() && id != tokenizer.vocabulary().unk())
            options.forbidden.push_back(id);
    std::vector<std::vector<Hypothesis>> all;
    for (std::size_t first = 0; first < sources.size(); first += at_a_time) {
        const auto from = std::ptrdiff_t(first),
                   to = std::ptrdiff_t(std::min(sources.size(), first + at_a_time));
        reader.read({sources.begin() + from, sources.begin() + to},
                    int(to - from) * std::max(options.beams, options.samples));
        for (auto& hypotheses : search(reader, {about.begin() + from, about.begin() + to}, options, seed))
            all.push_back(std::move(hypotheses));
    }
    return all;
}

void TargetRun::expect_fitting(const TrainingText& t, bool mask_token) const {
    if (reads_pairs() && t.train_targets.empty())
        throw BadInput(
            masquerade::text("objective ", objective(), " needs pairs, and ", t.origin.name,
                             " holds none; give --data FILE with source<TAB>target on every line"));
    if (mask_token && tokenizer.vocabulary().mask() < 0)
        throw BadInput(
            masquerade::text("objective ", objective(), " needs [MASK], which the vocabulary lacks"));
}

}  // namespace masquerade
