// SPDX-License-Identifier: MIT
// Lab 6, solved. docs/univae.md explains the same model in the engine, and models/nets/univae.cpp computes it for
// batches.
#include "docs/labs/06/lab.h"

#include <algorithm>

namespace {

std::size_t lower_layers(const Model& model) { return model.layers.size() - model.latents.size(); }

// Returns the input rows of these tokens, at the positions `first`, `first` + 1 and so on.
Rows embed(const Model& model, const Tokens& tokens, std::size_t first) {
    Rows x;
    for (int token : tokens) x.push_back(embed(model, token, first + x.size()));
    return x;
}

std::vector<Key> keys_of(const Layer& layer, const Rows& x) {
    std::vector<Key> keys;
    for (const Row& row : x) keys.push_back(key_of(layer, row));
    return keys;
}

// Returns the keys of the source that the target sees in this layer: the key of Out(z), or none if the layer has no
// latent.
std::vector<Key> keys_of_latent(const Model& model, const Layer& layer, const Rows& z) {
    if (layer.number < lower_layers(model)) return {};
    const std::size_t l = layer.number - lower_layers(model);
    return {key_of(layer, model.latents[l].out(z[l]))};
}

}  // namespace

Mask mask(Kind kind, std::size_t source, std::size_t target) {
    Mask sees(source + target, std::vector<bool>(source + target));
    for (std::size_t i = 0; i < source + target; i++)
        for (std::size_t j = 0; j < source + target; j++) {
            if (i < source)
                sees[i][j] = j < source;
            else if (j >= source)
                sees[i][j] = j <= i;
            else
                sees[i][j] = kind == Kind::uniae && j == 0;
        }
    return sees;
}

Joint joint(const Model& model, const Tokens& source, const Tokens& target) {
    Rows x = embed(model, source, 0), z;
    for (const Row& row : embed(model, target, model.max_length)) x.push_back(row);
    for (const Layer& layer : model.layers) {
        const Kind kind = layer.number < lower_layers(model) ? Kind::independent : Kind::uniae;
        if (kind == Kind::uniae) {
            const Latent& latent = model.latents[z.size()];
            z.push_back(latent.in(x[0]));
            x[0] = latent.out(z.back());
        }
        const Mask sees = mask(kind, source.size(), target.size());
        const std::vector<Key> keys = keys_of(layer, x);
        for (std::size_t i = 0; i < x.size(); i++) {
            std::vector<Key> seen;
            for (std::size_t j = 0; j < x.size(); j++)
                if (sees[i][j]) seen.push_back(keys[j]);
            x[i] = output_of(layer, x[i], seen);
        }
    }
    return {z, Rows(x.end() - std::ptrdiff_t(target.size()), x.end())};
}

Rows encode(const Model& model, const Tokens& source) {
    const std::size_t L = model.layers.size();
    Rows x = embed(model, source, 0), z;
    for (const Layer& layer : model.layers) {
        if (layer.number >= lower_layers(model)) {
            const Latent& latent = model.latents[z.size()];
            z.push_back(latent.in(x[0]));
            x[0] = latent.out(z.back());
        }
        if (layer.number == L - 1) break;  // no one reads the output of the last layer
        const std::vector<Key> keys = keys_of(layer, x);
        if (layer.number == L - 2) x.resize(1);  // after this layer, only the row of [CLS] is read
        for (Row& row : x) row = output_of(layer, row, keys);
    }
    return z;
}

Rows decode(const Model& model, const Rows& z, const Tokens& target) {
    Rows y = embed(model, target, model.max_length);
    for (const Layer& layer : model.layers) {
        std::vector<Key> seen = keys_of_latent(model, layer, z);
        for (Row& row : y) {
            seen.push_back(key_of(layer, row));
            row = output_of(layer, row, seen);
        }
    }
    return y;
}

Cache begin(const Model& model, const Rows& z) {
    Cache cache;
    for (const Layer& layer : model.layers) cache.push_back(keys_of_latent(model, layer, z));
    return cache;
}

Row step(const Model& model, Cache& cache, int token) {
    const std::size_t written = cache[0].size();  // layer 0 has no latent, so its keys are those of the target's tokens
    Row x = embed(model, token, model.max_length + written);
    for (const Layer& layer : model.layers) {
        std::vector<Key>& seen = cache[layer.number];
        seen.push_back(key_of(layer, x));
        x = output_of(layer, x, seen);
    }
    return x;
}

Leak leak(const Forward& forward, const Model& model, const Tokens& source, const Tokens& target) {
    const auto with_another = [&](Tokens tokens, std::size_t at) {
        tokens[at] = (tokens[at] + 1) % int(model.tokens.size());
        return tokens;
    };
    const Rows y = forward(model, source, target);
    for (std::size_t t = 0; t < target.size(); t++) {
        const Rows moved = forward(model, source, with_another(target, t));
        if (!std::equal(moved.begin(), moved.begin() + std::ptrdiff_t(t), y.begin())) return Leak::future;
    }
    Model held = model;  // In has the matrix 0 here, so z is the bias of In, whatever the source is
    for (Latent& latent : held.latents)
        for (Row& row : latent.in.w) std::fill(row.begin(), row.end(), 0.0);
    const Rows still = forward(held, source, target);
    for (std::size_t i = 0; i < source.size(); i++)
        if (forward(held, with_another(source, i), target) != still) return Leak::source;
    Tokens longer = source;
    longer.push_back(source.back());
    return forward(held, longer, target) == still ? Leak::none : Leak::length;
}
