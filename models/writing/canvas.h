// SPDX-License-Identifier: MIT
// Generation by insertion (Stern et al. 2019, sections 5.1, 5.2, 6.1). A canvas is the text generated so far. If it has
// k tokens, there are k + 1 slots: the places before, between and after these tokens. A round inserts a token into one
// slot, or one token into each of several slots. The model only provides the scores of the slots.
//
// The result depends only on the canvas at the start, the scores and the options. If an end and an insertion are
// equally likely, the end wins. If insertions into two slots are equally likely, the slot with the smaller index comes
// first. Among equally likely tokens for one slot, the model returns the token with the smallest id.
#pragma once
#include <climits>

#include "data/sentences.h"

namespace masquerade {

struct Canvas {
    int source = 0;  // index of the source to which the canvas belongs
    Tokens tokens;   // the tokens that are already there
    // For each of the tokens.size() + 1 slots, whether insertion is forbidden. If empty, no slot is closed.
    std::vector<char> closed = {};
};

// The score of slot l. c is the most likely of the tokens that may be inserted. The end token is not one of them.
struct SlotScore {
    int token;       // c, the most likely token
    double content;  // log p(c|l): the probability of c, given that slot l is chosen; -infinity if no token is allowed
    double end;      // log p(end|l): the probability of the end token, given that slot l is chosen
    double place;    // log p(l): the probability that slot l is chosen
};

using Canvases = std::vector<const Canvas*>;
using SlotScores = std::vector<std::vector<SlotScore>>;  // of the slots of each canvas

class SlotModel {
  public:
    virtual ~SlotModel() = default;
    // Returns the scores of the slots of each canvas.
    virtual SlotScores score(const Canvases& canvases) = 0;
};

// The rule by which a canvas ends. slot: the canvas ends if every open slot ends. sequence: the canvas ends if the most
// likely action in the whole canvas is to end some slot, not to insert a token.
enum class Finalization { slot, sequence };

// p(c|l), p(end|l) and p(l) are the probabilities in SlotScore, for the most likely token c of slot l.
struct CanvasOptions {
    Finalization finalization = Finalization::slot;
    // true: a round inserts into every slot that does not end, except slots that `threshold` excludes; false: only into
    // the slot with the largest p(l) p(c|l)
    bool parallel = false;
    // If `parallel`: the best slot, and slots with p(c|l) >= threshold, get a token. In masked diffusion, the best
    // hidden place, and those whose most likely token has a probability >= threshold; -1: not given.
    double threshold = -1;
    double end_penalty = 0;  // beta, which is subtracted from log p(end|l), the score of ending slot l
    double sure_end = 0;     // a slot ends if p(end|l) >= sure_end and also log p(end|l) - beta >= log p(c|l)
    // Inserting a token c gives the same text for every slot before, within or after a run of adjacent tokens c. true:
    // these slots are separate, as in the paper. false: they are combined into one slot (alike() in canvas.cpp).
    bool apart = false;
    int longest = 128;  // maximum number of tokens of a canvas; a round inserts only the best tokens that fit
    int most_rounds = INT_MAX;
};
void check(const CanvasOptions& options);  // throws BadUsage if the options contradict each other
// Whether the user changed options that matter only for generation by insertion.
inline bool changed(const CanvasOptions& o) {
    return o.parallel || o.apart || o.threshold >= 0 || o.end_penalty != 0 || o.sure_end != 0 ||
           o.most_rounds < INT_MAX;
}

struct Written {
    Tokens tokens;
    std::vector<int> came;  // for each token, the round in which it was written, from 1; 0: it was there at the start
    int rounds = 0;
    int rounds_of_others = 0;  // of masked diffusion: of the canvases of other lengths that were tried
    // Sum over the inserted tokens of log (p(l) p(c|l)) or, if CanvasOptions::parallel is true, of log p(c|l). p(l) is
    // the probability of the token's slot l, and p(c|l) is the probability of the token c in this slot.
    double score = 0;
    bool ended = false;                        // false if the maximum number of tokens or rounds stopped the canvas
    int passes() const { return rounds + 1; }  // of insertion: number of forward passes; the last one inserts nothing
};

// Inserts tokens into the canvases until each one ends or reaches a limit. Finished canvases are not passed to the
// model again. Calls check() for the options.
std::vector<Written> write_canvases(SlotModel& model, std::vector<Canvas> starts, const CanvasOptions& options);

// Returns the smallest number of rounds in which n tokens can be inserted into an empty canvas: floor(log2 n) + 1, or 0
// if n = 0.
int fewest_rounds(int n);

// Returns a text that shows the canvas after each round, with the tokens of the round in [brackets]. `words` has the
// text of each token. `hidden` stands for each token that is written later; if it is empty, these tokens are not shown.
// Lines are wrapped at 80 columns; a word that is longer than a line gets its own line.
std::string draw_rounds(const Written& written, const Strings& words, const std::string& hidden = "");

}  // namespace masquerade
