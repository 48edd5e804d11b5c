// SPDX-License-Identifier: MIT
#include <nlohmann/json.hpp>

#include "models/masks/mask.h"
#include "models/runs/univae_run.h"
#include "models/tasks/univae_objective.h"
#include "tools/bench/attention.h"
#include "tools/bench/measure.h"
#include "tools/bench/train.h"

namespace masquerade {
namespace {

// Attention has six products: q k^T and p v in the forward; dp, dv, dq and dk in the backward.
double attention_work(std::int64_t pairs, const BackboneOptions& o) { return 6.0 * double(pairs) * o.width; }

struct Bert : MarkTask {
    Backbone backbone;
    TokenRows rows;
    Tokens targets;
    SegmentGraph graph;

    Bert(const TrainMark& mark, const BackboneOptions& options, DType storage, Device device)
        : MarkTask(storage, device), backbone(parameters, options) {
        Documents documents;
        for (std::size_t b = 0; b < mark.sentences.size(); b++) {
            const Tokens& ids = mark.sentences[b];
            const int length = ids.size(), half = length / 2;
            documents.push_back({half, length - half});
            for (int t = 0; t < length; t++) rows.push(ids[t], t >= half, t, b);
            targets.insert(targets.end(), mark.targets[b].begin(), mark.targets[b].end());
        }
        graph = unilm_mask(documents);
    }
    std::string next_batch(std::int64_t) override { return "documents"; }
    Tensor* loss(Tape& tape, std::int64_t, std::int64_t) override {
        Tensor* h = backbone.head(tape, backbone.finish(tape, backbone.run(tape, rows, graph)));
        const Numbers ones(targets.size(), 1);
        return backbone.mean_loss(tape, h, targets, ones, ones.size(), 0).total;
    }
    double attention_multiply_adds() const override {
        return attention_work(std::int64_t(backbone.layers.size()) * visible_pairs(graph), backbone.options);
    }
};

// Like models/runs/univae_task.cpp, builds the batch anew and draws the noise of the latents in every step.
struct Sentences : MarkTask {
    UniVae univae;
    const std::uint64_t seed;
    const bool same_noise;
    std::vector<Sentence> sentences;
    Batch batch;
    LatentNoise drawn;

    Sentences(const TrainMark& mark, const UniVaeOptions& options, DType storage, const Common& common, bool same)
        : MarkTask(storage, common.device), univae(parameters, options), seed(common.seed), same_noise(same) {
        for (const auto& ids : mark.sentences) sentences.push_back({ids, int(sentences.size()), {}});
    }
    std::string next_batch(std::int64_t step) override {
        batch = halves_batch(univae, pointers_to(sentences), 64);
        drawn = univae.space.noise(batch.names(), seed, same_noise ? 0 : std::uint32_t(step));
        return batch.bucket;
    }
    Tensor* loss(Tape& tape, std::int64_t, std::int64_t) override { return univae.loss(tape, batch, &drawn, 1).total; }
    double attention_multiply_adds() const override {
        const int L = univae.options.backbone.layers, K = univae.options.latent_layers;
        std::int64_t n = (L - K) * visible_pairs(batch.graph) + K * visible_pairs(batch.latent_graph);
        if (K > 0) n += (L - 2) * visible_pairs(batch.source_graph) + visible_pairs(batch.cls_graph);
        return attention_work(n, univae.options.backbone);
    }
    // Returns the noise of the sentences, but not the noise of the padding documents behind them in the batch.
    Json noise() const override {
        LatentNoise real = drawn;
        for (auto& w : real.w) w.resize(sentences.size());
        for (auto& e : real.e) e.resize(sentences.size() * univae.options.latent.size);
        return {{"w", real.w}, {"e", real.e}};
    }
};

std::unique_ptr<MarkTask> task_of(const TrainMark& mark, DType storage, const Common& common, bool dropout) {
    UniVaeOptions options = mark.model;
    if (!dropout) options.backbone.dropout = options.backbone.attention_dropout = 0;
    std::unique_ptr<MarkTask> task;
    if (mark.univae)
        task = std::make_unique<Sentences>(mark, options, storage, common, !dropout);
    else
        task = std::make_unique<Bert>(mark, options.backbone, storage, common.device);
    task->parameters.allocate(common.seed);
    return task;
}

TrainOptions options_of(const Common& common, const TrainWay& way) {
    TrainOptions options = UniVaeSettings().train;
    options.seed = common.seed;
    options.learning_rate = 1e-4;
    options.warmup = 0;
    options.graph = !way.no_graph;
    options.deterministic = way.deterministic;
    return options;
}

}  // namespace

Json MarkTask::noise() const { return nullptr; }

MarkTraining::MarkTraining(const TrainMark& mark, DType storage, const Common& common, bool dropout,
                           const TrainWay& way)
    : options(options_of(common, way)),
      task(task_of(mark, storage, common, dropout)),
      trainer(task->parameters, *task, nowhere, options) {}

// Counts the multiply-adds of the matrix products of an op. A linear layer computes y = x w^T forward. Backward, it
// computes dx = dy w and dw = dy^T x, if they are needed. cross_entropy computes the logits and the needed gradients in
// its forward.
void StepProfile::before(const Record& r, bool backward) {
    const std::string_view op = r.op;
    const bool after_gelu = op == "gelu_linear";  // input 0 of this op is the value before the GELU
    const auto count = [&](const Tensor* x, const Tensor* w) {
        const int gradients = r.in[0]->needs_grad + w->needs_grad;
        int products = backward ? gradients : 1;
        if (op == "cross_entropy") products = backward ? 0 : 1 + gradients;
        multiply_adds += double(products) * double(x->rows()) * double(x->columns()) * double(w->shape[0]);
    };
    if (after_gelu || op.rfind("linear", 0) == 0 || op == "cross_entropy")
        count(r.in[after_gelu], r.in[after_gelu + 1]);
    else if (op == "query_key_value")
        count(r.in[0], r.in[1]), count(r.in[0], r.in[3]);
    Clock::before(r, backward);
}

Json weight_places(const Parameters& parameters) {
    Json places;
    const View all = parameters.values();
    for (const Tensor& t : parameters.all())
        places[t.path] = static_cast<char*>(parameters.slice(all, t).data) - static_cast<char*>(all.data);
    return places;
}

}  // namespace masquerade
