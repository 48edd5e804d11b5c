// SPDX-License-Identifier: MIT
#include "models/nets/univae.h"

#include "models/masks/mask.h"

namespace masquerade {

UniVae::UniVae(Parameters& p, const UniVaeOptions& o)
    : options(o), backbone(p, o.backbone), space(o.latent, o.latent_layers) {
    if (o.latent_layers < 0 || o.latent_layers > o.backbone.layers - (o.latent_layers > 0 ? 1 : 0))
        throw BadUsage(text("latent_layers is ", o.latent_layers, " of ", o.backbone.layers,
                            " layers; at least one layer must stay below the latents"));
    if (o.backbone.positions < 2 * o.max_length)
        throw BadUsage(text("positions is ", o.backbone.positions,
                            ", both halves of a sentence need 2 * max_length = ", 2 * o.max_length));
    for (int l = 0; l < o.latent_layers; l++)
        latents.emplace_back(p, "latent." + std::to_string(l), o.backbone.width, o.backbone.deviation,
                             o.latent);
}

// The definition. Both halves are one sequence under the masks of the figure; at the input of every upper layer the row of
// [CLS] is replaced by Out(z), z drawn around In([CLS]).
Tensor* UniVae::joint(Tape& tape, const UniVaeBatch& batch, const LatentNoise* noise) const {
    auto scope = tape.scope("joint");
    const auto before = [&](int i, Tensor*& x, Pass& pass) {
        const int l = i - first_latent_layer();
        if (l < 0) return;
        const LatentLayer& latent = latents[std::size_t(l)];
        Tensor* cls = gather_rows(tape, x, tape.ints(batch.joint_cls_rows), text("cls.", l));  // (B,C)
        Tensor* u = latent.out(tape, latent.sample(tape, cls, noise, l).z);                    // (B,C)
        x = replace_rows(tape, x, tape.ints(batch.joint_which), u, text("replaced.", l));
        pass.graph = &batch.joint_upper_graph;
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
            samples.push_back(latents[std::size_t(l)].sample(tape, cls, noise, l));
            Tensor* u = latents[std::size_t(l)].out(tape, samples.back().z);  // (B,C)
            x = replace_rows(tape, x, tape.ints(batch.which), u, text("replaced.", l));
        }
        if (i < L - 2) return;
        pass.query_rows = tape.ints(batch.cls_rows);
        pass.query_names = {tape.ints(batch.cls_documents), tape.ints(batch.cls_positions)};
        pass.graph = &batch.cls_graph;
    };
    const Pass pass = backbone.pass(tape, batch.encoder, batch.encoder_graph);
    Tensor* cls = backbone.run(tape, batch.encoder, pass, before, L - 1);  // (B,C)
    samples.push_back(latents.back().sample(tape, cls, noise, options.latent_layers - 1));
    return samples;
}

// Of the encoder half the decoder half sees Out(z) alone: in each upper layer a memory of one row a document.
Tensor* UniVae::decode(Tape& tape, const UniVaeBatch& batch, const std::vector<Tensor*>& z) const {
    auto scope = tape.scope("decoder");
    const auto before = [&](int i, Tensor*&, Pass& pass) {
        const int l = i - first_latent_layer();
        if (l < 0) return;
        pass.graph = &batch.latent_graph;
        pass.memory = latents[std::size_t(l)].out(tape, z[std::size_t(l)]);  // (B,C)
    };
    const Pass pass = backbone.pass(tape, batch.decoder, batch.independent_graph);
    return backbone.finish(tape, backbone.run(tape, batch.decoder, pass, before));  // (N,C)
}

UniVae::Loss UniVae::loss(Tape& tape, const UniVaeBatch& batch, const LatentNoise* noise,
                          double kl_weight) const {
    Loss loss;
    loss.latents = encode(tape, batch, noise);
    std::vector<Tensor*> z;
    for (const LatentSample& s : loss.latents) z.push_back(s.z);
    Tensor* h = backbone.head(tape, decode(tape, batch, z));  // (N,C)
    for (const LatentSample& s : loss.latents)
        for (Tensor* t : {s.z, s.y, s.kl})
            if (t) tape.retain(t);
    DType type = arithmetic_of(tape.dtype);
    auto weights = [&](const std::vector<double>& counted, double weight, const char* name) {
        std::vector<double> w(counted);
        for (double& each : w) each *= weight / batch.target_count;
        return tape.constant(name, {std::int64_t(w.size())}, type, w.data());
    };
    loss.total = backbone.loss(tape, h, batch.targets, weights(batch.token_weights, 1, "token_weights"),
                               "reconstruction", &loss.losses);
    tape.retain(loss.losses);
    for (std::size_t l = 0; l < loss.latents.size(); l++) {
        Tensor* kl = loss.latents[l].kl;  // (B)
        if (!kl) continue;                // a constant of the latent space
        std::string name = "kl." + std::to_string(l);
        kl = weighted_sum(tape, kl, weights(batch.document_weights, kl_weight, "document_weights"), name);
        loss.total = add(tape, loss.total, kl, name + ".total");
    }
    tape.retain(loss.total);
    return loss;
}

}  // namespace masquerade
