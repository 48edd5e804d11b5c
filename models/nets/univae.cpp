// SPDX-License-Identifier: MIT
#include "models/nets/univae.h"

#include <algorithm>

#include "engine/tensor/numbers.h"
#include "models/masks/mask.h"
#include "models/nets/unilm.h"

namespace masquerade {
namespace {

// Checks the options, and returns them with one entry per latent in latent_at, latent_sizes and latent_kinds.
UniVaeOptions complete(UniVaeOptions o) {
    const int L = o.backbone.layers, K = o.latent_at.empty() ? o.latent_layers : int(o.latent_at.size());
    if (K < 0 || K > L - (K > 0 ? 1 : 0))
        throw BadUsage(o.latent_at.empty() ? "latent_layers is " : "the layers of latent_at are ", K, " of ", L,
                       " layers; at least one layer must stay below the latents");
    if (o.latent_layers == 0 && K > 0)
        throw BadUsage("latent_layers=0 has no latents, and latent_at names layers of them: leave out one of the two");
    o.latent_layers = K;
    for (int l = o.latent_at.size(); l < K; l++) o.latent_at.push_back(L - K + l);
    for (int l = 0; l < K; l++)
        if (const int at = o.latent_at[l], least = l > 0 ? o.latent_at[l - 1] + 1 : 1; at < least || at >= L)
            throw BadUsage("latent_at has layer ", at, " of ", L, "; expected layers that rise, from 1 to ", L - 1,
                           ": one stays below the latents");
    if (o.latent_sizes.size() <= 1)
        o.latent_sizes.assign(K, o.latent_sizes.empty() ? o.latent.size : o.latent_sizes[0]);
    if (int(o.latent_sizes.size()) != K)
        throw BadUsage("latent_size has ", o.latent_sizes.size(), " numbers, for ", K,
                       " latent layers; expected one, or one for each");
    if (o.latent_kinds.empty()) o.latent_kinds.assign(K, o.latent.kind);
    if (int(o.latent_kinds.size()) != K)
        throw BadUsage("latent_kinds has ", o.latent_kinds.size(), " kinds, for ", K,
                       " latent layers; expected one for each");
    if (o.conditional && K == 0)
        throw BadUsage("conditional=true needs latents, and latent_layers is 0; a run of unilm does without latents");
    if (o.conditional && !o.mask.empty())
        throw BadUsage("conditional=true has masks of its own, which mask= cannot replace: leave out mask=");
    const bool inserts = o.decoder == UniVaeOptions::Decoder::insertion;
    if (o.decoder != UniVaeOptions::Decoder::causal && K == 0)
        throw BadUsage("decoder=", inserts ? "insertion" : "diffusion", " needs latents, and latent_layers is 0; a ",
                       "run of ", inserts ? "insertion" : "unilm with objective=diffusion", " does without latents");
    if (inserts && !o.mask.empty())
        throw BadUsage("decoder=insertion has masks of its own, which mask= cannot replace: leave out mask=");
    if (inserts) o.backbone.head_rows = o.insertion.head_rows();
    if (o.latent.source_prior && !o.conditional)
        throw BadUsage(
            "source_prior=true needs conditional=true: else the encoder half reads only the source, as the prior does");
    return o;
}

std::vector<LatentLayer> layers(Parameters& p, const UniVaeOptions& o) {
    std::vector<LatentLayer> all;
    for (int l = 0; l < o.latent_layers; l++) {
        LatentOptions own = o.latent;
        own.size = o.latent_sizes[l];
        own.kind = o.latent_kinds[l];
        // If the latent below is of the same kind, the new latent gets a pointer to it: a learned prior can depend on
        // the samples of the latent below, and two latents on the sphere can share one table of quantiles.
        const bool same = l > 0 && o.latent_kinds[l - 1] == own.kind;
        all.emplace_back(p, text("latent.", l), o.backbone.width, o.backbone.deviation, o.backbone.eps, own,
                         same ? all.back().latent.get() : nullptr);
    }
    return all;
}

}  // namespace

UniVae::UniVae(Parameters& p, const UniVaeOptions& o)
    : options(complete(o)),
      masks(std::make_shared<const LayerMasks>(o.mask, o.backbone.layers)),
      backbone(p, options.backbone),
      insertion(o.decoder == UniVaeOptions::Decoder::insertion
                    ? std::make_unique<InsertionHead>(p, backbone, o.insertion)
                    : nullptr),
      latents(layers(p, options)),
      space(latents) {
    expect_fitting(o.latent, options.latent_layers > 0 ? options.latent_kinds : std::vector{o.latent.kind});
    if (o.backbone.positions < 2 * o.max_length)
        throw BadUsage("positions is ", o.backbone.positions,
                       ", both halves of a sentence need 2 * max_length = ", 2 * o.max_length);
    for (int i = 0; i < o.backbone.layers; i++)
        if (const int mask = masks->of_layers()[i]; mask >= 0)
            masks->masks()[mask].expect_bottleneck(latent_of(i) >= 0, unmasks());
    if (unmasks()) return;
    if (const std::string why = masks->unwritable(/*goes_on=*/false); !why.empty()) throw BadUsage(why);
}

int UniVae::latent_of(int layer) const {
    const auto found = std::find(options.latent_at.begin(), options.latent_at.end(), layer);
    return found == options.latent_at.end() ? -1 : int(found - options.latent_at.begin());
}

// The joint form, which defines the model: both halves are one sequence. At the input of every layer with a latent, z
// is drawn from the distribution q(z | In x), where x is the row of [CLS]. Out(z) then replaces this row. In and Out
// are linear maps.
Tensor* UniVae::joint(Tape& tape, const Batch& batch, const LatentNoise* noise) const {
    auto scope = tape.scope("joint");
    LatentSamples below;
    const auto before = [&](int i, Tensor*& x, Pass& pass) {
        const int l = latent_of(i);
        pass.parts = &batch.joint_parts;
        pass.graph = &batch.joint_masks.at(i, l < 0 ? batch.joint_lower_graph : batch.joint_upper_graph);
        if (l < 0) return;
        const LatentLayer& latent = latents[l];
        // (B,C): a row of width C per document.
        Tensor* cls = gather_rows(tape, x, tape.ints(batch.joint_cls_rows), text("cls.", l));
        below.push_back(latent.sample(tape, cls, noise, l, below));
        Tensor* u = latent.out(tape, below.back().z);  // (B,C), the new rows of [CLS]
        x = replace_rows(tape, x, tape.ints(batch.joint_which), u, text("replaced.", l));
        if (options.conditional)
            x = replace_rows(tape, x, tape.ints(batch.joint_read_which), u, text("replaced.source.", l));
    };
    Tensor* x = backbone.run(tape, batch.joint, backbone.pass(tape, batch.joint, batch.joint_lower_graph), before);
    return backbone.finish(tape, gather_rows(tape, x, tape.ints(batch.joint_decoder_rows), "decoder_rows"));
}

// The encoder half of the split form, in which the halves run one after the other. The values are the same as in the
// joint form, because the encoder half sees only itself in both forms. Only the layers below the last layer with a
// latent run: by default, all layers but the top one. Unless all rows are asked for, the last of these layers runs only
// for the row of [CLS], because the last latent needs no other row.
Tensor* UniVae::read(Tape& tape, const Batch& batch, const LatentOf& latent, bool all_rows) const {
    const int end = options.latent_at.back();
    const auto before = [&](int i, Tensor*& x, Pass& pass) {
        if (const int l = latent_of(i); l >= 0) {
            // (B,C): a row of width C per document.
            Tensor* cls = gather_rows(tape, x, tape.ints(batch.cls_rows), text("cls.", l));
            Tensor* u = latents[l].out(tape, latent(l, cls));  // (B,C), the new rows of [CLS]
            x = replace_rows(tape, x, tape.ints(batch.which), u, text("replaced.", l));
        }
        pass.graph = &batch.source_masks.at(i, batch.source_graph);
        if (i < end - 1 || all_rows) return;
        pass.query_rows = tape.ints(batch.cls_rows);
        pass.query_names = batch.cls.names(tape);
        pass.graph = &batch.cls_graph;
    };
    const Pass pass = backbone.pass(tape, batch.source, batch.source_graph);
    return backbone.run(tape, batch.source, pass, before, end);
}

Tensor* UniVae::states(Tape& tape, const Batch& batch) const {
    auto scope = tape.scope("encoder");
    LatentSamples samples;
    const auto mean = [&](int l, Tensor* cls) {
        samples.push_back(latents[l].sample(tape, cls, nullptr, l, samples));
        return samples.back().z;
    };
    return read(tape, batch, mean, true);
}

LatentSamples UniVae::encode(Tape& tape, const Batch& batch, const LatentNoise* noise) const {
    LatentSamples samples;
    if (options.latent_layers == 0) return samples;
    {
        auto scope = tape.scope("encoder");
        read(tape, batch, [&](int l, Tensor* cls) {
            samples.push_back(latents[l].sample(tape, cls, noise, l, samples));
            return samples.back().z;
        });
    }
    if (!options.latent.source_prior) return samples;
    // Like q, the prior is a product with one factor for each latent l: p(z_l | source, z_0 .. z_(l-1)). The factor of
    // latent l is therefore computed with the samples z_0 .. z_(l-1), which were drawn from q.
    auto scope = tape.scope("prior");
    read(tape, *batch.sources, [&](int l, Tensor* cls) {
        latents[l].use_prior(tape, cls, samples[l]);
        return samples[l].z;
    });
    return samples;
}

void UniVae::draw(Tape& tape, const Batch& sources, const LatentNoise* noise,
                  const std::function<Tensor*(int, const LatentSample&)>& use) const {
    auto scope = tape.scope("prior");
    read(tape, sources, [&](int l, Tensor* cls) { return use(l, latents[l].prior_sample(tape, cls, noise, l)); });
}

// The decoder half of the split form, which runs after the encoder half, as a separate sequence. In each layer with a
// latent, every document has one more key, Out(z); the decoder half sees nothing else of the encoder half. In a
// conditional model, there is no additional key. Its decoder half also reads the source, and Out(z) replaces the row
// [CLS] of this source.
Tensor* UniVae::decode(Tape& tape, const Batch& batch, const std::vector<Tensor*>& z) const {
    auto scope = tape.scope("decoder");
    if (options.conditional) {
        const auto before = [&](int i, Tensor*& x, Pass&) {
            if (const int l = latent_of(i); l >= 0)
                x = replace_rows(tape, x, tape.ints(batch.read_which), latents[l].out(tape, z[l]),
                                 text("replaced.", l));
        };
        return insertion
                   ? backbone.finish(tape, run_rows(tape, backbone, batch, before))  // (N,C): a row per decoder row
                   : run_labelled(tape, backbone, batch, before);                    // (M,C): a row per label
    }
    const auto before = [&](int i, Tensor*&, Pass& pass) {
        const int l = latent_of(i);
        pass.part = 1;
        pass.graph = &batch.masks.at(i, l < 0 ? batch.graph : batch.latent_graph);
        pass.memory = l < 0 ? nullptr : latents[l].out(tape, z[l]);  // (B,C), one key per document
    };
    const Pass pass = backbone.pass(tape, batch.rows, batch.graph);
    Tensor* x = backbone.run(tape, batch.rows, pass, before);                         // (N,C): a row per decoder row
    if (unmasks()) x = gather_rows(tape, x, tape.ints(batch.labels.rows), "scored");  // (M,C): a row per label
    return backbone.finish(tape, x);
}

UniVae::Loss UniVae::loss(Tape& tape, const Batch& batch, const LatentNoise* noise, double kl_weight) const {
    Loss loss;
    loss.latents = encode(tape, batch, noise);
    std::vector<Tensor*> z;
    for (const LatentSample& s : loss.latents) z.push_back(s.z);
    Tensor* x = decode(tape, batch, z);
    for (const LatentSample& s : loss.latents)
        for (Tensor* t : {s.z, s.y, s.kl, s.loss, s.prior, s.code})
            if (t) tape.retain(t);
    const int targets = batch.whole().predictions;
    if (insertion) {
        Numbers weights = batch.insertions;
        for (double& w : weights) w /= targets;
        const Backbone::MeanLoss mean = insertion->loss(tape, x, batch, weights);
        loss.total = mean.total, loss.losses = mean.losses;
    } else {
        Tensor* h = backbone.head(tape, x);  // (M,E): a row per label, as wide as the embedding
        loss.total = backbone.loss(tape, h, batch.labels.tokens,
                                   loss_weights(tape, batch.labels.weights, 1, targets, "token_weights"),
                                   "reconstruction", &loss.losses);
        tape.retain(loss.losses);
    }
    const Numbers& documents = batch.document_weights;
    for (std::size_t l = 0; l < latents.size(); l++)
        loss.total = latents[l].add_costs(tape, loss.total, loss.latents[l], int(l), documents, targets, kl_weight);
    tape.retain(loss.total);
    const auto has_code = [](const LatentSample& s) { return s.code != nullptr; };
    if (std::none_of(loss.latents.begin(), loss.latents.end(), has_code))
        return loss;  // there is no codebook to update
    loss.documents = loss_weights(tape, documents, targets, targets, "documents");
    tape.retain(loss.documents);
    return loss;
}

void UniVae::start(const std::vector<Batch>& parts, const std::function<LatentNoise(const Batch&)>& noise) const {
    const auto waits = [](const LatentLayer& l) { return l.latent->waits_for_data(); };
    if (std::none_of(latents.begin(), latents.end(), waits)) return;
    Arena arena(backbone.device(), Blocks::kept);
    Tape tape(arena, backbone.storage());
    std::vector<Vectors> rows(latents.size());
    for (const Batch& batch : parts) {
        tape.begin("start");
        const LatentNoise drawn = noise(batch);
        const LatentSamples samples = encode(tape, batch, &drawn);
        for (std::size_t l = 0; l < latents.size(); l++) {
            if (!waits(latents[l])) continue;
            const Numbers z = numbers_of(samples[l].z->view());
            const auto Z = latents[l].latent->options.size;
            for (int b = 0; b < batch.documents; b++) rows[l].emplace_back(z.begin() + b * Z, z.begin() + (b + 1) * Z);
        }
        tape.end();
    }
    for (std::size_t l = 0; l < latents.size(); l++)
        if (waits(latents[l])) latents[l].latent->start(std::move(rows[l]));
}

void UniVae::keep(const Batch& part, const Loss& loss, Coded& coded) const {
    if (!loss.documents) return;  // no latent has a codebook
    coded.weights.keep(loss.documents->view(), part.documents);
    for (std::size_t l = 0; l < latents.size(); l++) {
        if (!latents[l].latent->learns()) continue;
        coded.y[l].keep(loss.latents[l].y->view(), part.documents);
        coded.code[l].keep(loss.latents[l].code->view(), part.documents);
    }
}

void UniVae::learn(const Loss& loss, Coded& coded, std::uint64_t seed, std::uint32_t step) const {
    const auto learns = [](const LatentLayer& l) { return l.latent->learns(); };
    if (std::none_of(latents.begin(), latents.end(), learns)) return;
    const bool one_part = alone() && coded.weights.empty();
    const auto rows = [&](JoinedRows& kept, const Tensor* own, const Shape& shape) {
        if (one_part) return own->view();
        return kept.take(View{nullptr, arithmetic_of(backbone.storage()), backbone.device(), shape, "rows"});
    };
    const View weights = rows(coded.weights, loss.documents, {1});
    for (std::size_t l = 0; l < latents.size(); l++) {
        if (!learns(latents[l])) continue;
        const Latent& latent = *latents[l].latent;
        const LatentSample own = one_part ? loss.latents[l] : LatentSample();
        const View y = rows(coded.y[l], own.y, {1, latent.inputs()}),
                   code = rows(coded.code[l], own.code, {1, latent.code_parts()});
        latent.learn(y, code, weights, seed, step);
    }
}

}  // namespace masquerade
