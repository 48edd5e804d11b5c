// SPDX-License-Identifier: MIT
#include "models/writing/unmask.h"

#include <algorithm>
#include <climits>
#include <cmath>

#include "engine/base/error.h"
#include "engine/base/named.h"
#include "models/writing/search.h"
#include "models/writing/token_scores.h"

namespace masquerade {
namespace {

// Returns the entropy of the tokens that are allowed, in nats. sum: the log-sum-exp of their scores.
double entropy_of(const TokenScores& scores, double sum) {
    double entropy = 0;
    for (int id = 0; id < scores.size(); id++)
        if (const double log_p = double(scores[id]) - sum; log_p > -INFINITY) entropy -= std::exp(log_p) * log_p;
    return entropy;
}

// Returns UnmaskOptions::order, or its default.
std::string order_of(const SearchOptions& o) {
    if (!o.unmask.order.empty()) return o.unmask.order;
    return o.unmask.entropy_bound >= 0 ? "entropy" : o.samples > 0 ? "random" : "confidence";
}

// A canvas while it is written.
class Unmasking {
  public:
    MaskedCanvas canvas;  // `asked` are the places of the pass that begin_pass() has begun
    Written written;

    Unmasking(MaskedCanvas start, const SearchOptions& options, std::uint64_t seed)
        : canvas(std::move(start)), search_(options), o_(options.unmask), seed_(seed), order_(order_of(options)) {
        close();
        const std::size_t places = canvas.tokens.size();
        for (int token : canvas.tokens) given_.push_back(token != MaskedCanvas::hidden);
        canvas.came.assign(places, 0);
        log_p_.assign(places, 0);
        hidden_at_start_ = hidden_places();
    }

    // Begins the next pass and sets canvas.asked. Returns false if everything is written.
    bool begin_pass() {
        canvas.asked.clear();
        while (canvas.asked.empty()) {
            const bool steps_left = o_.remask > 0 && round_ < o_.steps;
            if (hidden_places() == 0 && !steps_left) return false;
            round_++;
            choose_asked();
            if (canvas.asked.empty()) hide_again();
        }
        choices_.assign(canvas.asked.size(), {});
        written.rounds++;
        return true;
    }

    // Chooses the token of asked place number `i` from the logits of this place.
    void look(std::size_t i, const float* logits, int V, TokenScores& scores) {
        Choice& c = choices_[i];
        c.place = canvas.asked[i];
        scores.read(logits, V);
        if (!std::isfinite(scores.log_sum()))
            throw Error("unmask: logits of place ", c.place, " of the source of line ", canvas.line,
                        " hold NaN or infinity, or nothing else than minus infinity");
        for (int id : search_.forbidden) scores.forbid(id);
        if (canvas.end >= 0 && !may_end(c.place)) scores.forbid(canvas.end);
        const std::vector<TokenScores::Token> best = scores.best(2);
        if (best.empty()) throw BadUsage("no token is left that may be written: --forbid forbids too many");
        const double sum = scores.log_sum_of_scores();
        c.token = search_.samples > 0 ? scores.draw(search_, random("generate.token", c.place)) : best[0].id;
        c.log_p = scores[c.token] - sum;
        c.top = std::exp(best[0].score - sum);
        if (o_.entropy_bound >= 0 || order_ == "entropy") c.entropy = entropy_of(scores, sum);
        c.rank = order_ == "random"    ? random("generate.place", c.place)
                 : order_ == "margin"  ? c.top - (best.size() > 1 ? std::exp(best[1].score - sum) : 0)
                 : order_ == "entropy" ? -c.entropy
                                       : c.log_p;
        if (o_.choice_temperature > 0)
            c.rank -= o_.choice_temperature * hidden_places() / hidden_at_start_ *
                      std::log(-std::log(random("generate.choice", c.place)));
    }

    // Writes the best tokens that look() has chosen.
    void write() {
        const auto waits = [&](const Choice& c) {
            return o_.ends_last && c.token == canvas.end && first_hidden() < c.place;
        };
        choices_.erase(std::remove_if(choices_.begin(), choices_.end(), waits), choices_.end());
        std::stable_sort(choices_.begin(), choices_.end(),
                         [](const Choice& a, const Choice& b) { return a.rank > b.rank; });
        hide_again();
        keep_best();
        for (const Choice& c : choices_) {
            // A better place of this pass may have written the end before this place, or a word behind it.
            if (canvas.tokens[c.place] != MaskedCanvas::hidden || (c.token == canvas.end && !may_end(c.place)))
                continue;
            canvas.tokens[c.place] = c.token;
            canvas.came[c.place] = written.rounds;
            log_p_[c.place] = c.log_p;
            close();
        }
    }

    Written result() {
        const auto end = std::find(canvas.tokens.begin(), canvas.tokens.end(), canvas.end);
        written.ended = end != canvas.tokens.end() && !given_[end - canvas.tokens.begin()];
        written.score = canvas.score;
        for (double each : log_p_) written.score += each;
        written.tokens.assign(canvas.tokens.begin(), end);
        written.came.assign(canvas.came.begin(), canvas.came.begin() + written.tokens.size());
        return std::move(written);
    }

  private:
    // A token for an asked place. top: the probability of the most likely token. rank: larger is better.
    struct Choice {
        int place = 0, token = 0;
        double log_p = 0, top = 0, entropy = 0, rank = 0;
    };

    // A random number in (0,1) for this place in this round.
    double random(const char* what, int place) const {
        return sampling_draw(seed_, canvas.line, canvas.sample,
                             std::uint32_t(round_) * std::uint32_t(canvas.tokens.size()) + std::uint32_t(place), what);
    }
    int hidden_places() const {
        return int(std::count(canvas.tokens.begin(), canvas.tokens.end(), MaskedCanvas::hidden));
    }
    int first_hidden() const {
        const auto first = std::find(canvas.tokens.begin(), canvas.tokens.end(), MaskedCanvas::hidden);
        return int(first - canvas.tokens.begin());
    }
    bool may_end(int place) const {
        const auto word = [&](int token) { return token != MaskedCanvas::hidden && token != canvas.end; };
        return place >= canvas.minimum && std::none_of(canvas.tokens.begin() + place, canvas.tokens.end(), word);
    }
    // Fills the places behind the first end token.
    void close() {
        if (canvas.end < 0) return;
        const auto first = std::find(canvas.tokens.begin(), canvas.tokens.end(), canvas.end);
        std::fill(first, canvas.tokens.end(), canvas.end);
    }

    // The probability with which this step hides a written place again (Wang et al. 2025, section 3), and the
    // probability with which it then writes a hidden place, so that the share of the visible places follows the plan.
    double hides() const {
        const double before = visible_after(o_, round_ - 1), after = visible_after(o_, round_);
        return before > 0 ? o_.remask * std::min(1.0, (1 - after) / before) : 0;
    }
    double reveals() const {
        const double before = visible_after(o_, round_ - 1), after = visible_after(o_, round_);
        return after < 1 ? (after - (1 - hides()) * before) / (1 - before) : 1;
    }
    // The number of places that the best choices may fill.
    int room() const {
        if (o_.steps == 0) return std::max(1, o_.per_pass);
        if (order_ == "random") return INT_MAX;
        // A plan that gives a whole number may come out a little below it.
        return hidden_places() - (hidden_at_start_ - int(visible_after(o_, round_, hidden_at_start_) + 1e-9));
    }
    bool by_number() const { return search_.canvas.threshold < 0 && o_.entropy_bound < 0; }

    // Sets canvas.asked to the hidden places that this pass may write. In random order, the places are often chosen
    // before the model is asked.
    void choose_asked() {
        std::vector<int>& asked = canvas.asked;
        for (int i = first_hidden(), end = int(canvas.tokens.size()); i < end; i++) {
            if (canvas.tokens[i] != MaskedCanvas::hidden) continue;
            if (o_.block > 0 && i / o_.block > first_hidden() / o_.block) break;
            if (o_.steps == 0 || order_ != "random" || random("generate.step", i) < reveals()) asked.push_back(i);
        }
        if (by_number() && room() <= 0) asked.clear();
        if (order_ != "random" || !by_number() || o_.ends_last || std::size_t(room()) >= asked.size()) return;
        std::stable_sort(asked.begin(), asked.end(),
                         [&](int a, int b) { return random("generate.place", a) > random("generate.place", b); });
        asked.resize(room());
        std::sort(asked.begin(), asked.end());
    }

    // Drops all choices but those that this pass writes. The choices are sorted, best first.
    void keep_best() {
        std::size_t kept = 0;
        double sum = 0, largest = 0;
        for (const Choice& c : choices_) {
            sum += c.entropy, largest = std::max(largest, c.entropy);
            const bool writes = kept == 0                       ? true
                                : o_.entropy_bound >= 0         ? sum - largest <= o_.entropy_bound
                                : search_.canvas.threshold >= 0 ? c.top >= search_.canvas.threshold
                                                                : kept < std::size_t(room());
            if (writes)
                choices_[kept++] = c;
            else if (search_.canvas.threshold < 0)
                break;
        }
        choices_.resize(kept);
    }

    void hide_again() {
        if (o_.remask == 0) return;
        for (std::size_t i = 0; i < canvas.tokens.size(); i++)
            if (!given_[i] && canvas.tokens[i] != MaskedCanvas::hidden && random("generate.remask", int(i)) < hides()) {
                canvas.tokens[i] = MaskedCanvas::hidden;
                log_p_[i] = 0;
            }
        close();
    }

    const SearchOptions& search_;
    const UnmaskOptions& o_;
    const std::uint64_t seed_;
    const std::string order_;
    std::vector<char> given_;  // for each place, whether it is visible at the start
    Numbers log_p_;            // for each place, log p of the token that was written there
    int hidden_at_start_ = 0;
    int round_ = 0;  // number of the step, if there are steps; otherwise, of the pass
    std::vector<Choice> choices_;
};

}  // namespace

const Strings& unmask_orders() {
    static const Strings names = {"random", "confidence", "margin", "entropy"};
    return names;
}

const Strings& unmask_plans() {
    static const Strings names = {"linear", "cosine"};
    return names;
}

double visible_after(const UnmaskOptions& o, int step, double places) {
    if (step >= o.steps) return places;
    if (o.plan == "linear") return places * step / o.steps;
    return places * (1 - std::cos(std::acos(-1.0) / 2 * step / o.steps));
}

const char* changed(const UnmaskOptions& o) {
    const UnmaskOptions usual;
    return o.order != usual.order                             ? "--order"
           : o.per_pass != usual.per_pass                     ? "--per-pass"
           : o.steps != usual.steps                           ? "--steps"
           : o.plan != usual.plan                             ? "--plan"
           : o.entropy_bound != usual.entropy_bound           ? "--entropy-bound"
           : o.choice_temperature != usual.choice_temperature ? "--choice-temperature"
           : o.remask != usual.remask                         ? "--remask"
           : o.block != usual.block                           ? "--block"
           : o.lengths != usual.lengths                       ? "--lengths"
           : o.ends_last != usual.ends_last                   ? "--ends-last"
                                                              : nullptr;
}

void check_unmasking(const SearchOptions& s) {
    const UnmaskOptions& o = s.unmask;
    const SearchOptions usual;
    if (s.beams > 1 || s.n_best > 1 || s.no_repeat_ngram != 0 || s.repetition_penalty != 1 ||
        s.length_penalty != usual.length_penalty || s.bert4keras)
        throw BadUsage(
            "a run of diffusion writes by --order, --per-pass, --steps, --threshold or --entropy-bound; --beam, "
            "--n-best, --no-repeat, --repetition-penalty, --length-penalty and --bert4keras are of runs that write "
            "from left to right");
    if ((o.per_pass > 0) + (o.steps > 0) + (s.canvas.threshold >= 0) + (o.entropy_bound >= 0) > 1)
        throw BadUsage(
            "--per-pass, --steps, --threshold and --entropy-bound each say how many places a pass writes: give one");
    if (o.steps == 0 && (o.remask != 0 || o.plan != "linear"))
        throw BadUsage(o.remask != 0 ? "--remask hides places again between --steps: give --steps as well"
                                     : "--plan says how many places each of the --steps writes: give --steps as well");
    if (o.steps > 0 && o.block > 0)
        throw BadUsage("--block K writes K places after the other, and --steps counts the steps of all: leave out one");
    if (o.lengths > 0 && s.samples > 0)
        throw BadUsage("--lengths L tries the L most likely lengths, and samples draw their length: leave out one");
    if (o.choice_temperature != 0 && order_of(s) == "random")
        throw BadUsage("--choice-temperature is for an order that is not random: give --order confidence, for example");
    if ((!o.order.empty() && !contains(unmask_orders(), o.order)) || !contains(unmask_plans(), o.plan) ||
        !(o.choice_temperature >= 0) || !(o.remask >= 0 && o.remask <= 1) || o.per_pass < 0 || o.steps < 0 ||
        o.steps > 65535 || o.block < 0)
        throw Error(
            "unmask: expected a known order and plan, a choice temperature of 0 or more, a remask share "
            "from 0 to 1 and at most 65535 steps, found ",
            o.order, ", ", o.plan, ", ", o.choice_temperature, ", ", o.remask, ", ", o.steps);
}

std::vector<Written> unmask_canvases(PlaceModel& model, std::vector<MaskedCanvas> starts, const SearchOptions& options,
                                     std::uint64_t seed) {
    check_unmasking(options);
    const int V = model.vocabulary();
    std::vector<Unmasking> all;
    for (std::size_t i = 0; i < starts.size(); i++) {
        starts[i].number = int(i);
        all.emplace_back(std::move(starts[i]), options, seed);
    }
    std::vector<Unmasking*> open;
    for (Unmasking& each : all) open.push_back(&each);
    const auto done = [](Unmasking* each) { return !each->begin_pass(); };
    for (;;) {
        open.erase(std::remove_if(open.begin(), open.end(), done), open.end());
        if (open.empty()) break;
        MaskedCanvases canvases;
        std::vector<std::pair<Unmasking*, std::size_t>> rows;  // the canvas of each row of logits, and the number there
        for (Unmasking* each : open) {
            canvases.push_back(&each->canvas);
            for (std::size_t i = 0; i < each->canvas.asked.size(); i++) rows.emplace_back(each, i);
        }
        const float* const logits = model.logits(canvases);
        each_row_of_logits(rows.size(), V, [&](std::int64_t r, TokenScores& scores) {
            rows[r].first->look(rows[r].second, logits + r * V, V, scores);
        });
        for (Unmasking* each : open) each->write();
    }
    std::vector<Written> written;
    for (Unmasking& each : all) written.push_back(each.result());
    return written;
}

Numbers log_p_in_random_order(PlaceModel& model, std::vector<MaskedCanvas> starts, const Texts& truths, int block,
                              std::uint64_t seed) {
    const int V = model.vocabulary();
    const std::size_t count = starts.size();
    Numbers sums(count);
    std::vector<std::vector<int>> left(count);  // the hidden places of each canvas, those that come first at the end
    for (std::size_t i = 0; i < count; i++) {
        MaskedCanvas& c = starts[i];
        c.number = int(i);
        c.came.assign(c.tokens.size(), 0);
        Numbers draws;
        for (std::size_t place = 0; place < c.tokens.size(); place++) {
            draws.push_back(sampling_draw(seed, c.line, c.sample, std::uint32_t(place), "evaluate.order"));
            if (c.tokens[place] == MaskedCanvas::hidden) left[i].push_back(int(place));
        }
        const auto turn = [&](int place) { return std::pair(block > 0 ? place / block : 0, draws[place]); };
        std::stable_sort(left[i].begin(), left[i].end(), [&](int a, int b) { return turn(a) > turn(b); });
    }
    for (int pass = 1;; pass++) {
        MaskedCanvases asked;
        std::vector<std::size_t> which;
        for (std::size_t i = 0; i < count; i++) {
            if (left[i].empty()) continue;
            starts[i].asked = {left[i].back()};
            asked.push_back(&starts[i]);
            which.push_back(i);
        }
        if (asked.empty()) return sums;
        const float* const logits = model.logits(asked);
        each_row_of_logits(asked.size(), V, [&](std::int64_t r, TokenScores& scores) {
            const std::size_t i = which[r];
            MaskedCanvas& c = starts[i];
            const int place = left[i].back(), token = truths[i].at(place);
            scores.read(logits + r * V, V);
            sums[i] += double(logits[r * V + token]) - scores.log_sum();
            c.tokens[place] = token;
            c.came[place] = pass;
            left[i].pop_back();
            if (token != c.end) return;
            std::fill(c.tokens.begin() + place, c.tokens.end(), token);
            const auto known = [&](int later) { return later > place; };
            left[i].erase(std::remove_if(left[i].begin(), left[i].end(), known), left[i].end());
        });
    }
}

}  // namespace masquerade
