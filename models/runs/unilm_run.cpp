// SPDX-License-Identifier: MIT
#include "models/runs/unilm_run.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "input/input.h"
#include "models/runs/target_task.h"

namespace masquerade {
namespace {

BackboneOptions model_options(const UniLmSettings& s, int vocabulary) {
    BackboneOptions o = s.model;
    o.vocabulary = vocabulary;
    o.positions = std::max(o.positions, s.max_length + s.max_target);
    return o;
}

}  // namespace

UniLmSettings::UniLmSettings() {
    objective = "unilm";
    batch_tokens = 2000;
    model.width = 256;
    model.heads = 4;
    model.inner = 1024;
    model.layers = 3;
    model.positions = 0;
    model.deviation = 0.035;
    model.dropout = 0.1;
    label_smoothing = 0.1;
    train.learning_rate = 1.5e-3;
}

void UniLmSettings::declare(Config& c) {
    c.add("objective", &objective, "what it is trained to do; several with weights: mlm:2,unilm:1");
    declare_backbone(c, model);
    declare_reading(c, model);
    c.add(
        "fixed_target_start", &fixed_target_start,
        "a target's positions start at max_length; false: after its source, which tells the source's length");
    c.add("hidden", &hidden, "mlm: share of the tokens that are hidden", 0, 1);
    c.add("predicted", &predicted, "plm: share of the tokens that are asked for", 0, 1);
    declare_rest(c, model);
}

UniLmRun::UniLmRun(const UniLmSettings& s, Vocabulary vocabulary, DType storage, Device device)
    : TargetRun(s, std::move(vocabulary), storage, device),
      settings(s),
      mixture(ObjectiveMixture::parse(s.objective)),
      model(parameters, model_options(s, tokenizer.vocabulary().size())),
      pairs_(mixture.has(Objective::pairs)) {
    expect_types(s, s.model);
    parameters.allocate(settings.train.seed);
}

std::unique_ptr<UniLmRun> UniLmRun::load(const std::string& path, bool to_train, Device device) {
    const RunFolder folder = RunFolder::open(path);
    const std::int64_t step = folder.latest_step();
    UniLmSettings settings;
    read_settings(folder, step, "unilm", settings);
    auto run = std::make_unique<UniLmRun>(settings, vocabulary_of(folder),
                                          to_train ? settings.precision : DType::f32, device);
    run->load_checkpoint(folder, step);
    const auto record = parse_input<BadInput>(run->run_json, folder.file("run.json"));
    const nlohmann::json::json_pointer pairs("/data/pairs");
    run->pairs_ = run->pairs_ || (record.contains(pairs) && record.at(pairs) == true);
    return run;
}

std::unique_ptr<Task> UniLmRun::task(const TrainingText& t) {
    expect_fitting(t, mixture.has(Objective::mask_token));
    pairs_ = !t.train_targets.empty();
    return std::make_unique<TaskOf<UniLmRun, ObjectiveBatch>>(*this, sentences(t.train, t.train_targets),
                                                              sentences(t.held_out, t.held_out_targets));
}

std::string UniLmRun::description() const {
    const BackboneOptions& b = model.backbone.options;
    return masquerade::text(b.layers, " layers of width ", b.width, ", objective ", settings.objective);
}

void UniLmRun::save_config(const std::string& folder) const {
    UniLmSettings copy = settings;
    Config keys;
    copy.declare(keys);
    nlohmann::json config = hugging_face_sizes(model.backbone.options);
    config["model_type"] = "unilm";
    config["architectures"] = {"UniLM"};
    config["unilm"] = keys.to_json();
    write_config(folder, config);
}

ObjectiveOptions UniLmRun::objective_options() const {
    ObjectiveOptions o;
    o.vocabulary = model.backbone.options.vocabulary;
    o.special = special_tokens();
    o.mask = tokenizer.vocabulary().mask();
    o.hidden = settings.hidden;
    o.predicted = settings.predicted;
    o.source_type = settings.source_type;
    o.target_type = settings.target_type;
    o.target_start = settings.fixed_target_start ? settings.max_length : -1;
    o.seed = settings.train.seed;
    return o;
}

bool UniLmRun::trained_on(std::initializer_list<const char*> objectives) const {
    return std::any_of(mixture.parts.begin(), mixture.parts.end(), [&](const ObjectiveMixture::Part& p) {
        return std::find(objectives.begin(), objectives.end(), std::string(p.objective->name)) !=
               objectives.end();
    });
}

bool UniLmRun::writes() const { return trained_on({"unilm", "prefix-lm", "lm", "lm-target"}); }

bool UniLmRun::writes_backward() const { return trained_on({"lm-reverse"}); }

// As the objectives that write read in training: in both directions where one of them did so, else from left to right.
ReadingOptions UniLmRun::reading_options() const {
    const ObjectiveOptions o = objective_options();
    ReadingOptions r;
    r.causal = !trained_on({"unilm", "prefix-lm"});
    r.source_type = o.source_type;
    r.target_type = o.target_type;
    r.target_start = o.target_start;
    r.longest = continues() ? settings.max_length : settings.max_target;
    if (continues()) r.target_start = -1;
    if (r.causal && continues()) r.target_type = r.source_type;
    return r;
}

std::vector<std::vector<Hypothesis>> UniLmRun::write(const std::vector<const Sentence*>& sources,
                                                     SearchOptions options, std::uint64_t seed) const {
    std::vector<SearchSource> about;
    for (const Sentence* s : sources) {
        const int room = continues() ? settings.max_length - int(s->ids.size()) : settings.max_target;
        about.push_back(
            search_source(*s, s->ids.back(), tokenizer.vocabulary().sep(), std::min(options.maximum, room)));
    }
    UniLmDecoder decoder(model, reading_options());
    return written(decoder, about, sources, std::move(options), seed);
}

std::unique_ptr<SourceReader> UniLmRun::backward_reader(int most) const {
    if (!writes_backward()) return nullptr;
    ReadingOptions r;
    r.backward = true;
    r.source_type = r.target_type = settings.source_type;
    r.longest = most;
    r.room = settings.max_length;
    return std::make_unique<UniLmDecoder>(model, r);
}

std::vector<PartLoss> UniLmRun::losses(const std::vector<const Sentence*>& some, bool targets) const {
    std::vector<PartLoss> all;
    for (const ObjectiveMixture::Part& part : mixture.parts)
        if (targets || !part.objective->has(Objective::pairs))
            all.push_back({part.objective->name, part.weight,
                           scored_loss(model, model.backbone, *part.objective, objective_options(), some)});
    return all;
}

}  // namespace masquerade
