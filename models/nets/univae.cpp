// SPDX-License-Identifier: MIT
#include "models/nets/univae.h"

#include "models/masks/mask.h"

namespace masquerade {
namespace {

std::vector<LatentLayer> layers(Parameters& p, const UniVaeOptions& o) {
    std::vector<LatentLayer> all;
    for (int l = 0; l < o.latent_layers; l++)
        all.emplace_back(p, text("latent.", l), o.backbone.width, o.backbone.deviation, o.latent,
                         l > 0 ? all.back().latent.get() : nullptr);
    return all;
}

}  // namespace

UniVae::UniVae(Parameters& p, const UniVaeOptions& o)
    : options(o), masks(o.mask, o.backbone.layers), backbone(p, o.backbone), latents(layers(p, o)), space(o.latent, latents) {
    if (o.latent_layers < 0 || o.latent_layers > o.backbone.layers - (o.latent_layers > 0 ? 1 : 0))
        throw BadUsage(text("latent_layers is ", o.latent_layers, " of ", o.backbone.layers,
                            " layers; at least one layer must stay below the latents"));
    if (find_attention(o.backbone.attention).needs_positions)
        throw BadUsage(text("attention ", o.backbone.attention, " knows keys by their positions, and a latent has none"));
    if (o.backbone.positions < 2 * o.max_length)
        throw BadUsage(text("positions is ", o.backbone.positions,
                            ", both halves of a sentence need 2 * max_length = ", 2 * o.max_length));
    for (int i = 0; i < o.backbone.layers; i++)
        if (const int mask = masks.of_layers()[std::size_t(i)]; mask >= 0)
            masks.masks()[std::size_t(mask)].expect_bottleneck(i >= first_latent_layer());
    if (const std::string why = masks.unwritable(false); !why.empty()) throw BadUsage(why);
}

// The definition. Both halves are one sequence under the masks of the figure; at the input of every upper layer the row of
// [CLS] is replaced by Out(z), z drawn around In([CLS]).
Tensor* UniVae::joint(Tape& tape, const UniVaeBatch& batch, const LatentNoise* noise) const {
    auto scope = tape.scope("joint");
    std::vector<LatentSample> below;
    const auto before = [&](int i, Tensor*& x, Pass& pass) {
        const int l = i - first_latent_layer();
        pass.graph = &batch.joint_masks.at(i, l < 0 ? batch.joint_lower_graph : batch.joint_upper_graph);
        if (l < 0) return;
        const LatentLayer& latent = latents[std::size_t(l)];
        Tensor* cls = gather_rows(tape, x, tape.ints(batch.joint_cls_rows), text("cls.", l));  // (B,C)
        below.push_back(latent.sample(tape, cls, noise, l, below));
        Tensor* u = latent.out(tape, below.back().z);  // (B,C)
        x = replace_rows(tape, x, tape.ints(batch.joint_which), u, text("replaced.", l));
    };
    Tensor* x = backbone.run(tape, batch.joint, backbone.pass(tape, batch.joint, batch.joint_lower_graph), before);
    return backbone.finish(tape, gather_rows(tape, x, tape.ints(batch.joint_decoder_rows), "decoder_rows"));
}

// The split form computes the same. The encoder half sees itself alone, so it runs alone, through layer L-2, whose output is
// read at [CLS] alone.
std::vector<LatentSample> UniVae::encode(Tape& tape, const UniVaeBatch& batch, const LatentNoise* noise) const {
    std::vector<LatentSample> samples;
    if (options.latent_layers == 0) return samples;
    auto scope = tape.scope("encoder");
    const int L = options.backbone.layers;
    const auto before = [&](int i, Tensor*& x, Pass& pass) {
        if (const int l = i - first_latent_layer(); l >= 0) {
            Tensor* cls = gather_rows(tape, x, tape.ints(batch.cls_rows), text("cls.", l));  // (B,C)
            samples.push_back(latents[std::size_t(l)].sample(tape, cls, noise, l, samples));
            Tensor* u = latents[std::size_t(l)].out(tape, samples.back().z);  // (B,C)
            x = replace_rows(tape, x, tape.ints(batch.which), u, text("replaced.", l));
        }
        pass.graph = &batch.source_masks.at(i, batch.source_graph);
        if (i < L - 2) return;
        pass.query_rows = tape.ints(batch.cls_rows);
        pass.query_names = batch.cls.names(tape);
        pass.graph = &batch.cls_graph;
    };
    const Pass pass = backbone.pass(tape, batch.source, batch.source_graph);
    Tensor* cls = backbone.run(tape, batch.source, pass, before, L - 1);  // (B,C)
    samples.push_back(latents.back().sample(tape, cls, noise, options.latent_layers - 1, samples));
    return samples;
}

// The decoder half sees Out(z) alone from the encoder half: in each upper layer a memory of one row a document.
Tensor* UniVae::decode(Tape& tape, const UniVaeBatch& batch, const std::vector<Tensor*>& z) const {
    auto scope = tape.scope("decoder");
    const auto before = [&](int i, Tensor*&, Pass& pass) {
        const int l = i - first_latent_layer();
        pass.graph = &batch.masks.at(i, l < 0 ? batch.graph : batch.latent_graph);
        if (l < 0) return;
        pass.memory = latents[std::size_t(l)].out(tape, z[std::size_t(l)]);  // (B,C)
    };
    const Pass pass = backbone.pass(tape, batch.rows, batch.graph);
    return backbone.finish(tape, backbone.run(tape, batch.rows, pass, before));  // (N,C)
}

UniVae::Loss UniVae::loss(Tape& tape, const UniVaeBatch& batch, const LatentNoise* noise,
                          double kl_weight) const {
    Loss loss;
    loss.latents = encode(tape, batch, noise);
    std::vector<Tensor*> z;
    for (const LatentSample& s : loss.latents) z.push_back(s.z);
    Tensor* h = backbone.head(tape, decode(tape, batch, z));  // (N,C)
    for (const LatentSample& s : loss.latents)
        for (Tensor* t : {s.z, s.y, s.kl, s.loss, s.prior, s.code})
            if (t) tape.retain(t);
    DType type = arithmetic_of(tape.dtype);
    auto weights = [&](const std::vector<double>& counted, double weight, const char* name) {
        std::vector<double> w(counted);
        for (double& each : w) each *= weight / batch.asked.count;
        return tape.constant(name, {std::int64_t(w.size())}, type, w.data());
    };
    loss.total = backbone.loss(tape, h, batch.asked.tokens, weights(batch.asked.weights, 1, "token_weights"),
                               "reconstruction", &loss.losses);
    tape.retain(loss.losses);
    for (std::size_t l = 0; l < loss.latents.size(); l++) {
        const auto add_to_total = [&](Tensor* each, double weight, const std::string& name) {  // (B); null: nothing
            if (!each) return;
            each = weighted_sum(tape, each, weights(batch.document_weights, weight, "document_weights"), name);
            loss.total = add(tape, loss.total, each, name + ".total");
        };
        add_to_total(loss.latents[l].kl, kl_weight, text("kl.", l));
        add_to_total(loss.latents[l].loss, 1, text("latent_loss.", l));
    }
    tape.retain(loss.total);
    if (loss.latents.empty() || !loss.latents[0].code) return loss;  // nothing to learn
    loss.documents = weights(batch.document_weights, batch.asked.count, "documents");
    tape.retain(loss.documents);
    return loss;
}

void UniVae::learn(Tape& tape, const Loss& loss) const {
    for (std::size_t l = 0; l < loss.latents.size(); l++) latents[l].latent->learn(tape, loss.latents[l], loss.documents);
}

}  // namespace masquerade
