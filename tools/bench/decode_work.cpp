// SPDX-License-Identifier: MIT
#include "tools/bench/decode_work.h"

#include <algorithm>

#include "engine/base/random.h"
#include "engine/tensor/numbers.h"
#include "models/runs/hugging_face/hugging_face.h"

namespace masquerade {
namespace {

constexpr int first_ordinary = 5, cls = 2, sep = 3;

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

class UncachedUniLm : public SourceReader {
  public:
    UncachedUniLm(const UniLm& model, const ReadingOptions& options)
        : model_(model),
          options_(options),
          arena_(model.backbone.device(), Blocks::kept),
          tape_(arena_, model.backbone.storage()) {}

    void read(const std::vector<const Sentence*>& sources, int) override {
        sources_ = sources;
        written_.clear();
    }
    int vocabulary() const override { return model_.backbone.options.vocabulary; }
    const float* step(const std::vector<Row>& rows) override;

  private:
    // Every prefix with its source, asked for what follows its last token.
    Batch batch(const std::vector<Row>& rows) const;

    const UniLm& model_;
    const ReadingOptions options_;
    Arena arena_;
    Tape tape_;
    std::vector<const Sentence*> sources_;
    std::vector<std::vector<int>> written_;  // of the rows of the step before
    std::vector<float> logits_;
};

const float* UncachedUniLm::step(const std::vector<Row>& rows) {
    std::vector<std::vector<int>> written(rows.size());
    for (std::size_t i = 0; i < rows.size(); i++) {
        if (rows[i].parent < 0) continue;  // the source alone
        written[i] = written_[std::size_t(rows[i].parent)];
        written[i].push_back(rows[i].token);
    }
    written_.swap(written);
    const Batch b = batch(rows);
    tape_.begin("step");
    const OnHost logits(model_.backbone.logits(tape_, model_.hidden(tape_, b))->view());  // (rows,V)
    const float* numbers = logits.view().as<float>();
    logits_.assign(numbers, numbers + logits.view().count());
    tape_.end();
    return logits_.data();
}

Batch UncachedUniLm::batch(const std::vector<Row>& rows) const {
    Batch b;
    Documents documents;
    for (std::size_t i = 0; i < rows.size(); i++) {
        const Sentence& source = *sources_.at(std::size_t(rows[i].source));
        const int n = int(source.ids.size()), t = int(written_[i].size());
        const int start = options_.target_start < 0 ? n : options_.target_start;
        for (int k = 0; k < n; k++)
            b.rows.push(source.ids[std::size_t(k)], options_.source_type, k, source.name);
        for (int k = 0; k < t; k++)
            b.rows.push(written_[i][std::size_t(k)], options_.target_type, start + k, source.name);
        b.asked.rows.push_back(b.rows.count() - 1);
        b.scored.push(b.rows.ids.back(), b.rows.types.back(), b.rows.positions.back(), source.name);
        documents.push_back({n, t});
    }
    b.graph = options_.causal ? causal_mask(documents) : unilm_mask(documents);
    b.scored_graph = only_queries(b.graph, b.asked.rows);
    return b;
}

}  // namespace

BeamWork::BeamWork(const BeamSizes& s, Device device, std::uint64_t seed)
    : sizes(s),
      seed_(seed),
      parameters_(DType::f32, device),
      model_(parameters_, fitting(s)),
      cached_(model_, reading(s)),
      uncached_(std::make_unique<UncachedUniLm>(model_, reading(s))) {
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
        source.ends = {sep};
        about.push_back(source);
    }
    return write_targets(reader, about, pointers_to(sources_), options_, seed_);
}

nlohmann::ordered_json BeamWork::save(const std::string& folder) const {
    std::vector<std::string> tokens(std::begin(special_tokens), std::end(special_tokens));
    while (int(tokens.size()) < sizes.model.vocabulary) tokens.push_back(text("w", tokens.size()));
    save_hugging_face(folder, model_.backbone, parameters_, Vocabulary(tokens));
    nlohmann::ordered_json about = {{"folder", folder}, {"forbidden", options_.forbidden}, {"end", sep}};
    for (const Sentence& s : sources_) about["sources"].push_back(s.ids);
    return about;
}

bool same(const Written& a, const Written& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& one, const auto& other) {
        return one.front().tokens == other.front().tokens && one.front().score == other.front().score;
    });
}

}  // namespace masquerade
