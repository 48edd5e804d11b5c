// SPDX-License-Identifier: MIT
// Small UniVAEs with every kind of latent, and sentences and pairs for them, which several tests share.
#pragma once
#include <cstring>

#include "engine/tensor/numbers.h"
#include "models/writing/univae_decoder.h"

namespace masquerade::small_univae {

inline UniVaeOptions small(LatentKind kind, bool pre_norm, bool rotary) {
    UniVaeOptions o;
    o.backbone.vocabulary = 50;
    o.backbone.width = 16;
    o.backbone.heads = 2;
    o.backbone.inner = 24;
    o.backbone.layers = 4;
    o.backbone.positions = 24;
    o.backbone.rotary = rotary;
    o.backbone.pre_norm = pre_norm;
    o.backbone.deviation = 0.3;
    o.latent.kind = kind;
    o.latent.size = 6;
    o.latent.kappa = 12;
    o.latent_layers = 2;
    o.max_length = 12;
    return o;
}

// Returns sentences of n tokens: [CLS], n - 2 random pieces, [SEP]. n is between 2 and `longest`.
inline std::vector<Sentence> sentences(int count, int longest, int vocabulary, std::uint64_t seed) {
    Sequence random(seed, "sentences");
    std::vector<Sentence> all(static_cast<std::size_t>(count));
    for (int i = 0; i < count; i++) {
        Sentence& s = all[std::size_t(i)];
        s.name = 100 + i;
        s.ids.push_back(2);
        for (std::uint32_t n = random.below(std::uint32_t(longest - 1)); n > 0; n--)
            s.ids.push_back(5 + int(random.below(std::uint32_t(vocabulary - 5))));
        s.ids.push_back(3);
    }
    return all;
}

// Returns sentences as pairs. The target of each sentence is the next sentence without [CLS].
inline std::vector<Sentence> pairs(int count, int longest, std::uint64_t seed) {
    std::vector<Sentence> all = sentences(count + 1, longest, 50, seed);
    for (int i = 0; i < count; i++)
        all[std::size_t(i)].target.assign(all[std::size_t(i) + 1].ids.begin() + 1, all[std::size_t(i) + 1].ids.end());
    all.pop_back();
    return all;
}

inline bool same_bits(const View& a, const View& b) {
    return a.shape == b.shape && a.dtype == b.dtype && std::memcmp(a.data, b.data, a.bytes()) == 0;
}

struct Model {
    Parameters parameters;
    UniVae model;
    Arena arena;
    Tape tape;
    Model(const UniVaeOptions& o, DType type, bool planning = true)
        : parameters(type),
          model(parameters, o),
          arena(Device::cpu, planning ? Blocks::planned : Blocks::loose),
          tape(arena, type) {
        parameters.allocate(7);
    }
};

inline std::vector<Tensor*> points(const std::vector<LatentSample>& samples) {
    std::vector<Tensor*> z;
    for (const LatentSample& s : samples) z.push_back(s.z);
    return z;
}

// Every kind of latent, and some kinds with further options.
inline const std::vector<LatentOptions> kinds = [] {
    std::vector<LatentOptions> all;
    const auto add = [&](LatentKind kind, bool learn_kappa, double free_bits, const char* of) {
        LatentOptions o = small(kind, false, false).latent;
        o.learn_kappa = learn_kappa, o.free_bits = free_bits, o.free_bits_of = of;
        all.push_back(o);
    };
    for (const LatentKindRow& row : latent_kinds()) add(row.kind, false, 0, "sentence");
    for (LatentKind kind : {LatentKind::vmf, LatentKind::power_spherical}) add(kind, true, 0, "sentence");
    add(LatentKind::vmf, true, 100, "sentence");  // 100 free bits are more than the KL
    for (const char* of : {"sentence", "number", "batch"}) add(LatentKind::gaussian_chain, false, 1.5, of);
    // The latent is [CLS] itself, without projections, and the row that replaces [CLS] is normalised.
    all.push_back(small(LatentKind::vmf, false, false).latent);
    all.back().size = 16, all.back().projects = false, all.back().norm = true;
    return all;
}();
// The same, and Gaussians whose prior depends on the source of a pair.
inline const std::vector<LatentOptions> kinds_of_pairs = [] {
    std::vector<LatentOptions> all = kinds;
    for (const char* of : {"", "sentence", "number", "batch"}) {
        LatentOptions o = small(LatentKind::gaussian, false, false).latent;
        o.source_prior = true;
        if (*of) o.free_bits = 1.5, o.free_bits_of = of;
        all.push_back(o);
    }
    return all;
}();
// Returns this kind, and the kind after it in the table of kinds.
inline std::vector<LatentKind> mixed(LatentKind kind) {
    const auto& table = latent_kinds();
    for (std::size_t i = 0;; i++)
        if (table.at(i).kind == kind) return {kind, table[(i + 1) % table.size()].kind};
}
inline UniVaeOptions small(const LatentOptions& latent, bool pre_norm, bool rotary) {
    UniVaeOptions o = small(latent.kind, pre_norm, rotary);
    o.latent = latent;
    return o;
}

}  // namespace masquerade::small_univae
