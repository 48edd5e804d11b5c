// SPDX-License-Identifier: MIT
// Masked diffusion. Some of the places of a text are hidden behind [MASK], and the model predicts the tokens of all
// hidden places at once, from the visible ones. The loss is a bound on the negative log-likelihood.
//
// The bound in continuous time (Sahoo et al. 2024; Shi et al. 2024) hides each place with a probability that depends on
// the time t, and weighs the loss at time t. If the model does not read t, the same bound is a mean over the number k
// of hidden places (Uria et al. 2014; Hoogeboom et al. 2022): with P places,
//     B(x) = E over k = 1 .. P, uniform, and over all sets S of k places, of  P/k sum over i in S of CE_i(S),
// where CE_i(S) = -log p(x_i | the visible places). It is also the mean of -log p(x) over all orders in which the P
// places can be predicted one by one. So no schedule, no time and no smallest probability is needed.
#include "models/tasks/diffusion_objective.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "engine/base/shuffle.h"
#include "models/tasks/objective_parts.h"

namespace masquerade {
namespace {

// Returns a number from 0 to 2^64 - 1 for block `block` of canvas `canvas` of a sentence. The numbers of sentences that
// follow one another in training are spread evenly, because each is the last one plus 2^64 divided by the golden ratio.
// Wherever this stream of sentences is cut into batches, the numbers k of a batch are therefore spread evenly, too, but
// the number of a sentence does not depend on its batch. The canvases of a sentence are spread evenly as well. Each
// block has an offset of its own, so that the blocks of a sentence have different numbers.
std::uint64_t spread(const Sentence& s, int block, const ObjectiveOptions& o) {
    const auto number = [](Sequence random) {
        const std::uint64_t high = random.bits();
        return high << 32 | random.bits();
    };
    return number({o.seed, "diffusion"}) + (block > 0 ? number({o.seed, "diffusion.block", std::uint32_t(block)}) : 0) +
           s.visit * 0x9E3779B97F4A7C15u + std::uint64_t(o.canvas) * (~std::uint64_t(0) / o.canvases);
}

// The text whose places are hidden: the target of a pair, or a sentence without its [CLS]. The last token is [SEP].
struct Hidden {
    bool pair;
    const int* words;  // the tokens of the text, then [SEP]
    int context;       // rows before the text on its stack
    int tokens;        // without [SEP]
    int places;        // rows that can be hidden
    int block;         // places of a block; the last block may have fewer
    Hidden(DiffusionForm form, const Sentence& s, const ObjectiveOptions& o) {
        pair = !s.target.empty();
        words = pair ? s.target.data() : s.ids.data() + 1;
        context = form == DiffusionForm::two_stacks || form == DiffusionForm::places ? 0 : pair ? int(s.ids.size()) : 1;
        tokens = pair ? int(s.target.size()) - 1 : int(s.ids.size()) - 2;
        const int longest = std::max(tokens + 1, pair ? o.diffusion.target_places : o.diffusion.text_places);
        block = places = ends(form, o) ? longest : tokens;
        if (form == DiffusionForm::blocks) {
            block = std::min(o.diffusion.block, longest);
            places = std::min(longest, (tokens / block + 1) * block);
        }
    }
    // Whether the model predicts the [SEP] behind the text.
    static bool ends(DiffusionForm form, const ObjectiveOptions& o) { return !draws_length(form, o.diffusion); }
    int rows() const { return std::max(places, tokens + 1); }  // of the text
    // The places before the last block, whose true tokens are read.
    int clean() const { return places > 0 ? (places - 1) / block * block : 0; }
    int first_row() const { return context + clean(); }  // the row of the first place
    // The smallest and the largest number of hidden places in a block of n places.
    static std::pair<int, int> numbers(int n, const DiffusionRule& rule) {
        constexpr double rounding = 1e-9;  // so that a share of .7 of 10 places is 7 places
        const int least = std::max(1, int(std::ceil(rule.least * n - rounding)));
        return {least, std::max(least, int(std::floor(rule.most * n + rounding)))};
    }
    // Draws which places are hidden. Returns the weight of each place in the loss, which is 0 if it is visible.
    Numbers weights(const Sentence& s, const ObjectiveOptions& o) const {
        Numbers all(places);
        for (int b = 0; b * block < places; b++) {
            const int n = std::min(block, places - b * block);
            const auto [least, most] = numbers(n, o.diffusion);
            const int k = least + int((unsigned __int128)(spread(s, b, o)) * unsigned(most - least + 1) >> 64);
            const double weight = o.diffusion.weighting == DiffusionRule::bound ? double(n) / k : 1;
            const std::string what = b > 0 ? text("diffusion.block", b) : "diffusion";
            for (std::size_t i : drawn(n, k, random_of_canvas(what.c_str(), s, o)))
                all[b * block + i] = weight / o.canvases;
        }
        return all;
    }
};

}  // namespace

std::size_t diffusion_rows(DiffusionForm form, const Sentence& s, const ObjectiveOptions& o) {
    const Hidden text(form, s, o);
    const std::size_t encoder = form == DiffusionForm::two_stacks ? s.ids.size() : 0;
    const int queries = form == DiffusionForm::streams ? text.places : 0;
    return encoder + std::size_t(text.first_row() + text.rows() + queries) * o.canvases;
}

Example canvas_rows(DiffusionForm form, const Sentence& s, bool pair, const Tokens& clean, int first,
                    const Tokens& shown, const ObjectiveOptions& o) {
    const bool two_stacks = form == DiffusionForm::two_stacks, alone = form == DiffusionForm::places;
    const int n = int(s.ids.size()), read = alone ? 0 : pair ? n : 1, name = name_of_canvas(s.name, o);
    const int type = pair || alone ? o.target_type : o.source_type;
    const int start = two_stacks ? 0 : pair || alone ? o.target_position(n) : 1;
    Example e;
    e.same_source = two_stacks && o.canvas > 0;  // the encoder reads the source once for all canvases
    for (int i = 0; i < read && !e.same_source; i++)
        (two_stacks ? e.source : e.rows).push(s.ids[i], o.source_type, i, two_stacks ? s.name : name);
    if (form == DiffusionForm::blocks) e.rank.assign(read, -1);
    const auto push = [&](const Tokens& tokens, int place, int own_name) {
        for (int token : tokens) {
            e.rows.push(token, type, start + place, own_name);
            if (form == DiffusionForm::blocks) e.rank.push_back(place / o.diffusion.block);
            place++;
        }
    };
    push(clean, 0, ~name);  // with ~name, a true token has another dropout mask than the row that predicts it
    e.document.source = e.rows.count();
    push(shown, first, name);
    e.document.target = e.rows.count() - e.document.source;
    return e;
}

Example stream_rows(const Sentence& s, bool pair, const Tokens& tokens, const std::vector<int>& rank,
                    const std::vector<int>& asked, const ObjectiveOptions& o) {
    const int n = int(s.ids.size()), read = pair ? n : 1, name = name_of_canvas(s.name, o);
    const int type = pair ? o.target_type : o.source_type, start = pair ? o.target_position(n) : 1;
    Example e;
    for (int i = 0; i < read; i++) e.rows.push(s.ids[i], o.source_type, i, name);
    e.rank.assign(read, -1);
    const auto push = [&](int token, int place, int own_name) {
        e.rows.push(token, type, start + place, own_name);
        e.rank.push_back(rank.at(place));
    };
    for (int place = 0; place < int(tokens.size()); place++)
        if (tokens[place] >= 0) push(tokens[place], place, ~name);  // ~name: as in canvas_rows()
    e.document.source = e.rows.count();
    for (int place : asked) push(o.mask, place, name);
    e.document.target = int(asked.size());
    return e;
}

Example any_order(const Sentence& s, const ObjectiveOptions& o) {
    const Hidden text(DiffusionForm::streams, s, o);
    std::vector<int> places(text.places), rank(text.places + 1, -1);  // [SEP] has the rank of the context
    std::iota(places.begin(), places.end(), 0);
    std::vector<int> order = places;
    Sequence random = random_of_canvas("any-order", s, o);
    shuffle(order, random);
    for (int r = 0; r < text.places; r++) rank[order[r]] = r;
    Example e = stream_rows(s, text.pair, {text.words, text.words + text.rows()}, rank, places, o);
    for (int place : places) e.labels.push(e.document.source + place, text.words[place], 1.0 / o.canvases);
    e.counted = o.canvas == 0 ? text.tokens : 0;
    return e;
}

Example diffusion(DiffusionForm form, const Sentence& s, const ObjectiveOptions& o) {
    const Hidden text(form, s, o);
    const Numbers weights = text.weights(s, o);
    Tokens shown;
    Labels labels;
    bool ended = false;  // whether a visible [SEP] stands before place i
    for (int i = 0; i < text.rows(); i++) {
        const int token = text.words[std::min(i, text.tokens)];
        const bool asked = i < text.places && weights[i] > 0 && !ended;
        if (asked) labels.push(text.first_row() + i, token, weights[i]);
        ended = ended || (i >= text.tokens && !asked);
        shown.push_back(asked ? o.mask : token);
    }
    Example e = canvas_rows(form, s, text.pair, {text.words, text.words + text.clean()}, 0, shown, o);
    e.labels = std::move(labels);
    // [SEP] counts if the model predicts it. The tokens of a sentence count once, not once per canvas.
    e.counted = o.canvas == 0 ? text.tokens + Hidden::ends(form, o) : 0;
    return e;
}

Example gaps(DiffusionForm form, const Sentence& s, const ObjectiveOptions& o) {
    const Hidden text(form, s, o);
    const int k = int((unsigned __int128)(spread(s, 0, o)) * unsigned(text.tokens + 1) >> 64);
    std::vector<char> missing(text.tokens + 1);
    for (std::size_t i : drawn(text.tokens, k, random_of_canvas("gaps", s, o))) missing[i] = 1;
    Tokens left;
    Labels labels;
    for (int i = 0, count = 0; i <= text.tokens; i++) {
        if (missing[i]) {
            count++;
            continue;
        }
        labels.push(text.context + int(left.size()), o.vocabulary + count);
        left.push_back(text.words[i]);
        count = 0;
    }
    Example e = canvas_rows(form, s, text.pair, {}, 0, left, o);
    e.labels = std::move(labels);
    return e;
}

}  // namespace masquerade
