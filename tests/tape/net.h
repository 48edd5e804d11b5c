// SPDX-License-Identifier: MIT
// A small program with everything that is difficult for a tape: forks, a tensor that an op uses twice, tied and
// repeated parameters, dropout, nested scopes, and statistics.
#pragma once
#include "engine/nn/functions.h"
#include "engine/nn/parameters.h"

#include <string>
#include <vector>

namespace masquerade {

struct Net {
    static constexpr int C = 12, F = 20, V = 17, layers = 3;
    Parameters parameters;
    Arena arena;
    Tape tape;
    Tensor *table, *norm_w, *norm_b, *head_b, *unused;
    Tensor* watched = nullptr;  // the gelu of the last layer in this step
    bool watching = false;      // whether the tape retains `watched`
    struct Layer {
        Tensor *up, *up_b, *down, *down_b;
    };
    std::vector<Layer> stack;
    std::vector<int> ids, targets, document, position;

    explicit Net(DType type = DType::f32, bool planning = true)
        : parameters(type), arena(Device::cpu, planning ? Blocks::planned : Blocks::loose), tape(arena, type) {
        Init normal{Init::normal, 0.5};
        table = parameters.add("table", {V, C}, normal);
        norm_w = parameters.add("norm.weight", {C}, {Init::ones});
        norm_b = parameters.add("norm.bias", {C}, {Init::zeros});
        head_b = parameters.add("head.bias", {V}, {Init::zeros});
        unused = parameters.add("unused", {3, 3}, normal);
        for (int i = 0; i < layers; i++) {
            std::string at = "layer." + std::to_string(i);
            stack.push_back(
                {parameters.add(at + ".up", {F, C}, normal), parameters.add(at + ".up.bias", {F}, {Init::zeros}),
                 parameters.add(at + ".down", {C, F}, normal), parameters.add(at + ".down.bias", {C}, {Init::zeros})});
        }
        parameters.allocate(4);
    }

    // Runs a step with this number of rows, up to the loss.
    Tensor* loss(int rows, std::uint32_t step = 0) {
        ids.clear(), targets.clear(), document.clear(), position.clear();
        for (int i = 0; i < rows; i++) {
            ids.push_back((i * 5 + 1) % V), targets.push_back((i * 3 + 2) % V);
            document.push_back(i / 4), position.push_back(i % 4);
        }
        tape.begin(std::to_string(rows), 9, step, true);
        const RowNames names{tape.ints(document), tape.ints(position)};
        Tensor* x = embedding(tape, tape.ints(ids), table, "embedding");
        Tensor* first = x;
        for (int i = 0; i < layers; i++) {
            auto outer = tape.scope("layer." + std::to_string(i));
            const Layer& l = stack[std::size_t(i)];
            Tensor* h = layernorm(tape, x, norm_w, norm_b, 1e-5, "norm");
            {
                auto inner = tape.scope("ffn");
                Tensor* u = gelu(tape, linear(tape, h, l.up, l.up_b, "up"), GeluKind::erf, "gelu");
                watched = u;
                if (watching) tape.retain(u);
                u = dropout(tape, u, names, 0.3f, "dropout");
                h = linear(tape, u, l.down, l.down_b, "down");
            }
            x = add(tape, x, h, "residual");
            x = add(tape, x, x, "twice");
        }
        x = add(tape, layernorm(tape, x, norm_w, norm_b, 1e-5, "final"), first, "fork");
        std::vector<double> weights(std::size_t(rows), 1.0 / rows);
        Tensor* w = tape.constant("weights", {rows}, arithmetic_of(tape.dtype), weights.data());
        Tensor* total = cross_entropy(tape, x, table, head_b, tape.ints(targets), w, "loss");
        tape.retain(total);
        return total;
    }

    // Returns the bits of all gradients, and then those of the loss.
    std::vector<char> bits(Tensor* total) {
        std::vector<char> all;
        for (const View& v : {parameters.gradients(), total->view()})
            all.insert(all.end(), static_cast<char*>(v.data), static_cast<char*>(v.data) + v.bytes());
        return all;
    }
    std::vector<char> step(int rows, std::uint32_t number = 0) {
        Tensor* total = loss(rows, number);
        parameters.start_gradients();
        tape.backward(total);
        parameters.finish_gradients();
        std::vector<char> all = bits(total);
        tape.end();
        return all;
    }
};

}  // namespace masquerade
