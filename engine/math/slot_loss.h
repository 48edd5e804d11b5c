// SPDX-License-Identifier: MIT
// The loss of an insertion decoder for one document: minus the weighted log probability of the target tokens of its
// slots. A slot is a place between two words, into which tokens are inserted. The distribution of the tokens is
// factorised (a softmax per slot) or joint (a softmax over all slots of the document). Each softmax may be a mixture of
// K softmaxes.                                                     Stern et al. 2019, equations 2-4; Yang et al. 2018
#pragma once
#include "engine/math/row.h"

namespace masquerade {

// All documents of a batch, with M slots and J target tokens. Document g has the slots [first[g], first[g+1]); slot m
// has the target tokens [begin[m], begin[m+1]).
//     z (J,K)       logit of each target token in each of the K softmaxes
//     lse (M,K)     log sum exp of all logits of a slot, for each softmax
//     shares (J)    weight of each target token in the loss
//     place (M)     logit of each slot, for a softmax over the slots of a document; may be null
//     mix (*,K)     logits of the mixture weights of the K softmaxes; may be null
//     base (*,K), inner (J)   results that the backward needs (slot_loss_row())
// mix and base have one row per slot or, if `joint` is true, one row per document. If mix is null, K is 1.
template <class A>
struct SlotDocuments {
    const A *z, *lse, *mix, *place, *shares;
    const int *first, *begin;
    int K;
    bool joint;
    A *base, *inner;

    // Returns the log weight of softmax k in the mixture, log softmax(mix)_k of row `row` of mix; 0 if mix is null.
    HD A log_pi(std::int64_t row, int k) const {
        const A* logits = mix + row * K;
        return mix ? logits[k] - log_sum_exp(OneLane{}, K, [&](int i) { return logits[i]; }) : A(0);
    }
    // Returns log sum exp of the logits `place` of the slots [from, from + slots); 0 if place is null.
    template <class Lanes>
    HD A place_sum(Lanes lanes, std::int64_t from, int slots) const {
        return place ? log_sum_exp(lanes, slots, [&](int i) { return place[from + i]; }) : A(0);
    }
    // Returns rho_jk, the posterior probability of softmax k of the mixture given target token j. `row` is the row of
    // base for the slot of token j or, if `joint` is true, for the document of token j.
    HD A posterior(std::int64_t row, std::int64_t j, int k) const {
        return exp_of(base[row * K + k] + z[j * K + k] - inner[j]);
    }
    // Sums over the target tokens j of slot m. weight() returns the sum of share_j. taken() returns the sum of
    // share_j rho_jk, where rho_jk = posterior(row, j, k) is the posterior probability of softmax k of the mixture.
    HD A weight(std::int64_t m) const {
        A s(0);
        for (int j = begin[m]; j < begin[m + 1]; j++) s += shares[j];
        return s;
    }
    HD A taken(std::int64_t row, std::int64_t m, int k) const {
        A s(0);
        for (int j = begin[m]; j < begin[m + 1]; j++) s += shares[j] * posterior(row, j, k);
        return s;
    }
};

// Returns the loss of document g, and writes the numbers of the document in `base` and `inner`:
//     base_k = log pi_k - n_k,   inner_j = log sum_k exp(base_k + z_jk),
//     loss = -sum_j share_j (inner_j + place_m - log sum exp place)
// m is the slot of target token j, and pi = softmax(mix) are the weights of the K softmaxes. n_k is lse_mk or, if
// joint, log sum_m exp(lse_mk). If d.place is null, the two terms with `place` are 0.
template <class A, class Lanes>
HD A slot_loss_row(Lanes lanes, const SlotDocuments<A>& d, std::int64_t g) {
    const std::int64_t from = d.first[g];
    const int slots = int(d.first[g + 1] - from), K = d.K;
    if (d.joint)
        for (int k = 0; k < K; k++) {
            const A n = log_sum_exp(lanes, slots, [&](int i) { return d.lse[(from + i) * K + k]; });
            if (first(lanes)) d.base[g * K + k] = slots > 0 ? d.log_pi(g, k) - n : A(0);
        }
    else
        each(lanes, slots, [&](int i) {
            for (int k = 0; k < K; k++) d.base[(from + i) * K + k] = d.log_pi(from + i, k) - d.lse[(from + i) * K + k];
        });
    meet(lanes);
    const A all = d.place_sum(lanes, from, slots);
    return A(0) - sum(lanes, slots, [&](int i) {
               const std::int64_t m = from + i, row = d.joint ? g : m;
               const A where = d.place ? d.place[m] - all : A(0);
               A s(0);
               for (std::int64_t j = d.begin[m]; j < d.begin[m + 1]; j++) {
                   d.inner[j] = log_sum_exp(OneLane{}, K, [&](int k) { return d.base[row * K + k] + d.z[j * K + k]; });
                   s += d.shares[j] * (d.inner[j] + where);
               }
               return s;
           });
}

// The memory to which the gradients are written. A gradient whose pointer is null is not computed.
template <class A>
struct SlotGradients {
    A *z, *lse, *mix, *place;
    bool add_z, add_lse, add_mix, add_place;
};

// Computes the gradients of the loss of one document, multiplied by g, the gradient that this loss receives in the
// backward. pi and n_k are defined at slot_loss_row(), and rho at posterior(). w_m is the sum of share_j over the
// target tokens j of slot m, and w_document the sum over the target tokens of the document. w = sum_j share_j and
// t_k = sum_j share_j rho_jk are sums over slot m if joint is false, and over the document if joint is true.
//     dz_jk = -g share_j rho_jk,   dmix_k = g (w pi_k - t_k),   dlse_mk = g t_k;  if joint, g t_k exp(lse_mk - n_k)
//     dplace_m = g (w_document softmax(place)_m - w_m)
template <class A, class Lanes>
HD void slot_loss_row_grad(Lanes lanes, const SlotDocuments<A>& d, std::int64_t document, A g,
                           const SlotGradients<A>& to) {
    const std::int64_t from = d.first[document];
    const int slots = int(d.first[document + 1] - from), K = d.K;
    const A w = sum(lanes, slots, [&](int i) { return d.weight(from + i); });
    if (d.joint)
        for (int k = 0; k < K; k++) {
            const A t = sum(lanes, slots, [&](int i) { return d.taken(document, from + i, k); });
            const A log_pi = d.log_pi(document, k), n = log_pi - d.base[document * K + k];
            if (to.mix && first(lanes)) put(to.mix[document * K + k], g * (w * exp_of(log_pi) - t), to.add_mix);
            if (to.lse)
                each(lanes, slots, [&](int i) {
                    const std::int64_t at = (from + i) * K + k;
                    put(to.lse[at], g * t * exp_of(d.lse[at] - n), to.add_lse);
                });
        }
    const A all = d.place_sum(lanes, from, slots);
    each(lanes, slots, [&](int i) {
        const std::int64_t m = from + i, row = d.joint ? document : m;
        for (int k = 0; k < K; k++) {
            for (std::int64_t j = d.begin[m]; to.z && j < d.begin[m + 1]; j++)
                put(to.z[j * K + k], A(0) - g * d.shares[j] * d.posterior(row, j, k), to.add_z);
            if (d.joint) continue;
            const A t = d.taken(m, m, k);
            if (to.lse) put(to.lse[m * K + k], g * t, to.add_lse);
            if (to.mix) put(to.mix[m * K + k], g * (d.weight(m) * exp_of(d.log_pi(m, k)) - t), to.add_mix);
        }
        if (to.place) put(to.place[m], g * (w * exp_of(d.place[m] - all) - d.weight(m)), to.add_place);
    });
}

}  // namespace masquerade
