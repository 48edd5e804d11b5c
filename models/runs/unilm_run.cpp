// SPDX-License-Identifier: MIT
#include "models/runs/unilm_run.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "engine/base/log.h"
#include "models/tasks/objective_parts.h"

namespace masquerade {

UniLmSettings::UniLmSettings() {
    objective = "unilm";
    start_with(model, 3);
    model.dropout = 0.1;
    label_smoothing = 0.1;
}

void UniLmSettings::declare(Config& c) {
    c.topic("Objective");
    c.add("objective", &objective, "training objective; several with weights: mlm:2,unilm:1");
    declare_backbone(c, model);
    declare_reading(c, model);
    c.topic("Text");
    c.add("fixed_target_start", &fixed_target_start,
          "start the positions of targets at max_length; false: right after the source, so that they depend on "
          "its length");
    declare_mask(c);
    c.topic("Objective");
    c.add("hidden", &how.hidden, "mlm, pmlm, k-bert: share of the tokens that are masked, at least one in each text", 0,
          1);
    c.add("masking", &how.masking,
          "mlm, k-bert: what is masked together: single tokens, whole words, or spans of whole words",
          {{"tokens", Masking::tokens}, {"words", Masking::words}, {"spans", Masking::spans}});
    c.add("span_stop", &how.span_stop, "mlm, k-bert: with masking=spans, probability that a span ends after a word",
          0.01, 1);
    c.add("span_longest", &how.span_longest, "mlm, k-bert: with masking=spans, maximum number of words of a span", 1,
          1000);
    c.add("hidden_target", &how.hidden_target, "unilm-masked: share of the tokens of a target that are masked", 0, 1);
    c.add("blocks", &how.blocks,
          "pmlm: spans of tokens are masked; this share of them has 2 to 6 tokens, the others have one", 0, 1);
    declare_diffusion(c);
    c.add("block", &how.diffusion.block, "block-diffusion: tokens of a block", 1, 65536);
    c.topic("Objective");
    c.add("predicted", &how.predicted, "plm: share of the tokens that are predicted", 0, 1);
    declare_rest(c, model);
}

BackboneOptions UniLmSettings::net(int vocabulary_size) const {
    BackboneOptions o = model;
    o.vocabulary = vocabulary_size + counts();
    o.positions = std::max(o.positions, max_length + max_target);
    expect_types(o);
    if (!mask.empty() && mixture().has(Objective::ranks))
        throw BadUsage("objective ", objective, " needs a mask of its own: leave out mask=");
    return o;
}

void UniLmRun::loaded(const nlohmann::json& record) {
    const nlohmann::json::json_pointer pairs("/data/pairs");
    pairs_ = pairs_ || (record.contains(pairs) && record.at(pairs) == true);
}

std::string UniLmRun::description() const {
    const BackboneOptions& b = model.backbone.options;
    return text(b.layers, " layers of width ", b.width, ", objective ", settings.objective);
}

ObjectiveOptions UniLmRun::objective_options() const {
    ObjectiveOptions o = TargetRun::objective_options();
    const char* brackets[] = {"[", "]", "(", ")"};
    for (int i = 0; i < 4; i++) o.brackets[i] = tokenizer.vocabulary().id(brackets[i]);
    if (o.masking != Masking::tokens && !continues_word_) {
        auto each = std::make_shared<std::vector<bool>>();
        for (int id = 0; id < o.vocabulary; id++)
            each->push_back(masquerade::continues(tokenizer.vocabulary().token(id)));
        continues_word_ = std::move(each);
    }
    o.continues = continues_word_;
    o.target_start = settings.fixed_target_start ? settings.max_length : -1;
    return o;
}

void UniLmRun::reads(const TrainingText& text) {
    if (run_json.empty()) pairs_ = text.pairs();  // a loaded run knows from its record what it was trained on
    if (const std::string why = unwritable(/*backward=*/true); mixture.has(Objective::writes_backward) && !why.empty())
        log_line("warning: objective lm-reverse: ", why);
}

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

std::vector<Hypotheses> UniLmRun::write(const Sentences& sources, SearchOptions options, std::uint64_t seed) const {
    if (unmasks(options)) return unmasked(sources, options, seed);
    UniLmDecoder decoder(model, reading_options());
    return written(decoder, sources, std::move(options), seed, tokenizer.vocabulary().sep(), [&](const Sentence& s) {
        return Start{s.ids.back(), continues() ? settings.max_length - int(s.ids.size()) : settings.max_target};
    });
}

// The states are computed with the attention mask of the mixture's first objective.
Vectors UniLmRun::vectors(const Strings& lines, const VectorChoice& which) const {
    const Objective& objective = *mixture.parts.at(0).objective;
    const ObjectiveOptions options = objective_options();
    const Backbone& stack = model.backbone;
    const auto read = [&](const Sentence& s) {
        if (objective.has(Objective::trees)) return tree_of(s, options);
        Example e = source_of(s);
        if (objective.has(Objective::ranks)) e.rank.assign(s.ids.size(), -1);
        return e;
    };
    const auto give_masks = [&](Batch& batch) { objective.give_masks(batch, options); };
    return states(lines, which, stack, read, give_masks, [&](Tape& tape, const Batch& batch) {
        const auto before = [&](int i, Tensor*&, Pass& pass) { pass.graph = &batch.graph_at(i); };
        return stack.finish(tape, stack.run(tape, batch.rows, stack.pass(tape, batch.rows, batch.graph), before));
    });
}

std::unique_ptr<SourceReader> UniLmRun::backward_reader(int most) const {
    if (!writes_backward()) return nullptr;
    ReadingOptions r;  // r.masks stays null: the default mask is the only one that lm-reverse allows
    r.backward = true;
    r.source_type = r.target_type = settings.how.source_type;
    r.longest = most;
    r.room = settings.max_length;
    return std::make_unique<UniLmDecoder>(model, r);
}

}  // namespace masquerade
