// SPDX-License-Identifier: MIT
#include "models/runs/seq2seq_run.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "models/runs/target_task.h"

namespace masquerade {
namespace {

EncoderDecoderOptions model_options(const Seq2SeqSettings& s, int vocabulary) {
    EncoderDecoderOptions o = s.model;
    o.stack.vocabulary = vocabulary;
    o.stack.positions = std::max({o.stack.positions, s.max_length, s.max_target});
    return o;
}

}  // namespace

Seq2SeqSettings::Seq2SeqSettings() {
    objective = "seq2seq";
    batch_tokens = 2000;
    model.stack.width = 256;
    model.stack.heads = 4;
    model.stack.inner = 1024;
    model.stack.layers = 2;
    model.decoder_layers = 2;
    model.stack.positions = 0;
    model.stack.deviation = 0.035;
    train.learning_rate = 1.5e-3;
}

void Seq2SeqSettings::declare(Config& c) {
    c.add("objective", &objective, "what it is trained to do; both with weights: seq2seq:2,mass:1");
    declare_backbone(c, model.stack);
    c.add("decoder_layers", &model.decoder_layers, "layers of the decoder; `layers` are the encoder's", 1,
          1024);
    c.add("rotary_cross", &model.rotary_cross, "rotary positions in the cross-attention as well");
    declare_reading(c, model.stack);
    c.add("span", &span, "mass: share of the tokens that are hidden", 0, 1);
    declare_rest(c, model.stack);
}

void Seq2SeqSettings::adopt(const EncoderDecoderOptions& stacks) {
    model.stack = stacks.stack;
    model.decoder_layers = stacks.decoder_layers > 0 ? stacks.decoder_layers : stacks.stack.layers;
    if (stacks.decoder_layers > 0) model.rotary_cross = stacks.rotary_cross;
}

Seq2SeqRun::Seq2SeqRun(const Seq2SeqSettings& s, Vocabulary vocabulary, DType storage, Device device)
    : TargetRun(s, std::move(vocabulary), storage, device),
      settings(s),
      mixture(PairMixture::parse(s.objective)),
      model(parameters, model_options(s, tokenizer.vocabulary().size())) {
    expect_types(s, s.model.stack);
    parameters.allocate(settings.train.seed);
}

std::unique_ptr<Seq2SeqRun> Seq2SeqRun::load(const std::string& path, bool to_train, Device device) {
    const RunFolder folder = RunFolder::open(path);
    const std::int64_t step = folder.latest_step();
    Seq2SeqSettings settings;
    read_settings(folder, step, "seq2seq", settings);
    auto run = std::make_unique<Seq2SeqRun>(settings, vocabulary_of(folder),
                                            to_train ? settings.precision : DType::f32, device);
    run->load_checkpoint(folder, step);
    return run;
}

std::unique_ptr<Task> Seq2SeqRun::task(const TrainingText& t) {
    expect_fitting(t, mixture.has(Objective::mask_token));
    return std::make_unique<TaskOf<Seq2SeqRun, PairBatch>>(*this, sentences(t.train, t.train_targets),
                                                           sentences(t.held_out, t.held_out_targets));
}

std::string Seq2SeqRun::description() const {
    const BackboneOptions& b = model.encoder.options;
    return masquerade::text(b.layers, " layers that read and ", model.options.decoder_layers,
                            " that write, of width ", b.width, ", objective ", settings.objective);
}

void Seq2SeqRun::save_config(const std::string& folder) const {
    Seq2SeqSettings copy = settings;
    Config keys;
    copy.declare(keys);
    nlohmann::json config = hugging_face_sizes(model.encoder.options);
    config["num_decoder_layers"] = model.options.decoder_layers;
    config["model_type"] = "seq2seq";
    config["architectures"] = {"EncoderDecoder"};
    config["seq2seq"] = keys.to_json();
    write_config(folder, config);
}

ObjectiveOptions Seq2SeqRun::objective_options() const {
    ObjectiveOptions o;
    o.vocabulary = model.encoder.options.vocabulary;
    o.special = special_tokens();
    o.mask = tokenizer.vocabulary().mask();
    o.span = settings.span;
    o.source_type = settings.source_type;
    o.target_type = settings.target_type;
    o.seed = settings.train.seed;
    return o;
}

std::vector<std::vector<Hypothesis>> Seq2SeqRun::write(const std::vector<const Sentence*>& sources,
                                                       SearchOptions options, std::uint64_t seed) const {
    std::vector<SearchSource> about;
    for (const Sentence* s : sources)
        about.push_back(search_source(*s, s->ids.front(), tokenizer.vocabulary().sep(),
                                      std::min(options.maximum, settings.max_target)));
    Seq2SeqDecoder decoder(model, settings.source_type, settings.target_type, settings.max_target);
    return written(decoder, about, sources, std::move(options), seed);
}

std::vector<PartLoss> Seq2SeqRun::losses(const std::vector<const Sentence*>& some, bool targets) const {
    std::vector<PartLoss> all;
    for (const PairMixture::Part& part : mixture.parts)
        if (targets || !part.objective->has(Objective::pairs))
            all.push_back({part.objective->name, part.weight,
                           scored_loss(model, model.decoder, *part.objective, objective_options(), some)});
    return all;
}

}  // namespace masquerade
