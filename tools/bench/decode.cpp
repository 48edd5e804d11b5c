// SPDX-License-Identifier: MIT
// ./bench decode: writing by models of random weights, each sentence as long as one may be, as ./generate writes.
#include <fmt/format.h>

#include <cmath>

#include "models/writing/univae_decoder.h"
#include "tools/bench/bench.h"
#include "tools/bench/decode_work.h"
#include "tools/bench/measure.h"
#include "tools/bench/train_marks.h"

namespace masquerade {
namespace {

struct BeamMark {
    const char* name;
    int layers, width, vocabulary;
};
// That of ./train unilm, but for its positions, which BERT adds; and a BERT-base.
constexpr BeamMark beam_marks[] = {{"unilm-default", 3, 256, 4000}, {"unilm-base", 12, 768, 30522}};

struct Options {
    std::vector<std::string> models = {"univae-default", "univae-base", "unilm-default"};
    std::vector<int> sentences = {1, 64, 512}, sources = {1, 16, 64};
    int beams = 4;
    bool cached_only = false;
};

void greedy(Bench& bench, const std::string& mark, const std::vector<int>& batches) {
    const Common& common = bench.common;
    const UniVaeOptions options = train_mark(mark, common.seed).model;
    Parameters parameters(DType::f32, common.device);
    const UniVae model(parameters, options);
    parameters.allocate(common.seed);
    UniVaeDecoder::Special special;
    special.forbidden.push_back(special.sep);  // so every sentence is as long as a sentence may be
    UniVaeDecoder decoder(model, special);
    const int values = options.latent_layers * model.space.size(), tokens = options.max_length - 2;
    for (int batch : batches) {
        std::vector<DecodeRequest> requests;
        requests.resize(std::size_t(batch));
        for (std::size_t i = 0; i < requests.size(); i++) {
            requests[i].latent.assign(std::size_t(values), 1 / std::sqrt(double(model.space.size())));
            requests[i].line = std::uint32_t(i);
            requests[i].start = model.start_position(tokens + 2);
        }
        // Tokens are chosen on the host: a writing has ended when it returns.
        auto write = [&] {
            for (const Tokens& t : decoder.write(requests, {}, common.seed))
                if (int(t.size()) != tokens) throw Error(text("a sentence has ", t.size(), " tokens, not ", tokens));
        };
        write();  // is not counted
        bench.measure({{"name", fmt::format("{}, {}", mark, batch)}, {"amount", batch}, {"unit", "sentences"},
                       {"tokens_of_each", tokens}},
                      Json::object(), {{"ours", [&] { return seconds_of(write); }}});
    }
}

void beams(Bench& bench, const BeamMark& mark, const Options& o, int sources) {
    BeamSizes sizes;
    sizes.model.layers = mark.layers;
    sizes.model.width = mark.width;
    sizes.model.heads = mark.width / 64;
    sizes.model.inner = 4 * mark.width;
    sizes.model.vocabulary = mark.vocabulary;
    sizes.model.rotary = false;
    sizes.sources = sources;
    sizes.beams = o.beams;
    BeamWork work(sizes, bench.common.device, bench.common.seed);
    const std::string name = fmt::format("{}, {}", mark.name, sources);
    bench.progress(name + ": the same bits with and without a cache");
    const Written written = work.with_cache();
    const bool same_bits = o.cached_only || same(written, work.without_cache());
    if (!same_bits) {  // on a GPU a product may have other bits in another shape
        const std::string differs = name + ": with a cache another target is written, or another score";
        if (bench.common.device == Device::cpu) throw Error(differs);
        log_line("warning: ", differs);
    }
    Json about;  // the weights, the sources and what ours wrote
    const SharedFolder folder;
    if (bench.options.turns) {
        about = work.save(folder.path);
        for (const auto& hypotheses : written)
            about["written"].push_back({hypotheses.front().tokens, hypotheses.front().score});
    }
    std::vector<Timed> works = {{"ours", [&] { return seconds_of([&] { work.with_cache(); }); }}};
    if (!o.cached_only) works.push_back({"without a cache", [&] { return seconds_of([&] { work.without_cache(); }); }});
    bench.measure({{"name", name}, {"amount", sources}, {"unit", "sentences"}, {"beams", o.beams},
                   {"source_tokens", sizes.source_tokens}, {"target_tokens", sizes.target_tokens}, {"same_bits", same_bits}},
                  about, works);
}

void run(Bench& bench, const Options& o) {
    bench.begin();
    for (const std::string& model : o.models) {
        if (model.rfind("univae", 0) == 0) greedy(bench, model, o.sentences);
        for (const BeamMark& mark : beam_marks)
            for (int sources : o.sources)
                if (model == mark.name) beams(bench, mark, o, sources);
    }
}

}  // namespace

RunCase decode_case(CLI::App& app) {
    auto o = std::make_shared<Options>();
    std::vector<std::string> names;
    for (const BeamMark& mark : beam_marks) names.push_back(mark.name);
    for (const std::string& name : train_mark_names())
        if (name.rfind("univae", 0) == 0) names.push_back(name);
    app.add_option("--models", o->models,
                   "unilm-default, unilm-base, and the UniVAEs of ./bench train (default: "
                   "univae-default,univae-base,unilm-default)")
        ->delimiter(',')
        ->check(CLI::IsMember(names))
        ->option_text("NAME,...");
    app.add_option("--batches", o->sentences, "UniVAE: sentences asked for at once (default: 1,64,512)")
        ->delimiter(',')
        ->check(CLI::Range(1, 1 << 20))
        ->option_text("N,...");
    app.add_option("--sources", o->sources, "UniLM: sources written for at once (default: 1,16,64)")
        ->delimiter(',')
        ->check(CLI::Range(1, 1 << 20))
        ->option_text("N,...");
    app.add_option("--beams", o->beams, "UniLM: of each source; 1 is greedy (default: 4)")
        ->check(CLI::Range(1, 1024))
        ->option_text("N");
    app.add_flag("--cached-only", o->cached_only,
                 "UniLM: leave out the search without a cache, which takes minutes on unilm-base");
    return [o](Bench& bench) { run(bench, *o); };
}

}  // namespace masquerade
