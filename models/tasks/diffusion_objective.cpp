// SPDX-License-Identifier: MIT
// Masked diffusion. Some of the places of a text are hidden behind [MASK], and the model predicts the tokens of all
// hidden places at once, from the visible ones. The loss is a bound on the negative log-likelihood.
//
// The bound in continuous time (Sahoo et al. 2024; Shi et al. 2024) hides each place with a probability that depends on
// the time t, and weighs the loss at time t. If the model does not read t, the same bound is a mean over the number k of
// hidden places (Uria et al. 2014; Hoogeboom et al. 2022): with P places,
//     B(x) = E over k = 1 .. P, uniform, and over all sets S of k places, of  P/k sum over i in S of CE_i(S),
// where CE_i(S) = -log p(x_i | the visible places). It is also the mean of -log p(x) over all orders in which the P
// places can be predicted one by one. So no schedule, no time and no smallest probability is needed.
#include <algorithm>

#include "models/tasks/objective_parts.h"

namespace masquerade {
namespace {

// Returns a number from 0 to 2^64 - 1 for canvas `canvas` of a sentence. The numbers of sentences that follow one
// another in training are spread evenly, because each is the last one plus 2^64 divided by the golden ratio. Wherever
// this stream of sentences is cut into batches, the numbers k of a batch are therefore spread evenly, too, but the
// number of a sentence does not depend on its batch. The canvases of a sentence are spread evenly as well.
std::uint64_t spread(const Sentence& s, const ObjectiveOptions& o) {
    Sequence random(o.seed, "diffusion");
    const std::uint64_t high = random.bits(), first = high << 32 | random.bits();
    return first + s.visit * 0x9E3779B97F4A7C15u + std::uint64_t(o.canvas) * (~std::uint64_t(0) / o.canvases);
}

// The text whose places are hidden: the target of a pair, or a sentence without its [CLS]. The last token is [SEP].
struct Hidden {
    bool pair;
    int context;  // rows before the text
    int tokens;   // without [SEP]
    int places;   // rows that can be hidden
    Hidden(const Sentence& s, const ObjectiveOptions& o) {
        pair = !s.target.empty();
        context = pair ? int(s.ids.size()) : 1;
        tokens = int(s.size()) - context - 1;
        const int longest = pair ? o.diffusion.target_places : o.diffusion.text_places;
        places = o.diffusion.canvas == DiffusionRule::ends ? std::max(tokens + 1, longest) : tokens;
    }
    int rows() const { return context + std::max(places, tokens + 1); }
};

}  // namespace

std::size_t diffusion_rows(const Sentence& s, const ObjectiveOptions& o) {
    return std::size_t(Hidden(s, o).rows()) * std::size_t(o.canvases);
}

Example diffusion(const Sentence& s, std::uint32_t step, const ObjectiveOptions& o) {
    const auto [pair, context, tokens, places] = Hidden(s, o);
    const int k = places > 0 ? 1 + int((unsigned __int128)(spread(s, o)) * unsigned(places) >> 64) : 0;
    std::vector<char> hidden(places);
    for (std::size_t i : drawn(places, k, random_of_canvas("diffusion", s, step, o))) hidden[i] = true;
    const int name = name_of_canvas(s.name, o);
    Example e;
    for (int i = 0; i < context; i++) e.rows.push(s.ids[i], o.source_type, i, name);
    const int type = pair ? o.target_type : o.source_type, start = pair ? o.target_position(context) : 1;
    const int* const words = pair ? s.target.data() : s.ids.data() + 1;
    bool ended = false;  // whether a visible [SEP] stands before place i
    for (int i = 0; i < std::max(places, tokens + 1); i++) {
        const int token = words[std::min(i, tokens)];
        const bool asked = i < places && hidden[i] && !ended;
        if (asked) e.labels.push(e.rows.count(), token, double(places) / k / o.canvases);
        ended = ended || (i >= tokens && !asked);
        e.rows.push(asked ? o.mask : token, type, start + i, name);
    }
    e.document = {context, e.rows.count() - context};
    // [SEP] counts if the model predicts it. The canvases of a sentence predict its tokens once.
    const bool ends = o.diffusion.canvas == DiffusionRule::ends;
    e.counted = o.canvas == 0 ? tokens + ends : 0;
    return e;
}

}  // namespace masquerade
