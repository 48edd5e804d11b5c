// SPDX-License-Identifier: MIT
#include "models/runs/seq2seq_run.h"

#include <algorithm>

namespace masquerade {

Seq2SeqSettings::Seq2SeqSettings() {
    objective = "seq2seq";
    start_with(model.stack, 2);
    model.decoder_layers = 2;
}

void Seq2SeqSettings::declare(Config& c) {
    c.topic("Objective");
    c.add("objective", &objective, "training objective; several with weights: seq2seq:2,mass:1");
    declare_backbone(c, model.stack);
    declare_decoder(c, model);
    declare_reading(c, model.stack);
    declare_mask(c);
    c.topic("Objective");
    c.add("span", &how.span, "mass: share of the tokens that are masked", 0, 1);
    declare_diffusion(c);
    declare_rest(c, model.stack);
}

EncoderDecoderOptions Seq2SeqSettings::net(int vocabulary_size) const {
    EncoderDecoderOptions o = model;
    o.stack.vocabulary = vocabulary_size + counts();
    o.stack.positions = std::max({o.stack.positions, max_length, max_target});
    expect_types(o.stack);
    return o;
}

std::string Seq2SeqRun::description() const {
    const BackboneOptions& b = model.encoder.options;
    return text(b.layers, " layers that read and ", model.options.decoder_layers, " that write, of width ", b.width,
                ", objective ", settings.objective);
}

std::vector<Hypotheses> Seq2SeqRun::write(const Sentences& sources, SearchOptions options, std::uint64_t seed) const {
    if (unmasks(options)) return unmasked(sources, options, seed);
    Seq2SeqDecoder decoder(model, objective_options(), settings.max_target);
    return written(decoder, sources, std::move(options), seed, tokenizer.vocabulary().sep(), [&](const Sentence& s) {
        return Start{s.ids.front(), settings.max_target};
    });
}

}  // namespace masquerade
