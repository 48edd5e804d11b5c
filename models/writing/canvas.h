// SPDX-License-Identifier: MIT
// Writing by insertion (Stern et al. 2019, sections 5.1, 5.2, 6.1): a canvas of k tokens has k + 1 slots, and a round
// inserts a token into one slot or into many. The model alone computes; here nothing but its scores of slots is read.
//
// The result is a function of (start, scores, options). If scores are equal, the end wins, then the lowest slot; the
// model names the lowest of equal tokens in a slot.
#pragma once
#include <climits>
#include <string>
#include <vector>

namespace masquerade {

struct Canvas {
    int source = 0;                 // index of the source it belongs to
    std::vector<int> tokens;        // k
    std::vector<char> closed = {};  // (k + 1) slots into which nothing may be inserted; empty: none
};

// Slot l: its best token c that is neither the end nor forbidden, and log probabilities.
struct SlotScore {
    int token;
    double content;  // log p(c|l); -infinity: no token is allowed
    double end;      // log p(end|l)
    double place;    // log p(l)
};

class SlotModel {
  public:
    virtual ~SlotModel() = default;
    // A score for each slot of each canvas.
    virtual std::vector<std::vector<SlotScore>> score(const std::vector<const Canvas*>& canvases) = 0;
};

// slot: the canvas ends when each slot ends. sequence: when the best of all is an end, of whatever slot.
enum class Finalization { slot, sequence };

struct CanvasOptions {
    Finalization finalization = Finalization::slot;
    // a round inserts into every slot that does not end; else into the best of them by log p(c,l)
    bool parallel = false;
    double threshold = 0;    // parallel: only where p(c|l) reaches it, and at the best; 0: all, above 1: the best alone
    double end_penalty = 0;  // beta, taken off log p(end)
    double sure_end = 0;     // a slot ends only where p(end|l) reaches it, beside being likelier than every token
    // slots beside equal tokens decide apart, as in the paper; else together: see alike() in canvas.cpp
    bool apart = false;
    int longest = 128;  // tokens of a canvas at most: a round inserts the best of what has room
    int most_rounds = INT_MAX;
};
void check(const CanvasOptions& options);  // BadUsage: options that contradict each other

struct Written {
    std::vector<int> tokens;
    std::vector<int> came;  // the round of each token, from 1; 0: it stood in the start
    int rounds = 0;
    double score = 0;                          // sum of log p of what was inserted: log p(c,l), in parallel log p(c|l)
    bool ended = false;                        // by itself; else a limit kept it from going on
    int passes() const { return rounds + 1; }  // of the model: the last says that nothing more is inserted
};

// Canvases that are done are not passed to the model again. Options are checked.
std::vector<Written> write_canvases(SlotModel& model, std::vector<Canvas> starts, const CanvasOptions& options);

// Fewest rounds to n tokens: floor(log2 n) + 1; 0 for none.
int fewest_rounds(int n);

// A line for each round, what is new in [brackets]; words: of each token. Wrapped at 80 columns; a longer word stands
// alone.
std::string draw_rounds(const Written& written, const std::vector<std::string>& words);

}  // namespace masquerade
