// SPDX-License-Identifier: MIT
// ./bench decode: measures the generation that ./generate does, with models that have random weights. Every generated
// sentence has the maximum length.
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>

#include "engine/base/named.h"
#include "engine/base/random.h"
#include "models/runs/hugging_face/hugging_face.h"
#include "models/writing/unilm_decoder.h"
#include "models/writing/univae_decoder.h"
#include "tools/bench/bench.h"
#include "tools/bench/measure.h"
#include "tools/bench/train.h"

namespace masquerade {
namespace {

struct BeamMark {
    const char* name;
    int layers, width, vocabulary;
};
// The sizes of the default model of ./train unilm and of BERT-base. Both models use BERT's position table here, not
// rotary positions.
constexpr BeamMark beam_marks[] = {{"unilm-default", 3, 256, 4000}, {"unilm-base", 12, 768, 30522}};

struct CaseOptions {
    Strings models = {"univae-default", "univae-base", "unilm-default"};
    std::vector<int> sentences = {1, 64, 512}, sources = {1, 16, 64};
    int beams = 4;
    std::string precision = "f32";
};

constexpr int cls = 2, sep = 3, first_ordinary = 5;
constexpr int source_tokens = 64, target_tokens = 24;  // source_tokens includes [CLS] and [SEP]

void expect_full(const Tokens& tokens, int count) {
    if (int(tokens.size()) != count) throw Error("a sentence has ", tokens.size(), " tokens, not ", count);
}

void greedy(Bench& bench, const std::string& mark, DType storage, const std::vector<int>& batches) {
    const Common& common = bench.common;
    const UniVaeOptions options = train_mark(mark, common.seed).model;
    Parameters parameters(storage, common.device);
    const UniVae model(parameters, options);
    parameters.allocate(common.seed);
    parameters.freeze();
    UniVaeDecoder::Special special;
    special.forbidden.push_back(special.sep);  // so that no sentence ends before the maximum length
    UniVaeDecoder decoder(model, special);
    const int tokens = options.max_length - 2;
    const Numbers latent(model.space.numbers(), 1 / std::sqrt(double(options.latent.size)));
    for (int batch : batches) {
        std::vector<DecodeRequest> requests;
        for (int i = 0; i < batch; i++)
            requests.push_back({latent, std::uint32_t(i), 0, model.start_position(tokens + 2)});
        // The timing does not need to wait for the GPU: tokens are chosen on the host, so the GPU has finished when
        // decoder.write() returns.
        auto write = [&] {
            for (const Tokens& t : decoder.write(requests, {}, common.seed)) expect_full(t, tokens);
        };
        write();  // warm-up, not timed
        bench.measure({{"name", text(mark, ", ", batch)},
                       {"precision", name_of(storage)},
                       {"amount", batch},
                       {"unit", "sentences"},
                       {"tokens_of_each", tokens}},
                      nullptr, [&] { return seconds_of(write); });
    }
}

// Measures beam search by a UniLM that is used like a decoder: sources are read causally (left to right), and have the
// same segment id as targets. Every target has the maximum length.
void beams(Bench& bench, const BeamMark& mark, DType storage, int beams, int sources) {
    const Common& common = bench.common;
    BackboneOptions sizes;
    sizes.layers = mark.layers;
    sizes.width = mark.width;
    sizes.heads = mark.width / 64;
    sizes.inner = 4 * mark.width;
    sizes.vocabulary = mark.vocabulary;
    sizes.positions = source_tokens + target_tokens;
    sizes.rotary = false;
    ReadingOptions reading;
    reading.causal = true;
    reading.target_type = 0;
    reading.longest = target_tokens;
    Parameters parameters(storage, common.device);
    const UniLm model(parameters, sizes);
    UniLmDecoder decoder(model, reading);
    parameters.allocate(common.seed);
    parameters.freeze();

    std::vector<Sentence> texts(sources);
    std::vector<SearchSource> about_texts(texts.size());
    Sequence random(common.seed, "sources");
    for (std::size_t i = 0; i < texts.size(); i++) {
        texts[i].name = i;
        texts[i].ids.assign(source_tokens, cls);
        for (std::size_t k = 1; k < source_tokens; k++)
            texts[i].ids[k] = first_ordinary + random.below(mark.vocabulary - first_ordinary);
        texts[i].ids.back() = sep;
        about_texts[i].line = i;
        about_texts[i].begin = sep;
        about_texts[i].ends = {sep};
    }
    SearchOptions options;
    options.beams = beams;
    options.minimum = options.maximum = target_tokens;
    options.forbidden = {0, 1, cls, 4};
    auto write = [&] {
        auto written = write_targets(decoder, about_texts, pointers_to(texts), options, common.seed);
        for (const auto& hypotheses : written) expect_full(hypotheses.front().tokens, target_tokens);
        return written;
    };
    const auto written = write();
    Json about = Json::object();  // for the peer (transformers): weights, sources, and this engine's targets
    const SharedFolder folder;
    if (bench.options.turns) {
        Strings tokens(std::begin(special_tokens), std::end(special_tokens));
        while (int(tokens.size()) < mark.vocabulary) tokens.push_back(text("w", tokens.size()));
        save_hugging_face(folder.file(""), model.backbone, parameters, Vocabulary(tokens));
        about = {{"folder", folder.file("")}, {"forbidden", options.forbidden}, {"end", sep}};
        for (const Sentence& s : texts) about["sources"].push_back(s.ids);
        for (const auto& hypotheses : written)
            about["written"].push_back({hypotheses.front().tokens, hypotheses.front().score});
    }
    bench.measure({{"name", text(mark.name, ", ", sources)},
                   {"precision", name_of(storage)},
                   {"amount", sources},
                   {"unit", "sentences"},
                   {"beams", beams},
                   {"source_tokens", source_tokens},
                   {"target_tokens", target_tokens}},
                  about, [&] { return seconds_of(write); });
}

void run(Bench& bench, const CaseOptions& o) {
    bench.begin(Json::object());
    const DType storage = storage_of(o.precision);
    for (const std::string& model : o.models) {
        if (model.rfind("univae", 0) == 0) greedy(bench, model, storage, o.sentences);
        for (const BeamMark& mark : beam_marks)
            for (int sources : o.sources)
                if (model == mark.name) beams(bench, mark, storage, o.beams, sources);
    }
}

}  // namespace

RunCase decode_case(Options& app) {
    auto o = std::make_shared<CaseOptions>();
    Strings names = names_of(beam_marks);
    for (const std::string& name : train_mark_names())
        if (name.rfind("univae", 0) == 0) names.push_back(name);
    app.value("--models", o->models, "NAME,...",
              "unilm-default, unilm-base, and the UniVAEs of ./bench train (default: "
              "univae-default,univae-base,unilm-default)")
        .list()
        .one_of(names);
    app.number("--batches", o->sentences, 1, 1 << 20, "UniVAE: sentences asked for at once (default: 1,64,512)",
               "N,...")
        .list();
    app.number("--sources", o->sources, 1, 1 << 20, "UniLM: sources written for at once (default: 1,16,64)", "N,...")
        .list();
    app.number("--beams", o->beams, 1, 1024, "UniLM: of each source; 1 is greedy (default: 4)");
    app.choice("--precision", o->precision, {"f32", "bf16"}, "f32 or bf16 (default: f32)");
    return [o](Bench& bench) { run(bench, *o); };
}

}  // namespace masquerade
