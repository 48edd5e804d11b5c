// SPDX-License-Identifier: MIT
// Tests the loss on the tape: which tensors its record keeps depends on which inputs need a gradient.
#include <doctest/doctest.h>

#include <cstring>
#include <string>
#include <vector>

#include "engine/nn/functions.h"
#include "engine/nn/parameters.h"

using namespace masquerade;

namespace {

constexpr int N = 5, C = 4, V = 7;

struct Head {
    Parameters parameters;
    Arena arena{Device::cpu, Blocks::loose};
    Tape tape{arena, DType::f32};
    Tensor* words = parameters.add("words", {V, C}, {Init::normal, 1.0});
    Tensor* bias = parameters.add("bias", {V}, {Init::ones});
    Tensor* table = parameters.add("table", {N, C}, {Init::normal, 1.0});
    std::vector<int> targets = {3, 0, 6, 3, 2}, ids = {4, 1, 0, 3, 2};
    std::vector<double> numbers = {0.5, 0, -0.25, 1, 0.125};
    Tensor *h = nullptr, *weights = nullptr;

    Head() { parameters.allocate(3); }
    // Begins a step. The rows are a constant if `given` is true; otherwise, they come from a parameter.
    void begin(bool given) {
        tape.begin(given ? "given" : "made");
        std::vector<float> x(std::size_t(N * C), 0.5f);
        h = given ? tape.constant("h", {N, C}, DType::f32, x.data()) : embedding(tape, tape.ints(ids), table, "h");
        weights = tape.constant("weights", {N}, DType::f32, numbers.data());
    }
    Tensor* loss(Tensor* b, Tensor** losses = nullptr, double smoothing = 0) {
        return cross_entropy(tape, h, words, b, tape.ints(targets), weights, "loss", losses, smoothing);
    }
    std::string outputs() const {
        std::string paths;
        for (const Tensor* t : tape.records().back().out) paths += t->path + " ";
        return paths;
    }
    std::vector<float> gradients(Tensor* total) {
        parameters.start_gradients();
        tape.backward(total);
        parameters.finish_gradients();
        const View g = parameters.gradients();
        return {g.as<float>(), g.as<float>() + g.count()};
    }
};

}  // namespace

TEST_CASE("cross_entropy: the record holds gradients of those that need one, and keeps nothing else") {
    Head m;
    m.begin(false);
    m.loss(m.bias);
    CHECK(m.outputs() == "loss loss.losses loss.lse loss.h1 loss.w1 loss.b1 ");
    CHECK(m.tape.records().back().keep.size() == 3);
    m.begin(false);
    m.loss(nullptr);
    CHECK(m.outputs() == "loss loss.losses loss.lse loss.h1 loss.w1 ");
    m.begin(true);
    m.loss(m.bias);
    CHECK(m.outputs() == "loss loss.losses loss.lse loss.w1 loss.b1 ");
    m.words->needs_grad = false;
    m.begin(true);
    m.loss(m.bias);
    CHECK(m.outputs() == "loss loss.losses loss.lse loss.b1 ");
    m.bias->needs_grad = false;
    m.begin(true);
    CHECK_FALSE(m.loss(m.bias)->needs_grad);
    CHECK(m.outputs() == "loss loss.losses loss.lse ");
}

TEST_CASE("cross_entropy: what comes down to the total scales the gradients") {
    Head m;
    m.begin(false);
    const std::vector<float> once = m.gradients(m.loss(m.bias));
    m.begin(false);
    Tensor* total = m.loss(m.bias);
    const std::vector<float> twice = m.gradients(add(m.tape, total, total, "twice"));
    int different = 0, zero = 0;
    for (std::size_t i = 0; i < once.size(); i++) {
        different += !(twice[i] == 2 * once[i]);
        zero += once[i] == 0;
    }
    CHECK(different == 0);
    CHECK(zero < 40);  // the gaps of alignment, and a row without weight
}

TEST_CASE("token_losses: the losses of cross_entropy, and nothing flows through them") {
    Head m;
    m.begin(false);
    Tensor* losses = nullptr;
    m.loss(m.bias, &losses);
    m.tape.retain(losses);
    REQUIRE(losses);
    CHECK_FALSE(losses->needs_grad);
    Tensor* alone = token_losses(m.tape, m.h, m.words, m.bias, m.tape.ints(m.targets), "alone");
    CHECK(std::memcmp(losses->value, alone->value, losses->bytes()) == 0);
    CHECK_FALSE(alone->needs_grad);
    Tensor* smoothed = nullptr;
    m.loss(m.bias, &smoothed, 0.25);
    m.tape.retain(smoothed);
    CHECK(std::memcmp(smoothed->value, alone->value, smoothed->bytes()) != 0);
    CHECK_THROWS_WITH_AS(m.tape.backward(weighted_sum(m.tape, alone, m.weights, "sum")),
                         "backward from sum: no parameter lies upstream of it", Error);
}
