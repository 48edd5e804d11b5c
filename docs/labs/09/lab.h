// SPDX-License-Identifier: MIT
// Lab 9: what is to be written in lab.cpp. Sections and equations are those of Stern et al. 2019.
#pragma once
#include <functional>
#include <map>
#include <vector>

// A word is a number from 0 to V - 1. Word 0 is the end of a slot; it stands in no target and in no canvas.
using Words = std::vector<int>;
constexpr int end_of_slot = 0;

// k words of a target of n words, in their order, and the words that each of the k + 1 slots lacks, in their order.
struct Canvas {
    Words words;
    std::vector<Words> missing;
};

// Draws a canvas of the target: k is uniform in 0 ... n, both included; then each set of k of the n words is as likely
// as any other. Each call of `uniform` gives a new number in [0,1). Words of a target may be equal.         section 4.2
Canvas draw_canvas(const Words& target, const std::function<double()>& uniform);

// The words that a slot is asked for, each with its share. The shares sum to 1.
using Shares = std::map<int, double>;

enum class Order { tree, uniform, left_to_right };

// Gives the shares of a slot that lacks these L words. Word u, counted from 0, has the weight
//     exp(-d_u / tau) / sum_v exp(-d_v / tau)                                                        equation 11
//     tree: d_u = |(L - 1) / 2 - u|, equation 10        uniform: d_u = 0, equation 14
//     left_to_right: d_u = u, which is equation 9 where tau goes to 0
// for every tau above 0, however small. The share of a word is the sum over all places where it is missing.
// Slot finalisation: a slot that lacks nothing is asked for its end, with share 1.                          section 4.4
Shares shares(const Words& lacks, Order order, double tau);

// The probability that word c is inserted into slot l, of logits z (slots,V) and scores of the places, place (slots):
//     factorised: p(c,l) = softmax_c(z_l) softmax_l(place)                                               equations 3, 4
//     joint:      p(c,l) = softmax of z over all slots and words; place has no effect                        equation 2
enum class Form { factorised, joint };

// Gives the loss of a canvas, of which slot l is asked for asked[l]:                                   equations 12, 13
//     -1 / slots sum_l sum_c asked[l][c] log p(c,l)
// The loss and its gradients are finite for all finite z and place, thousands included.
double canvas_loss(Form form, const std::vector<Shares>& asked, int V, const double* z, const double* place);

// Stores, and does not add to, the gradients of that loss: dz (slots,V) and dplace (slots).
void canvas_backward(Form form, const std::vector<Shares>& asked, int V, const double* z, const double* place,
                     double* dz, double* dplace);

// A model gives log p(c|l) of a canvas: a row of V numbers for each of its slots.
using Model = std::function<std::vector<std::vector<double>>(const Words& canvas)>;

struct Written {
    Words words;
    int rounds;
};

// Writes in parallel, from the empty canvas. In a round the model is asked about all slots of the canvas. A slot ends
// where log p(end) - end_penalty is as large as the log p of every other word, or larger. All other slots insert their
// best word, at once. Writing ends where all slots end, or after so many rounds. A round that inserts nothing is not
// counted. section 5.2
Written write_parallel(const Model& model, double end_penalty, int most_rounds);
