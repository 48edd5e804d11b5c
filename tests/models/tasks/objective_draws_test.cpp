// SPDX-License-Identifier: MIT
// Compares every objective with its definition, by enumeration. For tiny sentences, the test lists everything that the
// objective may draw, with its probability: rows, positions, ranks, and each question with its weight. Each draw must
// be in this list, and must occur as often as its probability says. Therefore, every expectation is right. If an
// objective of the tables has no such list, the test fails.
#include <doctest/doctest.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>

#include "models/tasks/insertion_objective.h"

using namespace masquerade;

namespace {

using Ids = std::vector<int>;
constexpr int V = 8, cls = 2, sep = 3, mask = 4;  // 5, 6 and 7 are ordinary tokens
constexpr int of_source = 1, of_target = 3;       // segment ids

struct Outcome {
    double probability;
    Example example;
};
using Outcomes = std::vector<Outcome>;
using Define = std::function<Outcomes(const Sentence&, const ObjectiveOptions&)>;

std::string written(const TokenRows& rows) {
    std::string all;
    for (int i = 0; i < rows.count(); i++)
        all += fmt::format(" {}.{}@{}", rows.ids[std::size_t(i)], rows.types[std::size_t(i)],
                           rows.positions[std::size_t(i)]);
    return all;
}
std::string written(const Example& e) {
    std::string all = "source" + written(e.source) + " rows" + written(e.rows);
    if (e.source.count() == 0) all += fmt::format(" parts {} {}", e.document.source, e.document.target);
    for (int rank : e.rank) all += fmt::format(" r{}", rank);
    const Choices& c = e.labels.choices;
    for (int m = 0; m < e.labels.size(); m++) {
        all += fmt::format(" ask {}", e.labels.rows[std::size_t(m)]);
        if (c.begin.size() == 1) {
            all += fmt::format(":{}*{}", e.labels.tokens[std::size_t(m)], e.labels.weights[std::size_t(m)]);
            continue;
        }
        std::map<int, double> shares;
        for (int j = c.begin.at(std::size_t(m)); j < c.begin.at(std::size_t(m) + 1); j++)
            shares[c.tokens[std::size_t(j)]] += c.shares[std::size_t(j)];
        for (const auto& [token, share] : shares) all += fmt::format(":{}*{:.9f}", token, share);
    }
    return all;
}

void push(TokenRows& rows, int id, int type, int position, const Sentence& s) { rows.push(id, type, position, s.name); }

// The whole text, source and target, as one sequence.
struct Whole {
    Ids ids, types, ordinary;  // ordinary: places of the ordinary tokens
    int source;
    explicit Whole(const Sentence& s) : source(int(s.ids.size())) {
        for (int id : s.ids) ids.push_back(id), types.push_back(of_source);
        for (int id : s.target) ids.push_back(id), types.push_back(of_target);
        for (int i = 0; i < int(ids.size()); i++)
            if (ids[std::size_t(i)] >= 5) ordinary.push_back(i);
    }
    int size() const { return int(ids.size()); }
};

// Returns the tokens that may replace a hidden token, with their probabilities.
std::vector<std::pair<int, double>> readings(int id, const ObjectiveOptions& o) {
    std::vector<std::pair<int, double>> all = {{mask, 1 - o.kept - o.random}, {id, o.kept}};
    for (int other : {5, 6, 7}) all.push_back({other, o.random / 3});
    return all;
}
// Calls f(probability, readings) for every combination of tokens that may replace the hidden tokens.
void each_reading(const Ids& hidden, const std::function<int(int)>& id, const ObjectiveOptions& o, double probability,
                  Ids& read, const std::function<void(double, const Ids&)>& f) {
    if (read.size() == hidden.size()) return f(probability, read);
    for (const auto& [now, share] : readings(id(hidden[read.size()]), o)) {
        read.push_back(now);
        each_reading(hidden, id, o, probability * share, read, f);
        read.pop_back();
    }
}

// Returns the places of the ordinary tokens, grouped by word.
std::vector<Ids> words_of(const Whole& all, const ObjectiveOptions& o) {
    std::vector<Ids> words;
    for (int place : all.ordinary) {
        const bool begins = !o.continues || !(*o.continues)[std::size_t(all.ids[std::size_t(place)])];
        if (begins || words.empty() || words.back().back() + 1 != place) words.push_back({});
        words.back().push_back(place);
    }
    return words;
}
// Calls f(probability, spans) for every list of spans that begins with `spans` and may be drawn. shares[i] is the
// probability of a span of i + 1 words.
using EachSpans = std::function<void(double, const std::vector<Ids>&)>;
void each_spans(const std::vector<Ids>& words, int wanted, const std::vector<double>& shares, double probability,
                std::vector<Ids>& spans, const EachSpans& f) {
    Ids hidden;
    for (const Ids& span : spans) hidden.insert(hidden.end(), span.begin(), span.end());
    if (int(hidden.size()) >= wanted) return f(probability, spans);
    const auto visible = [&](std::size_t w) { return std::count(hidden.begin(), hidden.end(), words[w][0]) == 0; };
    double starts = 0;
    for (std::size_t w = 0; w < words.size(); w++) starts += visible(w);
    for (std::size_t start = 0; start < words.size(); start++) {
        if (!visible(start)) continue;
        Ids span;
        double left = 1;  // the probability of this length or a larger one
        for (std::size_t w = start, length = 0, ends = 0; !ends; left -= shares[length++]) {
            span.insert(span.end(), words[w].begin(), words[w].end());
            w++;
            ends = length + 1 == shares.size() || w == words.size() || !visible(w) || words[w][0] != span.back() + 1 ||
                   int(hidden.size() + span.size()) >= wanted;
            const double p = ends ? left : shares[length];
            if (p < 1e-12) continue;
            spans.push_back(span);
            each_spans(words, wanted, shares, probability / starts * p, spans, f);
            spans.pop_back();
        }
    }
}
// Calls f(probability, readings) for every combination of tokens that may replace the tokens of these spans. A span is
// treated as a whole.
void each_reading(const std::vector<Ids>& spans, const Whole& all, const ObjectiveOptions& o, double probability,
                  Ids& read, std::size_t span, const std::function<void(double, const Ids&)>& f) {
    if (span == spans.size()) return f(probability, read);
    const auto go_on = [&](double share, const std::function<int(std::size_t)>& now) {
        const std::size_t before = read.size();
        for (std::size_t i = 0; i < spans[span].size(); i++) read.push_back(now(i));
        each_reading(spans, all, o, probability * share, read, span + 1, f);
        read.resize(before);
    };
    go_on(1 - o.kept - o.random, [](std::size_t) { return mask; });
    go_on(o.kept, [&](std::size_t i) { return all.ids[std::size_t(spans[span][i])]; });
    const int ways = int(std::pow(3, double(spans[span].size())) + 0.5);
    for (int way = 0; way < ways; way++)
        go_on(o.random / ways, [&](std::size_t i) { return 5 + way / int(std::pow(3, double(i)) + 0.5) % 3; });
}

int wanted_of(const Whole& all, const ObjectiveOptions& o) {
    return std::max(1, int(std::floor(o.hidden * double(all.ordinary.size()) + 0.5)));
}

Outcomes mlm(const Sentence& s, const ObjectiveOptions& o) {
    const Whole all(s);
    Outcomes outcomes;
    const auto hide = [&](std::vector<Ids> together, double probability) {
        Ids read, hidden;
        std::sort(together.begin(), together.end());
        for (const Ids& each : together) hidden.insert(hidden.end(), each.begin(), each.end());
        const auto take = [&](double p, const Ids& now) {
            Example e;
            for (int i = 0; i < all.size(); i++) {
                const auto at = std::find(hidden.begin(), hidden.end(), i);
                push(e.rows, at == hidden.end() ? all.ids[std::size_t(i)] : now[std::size_t(at - hidden.begin())],
                     all.types[std::size_t(i)], i, s);
                if (at != hidden.end()) e.labels.push(i, all.ids[std::size_t(i)]);
            }
            e.document = {all.size(), 0};
            outcomes.push_back({p, e});
        };
        if (o.masking == Masking::spans) return each_reading(together, all, o, probability, read, 0, take);
        each_reading(
            hidden, [&](int place) { return all.ids[std::size_t(place)]; }, o, probability, read, take);
    };
    const std::vector<Ids> words = words_of(all, o);
    if (o.masking == Masking::spans) {
        std::vector<Ids> spans;
        std::vector<double> shares;
        double sum = 0;
        for (int length = 1; length <= o.span_longest; length++)
            shares.push_back(std::pow(1 - o.span_stop, length)), sum += shares.back();
        for (double& share : shares) share /= sum;
        each_spans(words, wanted_of(all, o), shares, 1, spans,
                   [&](double p, const std::vector<Ids>& found) { hide(found, p); });
        return outcomes;
    }
    const int n = int(words.size());
    for (int subset = 0; subset < 1 << n; subset++) {
        std::vector<Ids> hidden;
        for (int i = 0; i < n; i++)
            if (subset >> i & 1) hidden.push_back(words[std::size_t(i)]);
        const double p = std::pow(o.hidden, double(hidden.size())) * std::pow(1 - o.hidden, n - double(hidden.size()));
        if (!hidden.empty()) hide(hidden, p);
        for (int i = 0; i < n && hidden.empty(); i++) hide({words[std::size_t(i)]}, p / n);
    }
    return outcomes;
}

Outcomes k_bert(const Sentence& s, const ObjectiveOptions& o) {  // these sentences have no brackets
    Outcomes outcomes = mlm(s, o);
    for (Outcome& each : outcomes) each.example.rank.assign(std::size_t(each.example.rows.count()), -1);
    return outcomes;
}

// Returns an example whose rows are the tokens in this order, except the last one. From place `first` of the order on,
// each row predicts the next token of the order.
Example chain(const Whole& all, const Ids& order, const Ids& types, const Document& parts, int first,
              const Sentence& s) {
    Example e;
    for (std::size_t i = 0; i + 1 < order.size(); i++) {
        const auto at = std::size_t(order[i]);
        push(e.rows, all.ids[at], types[at], order[i], s);
        if (int(i) >= first) e.labels.push(int(i), all.ids[std::size_t(order[i + 1])]);
    }
    e.document = parts;
    return e;
}
Ids in_order(int n) {
    Ids order(static_cast<std::size_t>(n));
    std::iota(order.begin(), order.end(), 0);
    return order;
}
Outcomes lm(const Sentence& s, const ObjectiveOptions&) {
    const Whole all(s);
    return {{1, chain(all, in_order(all.size()), all.types, {all.size() - 1, 0}, 0, s)}};
}
Outcomes lm_target(const Sentence& s, const ObjectiveOptions&) {
    const Whole all(s);
    return {{1, chain(all, in_order(all.size()), all.types, {all.size() - 1, 0}, all.source - 1, s)}};
}
Outcomes unilm(const Sentence& s, const ObjectiveOptions&) {
    const Whole all(s);
    return {
        {1, chain(all, in_order(all.size()), all.types, {all.source, all.size() - 1 - all.source}, all.source - 1, s)}};
}
Outcomes unilm_masked(const Sentence& s, const ObjectiveOptions& o) {
    const Whole all(s);
    const int n = int(s.target.size());
    Outcomes outcomes;
    for (int subset = 0; subset < 1 << n; subset++) {
        std::vector<Ids> choices;  // possible sets of hidden tokens; the empty set is not possible
        double p = 1;
        Ids hidden;
        for (int t = 0; t < n; t++) {
            p *= subset >> t & 1 ? o.hidden_target : 1 - o.hidden_target;
            if (subset >> t & 1) hidden.push_back(all.source + t);
        }
        if (!hidden.empty()) choices.push_back(hidden);
        for (int t = 0; t < n && hidden.empty(); t++) choices.push_back({all.source + t});
        for (const Ids& choice : choices) {
            Ids read;
            each_reading(
                choice, [&](int place) { return all.ids[std::size_t(place)]; }, o, p / double(choices.size()), read,
                [&](double probability, const Ids& now) {
                    Example e;
                    for (int i = 0; i < all.size(); i++) {
                        const auto at = std::find(choice.begin(), choice.end(), i);
                        const bool asked = at != choice.end();
                        push(e.rows, asked ? now[std::size_t(at - choice.begin())] : all.ids[std::size_t(i)],
                             all.types[std::size_t(i)], i, s);
                        if (asked) e.labels.push(i, all.ids[std::size_t(i)]);
                    }
                    e.document = {all.source, n};
                    outcomes.push_back({probability, e});
                });
        }
    }
    return outcomes;
}
Outcomes lm_reverse(const Sentence& s, const ObjectiveOptions&) {
    const Whole all(s);
    Example e;
    for (int i = 1; i < all.size(); i++) {
        push(e.rows, all.ids[std::size_t(i)], all.types[std::size_t(i)], i, s);
        e.labels.push(i - 1, all.ids[std::size_t(i - 1)]);
    }
    e.document = {all.size() - 1, 0};
    return {{1, e}};
}
Outcomes prefix_lm(const Sentence& s, const ObjectiveOptions&) {
    const Whole all(s);
    Outcomes outcomes;
    for (int prefix = 1; prefix < all.size(); prefix++) {
        Ids types;
        for (int i = 0; i < all.size(); i++) types.push_back(i < prefix ? of_source : of_target);
        outcomes.push_back({1.0 / (all.size() - 1),
                            chain(all, in_order(all.size()), types, {prefix, all.size() - 1 - prefix}, prefix - 1, s)});
    }
    return outcomes;
}
Outcomes plm(const Sentence& s, const ObjectiveOptions& o) {
    const Whole all(s);
    const int n = int(all.ordinary.size()), count = std::max(1, int(std::floor(o.predicted * n + 0.5)));
    Outcomes outcomes;
    Ids order = all.ordinary;
    double orders = 0;
    do {
        Example e;
        e.rank.assign(std::size_t(all.size()), -1);
        for (int r = 0; r < count; r++) e.rank[std::size_t(order[std::size_t(r)])] = r;
        for (int i = 0; i < all.size(); i++) push(e.rows, all.ids[std::size_t(i)], all.types[std::size_t(i)], i, s);
        for (int i = 0; i < all.size(); i++)
            if (e.rank[std::size_t(i)] >= 0) {
                e.labels.push(e.rows.count(), all.ids[std::size_t(i)]);
                e.rank.push_back(e.rank[std::size_t(i)]);
                push(e.rows, mask, all.types[std::size_t(i)], i, s);
            }
        e.document = {all.size(), count};
        outcomes.push_back({1, e});
        orders++;
    } while (std::next_permutation(order.begin(), order.end()));
    for (Outcome& each : outcomes) each.probability /= orders;
    return outcomes;
}
// The rows: the sentence with [MASK]s, then the tokens of the spans in the order of the text, then a [MASK] for each of
// these tokens.
Outcomes pmlm(const Sentence& s, const ObjectiveOptions& o) {
    const Whole all(s);
    std::vector<Ids> tokens, spans;
    for (int place : all.ordinary) tokens.push_back({place});
    Outcomes outcomes;
    const double block = o.blocks / 5;
    each_spans(tokens, wanted_of(all, o), {1 - o.blocks, block, block, block, block, block}, 1, spans,
               [&](double p, const std::vector<Ids>& found) {
                   std::map<int, int> span_of;
                   for (std::size_t i = 0; i < found.size(); i++)
                       for (int place : found[i]) span_of[place] = int(i) + 1;
                   Example e;
                   const auto at = [](const Ids& each, int place) { return each[std::size_t(place)]; };
                   for (int i = 0; i < all.size(); i++) {
                       push(e.rows, span_of.count(i) ? mask : at(all.ids, i), at(all.types, i), i, s);
                       e.rank.push_back(0);
                       if (span_of.count(i)) e.labels.push(i, at(all.ids, i));
                   }
                   for (int sign : {1, -1})
                       for (const auto& [place, number] : span_of) {
                           if (sign < 0) e.labels.push(e.rows.count(), at(all.ids, place));
                           push(e.rows, sign > 0 ? at(all.ids, place) : mask, at(all.types, place), place, s);
                           e.rank.push_back(sign * number);
                       }
                   e.document = {all.size(), e.rows.count() - all.size()};
                   outcomes.push_back({p, e});
               });
    return outcomes;
}
// The numbers of hidden places of the blocks of a text, and their probabilities. A random u in [0, 1) is shared by all
// blocks: of the m numbers that its rule allows, block b hides number floor(m (u + offset) mod 1). The offset of block
// 0 is 0.
std::map<Ids, double> hidden_numbers(const Ids& sizes, const DiffusionRule& rule, std::uint64_t seed) {
    std::vector<double> offsets, cuts = {0, 1};
    std::vector<Ids> allowed;  // for each block
    const auto share = [](double x) { return x - std::floor(x); };
    for (std::size_t b = 0; b < sizes.size(); b++) {
        Sequence random(seed, "diffusion.block", std::uint32_t(b));
        offsets.push_back(b == 0 ? 0 : random.bits() / std::pow(2.0, 32));
        allowed.emplace_back();
        for (int k = 1; k <= sizes[b]; k++)
            if (k >= rule.least * sizes[b] && k <= rule.most * sizes[b]) allowed[b].push_back(k);
        // If no share lies between the bounds, the next larger number is hidden.
        if (allowed[b].empty()) allowed[b].push_back(std::max(1, int(std::ceil(rule.least * sizes[b]))));
        const double m = double(allowed[b].size());
        for (int j = 0; j < m; j++) cuts.push_back(share(j / m - offsets[b]));
    }
    std::sort(cuts.begin(), cuts.end());
    std::map<Ids, double> numbers;
    for (std::size_t c = 1; c < cuts.size(); c++) {
        const double u = (cuts[c - 1] + cuts[c]) / 2;
        Ids hidden;
        for (std::size_t b = 0; b < sizes.size(); b++)
            hidden.push_back(allowed[b][std::size_t(double(allowed[b].size()) * share(u + offsets[b]))]);
        numbers[hidden] += cuts[c] - cuts[c - 1];
    }
    return numbers;
}
// Each number of hidden places of a block is as likely as any other, and so is each set of as many places. A text
// without a target is the target of [CLS].
template <bool blocks, bool two_stacks = false>
Outcomes diffusion(const Sentence& s, const ObjectiveOptions& o) {
    const bool pair = !s.target.empty(), ends = blocks || o.diffusion.canvas == DiffusionRule::ends;
    const Ids context = pair ? s.ids : Ids{cls}, text = pair ? s.target : Ids(s.ids.begin() + 1, s.ids.end());
    const int n = int(text.size()) - 1,
              longest = std::max(n + 1, pair ? o.diffusion.target_places : o.diffusion.text_places);
    Ids sizes;  // of the blocks
    int places = 0;
    do {
        sizes.push_back(blocks ? std::min(o.diffusion.block, longest - places) : ends ? longest : n);
        places += sizes.back();
    } while (places <= n && ends);
    const int clean = places - sizes.back();
    Ids canvas(text.begin(), text.end() - 1), block_of;
    canvas.resize(std::size_t(ends ? places : n + 1), sep);
    for (std::size_t b = 0; b < sizes.size(); b++) block_of.resize(block_of.size() + std::size_t(sizes[b]), int(b));
    block_of.resize(canvas.size(), 0);
    Outcomes outcomes;
    for (const auto& [hidden_of, probability] : hidden_numbers(sizes, o.diffusion, o.seed))
        for (int set = 1; set < 1 << places; set++) {
            Ids left = hidden_of;
            for (int i = 0; i < places; i++) left[std::size_t(block_of[std::size_t(i)])] -= set >> i & 1;
            if (left != Ids(left.size(), 0)) continue;
            double sets = 1;               // sets with these numbers of places
            int end = int(canvas.size());  // the first place with a visible [SEP]
            for (std::size_t b = 0; b < sizes.size(); b++)
                for (int i = 0; i < hidden_of[b]; i++) sets = sets * (sizes[b] - i) / (i + 1);
            for (int i = int(canvas.size()) - 1; i >= n; i--)
                if (!(set >> i & 1)) end = i;
            Example e;
            const auto add = [&](int id, int type, int position, int rank) {
                push(e.rows, id, type, position, s);
                if (blocks) e.rank.push_back(rank);
            };
            const int type = pair ? of_target : of_source, start = two_stacks ? 0 : int(context.size());
            for (int i = 0; i < int(context.size()); i++)
                if (two_stacks)
                    push(e.source, context[std::size_t(i)], of_source, i, s);
                else
                    add(context[std::size_t(i)], of_source, i, -1);
            for (int i = 0; i < clean; i++) add(canvas[std::size_t(i)], type, e.rows.count(), block_of[std::size_t(i)]);
            e.document = {e.rows.count(), int(canvas.size())};
            for (int i = 0; i < int(canvas.size()); i++) {
                const bool hidden = (set >> i & 1) && i < end;
                const auto b = std::size_t(block_of[std::size_t(i)]);
                const int token = canvas[std::size_t(i)];
                if (hidden)
                    e.labels.push(e.rows.count(), token, o.diffusion.weighting ? 1 : double(sizes[b]) / hidden_of[b]);
                add(hidden ? mask : token, type, start + i, int(b));
            }
            outcomes.push_back({probability / sets, e});
        }
    return outcomes;
}
// Each number of missing tokens is as likely as any other, and so is each set of as many tokens.
template <bool two_stacks = false>
Outcomes gaps(const Sentence& s, const ObjectiveOptions& o) {
    const bool pair = !s.target.empty();
    const Ids context = pair ? s.ids : Ids{cls}, text = pair ? s.target : Ids(s.ids.begin() + 1, s.ids.end());
    const int n = int(text.size()) - 1, start = two_stacks ? 0 : int(context.size());
    Outcomes outcomes;
    for (int set = 0; set < 1 << n; set++) {
        double sets = 1;  // sets of as many tokens
        for (int i = 0, k = 0; i < n; i++)
            if (set >> i & 1) sets = sets * (n - k) / (k + 1), k++;
        Example e;
        for (int i = 0; i < int(context.size()); i++)
            push(two_stacks ? e.source : e.rows, context[std::size_t(i)], of_source, i, s);
        e.document.source = e.rows.count();
        for (int i = 0, missing = 0; i <= n; i++) {
            if (i < n && set >> i & 1) {
                missing++;
                continue;
            }
            e.labels.push(e.rows.count(), o.vocabulary + missing);
            push(e.rows, text[std::size_t(i)], pair ? of_target : of_source, start + e.rows.count() - e.document.source,
                 s);
            missing = 0;
        }
        e.document.target = e.rows.count() - e.document.source;
        outcomes.push_back({1.0 / (n + 1) / sets, e});
    }
    return outcomes;
}
// All orders of the tokens are equally likely. A token has a content row and a query row of its rank; the [SEP] behind
// the text is context.
Outcomes any_order(const Sentence& s, const ObjectiveOptions& o) {
    const bool pair = !s.target.empty();
    const Ids context = pair ? s.ids : Ids{cls}, text = pair ? s.target : Ids(s.ids.begin() + 1, s.ids.end());
    const int n = int(text.size()) - 1, type = pair ? of_target : of_source;
    Ids rank = in_order(n);
    Outcomes outcomes;
    do {
        Example e;
        for (int i = 0; i < int(context.size()); i++) push(e.rows, context[std::size_t(i)], of_source, i, s);
        e.rank.assign(context.size(), -1);
        for (const bool query : {false, true})
            for (int i = 0; i < n + !query; i++) {
                if (query) e.labels.push(e.rows.count(), text[std::size_t(i)]);
                push(e.rows, query ? o.mask : text[std::size_t(i)], type, int(context.size()) + i, s);
                e.rank.push_back(i < n ? rank[std::size_t(i)] : -1);
            }
        e.document = {int(context.size()) + n + 1, n};
        outcomes.push_back({1, e});
    } while (std::next_permutation(rank.begin(), rank.end()));
    const double orders = double(outcomes.size());
    for (Outcome& each : outcomes) each.probability /= orders;
    return outcomes;
}
template <Outcomes (*of)(const Sentence&, const ObjectiveOptions&)>
Outcomes last_first(const Sentence& s, const ObjectiveOptions& o) {
    Sentence turned = s;
    for (std::size_t i = 0; i + 1 < s.target.size(); i++) turned.target[i] = s.target[s.target.size() - 2 - i];
    return of(turned, o);
}
Outcomes plm_shuffled(const Sentence& s, const ObjectiveOptions&) {
    const Whole all(s);
    Ids order = in_order(all.size());
    Outcomes outcomes;
    do outcomes.push_back({1, chain(all, order, all.types, {all.size() - 1, 0}, 0, s)});
    while (std::next_permutation(order.begin() + 1, order.end()));
    const double orders = double(outcomes.size());
    for (Outcome& each : outcomes) each.probability /= orders;
    return outcomes;
}

Outcomes seq2seq(const Sentence& s, const ObjectiveOptions&) {
    Example e;
    for (std::size_t i = 0; i < s.ids.size(); i++) push(e.source, s.ids[i], of_source, int(i), s);
    for (std::size_t t = 0; t < s.target.size(); t++) {
        push(e.rows, t > 0 ? s.target[t - 1] : cls, of_target, int(t), s);
        e.labels.push(int(t), s.target[t]);
    }
    return {{1, e}};
}
Outcomes mass(const Sentence& s, const ObjectiveOptions& o) {
    const int n = int(s.ids.size()) - 2, length = std::min(n, std::max(1, int(std::floor(o.span * n + 0.5)))),
              last = n - length + 1;
    Outcomes outcomes;
    for (int start = 1; start <= last; start++) {
        Ids hidden, read;
        for (int i = start; i < start + length; i++) hidden.push_back(i);
        const double p = 0.6 / last + (start == 1 ? 0.2 : 0) + (start == last ? 0.2 : 0);
        each_reading(
            hidden, [&](int place) { return s.ids[std::size_t(place)]; }, o, p, read,
            [&](double probability, const Ids& now) {
                Example e;
                for (int i = 0; i < n + 2; i++)
                    push(e.source,
                         i >= start && i < start + length ? now[std::size_t(i - start)] : s.ids[std::size_t(i)],
                         of_source, i, s);
                for (int i = start; i < start + length; i++) {
                    e.labels.push(i - start, s.ids[std::size_t(i)]);
                    push(e.rows, s.ids[std::size_t(i - 1)], of_target, i - 1, s);
                }
                outcomes.push_back({probability, e});
            });
    }
    return outcomes;
}

// For insertion: returns the subsets of n words that may be kept, with their probabilities. k is uniform from 0 to n.
// If `first_ones` is true, the first k words are kept; otherwise, all subsets of k words are equally likely.
std::vector<std::pair<std::vector<bool>, double>> parts_of(int n, bool first_ones) {
    std::vector<std::pair<std::vector<bool>, double>> all;
    for (int subset = 0; subset < 1 << n; subset++) {
        std::vector<bool> kept;
        for (int i = 0; i < n; i++) kept.push_back(subset >> i & 1);
        const int k = int(std::count(kept.begin(), kept.end(), true));
        if (first_ones) {
            if (std::is_sorted(kept.rbegin(), kept.rend())) all.push_back({kept, 1.0 / (n + 1)});
            continue;
        }
        double ways = 1;
        for (int i = 0; i < k; i++) ways = ways * (n - i) / (i + 1);
        all.push_back({kept, 1 / ways / (n + 1)});
    }
    return all;
}
// Splits the words into the canvas (the kept words) and the words that each slot lacks.
void split(const Ids& words, const std::vector<bool>& kept, Ids& canvas, std::vector<Ids>& missing) {
    missing.push_back({});
    for (std::size_t i = 0; i < words.size(); i++)
        if (kept[i])
            canvas.push_back(words[i]), missing.push_back({});
        else
            missing.back().push_back(words[i]);
}
// Returns the questions to each slot, by equations 10 to 14 of the paper. A slot that lacks words has the weight 1 or,
// for kermit, its number of words divided by the mean number. A slot that lacks none is asked for its end, with the
// weight of the end. The weights are scaled so that their sum is 1.
std::vector<std::map<int, double>> questions(const std::vector<Ids>& missing, const InsertionRule& rule,
                                             bool by_words) {
    std::vector<std::map<int, double>> all(missing.size());
    if (rule.left_to_right) {
        all.back()[missing.back().empty() ? sep : missing.back()[0]] = 1;
        return all;
    }
    double words = 0, open = 0, sum = 0;
    for (const Ids& each : missing) words += double(each.size()), open += each.empty() ? 0 : 1;
    std::vector<double> weights;
    for (const Ids& each : missing) {
        const bool ends = each.empty() && (!rule.sequence || words == 0);
        weights.push_back(!each.empty() ? (by_words ? double(each.size()) / (words / open) : 1)
                          : ends        ? rule.end_weight
                                        : 0);
        sum += weights.back();
    }
    for (std::size_t l = 0; l < missing.size() && sum > 0; l++) {
        const Ids& each = missing[l];
        if (each.empty() && weights[l] > 0) all[l][sep] = weights[l] / sum;
        double total = 0;
        std::vector<double> shares;
        for (std::size_t i = 0; i < each.size(); i++) {
            double distance = rule.middle ? std::abs((double(each.size()) - 1) / 2 - double(i)) : 0;
            if (rule.scores) {
                distance = 0;
                for (int other : each)
                    distance += rule.scores->at(std::size_t(other)) < rule.scores->at(std::size_t(each[i]));
            }
            shares.push_back(std::exp(-distance / rule.tau));
            total += shares.back();
        }
        for (std::size_t i = 0; i < each.size(); i++) all[l][each[i]] += weights[l] / sum * shares[i] / total;
    }
    return all;
}
void ask(Example& e, int first, const std::vector<std::map<int, double>>& slots) {
    for (std::size_t l = 0; l < slots.size(); l++) {
        e.labels.push(first + int(l), 0);
        for (const auto& [token, share] : slots[l]) e.labels.choices.push(token, share);
        e.labels.choices.begin.push_back(e.labels.choices.size());
    }
}
template <bool two>
Outcomes insertion(const Sentence& s, const ObjectiveOptions& o) {
    const Ids words(s.target.begin(), s.target.end() - 1);
    Outcomes outcomes;
    for (const auto& [kept, p] : parts_of(int(words.size()), o.insertion.left_to_right)) {
        Ids canvas;
        std::vector<Ids> missing;
        split(words, kept, canvas, missing);
        Example e;
        TokenRows& reads = two ? e.source : e.rows;
        for (std::size_t i = 0; i < s.ids.size(); i++) push(reads, s.ids[i], of_source, int(i), s);
        const int first = e.rows.count();
        canvas.insert(canvas.begin(), cls);
        canvas.push_back(sep);
        for (int id : canvas)
            push(e.rows, id, of_target, e.rows.count(), s);  // with one stack, the positions continue after the source
        e.document = {first, e.rows.count() - first};
        ask(e, first, questions(missing, o.insertion, false));
        outcomes.push_back({p, e});
    }
    return outcomes;
}
Outcomes kermit(const Sentence& s, const ObjectiveOptions& o) {
    const Ids sides[] = {Ids(s.ids.begin() + 1, s.ids.end() - 1), Ids(s.target.begin(), s.target.end() - 1)};
    const int x = int(sides[0].size()), y = int(sides[1].size());
    Outcomes outcomes;
    for (int whole : {0, 1, 2})  // which side is whole: none, the source, the target
        for (const auto& [drawn, p] : parts_of(whole == 0 ? x + y : whole == 1 ? y : x, false)) {
            std::vector<bool> left(std::size_t(x), true), right(std::size_t(y), true);
            if (whole != 1) left.assign(drawn.begin(), drawn.begin() + x);
            if (whole != 2) right.assign(drawn.end() - y, drawn.end());
            Ids a, b;
            std::vector<Ids> missing;
            split(sides[0], left, a, missing), split(sides[1], right, b, missing);
            Example e;
            a.insert(a.begin(), cls), a.push_back(sep), b.push_back(sep);
            for (std::size_t i = 0; i < a.size(); i++) push(e.rows, a[i], of_source, int(i), s);
            for (int id : b) push(e.rows, id, of_target, e.rows.count(), s);
            e.document = {int(a.size()), int(b.size())};
            ask(e, 0, questions(missing, o.insertion, true));
            outcomes.push_back({p / 3, e});
        }
    return outcomes;
}

const std::map<std::string, Define> definitions = {{"mlm", mlm},
                                                   {"lm", lm},
                                                   {"lm-target", lm_target},
                                                   {"lm-reverse", lm_reverse},
                                                   {"prefix-lm", prefix_lm},
                                                   {"unilm", unilm},
                                                   {"unilm-reverse", last_first<unilm>},
                                                   {"plm", plm},
                                                   {"unilm-masked", unilm_masked},
                                                   {"pmlm", pmlm},
                                                   {"diffusion", diffusion<false>},
                                                   {"block-diffusion", diffusion<true>},
                                                   {"diffusion, two stacks", diffusion<false, true>},
                                                   {"any-order", any_order},
                                                   {"gaps", gaps<>},
                                                   {"gaps, two stacks", gaps<true>},
                                                   {"k-bert", k_bert},
                                                   {"plm-shuffled", plm_shuffled},
                                                   {"seq2seq", seq2seq},
                                                   {"seq2seq-reverse", last_first<seq2seq>},
                                                   {"mass", mass},
                                                   {"insertion", insertion<true>},
                                                   {"insertion-one-stack", insertion<false>},
                                                   {"kermit", kermit}};

ObjectiveOptions options() {
    ObjectiveOptions o;
    o.vocabulary = V, o.special = {0, 1, cls, sep, mask}, o.mask = mask;
    o.source_type = of_source, o.target_type = of_target;
    o.insertion.begin = cls, o.insertion.end = sep;
    return o;
}

void check(const Objective& objective, const Sentence& s, const ObjectiveOptions& o, int draws) {
    CAPTURE(std::string(objective.name));
    const std::string of_two = text(objective.name, ", two stacks");
    const bool two = objective.has(Objective::encoder) && definitions.count(of_two) > 0;
    const auto found = definitions.find(two ? of_two : objective.name);
    REQUIRE_MESSAGE(found != definitions.end(), "write out what this objective may draw");
    std::map<std::string, double> expected;
    double sum = 0;
    for (const Outcome& each : found->second(s, o))
        expected[written(each.example)] += each.probability, sum += each.probability;
    CHECK(std::abs(sum - 1) < 1e-12);
    if (expected.size() == 1) draws = 3;
    std::map<std::string, int> seen;
    for (int step = 0; step < draws; step++) {
        Sentence visited = s;
        visited.visit = std::uint64_t(step);
        seen[written(objective.make(visited, std::uint32_t(step), o))]++;
    }
    for (const auto& each : seen) {
        CAPTURE(each.first);
        REQUIRE(expected.count(each.first));
    }
    double chi = 0;
    int degrees = -1;
    for (const auto& [outcome, p] : expected) {
        const std::string& key = outcome;
        const double mean = p * draws;
        if (mean < 5) continue;
        CAPTURE(key);
        CAPTURE(mean);
        CAPTURE(seen[key]);
        CHECK(std::abs(seen[key] - mean) <= 5.5 * std::sqrt(mean));
        chi += (seen[key] - mean) * (seen[key] - mean) / mean, degrees++;
    }
    if (degrees > 0) CHECK(chi <= degrees + 5 * std::sqrt(2.0 * degrees) + 10);
}

}  // namespace

TEST_CASE("objective draws: every objective draws what its definition enumerates, as often as it says") {
    const Sentence pair{{cls, 5, 6, sep}, 7, {6, 7, sep}}, repeated{{cls, 5, 5, 7, sep}, 8, {6, sep}},
        long_source{{cls, 5, 6, 7, 5, sep}, 9, {7, 6, 7, sep}};
    for (const auto* table : {&objectives(false), &objectives(true), &insertion_objectives()})
        for (const Objective& objective : *table)
            for (const Sentence* s : {&pair, &repeated, &long_source}) {
                ObjectiveOptions o = options();
                o.hidden = 0.4, o.kept = 0.2, o.random = 0.3, o.predicted = 0.5, o.span = 0.4;
                if (s == &long_source && (text(objective.name) == "mlm" || text(objective.name) == "k-bert" ||
                                          text(objective.name) == "plm-shuffled"))
                    continue;  // there would be thousands of outcomes
                check(objective, *s, o, 6000);
                if (s == &pair) check(objective, *s, options(), 6000);
            }
}

TEST_CASE("objective draws: pmlm draws blocks of two to six tokens, each length as often") {
    ObjectiveOptions o = options();
    o.hidden = 0.85, o.blocks = 1;  // six of the seven tokens are hidden
    check(find_objective("pmlm"), {{cls, 5, 6, 7, 5, 6, 7, 5, sep}, 7, {}}, o, 6000);
}

TEST_CASE("objective draws: mlm hides whole words, and spans of SpanBERT's lengths, each with one fate") {
    const Sentence pair{{cls, 5, 6, 7, sep}, 7, {7, 7, sep}}, text{{cls, 5, 7, 5, 6, 7, 7, sep}, 8, {}};
    const auto continues = std::make_shared<const std::vector<bool>>(std::vector<bool>{0, 0, 0, 0, 0, 0, 0, 1});
    for (const Sentence* s : {&pair, &text})
        for (Masking masking : {Masking::words, Masking::spans})
            for (bool pieces : {true, false}) {
                ObjectiveOptions o = options();
                o.hidden = 0.5, o.kept = 0.3, o.random = s == &text && masking == Masking::words && !pieces ? 0 : 0.2;
                o.masking = masking, o.span_stop = 0.3, o.span_longest = 3;
                if (pieces) o.continues = continues;
                check(find_objective("mlm"), *s, o, 6000);
            }
    ObjectiveOptions o = options();
    Sentence words{{cls}, 9, {}};
    for (int i = 0; i < 100; i++) words.ids.push_back(5 + i % 3);
    words.ids.push_back(sep);
    o.masking = Masking::spans, o.kept = 1, o.random = 0, o.hidden = 0.1;
    double sum = 0;
    for (std::uint32_t step = 0; step < 1000; step++) {
        const Labels labels = find_objective("mlm").make(words, step, o).labels;
        CHECK(labels.size() == 10);
        int spans = 1;
        for (std::size_t m = 1; m < labels.rows.size(); m++) spans += labels.rows[m] > labels.rows[m - 1] + 1;
        sum += spans;
    }
    // The expected value comes from a simulation with other random numbers: the number of runs of hidden words, where
    // spans that touch count as one run.
    CHECK(std::abs(sum / 1000 - 3.2) < 0.15);
}

TEST_CASE("objective draws: every rule of insertion weighs questions as the paper's equations do") {
    const Sentence s{{cls, 5, 6, sep}, 7, {6, 7, 6, 5, sep}}, short_one{{cls, 5, 5, 7, sep}, 8, {6, sep}};
    for (const Objective& objective : insertion_objectives())
        for (const Sentence* each : {&s, &short_one})
            for (int rule = 0; rule < 7; rule++) {
                ObjectiveOptions o = options();
                InsertionRule& r = o.insertion;
                if (rule == 1) r.middle = false;
                if (rule == 2) r.tau = 0.5;
                if (rule == 3) r.sequence = true;
                if (rule == 4) r.end_weight = 0.25;
                if (rule == 5) r.sequence = true, r.end_weight = 3, r.tau = 2;
                if (rule == 6)
                    r.scores = std::make_shared<const std::vector<double>>(std::vector<double>{0, 0, 0, 0, 0, 2, 3, 1});
                check(objective, *each, o, 2000);
                if (rule == 0 && text(objective.name) != "kermit")
                    r.left_to_right = true, check(objective, *each, o, 2000);
            }
}

TEST_CASE("objective draws: diffusion hides a target or a text, with one place for each token or with all places") {
    const Sentence pair{{cls, 5, 6, sep}, 7, {6, 7, sep}}, alone{{cls, 5, 5, 7, sep}, 8, {}}, empty{{cls, sep}, 9, {}};
    for (const Sentence* s : {&pair, &alone, &empty})
        for (const auto canvas : {DiffusionRule::ends, DiffusionRule::drawn})
            for (int longest : {0, 5}) {
                ObjectiveOptions o = options();
                o.diffusion.canvas = canvas;
                o.diffusion.target_places = o.diffusion.text_places = longest;
                if (s == &pair) check(find_objective("diffusion", true), *s, o, 6000);
                if (s == &empty && canvas == DiffusionRule::drawn)
                    CHECK(find_objective("diffusion").make(*s, 0, o).labels.size() == 0);  // there is no place
                else
                    check(find_objective("diffusion"), *s, o, 6000);
            }
}

TEST_CASE("objective draws: gaps counts what is missing from a target or a text") {
    const Sentence pair{{cls, 5, 6, sep}, 7, {6, 7, 5, 5, sep}}, alone{{cls, 5, 5, 7, sep}, 8, {}},
        empty{{cls, sep}, 9, {}};
    for (const Sentence* s : {&pair, &alone, &empty}) check(find_objective("gaps"), *s, options(), 6000);
    check(find_objective("gaps", true), pair, options(), 6000);
}

TEST_CASE("objective draws: block-diffusion hides places in every block, and shows the true blocks before it") {
    const Sentence pair{{cls, 5, 6, sep}, 7, {6, 7, 5, sep}}, alone{{cls, 5, 5, 7, 6, 5, sep}, 8, {}},
        empty{{cls, sep}, 9, {}};
    for (const Sentence* s : {&pair, &alone, &empty})
        for (int block : {1, 2, 3, 9})
            for (int longest : {0, 5, 7}) {
                CAPTURE(block);
                CAPTURE(longest);
                ObjectiveOptions o = options();
                o.diffusion.target_places = o.diffusion.text_places = longest;
                o.diffusion.block = block;
                check(find_objective("block-diffusion"), *s, o, 6000);
            }
}

TEST_CASE("objective draws: diffusion hides the shares of the setting masked, and weighs tokens as weighting says") {
    const Sentence pair{{cls, 5, 6, sep}, 7, {6, 7, 5, 6, sep}};
    for (const auto& [least, most] : {std::pair(0.0, 0.5), {0.3, 0.7}, {0.5, 1.0}, {0.3, 0.4}, {0.9, 1.0}})
        for (const auto weighting : {DiffusionRule::bound, DiffusionRule::tokens})
            for (const Objective* objective : {&find_objective("diffusion"), &find_objective("block-diffusion")}) {
                ObjectiveOptions o = options();
                o.diffusion.target_places = 6;
                o.diffusion.least = least, o.diffusion.most = most, o.diffusion.weighting = weighting;
                CAPTURE(o.diffusion.least);
                check(*objective, pair, o, 6000);
                const DiffusionRule measured = o.diffusion.measured();
                CHECK(measured.weighting == DiffusionRule::bound);
                CHECK(measured.least == 0);
                CHECK(measured.most == 1);
                CHECK(measured.target_places == 6);
            }
}

TEST_CASE("objective draws: diffusion spreads the number of hidden places evenly over the stream of sentences") {
    ObjectiveOptions o = options();
    for (int places : {4, 8, 12, 64}) {
        o.diffusion.text_places = places;
        const auto hidden = [&](std::uint64_t visit) {
            Sentence s{{cls, sep}, 7, {}};
            s.visit = visit;
            // With no word, the places behind the first visible one are not predicted; the weight still says P / k.
            const Example e = find_objective("diffusion").make(s, 3, o);
            return e.labels.size() == 0 ? -1 : int(std::lround(places / e.labels.weights[0]));
        };
        for (std::uint64_t first : {std::uint64_t(0), std::uint64_t(1000), std::uint64_t(1) << 40}) {
            int none = 0;
            std::vector<int> quarters(4);
            for (std::uint64_t visit = first; visit < first + 32; visit++)
                if (const int k = hidden(visit); k < 0)
                    none++;
                else
                    quarters[std::size_t((k - 1) * 4 / places)]++;
            // A set that leaves the first place visible predicts nothing, so it does not show its k.
            for (int count : quarters) CHECK(count <= 9);
            CHECK(quarters[3] >= 5);
            CHECK(quarters[0] + quarters[1] + quarters[2] + quarters[3] + none == 32);
        }
    }
    // Two canvases of a sentence have numbers that lie half of all places apart, and half of the weight each.
    o.diffusion.text_places = 8;
    o.canvases = 2;
    for (std::uint64_t visit = 0; visit < 50; visit++) {
        Sentence s{{cls, 5, 6, 7, 5, 6, 7, 5, sep}, 7, {}};
        s.visit = visit;
        int k[2];
        for (o.canvas = 0; o.canvas < 2; o.canvas++) {
            const Example e = find_objective("diffusion").make(s, 3, o);
            CHECK(e.counted == (o.canvas == 0 ? 8 : 0));
            CHECK(find_objective("diffusion").rows(s, o) == 2 * std::size_t(e.rows.count()));
            k[o.canvas] = int(std::lround(8 / e.labels.weights.at(0) / 2));
            CHECK(e.labels.size() == k[o.canvas]);  // only the last place is [SEP], so all hidden places are predicted
        }
        CHECK(std::abs(k[0] - k[1]) == 4);
    }
}

// In a batch, every question of its sentences has its own weight, and every inert question has the weight 0. The loss
// is the mean over the questions of the sentences.
TEST_CASE("objective draws: a batch asks what its sentences ask, once each, and inert rows for nothing") {
    const std::vector<Sentence> text = {{{cls, 5, 6, sep}, 7, {6, 7, sep}},
                                        {{cls, 5, 5, 7, sep}, 8, {6, sep}},
                                        {{cls, 7, sep}, 9, {5, sep}}};
    std::vector<const Sentence*> all;
    for (const Sentence& s : text) all.push_back(&s);
    for (const auto* table : {&objectives(false), &objectives(true), &insertion_objectives()})
        for (const Objective& objective : *table)
            for (int pad : {1, 16})
                for (int canvases : {1, 2}) {
                    CAPTURE(std::string(objective.name));
                    CAPTURE(pad);
                    ObjectiveOptions o = options();
                    o.canvases = canvases;
                    const Batch b = objective.batch(all, 3, o, pad);
                    std::size_t m = 0, document = 0;
                    int row = 0, choice = 0;
                    for (const Sentence* s : all)
                        for (int c = 0; c < (objective.has(Objective::canvases) ? canvases : 1); c++, document++) {
                            ObjectiveOptions one = o;
                            one.canvases = objective.has(Objective::canvases) ? canvases : 1;
                            one.canvas = c;
                            const Example e = objective.make(*s, 3, one);
                            CHECK(b.labels.begin.at(document) == int(m));
                            for (int q = 0; q < e.labels.size(); q++, m++) {
                                CHECK(b.labels.rows.at(m) == row + e.labels.rows[std::size_t(q)]);
                                CHECK(b.labels.tokens.at(m) == e.labels.tokens[std::size_t(q)]);
                                CHECK(b.labels.weights.at(m) == e.labels.weights.at(std::size_t(q)));
                                CHECK(b.scored.ids.at(m) == e.rows.ids[std::size_t(e.labels.rows[std::size_t(q)])]);
                                const Choices& own = e.labels.choices;
                                for (int j = own.begin.size() > 1 ? own.begin[std::size_t(q)] : 0;
                                     own.begin.size() > 1 && j < own.begin[std::size_t(q) + 1]; j++, choice++) {
                                    CHECK(b.labels.choices.tokens.at(std::size_t(choice)) ==
                                          own.tokens[std::size_t(j)]);
                                    CHECK(b.labels.choices.shares.at(std::size_t(choice)) ==
                                          own.shares[std::size_t(j)]);
                                }
                                if (own.begin.size() > 1) CHECK(b.labels.choices.begin.at(m + 1) == choice);
                            }
                            row += e.rows.count();
                        }
                    CHECK(b.documents == int(document));
                    CHECK(b.labels.count == int(m));
                    for (; m < std::size_t(b.labels.size()); m++) CHECK(b.labels.weights[m] == 0);
                    for (std::size_t j = std::size_t(choice); j < b.labels.choices.shares.size(); j++)
                        CHECK(b.labels.choices.shares[j] == 0);
                }
}

TEST_CASE(
    "objective draws: which words are hidden from a decoder depends on the sentence and the place, not on a batch") {
    const std::vector<Sentence> text = {{{cls, 5, 6, sep}, 7, {6, 7, 6, 5, 5, 6, 7, 6, 5, 5, 6, 7, sep}},
                                        {{cls, 5, 5, 7, 6, 6, sep}, 8, {6, sep}}};
    ObjectiveOptions o = options();
    o.word_dropout = 0.5;
    o.cls = cls;
    o.unknown = 1;
    const Objective& objective = find_objective("unilm");
    int hidden = 0, shown = 0;
    for (std::uint32_t step = 0; step < 20; step++) {
        const Batch alone = objective.batch({&text[0]}, step, o),
                    behind = objective.batch({&text[1], &text[0]}, step, o);
        const std::size_t n = alone.rows.ids.size(), first = behind.rows.ids.size() - n;
        for (std::size_t i = 0; i < n; i++) {
            CHECK(alone.rows.ids[i] == behind.rows.ids[first + i]);
            hidden += alone.rows.ids[i] == o.unknown;
            shown += alone.rows.ids[i] != o.unknown;
        }
    }
    CHECK(std::min(hidden, shown) > 50);
}
