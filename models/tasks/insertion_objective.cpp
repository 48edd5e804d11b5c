// SPDX-License-Identifier: MIT
// Insertion objectives. A canvas is a subset of the words of a target, in their order. Slot l is the place before word
// l of the canvas; the last slot follows the last word. The targets of a slot are the words that are missing there.
// Stern et al. 2019, section 4; for kermit, Chan et al. 2019.
#include "models/tasks/insertion_objective.h"

#include <algorithm>
#include <cmath>

#include "models/tasks/objective_parts.h"

namespace masquerade {
namespace {

// A canvas (some words of a text, in their order), and the missing words of each slot. The slots are the places before,
// between and after the words of the canvas.
struct Parted {
    Tokens canvas;
    Texts missing;
};

// Returns the words for which `stays` is true as the canvas, and all other words as missing.
Parted keep(const Tokens& words, const char* stays) {
    Parted d;
    d.missing.emplace_back();
    for (int word : words)
        if (*stays++) {
            d.canvas.push_back(word);
            d.missing.emplace_back();
        } else {
            d.missing.back().push_back(word);
        }
    return d;
}

// Draws which of n words stay in the canvas. The number k of these words is drawn uniformly from 0 .. n. If first_ones
// is true, the first k words stay; otherwise, k uniformly drawn words stay.
std::vector<char> drawn_to_stay(int n, bool first_ones, Sequence& random) {
    const int k = random.below(n + 1);
    std::vector<char> stays(n);
    if (first_ones)
        std::fill_n(stays.begin(), k, 1);
    else
        for (std::size_t i : drawn(n, k, random)) stays[i] = 1;
    return stays;
}

// Adds a target with this weight (`share`) to the slot that is being built, the last one in `choices`. If the slot
// already has a target with this token, adds the weight to that target.
void want(Choices& choices, int token, double share) {
    for (int j = choices.begin.back(); j < choices.size(); j++)
        if (choices.tokens[j] == token) {
            choices.shares[j] += share;
            return;
        }
    choices.push(token, share);
}

// Returns the targets of all slots, with weights (shares) whose sum over all slots is 1. If by_words is true, the
// weight of a slot is proportional to the number of its missing words; otherwise, all slots with missing words have
// equal weights. A slot without missing words has the weight rule.end_weight, or 0 if rule.sequence is true and other
// slots have missing words. If rule.left_to_right is true, only the last slot has a target.
Choices choices_of(const Texts& missing, const InsertionRule& rule, bool by_words) {
    double lacking = 0, slots = 0, weights = 0;
    for (const Tokens& words : missing) lacking += words.size(), slots += !words.empty();
    const auto weight = [&](const Tokens& words) {
        if (words.empty()) return rule.sequence && lacking > 0 ? 0 : rule.end_weight;
        return by_words ? slots * words.size() / lacking : 1.0;
    };
    for (const Tokens& words : missing) weights += weight(words);
    Choices choices;
    for (std::size_t l = 0; l < missing.size(); l++) {
        const Tokens& words = missing[l];
        if (rule.left_to_right) {
            if (l + 1 == missing.size()) choices.push(words.empty() ? rule.end : words[0], 1);
        } else if (const double w = weights > 0 ? weight(words) / weights : 0; w > 0) {
            const Numbers shares = order_weights(words, rule);
            for (std::size_t u = 0; u < words.size(); u++) want(choices, words[u], w * shares[u]);
            if (words.empty()) choices.push(rule.end, w);
        }
        choices.begin.push_back(choices.size());
    }
    return choices;
}

template <InsertionForm form>
Example insertion(const Sentence& s, const ObjectiveOptions& o) {
    DrawnCanvas drawn = draw_canvas({s.target.begin(), s.target.end() - 1}, s, o);
    Example e = canvas_example(form, s.ids, drawn.words, s.name, o);
    e.labels.choices = std::move(drawn.missing);
    return e;
}

// Draws one of three cases with equal probability: words are missing in both texts of the pair, only in the target, or
// only in the source.
Example kermit(const Sentence& s, const ObjectiveOptions& o) {
    Sequence random = random_of_canvas("kermit", s, o);
    const int whole = random.below(3);  // the text without missing words: 1 the source, 2 the target, 0 neither
    const Tokens sides[] = {{s.ids.begin() + 1, s.ids.end() - 1}, {s.target.begin(), s.target.end() - 1}};
    // The words of source and target are numbered together, 0 .. x + y - 1. `first` is the first word that may be
    // missing.
    const int x = sides[0].size(), y = sides[1].size(), first = whole == 1 ? x : 0;
    const auto some = drawn_to_stay(x + y - (whole == 1 ? x : whole == 2 ? y : 0), false, random);
    std::vector<char> stays(x + y, 1);
    std::copy(some.begin(), some.end(), stays.begin() + first);
    Parted left = keep(sides[0], stays.data());
    const Parted right = keep(sides[1], stays.data() + x);
    left.canvas.insert(left.canvas.begin(), s.ids.front());
    left.canvas.push_back(s.ids.back());
    Example e = canvas_example(InsertionForm::either_side, left.canvas, right.canvas, s.name, o);
    left.missing.insert(left.missing.end(), right.missing.begin(), right.missing.end());
    e.labels.choices = choices_of(left.missing, o.insertion, true);
    return e;
}

}  // namespace

DrawnCanvas draw_canvas(const Tokens& words, const Sentence& s, const ObjectiveOptions& o) {
    Sequence random = random_of_canvas("insertion", s, o);
    const Parted p = keep(words, drawn_to_stay(int(words.size()), o.insertion.left_to_right, random).data());
    return {p.canvas, choices_of(p.missing, o.insertion, false)};
}

void push_canvas(Example& e, InsertionForm form, const Tokens& words, int position, int name,
                 const ObjectiveOptions& o) {
    const bool either = form == InsertionForm::either_side;
    const int first = e.rows.count();
    const auto push = [&](int id) { e.rows.push(id, o.target_type, position + e.rows.count() - first, name); };
    if (!either) push(o.insertion.begin);
    for (int id : words) push(id);
    push(o.insertion.end);
    for (int row = either ? 0 : first; row + 1 < e.rows.count(); row++) e.labels.push(row, 0);
}

Numbers order_weights(const Tokens& words, const InsertionRule& rule) {
    Numbers w;
    const auto score = [&](int word) { return rule.scores->at(word); };
    for (std::size_t u = 0; u < words.size(); u++) {
        const auto before = [&](int other) { return score(other) < score(words[u]); };
        w.push_back(rule.scores   ? std::count_if(words.begin(), words.end(), before)
                    : rule.middle ? std::abs(double(words.size() - 1) / 2 - u)
                                  : 0);
    }
    const double nearest = w.empty() ? 0 : *std::min_element(w.begin(), w.end());
    double sum = 0;
    for (double& each : w) sum += each = std::exp((nearest - each) / rule.tau);
    for (double& each : w) each /= sum;
    return w;
}

Example canvas_example(InsertionForm form, const Tokens& source, const Tokens& canvas, int name,
                       const ObjectiveOptions& o) {
    Example e;
    const int row_name = name_of_canvas(name, o);
    const bool two = form == InsertionForm::two_stacks;
    e.same_source = two && o.canvas > 0;  // the encoder reads the source only once for all canvases of the target
    if (!e.same_source) (two ? e.source : e.rows).push_text(source, o.source_type, 0, two ? name : row_name);
    const int first = e.rows.count();
    push_canvas(e, form, canvas, two ? 0 : o.target_position(source.size()), row_name, o);
    e.document = {first, e.rows.count() - first};
    return e;
}

const std::vector<Objective>& insertion_objectives() {
    constexpr unsigned traits = Objective::pairs | Objective::scattered | Objective::writes | Objective::canvases;
    static const std::vector<Objective> all = {
        {"insertion", "words for every slot of a part of the target, from its source", traits | Objective::encoder,
         insertion<InsertionForm::two_stacks>, two_stacks<full_mask>},
        {"insertion-one-stack", "the same on one stack", traits, insertion<InsertionForm::one_stack>,
         one_stack<source_alone_mask>},
        {"kermit", "the same for parts of source and target, on one stack that reads both",
         traits | Objective::both_sides, kermit, one_stack<full_mask>},
    };
    return all;
}

}  // namespace masquerade
