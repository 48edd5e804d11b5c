// SPDX-License-Identifier: MIT
// The terms that a latent layer adds to the loss, and the check that the options suit the kind of latent.
#include <algorithm>
#include <numeric>

#include "models/latent/latent.h"

namespace masquerade {

void expect_fitting(const LatentOptions& o, const std::vector<LatentKind>& kinds) {
    std::string names;
    for (LatentKind kind : kinds) names += (names.empty() ? "" : ",") + std::string(row_of(kind).name);
    const auto some = [&](unsigned traits) {
        return std::any_of(kinds.begin(), kinds.end(), [&](LatentKind kind) { return row_of(kind).traits & traits; });
    };
    const auto refuse = [&](const char* setting, const char* why) { throw BadUsage(setting, ": latent=", names, why); };
    if (kinds.empty()) return;
    if (o.learn_kappa && !some(LatentKindRow::kappa)) refuse("learn_kappa", " has no kappa");
    if (o.learn_kappa && o.kappa == 0)
        throw BadUsage(
            "learn_kappa=true: a kappa that starts at 0 stays there, as it is learned by its logarithm; expected kappa above 0");
    if (o.free_bits > 0 && !some(LatentKindRow::kl) && !o.learn_kappa)
        refuse("free_bits",
               some(LatentKindRow::kappa)
                   ? " has a constant KL, which costs nothing, unless learn_kappa=true makes it one that does"
                   : " has a constant KL, which costs nothing; leave free_bits out");
    for (LatentKind kind : kinds)
        if (o.source_prior && !row_of(kind).has(LatentKindRow::any_prior))
            refuse("source_prior=true", " has no KL in closed form to a prior that the source sets; expected gaussian");
    for (LatentKind kind : kinds)  // free_bits_of=number: each KL in the loss must be a sum over the numbers of z
        if (const LatentKindRow& row = row_of(kind);
            o.free_bits > 0 && o.free_bits_of == "number" && !row.has(LatentKindRow::kl_of_numbers) &&
            (row.has(LatentKindRow::kl) || (o.learn_kappa && row.has(LatentKindRow::kappa))))
            refuse("free_bits_of=number", " has no KL that is a sum over numbers");
}

Tensor* loss_weights(Tape& tape, Numbers counted, double weight, int targets, const char* name) {
    for (double& each : counted) each *= weight / targets;
    return tape.constant(name, {std::int64_t(counted.size())}, arithmetic_of(tape.dtype), counted.data());
}

Tensor* LatentLayer::add_costs(Tape& tape, Tensor* total, const LatentSample& s, int layer, const Numbers& documents,
                               int targets, double kl_weight) const {
    const LatentOptions& o = latent->options;
    const auto add_to_total = [&](Tensor* each, const Numbers& counted, double weight, const std::string& name) {
        if (!each) return;
        each = weighted_sum(tape, each, loss_weights(tape, counted, weight, targets, "document_weights"), name);
        total = add(tape, total, each, name + ".total");
    };
    const std::string kl = text("kl.", layer);
    add_to_total(s.loss, documents, 1, text("latent_loss.", layer));
    if (o.free_bits == 0 || !s.kl) {
        add_to_total(s.kl, documents, kl_weight, kl);
    } else if (s.kls) {  // each number of z has its own lower limit of the KL, free_bits / Z
        Numbers each;
        const std::size_t Z = s.kls->columns();
        for (double w : documents) each.insert(each.end(), Z, w);
        Tensor* flat = reshape(tape, s.kls, {std::int64_t(each.size())}, kl + ".numbers");
        add_to_total(at_least(tape, flat, o.free_bits / Z, kl + ".free"), each, kl_weight, kl);
    } else if (o.free_bits_of == "batch") {  // the lower limit applies to the mean KL of the batch
        const double count = std::accumulate(documents.begin(), documents.end(), 0.0);
        Tensor* shares = loss_weights(tape, documents, targets / count, targets, "document_shares");
        Tensor* mean = weighted_sum(tape, s.kl, shares, kl + ".mean");
        add_to_total(at_least(tape, mean, o.free_bits, kl + ".free"), {count}, kl_weight, kl);
    } else {
        add_to_total(at_least(tape, s.kl, o.free_bits, kl + ".free"), documents, kl_weight, kl);
    }
    return total;
}

}  // namespace masquerade
