// SPDX-License-Identifier: MIT
#include "models/writing/canvas.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "engine/base/error.h"
#include "input/utf8.h"

namespace masquerade {

void check(const CanvasOptions& o) {
    if ((o.parallel || o.sure_end > 0) && o.finalization == Finalization::sequence)
        throw BadUsage(o.parallel ? "--parallel" : "--sure-end",
                       " needs a run in which each slot can end by itself; with finalization=sequence or "
                       "order=left_to_right, only the whole canvas ends");
    if (o.threshold >= 0 && !o.parallel)
        throw BadUsage("--threshold applies only to parallel insertion: give --parallel as well");
    if (!(o.threshold >= 0 || o.threshold == -1) || !(o.sure_end >= 0 && o.sure_end <= 1) ||
        !std::isfinite(o.end_penalty) || o.longest < 0 || o.most_rounds < 0)
        throw BadUsage(
            "insertion needs a threshold, a length and rounds of 0 or more, a finite end penalty and a sure end in [0,1], found ",
            o.threshold, ", ", o.longest, ", ", o.most_rounds, ", ", o.end_penalty, ", ", o.sure_end);
}

namespace {

void check(const Canvas& canvas, std::size_t scored) {
    const std::size_t slots = canvas.tokens.size() + 1;
    if (!canvas.closed.empty() && canvas.closed.size() != slots)
        throw Error("a canvas of ", slots, " slots says of ", canvas.closed.size(), " whether they are closed");
    if (scored != slots) throw Error("the model scored ", scored, " slots of ", slots);
}

double joint(const SlotScore& s) { return s.place + s.content; }

// Combines slots that give the same canvas: it makes no difference whether a token c is inserted before, within or
// after a run of adjacent tokens c. At each run, the open slots whose most likely token is c are combined. The first of
// them gets new scores, which are computed from all combined slots l. Its p(c|l) becomes the sum of p(c|l), but at most
// 1. Its p(l) p(c|l) becomes the sum of p(l) p(c|l). Its p(end|l) becomes 1 minus the sum of 1 - p(end|l), but at least
// 0. The other combined slots get no token.
void alike(const Canvas& canvas, std::vector<SlotScore>& scores) {
    for (std::size_t l = 0, to = 0; l < canvas.tokens.size(); l = to) {
        const int c = canvas.tokens[l];
        while (to < canvas.tokens.size() && canvas.tokens[to] == c) to++;
        std::vector<SlotScore*> want;
        for (std::size_t i = l; i <= to; i++)
            if (scores[i].token == c && (canvas.closed.empty() || !canvas.closed[i])) want.push_back(&scores[i]);
        if (want.size() < 2) continue;
        double content = 0, lacking = 0, both = 0;
        for (SlotScore* s : want) {
            content += std::exp(s->content), lacking += 1 - std::exp(s->end), both += std::exp(joint(*s));
            s->content = -INFINITY;
        }
        *want[0] = {c, std::log(std::min(content, 1.0)), std::log(std::max(1 - lacking, 0.0)),
                    std::log(both / std::min(content, 1.0))};
    }
}

// Returns the slots into which a round inserts, the most likely one first; none if the canvas ends.
std::vector<int> chosen(const std::vector<SlotScore>& scores, const Canvas& canvas, const CanvasOptions& o) {
    std::vector<int> slots;
    double best_end = -INFINITY;
    for (std::size_t l = 0; l < scores.size(); l++) {
        const SlotScore& s = scores[l];
        if (std::isnan(joint(s) + s.end)) throw BadInput("slot ", l, " has a score that is not a number");
        const double end = s.end - o.end_penalty;
        best_end = std::max(best_end, s.place + end);
        if (!canvas.closed.empty() && canvas.closed[l]) continue;
        const bool ends = s.end >= std::log(o.sure_end) && end >= s.content;
        if (s.content > -INFINITY && (o.finalization == Finalization::sequence || !ends)) slots.push_back(l);
    }
    const auto score = [&](int l) { return joint(scores[l]); };
    std::stable_sort(slots.begin(), slots.end(), [&](int a, int b) { return score(a) > score(b); });
    if (slots.empty() || (o.finalization == Finalization::sequence && score(slots[0]) <= best_end)) return {};
    const auto unsure = [&](int l) { return scores[l].content < std::log(std::max(0.0, o.threshold)); };
    slots.erase(o.parallel ? std::remove_if(slots.begin() + 1, slots.end(), unsure) : slots.begin() + 1, slots.end());
    return slots;
}

// Inserts the best token of each slot in `slots`, which are open. A slot that receives a token becomes two open slots.
void insert(const std::vector<SlotScore>& scores, std::vector<int> slots, Canvas& canvas, Written& w) {
    std::sort(slots.rbegin(), slots.rend());  // from the last slot to the first, so that the others keep their indices
    for (int l : slots) {
        canvas.tokens.insert(canvas.tokens.begin() + l, scores[l].token);
        w.came.insert(w.came.begin() + l, w.rounds);
        if (!canvas.closed.empty()) canvas.closed.insert(canvas.closed.begin() + l, 0);
    }
}

}  // namespace

std::vector<Written> write_canvases(SlotModel& model, std::vector<Canvas> starts, const CanvasOptions& o) {
    check(o);
    std::vector<Written> all(starts.size());
    for (std::size_t i = 0; i < starts.size(); i++) all[i].came.assign(starts[i].tokens.size(), 0);
    std::vector<std::size_t> open(starts.size());
    std::iota(open.begin(), open.end(), 0);
    while (!open.empty()) {
        Canvases asked;
        for (std::size_t i : open) asked.push_back(&starts[i]);
        auto scores = model.score(asked);
        if (scores.size() != asked.size())
            throw Error("the model scored ", scores.size(), " canvases of ", asked.size());
        std::vector<std::size_t> still_open;
        for (std::size_t n = 0; n < open.size(); n++) {
            Canvas& canvas = starts[open[n]];
            Written& w = all[open[n]];
            check(canvas, scores[n].size());
            if (!o.apart) alike(canvas, scores[n]);
            std::vector<int> slots = chosen(scores[n], canvas, o);
            w.ended = slots.empty();
            const int room = w.rounds < o.most_rounds ? std::max(0, o.longest - int(canvas.tokens.size())) : 0;
            slots.resize(std::min(slots.size(), std::size_t(room)));
            if (slots.empty()) continue;
            w.rounds++;
            for (int l : slots) {
                const SlotScore& s = scores[n][l];
                w.score += o.parallel ? s.content : joint(s);
            }
            insert(scores[n], std::move(slots), canvas, w);
            still_open.push_back(open[n]);
        }
        open = std::move(still_open);
    }
    for (std::size_t i = 0; i < all.size(); i++) all[i].tokens = std::move(starts[i].tokens);
    return all;
}

int fewest_rounds(int n) {
    int rounds = 0;
    for (; n > 0; n /= 2) rounds++;
    return rounds;
}

std::string draw_rounds(const Written& written, const Strings& words, const std::string& hidden) {
    constexpr std::size_t most = 80, margin = 5;
    const auto columns = [](const std::string& s) -> std::size_t {
        return std::count_if(s.begin(), s.end(), starts_code_point);
    };
    const bool started = std::count(written.came.begin(), written.came.end(), 0) > 0;
    std::string drawn;
    for (int round = started ? 0 : 1; round <= written.rounds; round++) {
        drawn += (round < 10 ? "  " : round < 100 ? " " : "") + std::to_string(round) + " ";
        std::size_t used = margin - 1;
        for (std::size_t i = 0; i < words.size(); i++) {
            const bool later = written.came[i] > round, now = written.came[i] == round && round > 0;
            if (later && hidden.empty()) continue;
            const std::string word = later ? hidden : now ? "[" + words[i] + "]" : words[i];
            const bool fits = used + 1 + columns(word) <= most || used < margin;
            drawn += fits ? " " + word : "\n" + std::string(margin, ' ') + word;
            used = (fits ? used + 1 : margin) + columns(word);
        }
        drawn += "\n";
    }
    return drawn;
}

}  // namespace masquerade
