// SPDX-License-Identifier: MIT
// Generation by insertion (Stern et al. 2019, sections 5.1, 5.2, 6.1): a canvas of k tokens has k + 1 slots, and a
// round inserts a token into one slot or into several. The model only provides the scores of slots.
//
// The result is a function of (start, scores, options). In a tie, the end wins, then the lowest slot; within a slot,
// the model returns the lowest of equally likely tokens.
#pragma once
#include <climits>
#include <string>
#include <vector>

namespace masquerade {

struct Canvas {
    int source = 0;                 // index of the source it belongs to
    std::vector<int> tokens;        // k tokens
    std::vector<char> closed = {};  // (k + 1) whether insertion into the slot is forbidden; empty: no slot is closed
};

// The score of slot l. c is the best token that is neither the end nor forbidden.
struct SlotScore {
    int token;       // c
    double content;  // log p(c|l); -infinity if no token is allowed
    double end;      // log p(end|l)
    double place;    // log p(l)
};

class SlotModel {
  public:
    virtual ~SlotModel() = default;
    // Returns the score of each slot of each canvas.
    virtual std::vector<std::vector<SlotScore>> score(const std::vector<const Canvas*>& canvases) = 0;
};

// slot: the canvas ends if every slot ends. sequence: it ends if the single most likely action
// over all slots is an end.
enum class Finalization { slot, sequence };

struct CanvasOptions {
    Finalization finalization = Finalization::slot;
    // insert into all open slots each round (default: only the best by log p(c,l))
    bool parallel = false;
    double threshold = 0;    // parallel: inserts into the best slot, and into others only if p(c|l) >= threshold
    double end_penalty = 0;  // beta, subtracted from log p(end)
    double sure_end = 0;     // a slot ends only if p(end|l) >= sure_end, and the end is likelier than every token
    // treat slots next to equal tokens separately, as in the paper (default: as one slot, see alike() in canvas.cpp)
    bool apart = false;
    int longest = 128;  // maximum number of tokens of a canvas; a round inserts the best tokens that still fit
    int most_rounds = INT_MAX;
};
void check(const CanvasOptions& options);  // throws BadUsage if options contradict each other

struct Written {
    std::vector<int> tokens;
    std::vector<int> came;  // round in which each token was inserted, from 1; 0: the token is of the start
    int rounds = 0;
    double score = 0;                          // sum over inserted tokens of log p(c,l), or log p(c|l) if parallel
    bool ended = false;                        // false if a limit stopped the canvas
    int passes() const { return rounds + 1; }  // passes of the model; the last one only finds the end
};

// Inserts into the canvases until they end. Finished canvases are not passed to the model again. Checks the options.
std::vector<Written> write_canvases(SlotModel& model, std::vector<Canvas> starts, const CanvasOptions& options);

// Fewest rounds for n tokens: floor(log2 n) + 1, or 0 for n = 0.
int fewest_rounds(int n);

// Returns one line per round, with new tokens in [brackets]; `words` has the text of each token. Wraps lines at 80
// columns; a longer word gets its own line.
std::string draw_rounds(const Written& written, const std::vector<std::string>& words);

}  // namespace masquerade
