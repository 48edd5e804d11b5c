// SPDX-License-Identifier: MIT
// Compares all p(token, slot) of an insertion decoder with plain loops: joint and factorised, with one softmax and with
// a mixture of three, with and without a bias for each document.
#include <doctest/doctest.h>

#include <cmath>
#include <deque>
#include <string>

#include "engine/nn/functions.h"

using namespace masquerade;

namespace {

using Numbers = std::vector<double>;

constexpr int E = 3, V = 4;

// Documents with 3, 0, 2 and 1 slots. Each slot is asked for all tokens.
struct Decoder {
    const bool joint, biased;
    const int K, M = 6, B = 4, J = M * V;
    const std::vector<int> first{0, 3, 3, 5, 6};
    std::vector<int> document{0, 0, 0, 2, 2, 3};
    std::vector<int> begin, slots, tokens;
    Numbers h, w, b, bias, mix, place, shares;

    Decoder(bool with_joint, bool with_bias, int softmaxes) : joint(with_joint), biased(with_bias), K(softmaxes) {
        Sequence random(1, "decoder");
        const auto drawn = [&](int count) {
            Numbers all(std::size_t(count), 0.0);
            for (double& x : all) x = 3 * random.uniform_double() - 1.5;
            return all;
        };
        h = drawn(M * K * E), w = drawn(V * E), b = drawn(V), bias = drawn(B * V), place = drawn(M);
        mix = drawn((joint ? B : M) * K);
        for (int m = 0; m <= M; m++) begin.push_back(m * V);
        for (int j = 0; j < J; j++) slots.push_back(j / V), tokens.push_back(j % V);
        shares.assign(std::size_t(J), 0);
    }

    // Returns the losses of the documents, computed on a tape. If dh is not null, also computes the gradient of their
    // sum with respect to h.
    Numbers losses(Numbers* dh = nullptr) {
        Arena arena(Device::cpu, Blocks::loose);
        Tape tape(arena, DType::f64);
        tape.begin("all");
        std::deque<Tensor> leaves;
        const auto leaf = [&](const char* path, const Shape& shape, Numbers& numbers) {
            Tensor& t = leaves.emplace_back();
            t.path = path, t.shape = shape, t.dtype = DType::f64, t.value = numbers.data();
            return &t;
        };
        Tensor* x = leaf("h", {M, K * E}, h);
        if (dh) dh->assign(h.size(), NAN), x->needs_grad = true, x->grad = dh->data();
        const ChosenLogits logits = chosen_logits(tape, x, leaf("w", {V, E}, w), leaf("b", {V}, b),
                                                  biased ? leaf("bias", {B, V}, bias) : nullptr, tape.ints(document),
                                                  tape.ints(slots), tape.ints(tokens), "logits");
        Tensor* loss = slot_loss(tape, logits, K > 1 ? leaf("mix", {joint ? B : M, K}, mix) : nullptr,
                                 joint ? nullptr : leaf("place", {M}, place),
                                 {tape.ints(first), tape.ints(begin), leaf("shares", {J}, shares)}, joint, "loss");
        const double* found = static_cast<const double*>(loss->value);
        const Numbers all(found, found + B), ones(std::size_t(B), 1.0);
        if (dh) tape.backward(weighted_sum(tape, loss, tape.constant("ones", {B}, DType::f64, ones.data()), "sum"));
        return all;
    }

    double logit(int m, int k, int c) const {
        double s = b[std::size_t(c)] + (biased ? bias[std::size_t(document[std::size_t(m)] * V + c)] : 0);
        for (int i = 0; i < E; i++) s += h[std::size_t((m * K + k) * E + i)] * w[std::size_t(c * E + i)];
        return s;
    }
    // Returns p(c, l) by its definition.
    double probability(int slot, int c) const {
        const int g = document[std::size_t(slot)], from = first[std::size_t(g)], end = first[std::size_t(g) + 1];
        const Numbers::const_iterator logits = mix.begin() + (joint ? g : slot) * K;
        double of_mix = 0, of_place = 0, p = 0;
        for (int k = 0; k < K; k++) of_mix += std::exp(logits[k]);
        for (int m = from; m < end; m++) of_place += std::exp(place[std::size_t(m)]);
        for (int k = 0; k < K; k++) {
            double sum = 0;
            for (int m = joint ? from : slot; m < (joint ? end : slot + 1); m++)
                for (int v = 0; v < V; v++) sum += std::exp(logit(m, k, v));
            p += std::exp(logits[k]) / of_mix * std::exp(logit(slot, k, c)) / sum;
        }
        return joint ? p : p * std::exp(place[std::size_t(slot)]) / of_place;
    }
};

template <class F>
void each_form(F f) {
    for (bool joint : {false, true})
        for (bool biased : {false, true})
            for (int K : {1, 3}) {
                CAPTURE(joint);
                CAPTURE(biased);
                CAPTURE(K);
                Decoder d(joint, biased, K);
                f(d);
            }
}

}  // namespace

TEST_CASE("insertion: p of all tokens and slots is that of plain loops, and sums to 1 in each document") {
    each_form([](Decoder& d) {
        Numbers sums(std::size_t(d.B), 0.0);
        for (int j = 0; j < d.J; j++) {
            d.shares.assign(std::size_t(d.J), 0.0), d.shares[std::size_t(j)] = 1;
            const Numbers losses = d.losses();
            const int g = d.document[std::size_t(j / V)];
            for (int other = 0; other < d.B; other++)
                if (other != g) CHECK(losses[std::size_t(other)] == 0);
            const double p = std::exp(-losses[std::size_t(g)]);
            CHECK(std::fabs(p - d.probability(j / V, j % V)) < 1e-12);
            sums[std::size_t(g)] += p;
        }
        for (int g : {0, 2, 3}) CHECK(std::fabs(sums[std::size_t(g)] - 1) < 1e-12);
    });
}

TEST_CASE("insertion: the loss is the sum of shares, and its gradient at h is the slope") {
    each_form([](Decoder& d) {
        for (int j = 0; j < d.J; j++) d.shares[std::size_t(j)] = j % 3 * 0.25;
        const auto total = [&] {
            double sum = 0;
            for (double loss : d.losses()) sum += loss;
            return sum;
        };
        double expected = 0;
        for (int j = 0; j < d.J; j++) expected -= d.shares[std::size_t(j)] * std::log(d.probability(j / V, j % V));
        CHECK(std::fabs(total() - expected) < 1e-11);
        Numbers dh;
        d.losses(&dh);
        for (std::size_t i = 0; i < d.h.size(); i++) {
            const double before = d.h[i], step = 1e-5;
            d.h[i] = before + step;
            const double above = total();
            d.h[i] = before - step;
            const double slope = (above - total()) / (2 * step);
            d.h[i] = before;
            CHECK(std::fabs(dh[i] - slope) < 1e-8);
        }
    });
}

TEST_CASE("insertion: what does not fit is refused") {
    const auto said = [](auto change) {
        Decoder d(false, true, 3);
        change(d);
        try {
            d.losses();
        } catch (const Error& e) {
            return std::string(e.what());
        }
        return std::string();
    };
    CHECK(said([](Decoder&) {}) == "");
    CHECK(said([](Decoder& d) { d.document[2] = 3; }) ==
          "chosen_logits: group 2 at place 3 after 3, expected them ascending");
    CHECK(said([](Decoder& d) { std::swap(d.slots[0], d.slots[20]); }).find(", expected them ascending") !=
          std::string::npos);
    CHECK(said([](Decoder& d) { d.tokens[5] = V; }).find("token 4 at place 5, expected in [0, 4)") !=
          std::string::npos);
    CHECK(said([](Decoder& d) { d.begin[6] = 23; }) == "slot_loss: first choices from 0 to 23, expected from 0 to 24");
    CHECK(said([](Decoder& d) { d.slots.pop_back(); }).find("slots of 23, tokens of 24") != std::string::npos);
}
