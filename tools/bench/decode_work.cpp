// SPDX-License-Identifier: MIT
#include "tools/bench/decode_work.h"

#include <algorithm>

#include "engine/base/random.h"
#include "models/runs/hugging_face/hugging_face.h"

namespace masquerade {
namespace {

constexpr int first_ordinary = 5, cls = 2, sep = 3;

struct Mark {
    const char* name;
    int layers, width, vocabulary;
};
constexpr Mark marks[] = {{"unilm-default", 3, 256, 4000}, {"unilm-base", 12, 768, 30522}};

BackboneOptions fitting(const BeamSizes& sizes) {
    BackboneOptions o = sizes.model;
    o.positions = sizes.source_tokens + sizes.target_tokens;
    return o;
}

ReadingOptions reading(const BeamSizes& sizes) {
    ReadingOptions r;
    r.causal = true;
    r.source_type = r.target_type = 0;
    r.longest = sizes.target_tokens;
    return r;
}

}  // namespace

const std::vector<std::string>& beam_mark_names() {
    static const std::vector<std::string> names = [] {
        std::vector<std::string> all;
        for (const Mark& m : marks) all.push_back(m.name);
        return all;
    }();
    return names;
}

BeamSizes beam_mark(const std::string& name) {
    for (const Mark& m : marks)
        if (name == m.name) {
            BeamSizes sizes;
            sizes.model.layers = m.layers;
            sizes.model.width = m.width;
            sizes.model.heads = m.width / 64;
            sizes.model.inner = 4 * m.width;
            sizes.model.vocabulary = m.vocabulary;
            sizes.model.rotary = false;
            return sizes;
        }
    throw BadUsage(text("there is no model ", name, " of beams; there are unilm-default and unilm-base"));
}

BeamWork::BeamWork(const BeamSizes& s, Device device, std::uint64_t seed)
    : sizes(s),
      seed_(seed),
      parameters_(DType::f32, device),
      model_(parameters_, fitting(s)),
      cached_(model_, reading(s)),
      uncached_(model_, reading(s)) {
    parameters_.allocate(seed);
    Sequence random(seed, "sources");
    const auto ordinary = std::uint32_t(s.model.vocabulary - first_ordinary);
    for (int i = 0; i < s.sources; i++) {
        Sentence one;
        one.name = i;
        one.ids.assign(std::size_t(s.source_tokens), cls);
        for (std::size_t k = 1; k + 1 < one.ids.size(); k++)
            one.ids[k] = first_ordinary + int(random.below(ordinary));
        one.ids.back() = sep;
        sources_.push_back(one);
    }
    options_.beams = s.beams;
    options_.minimum = options_.maximum = s.target_tokens;
    options_.forbidden = {0, 1, cls, 4};
}

Written BeamWork::write(SourceReader& reader) const {
    std::vector<SearchSource> about;
    for (const Sentence& s : sources_) {
        SearchSource source;
        source.line = std::uint32_t(s.name);
        source.begin = sep;
        source.ends = {end()};
        about.push_back(source);
    }
    return write_targets(reader, about, pointers_to(sources_), options_, seed_);
}

void BeamWork::save(const std::string& folder) const {
    std::vector<std::string> tokens(std::begin(special_tokens), std::end(special_tokens));
    while (int(tokens.size()) < sizes.model.vocabulary) tokens.push_back(text("w", tokens.size()));
    save_hugging_face(folder, model_.backbone, parameters_, Vocabulary(tokens));
}

bool same(const Written& a, const Written& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& one, const auto& other) {
        return one.front().tokens == other.front().tokens && one.front().score == other.front().score;
    });
}

}  // namespace masquerade
