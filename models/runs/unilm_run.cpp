// SPDX-License-Identifier: MIT
#include "models/runs/unilm_run.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "engine/tensor/numbers.h"
#include "models/tasks/objective_parts.h"

namespace masquerade {

UniLmSettings::UniLmSettings() {
    objective = "unilm";
    start_with(model, 3);
    model.dropout = 0.1;
    label_smoothing = 0.1;
}

void UniLmSettings::declare(Config& c) {
    c.add("objective", &objective, "training objective; several with weights: mlm:2,unilm:1");
    declare_backbone(c, model);
    declare_reading(c, model);
    c.add("fixed_target_start", &fixed_target_start,
          "start the positions of targets at max_length; false: after the source, which reveals its length");
    declare_mask(c);
    c.add("hidden", &hidden, "mlm, pmlm, k-bert: share of the tokens that are masked", 0, 1);
    c.add("masking", &masking,
          "mlm, k-bert: what is masked together: single tokens, whole words, or spans of whole words",
          {{"tokens", Masking::tokens}, {"words", Masking::words}, {"spans", Masking::spans}});
    c.add("span_stop", &span_stop, "mlm, k-bert: with masking=spans, probability that a span ends after a word", 0.01,
          1);
    c.add("span_longest", &span_longest, "mlm, k-bert: with masking=spans, maximum number of words of a span", 1, 1000);
    c.add("hidden_target", &hidden_target, "unilm-masked: share of the tokens of a target that are masked", 0, 1);
    c.add("blocks", &blocks, "pmlm: share of the spans that have 2 to 6 tokens; other spans have one token", 0, 1);
    c.add("predicted", &predicted, "plm: share of the tokens that are predicted", 0, 1);
    declare_rest(c, model);
}

BackboneOptions UniLmSettings::net(int vocabulary_size) const {
    BackboneOptions o = model;
    o.vocabulary = vocabulary_size;
    o.positions = std::max(o.positions, max_length + max_target);
    expect_types(o);
    if (!mask.empty() && mixture().has(Objective::ranks))
        throw BadUsage(text("objective ", objective, " needs a mask of its own: leave out mask="));
    return o;
}

void UniLmRun::loaded(const nlohmann::json& record) {
    const nlohmann::json::json_pointer pairs("/data/pairs");
    pairs_ = pairs_ || (record.contains(pairs) && record.at(pairs) == true);
}

std::string UniLmRun::description() const {
    const BackboneOptions& b = model.backbone.options;
    return masquerade::text(b.layers, " layers of width ", b.width, ", objective ", settings.objective);
}

ObjectiveOptions UniLmRun::objective_options() const {
    ObjectiveOptions o = TargetRun::objective_options();
    o.hidden = settings.hidden;
    o.predicted = settings.predicted;
    o.hidden_target = settings.hidden_target;
    const char* brackets[] = {"[", "]", "(", ")"};
    for (int i = 0; i < 4; i++) o.brackets[i] = tokenizer.vocabulary().id(brackets[i]);
    o.blocks = settings.blocks;
    o.masking = settings.masking;
    o.span_stop = settings.span_stop;
    o.span_longest = settings.span_longest;
    if (o.masking != Masking::tokens && !continues_) {
        auto each = std::make_shared<std::vector<bool>>();
        for (int id = 0; id < o.vocabulary; id++)
            each->push_back(masquerade::continues(tokenizer.vocabulary().token(id)));
        continues_ = std::move(each);
    }
    o.continues = continues_;
    o.target_start = settings.fixed_target_start ? settings.max_length : -1;
    return o;
}

std::string UniLmRun::unwritable() const { return masks.own ? masks.own->unwritable(reads_causally()) : ""; }

ReadingOptions UniLmRun::reading_options() const {
    const ObjectiveOptions o = objective_options();
    ReadingOptions r;
    r.causal = reads_causally();
    r.source_type = o.source_type;
    r.target_type = o.target_type;
    r.target_start = o.target_start;
    r.longest = continues() ? settings.max_length : settings.max_target;
    if (continues()) r.target_start = -1;
    if (r.causal && continues()) r.target_type = r.source_type;
    r.masks = o.masks;
    r.goes_on = r.causal;
    const auto writes_next = [](const ObjectiveMixture::Part& part) {
        return part.objective->has(Objective::writes) && !part.objective->has(Objective::at_mask);
    };
    if (std::none_of(mixture.parts.begin(), mixture.parts.end(), writes_next)) r.mask = o.mask;
    return r;
}

std::vector<std::vector<Hypothesis>> UniLmRun::write(const std::vector<const Sentence*>& sources, SearchOptions options,
                                                     std::uint64_t seed) const {
    std::vector<SearchSource> about;
    for (const Sentence* s : sources) {
        const int room = continues() ? settings.max_length - int(s->ids.size()) : settings.max_target;
        about.push_back(
            search_source(*s, s->ids.back(), tokenizer.vocabulary().sep(), std::min(options.maximum, room)));
    }
    UniLmDecoder decoder(model, reading_options());
    return written(decoder, about, sources, std::move(options), seed);
}

// Returns, for each line, the last hidden state averaged over the tokens, including [CLS] and [SEP]. The stack has the
// mask of the first objective.
std::vector<std::vector<double>> UniLmRun::features(const std::vector<std::string>& lines) const {
    const Objective& objective = *mixture.parts.at(0).objective;
    const ObjectiveOptions options = objective_options();
    const std::int64_t C = model.backbone.options.width;
    std::vector<std::vector<double>> means;
    const auto make = [&](const std::vector<const Sentence*>& some) {
        std::vector<Example> examples;
        for (const Sentence* s : some) {
            Example& e = examples.emplace_back();
            if (objective.has(Objective::trees)) {
                e = tree_of(*s, options);
                continue;
            }
            const int n = int(s->ids.size());
            for (int t = 0; t < n; t++) e.rows.push(s->ids[std::size_t(t)], options.source_type, t, s->name);
            e.document = {n, 0};
            if (objective.has(Objective::ranks)) e.rank.assign(std::size_t(n), -1);
        }
        Batch batch = pack(examples, 0);
        objective.give_masks(batch, options);
        return batch;
    };
    const std::vector<Sentence> all = sentences(lines);
    each_batch(model.backbone, pointers_to(all), 64, make, [&](Tape& tape, const Batch& batch, std::size_t) {
        tape.begin("features");
        const auto before = [&](int i, Tensor*&, Pass& pass) { pass.graph = &batch.graph_at(i); };
        Tensor* x = model.backbone.run(tape, batch.rows, model.backbone.pass(tape, batch.rows, batch.graph), before);
        const OnHost states(model.backbone.finish(tape, x)->view());  // (N,C)
        std::int64_t at = 0;
        for (const Document& d : batch.parts) {
            means.emplace_back(std::size_t(C), 0);
            for (int row = 0; row < d.source; row++)
                for (double& mean : means.back()) mean += states[at++] / d.source;
        }
        tape.end();
    });
    return means;
}

std::unique_ptr<SourceReader> UniLmRun::backward_reader(int most) const {
    if (!writes_backward()) return nullptr;
    if (!settings.mask.empty())
        throw BadUsage("a run with a mask in words (mask=) generates only from left to right: leave out --backward");
    ReadingOptions r;
    r.backward = true;
    r.source_type = r.target_type = settings.source_type;
    r.longest = most;
    r.room = settings.max_length;
    return std::make_unique<UniLmDecoder>(model, r);
}

}  // namespace masquerade
