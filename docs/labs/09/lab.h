// SPDX-License-Identifier: MIT
// Lab 9: the functions that you write in lab.cpp. Section and equation numbers refer to Stern et al. 2019.
#pragma once
#include <functional>
#include <map>
#include <vector>

// A word is a number from 0 to V - 1. Word 0 means the end of a slot; no target and no canvas contains it.
using Words = std::vector<int>;
constexpr int end_of_slot = 0;

// `words` has k words of a target of n words, in the order of the target. missing[l] has the words that slot l lacks,
// in the order of the target, for each of the k + 1 slots.
struct Canvas {
    Words words;
    std::vector<Words> missing;
};

// Draws a canvas of the target (section 4.2). First, k is drawn uniformly from 0 to n, both included. Then a set of k
// of the n words is drawn; all sets are equally likely. Each call of uniform() returns a new number in [0,1). Words of
// a target may be equal.
Canvas draw_canvas(const Words& target, const std::function<double()>& uniform);

// The words that a slot is asked for, each with its share. The shares sum to 1.
using Shares = std::map<int, double>;

enum class Order { tree, uniform, left_to_right };

// Returns the shares of a slot that lacks these L words. Word u, counted from 0, has the weight
//     exp(-d_u / tau) / sum_v exp(-d_v / tau)                                                        equation 11
//     tree: d_u = |(L - 1) / 2 - u|, equation 10        uniform: d_u = 0, equation 14
//     left_to_right: d_u = u, which becomes equation 9 in the limit of small tau
// The result must be correct for every tau above 0, however small. If a word is missing at several places, its share is
// the sum of the weights at these places.
// Slot finalisation (section 4.4): a slot that lacks no words is asked for its end, with share 1.
Shares shares(const Words& lacks, Order order, double tau);

// p(c,l), the probability that word c is inserted into slot l, is computed from the logits z (slots,V) and from the
// scores of the slots, place (slots):
//     factorised: p(c,l) = softmax_c(z_l) softmax_l(place)                                               equations 3, 4
//     joint:      p(c,l) = softmax of z over all slots and words; place has no effect                        equation 2
enum class Form { factorised, joint };

// Returns the loss of a canvas (equations 12, 13). asked[l] has the words that slot l is asked for, and their shares.
//     -1 / slots sum_l sum_c asked[l][c] log p(c,l)
// The loss and its gradients must be finite for all finite z and place, even if these numbers are in the thousands.
double canvas_loss(Form form, const std::vector<Shares>& asked, int V, const double* z, const double* place);

// Stores the gradients of canvas_loss(): dz (slots,V) and dplace (slots). Whatever their memory contained before is
// overwritten.
void canvas_backward(Form form, const std::vector<Shares>& asked, int V, const double* z, const double* place,
                     double* dz, double* dplace);

// A model returns log p(c|l) for a canvas: a row of V numbers for each slot of the canvas.
using Model = std::function<std::vector<std::vector<double>>(const Words& canvas)>;

struct Written {
    Words words;
    int rounds;
};

// Writes a text in parallel (section 5.2), beginning with the empty canvas. In each round, the model is called once for
// all slots of the canvas. A slot ends if log p(end) - end_penalty is at least as large as the log p of every other
// word. Each other slot inserts its best word; all words of a round are inserted at once. Writing ends when all slots
// end, or after `most_rounds` rounds. A round that inserts nothing is not counted.
Written write_parallel(const Model& model, double end_penalty, int most_rounds);
