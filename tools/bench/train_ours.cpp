// SPDX-License-Identifier: MIT
#include "tools/bench/train.h"

#include "engine/tape/rehearsal.h"
#include "engine/tensor/copy.h"
#include "models/masks/mask.h"
#include "tools/bench/attention.h"
#include "tools/bench/measure.h"

namespace masquerade {

// A linear layer computes y = x w^T forward. Backward, it computes dx = dy w and dw = dy^T x, if they are needed.
// cross_entropy computes the logits and the needed gradients in its forward.
double count_products(const Record& r, bool backward) {
    const std::string_view op = r.op;
    auto products = [](const Tensor* x, const Tensor* w, int number) {  // x(M,I), w(O,I): M I O multiply-adds each
        return double(number) * double(x->rows()) * double(x->columns()) * double(w->shape[0]);
    };
    if (op == "token_losses") return products(r.in[0], r.in[1], 1);
    if (op == "cross_entropy")
        return products(r.in[0], r.in[1], backward ? 0 : 1 + r.in[0]->needs_grad + r.in[1]->needs_grad);
    const bool after_gelu = op == "gelu_linear";  // input 0 of this op is the value before the GELU
    if (!after_gelu && op != "linear" && op != "linear_gelu" && op != "linear_rotary") return 0;
    const Tensor *x = r.in[after_gelu], *w = r.in[after_gelu + 1];
    return products(x, w, backward ? r.in[0]->needs_grad + w->needs_grad : 1);
}

struct OurTraining::Model {
    virtual ~Model() = default;
    // Makes the batch of this step and returns its bucket, a name that is equal only for batches of equal sizes.
    virtual std::string prepare(std::uint64_t seed, std::uint32_t step) = 0;
    virtual Tensor* loss(Tape& tape) = 0;
    virtual std::int64_t pairs() const = 0;  // visible (query, key) pairs of all layers and documents
    virtual nlohmann::ordered_json noise() const { return nullptr; }
};

struct OurTraining::Bert : Model {
    Backbone backbone;
    TokenRows rows;
    std::vector<int> targets;
    std::vector<double> weights;
    SegmentGraph graph;

    Bert(Parameters& parameters, const TrainMark& mark, const BackboneOptions& options)
        : backbone(parameters, options) {
        Documents documents;
        for (std::size_t b = 0; b < mark.sentences.size(); b++) {
            const std::vector<int>& ids = mark.sentences[b];
            const int length = int(ids.size()), half = length / 2;
            documents.push_back({half, length - half});
            for (int t = 0; t < length; t++) rows.push(ids[std::size_t(t)], t >= half, t, int(b));
            targets.insert(targets.end(), mark.targets[b].begin(), mark.targets[b].end());
        }
        weights.assign(targets.size(), 1.0 / double(targets.size()));
        graph = unilm_mask(documents);
    }
    std::string prepare(std::uint64_t, std::uint32_t) override { return "documents"; }
    Tensor* loss(Tape& tape) override {
        Tensor* x = backbone.run(tape, rows, graph);
        const std::int64_t N = std::int64_t(weights.size());
        Tensor* each = tape.constant("weights", {N}, arithmetic_of(tape.dtype), weights.data());
        return backbone.loss(tape, backbone.head(tape, backbone.finish(tape, x)), targets, each, "loss");
    }
    std::int64_t pairs() const override { return std::int64_t(backbone.layers.size()) * visible_pairs(graph); }
};

// The UniVAE of a mark. Every step packs the batch again and draws its noise, as models/runs/univae_task.cpp does.
struct OurTraining::Sentences : Model {
    UniVae univae;
    std::vector<Sentence> sentences;
    Batch batch;
    LatentNoise drawn;

    Sentences(Parameters& parameters, const TrainMark& mark, const UniVaeOptions& options)
        : univae(parameters, options) {
        for (const auto& ids : mark.sentences) sentences.push_back({ids, int(sentences.size()), {}});
    }
    std::string prepare(std::uint64_t seed, std::uint32_t step) override {
        std::vector<const Sentence*> taken;
        for (const Sentence& s : sentences) taken.push_back(&s);
        batch = halves_batch(univae, taken, 64);
        drawn = univae.space.noise(batch.names(), seed, step);
        return batch.bucket;
    }
    Tensor* loss(Tape& tape) override { return univae.loss(tape, batch, &drawn, 1).total; }
    std::int64_t pairs() const override {
        const int L = univae.options.backbone.layers, K = univae.options.latent_layers;
        std::int64_t n = (L - K) * visible_pairs(batch.graph) + K * visible_pairs(batch.latent_graph);
        if (K > 0) n += (L - 2) * visible_pairs(batch.source_graph) + visible_pairs(batch.cls_graph);
        return n;
    }
    // Returns the noise of the sentences, without the padding documents, which follow the sentences in the batch.
    nlohmann::ordered_json noise() const override {
        LatentNoise real = drawn;
        for (auto& w : real.w) w.resize(sentences.size());
        for (auto& e : real.e) e.resize(sentences.size() * std::size_t(univae.options.latent.size));
        return {{"w", real.w}, {"e", real.e}};
    }
};

OurTraining::OurTraining(const TrainMark& mark, DType storage, std::uint64_t seed, bool dropout, Device device)
    : parameters_(storage, device),
      model_([&]() -> std::unique_ptr<Model> {
          UniVaeOptions options = mark.model;
          if (!dropout) options.backbone.dropout = options.backbone.attention_dropout = 0;
          if (mark.univae) return std::make_unique<Sentences>(parameters_, mark, options);
          return std::make_unique<Bert>(parameters_, mark, options.backbone);
      }()),
      optimiser_((parameters_.allocate(seed), parameters_), mark.rule),
      arena_(device),
      tape_(arena_, storage),
      seed_(seed),
      learning_rate_(mark.learning_rate),
      width_(mark.model.backbone.width) {}

OurTraining::~OurTraining() = default;

double OurTraining::step() {
    const std::string bucket = model_->prepare(seed_, step_);
    Tensor* loss = nullptr;
    auto work = [&] {
        loss = model_->loss(tape_);
        tape_.retain(loss);
        parameters_.start_gradients();
        tape_.backward(loss);
        parameters_.finish_gradients();
        if (waits) wait_for(tape_.device);
        const double before = steady_seconds();
        optimiser_.update(step_ + 1, learning_rate_);
        if (waits) wait_for(tape_.device);
        update_seconds_ = steady_seconds() - before;
    };
    run_step(tape_, bucket, seed_, step_, graph && !waits, work);
    step_++;
    const double value = OnHost(loss->view())[0];
    tape_.end();
    return value;
}

double OurTraining::loss() {
    const std::string bucket = model_->prepare(seed_, 0);
    tape_.begin("loss alone: " + bucket, seed_);
    Tensor* loss = model_->loss(tape_);
    tape_.retain(loss);
    const double value = OnHost(loss->view())[0];
    tape_.end();
    return value;
}

// Attention has six products: q k^T and p v in the forward; dp, dv, dq and dk in the backward.
double OurTraining::attention_multiply_adds() const { return 6.0 * double(model_->pairs()) * width_; }

nlohmann::ordered_json OurTraining::weight_places() const {
    nlohmann::ordered_json places;
    const View all = parameters_.values();
    for (const Tensor& t : parameters_.all())
        places[t.path] = static_cast<char*>(parameters_.slice(all, t).data) - static_cast<char*>(all.data);
    return places;
}

nlohmann::ordered_json OurTraining::noise() const {
    model_->prepare(seed_, 0);
    return model_->noise();
}

}  // namespace masquerade
