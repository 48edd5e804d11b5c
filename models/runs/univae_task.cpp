// SPDX-License-Identifier: MIT
#include "models/runs/univae_task.h"

#include <algorithm>
#include <new>

#include "engine/base/log.h"
#include "engine/tensor/numbers.h"
#include "engine/train/schedule.h"
#include "models/tasks/univae_evaluation.h"

namespace masquerade {

namespace {

BatchMaker halves_batches(const UniVaeRun& run) {
    // In masked diffusion, every sentence has all places in the decoder half.
    const std::size_t places = run.model.unmasks() ? std::size_t(run.model.options.max_length) - 1 : 0;
    return {[&run, options = run.objective_options()](const Sentences& some, std::uint32_t step) {
                return halves_batch(run.model, some, step, options, 64);
            },
            [places](const Sentence& s, std::uint32_t) { return std::max(tokens_in(s), places); }};
}

}  // namespace

UniVaeTask::UniVaeTask(UniVaeRun& run, SharedSentences train, StoredSentences held_out)
    : SentenceTask(run, std::move(train), std::move(held_out), halves_batches(run)), run_(run), model_(run.model) {}

LatentNoise UniVaeTask::noise_of(const Batch& part) const {
    return model_.space.noise(part.names(), run_.settings.train.seed, step_);
}

std::string UniVaeTask::next_batch(std::int64_t step) {
    const std::string bucket = SentenceTask::next_batch(step);
    step_ = step;
    if (step == 0) model_.start(batch_.all(), [&](const Batch& part) { return noise_of(part); });
    return bucket;
}

Tensor* UniVaeTask::loss(Tape& tape, std::int64_t step, std::int64_t schedule_steps) {
    const UniVaeSettings& s = run_.settings;
    double weight = kl_weight_at(s.kl_schedule, step, schedule_steps, s.beta);
    LatentNoise drawn = noise_of(batch());
    const double share = noise_share_at(s.noise_from, s.noise_over, step, schedule_steps);
    if (share < 1) model_.space.scale_noise(drawn, share);
    const LatentNoise& noise = tape.hold(std::move(drawn));
    last_ = model_.loss(tape, batch(), &noise, weight);
    return last_.total;
}

std::function<std::vector<Metric>()> UniVaeTask::metrics() {
    auto of_layers = std::make_shared<std::vector<ReadLater>>();
    for (const LatentSample& s : last_.latents)
        if (s.kl) of_layers->emplace_back(s.kl->view());
    const int documents = batch().documents, all = batch().whole().documents;
    const double constant = model_.space.constant_kl();
    return [=, kl = constant * documents / all]() mutable {
        for (ReadLater& each : *of_layers)
            for (int b = 0; b < documents; b++) kl += each[b] / all;
        if (of_layers->empty() && kl == 0) return std::vector<Metric>();
        return std::vector<Metric>{{"kl", kl}};
    };
}

std::vector<Metric> UniVaeTask::validate() {
    if (held_out_.empty()) return {};
    const Sentences some = pointers_to(held_out_, validated);
    HeldOut h = held_out_losses(model_, some, run_.measured_options(run_.settings.train.seed));
    std::vector<Metric> metrics = {{"loss", h.own + h.kl_per_token}, {"reconstruction", h.own}};
    if (model_.options.latent_layers > 0) metrics.push_back({"other_z", h.other});
    return metrics;
}

// Returns the kinds of text that the post on UniVAE (Su 2021) shows: samples, reconstructions of held-out sentences,
// and variants of these sentences. For a variant, some latents are drawn anew before decoding: the lower half of the
// latent layers, or the top latent layer.
std::string UniVaeTask::show(std::int64_t) {
    const int K = model_.options.latent_layers;
    const std::uint64_t seed = run_.settings.train.seed;
    UniVaeDecoder decoder(model_, run_.special(), run_.settings.train.graph);
    std::string out;
    DecodeRequests requests;
    SearchOptions options;
    if (K == 0) options.samples = 1;  // a language model has no latents, so its tokens are sampled
    const Sentences some = pointers_to(held_out_, shown);
    const auto text_of = [&](const Tokens& ids) { return run_.decode({ids.begin() + 1, ids.end() - 1}); };
    const char* which = run_.prior ? ", from the fitted prior\n" : "\n";
    if (model_.options.conditional) {
        constexpr int each = 3;
        StoredSentences sources;
        for (const Sentence* s : some) sources.push_back(*s);
        const auto written = decoder.write(run_.target_requests(sources, each, seed, 0), options, seed);
        out += text("  held-out sources, and random samples of their targets", which);
        for (std::size_t i = 0; i < written.size(); i++) {
            if (i % each == 0) out += "    " + text_of(some[i / each]->ids) + "\n";
            out += "      ~ " + run_.decode(written[i]) + "\n";
        }
    } else {
        for (std::size_t i = 0; i < shown; i++) requests.push_back(run_.sample_request(seed, i));
        out += text("  random samples", which);
        for (const Tokens& t : decoder.write(requests, options, seed)) out += "    " + run_.decode(t) + "\n";
    }
    if (K == 0 || held_out_.empty()) return out;

    requests = reconstructions(model_, some, 1);
    auto rewritten = [&](int from, int to) {  // decodes after drawing latent layers [from, to) anew from the prior
        DecodeRequests changed = requests;
        const LatentSpace& space = model_.space;
        if (model_.options.latent.source_prior)
            run_.redraw(changed, space.begin(from), space.begin(to), seed);
        else
            for (DecodeRequest& r : changed) space.replace(r.latent, run_.draw(seed, r.line, 1), from, to);
        return decoder.write(changed, {}, seed);
    };
    const auto plain = rewritten(0, 0);
    out += "  held-out sentences, and their reconstructions\n";
    for (std::size_t i = 0; i < some.size(); i++)
        out += "    " + text_of(some[i]->ids) + "\n      = " + run_.decode(plain[i]) + "\n";
    const auto show_rewritten = [&](int from, int to) {
        const std::string layers = from + 1 == to ? text("layer ", from) : text("layers ", from, "-", to - 1);
        out += text("  the same, latent ", layers, " replaced\n");
        for (const Tokens& t : rewritten(from, to)) out += "      ~ " + run_.decode(t) + "\n";
    };
    show_rewritten(0, std::max(1, K / 2));
    if (K > 1) show_rewritten(K - 1, K);
    return out;
}

// The prior depends only on the weights, the data and the settings, so a resumed run ends with the same prior. If
// fitting fails, only a warning is logged, because the trained weights are already saved.
void UniVaeTask::finish(const std::string& step_folder) {
    if (run_.settings.prior_sentences == 0 || model_.options.latent_layers == 0) return;
    if (model_.options.latent.source_prior) return;  // the prior is learned with the model
    const auto warn = [](const std::string& why) {
        log_line("warning: no prior was fitted: ", why);
        log_line("note: the training is saved; ./train --fit-prior tries again");
    };
    try {
        fit(step_folder, run_.settings.prior_sentences);
    } catch (const Error& error) {
        warn(error.what());
    } catch (const std::bad_alloc&) {
        const int D = model_.space.numbers();
        warn(text("out of memory: a prior of latents of ", D, " numbers has matrices of ", D, " x ", D));
    }
}

int UniVaeTask::fit(const std::string& step_folder, int sentences) {
    const auto prior =
        std::make_shared<const MixturePrior>(fit_prior(model_, *train_, sentences, run_.settings.train.seed));
    run_.prior = run_.fitted = prior;
    prior->save(UniVaeRun::prior_file(step_folder), checksum_of(run_.parameters));
    return prior->codes().components();
}

}  // namespace masquerade
