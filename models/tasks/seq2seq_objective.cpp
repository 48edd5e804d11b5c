// SPDX-License-Identifier: MIT
// The objectives of an encoder and a decoder, and the rows and labels of seq2seq and mass.
#include <algorithm>

#include "models/tasks/diffusion_objective.h"
#include "models/tasks/objective_parts.h"

namespace masquerade {

Example source_and_target(const Sentence& s, const Tokens& wanted, int start, const ObjectiveOptions& o) {
    Example e;
    e.source.push_text(s.ids, o.source_type, 0, s.name);
    for (std::size_t t = 0; t < wanted.size(); t++) {
        e.rows.push(t == 0 ? s.ids[0] : wanted[t - 1], o.target_type, start + int(t), s.name);
        e.labels.push(int(t), wanted[t]);
    }
    return e;
}

namespace {

Example seq2seq(const Sentence& s, const ObjectiveOptions& o) { return source_and_target(s, s.target, 0, o); }

// Draws the index of the first token of a span of `length` tokens among the tokens 1 .. n. The index is
// the smallest possible one with probability 0.2, and the largest possible one with probability 0.2; otherwise it is
// drawn uniformly from all possible indices.
int span_start(int n, int length, Sequence& random) {
    const int last = n - length + 1;
    const double u = random.uniform_double();
    const int any = 1 + int(random.below(last));
    return u < 0.2 ? 1 : u < 0.4 ? last : any;
}

// Hides one span of a sentence or, in a pair, of the source. The first token that the decoder reads is the token before
// the span. This token always exists, because [CLS] is never hidden.
Example mass(const Sentence& s, const ObjectiveOptions& o) {
    Example e;
    const int n = int(s.ids.size()) - 2;
    e.source.push_text(s.ids, o.source_type, 0, s.name);
    if (n < 1) return e;
    Sequence random(o.seed, "mass", s.name, o.step);
    const int length = std::clamp(int(o.span * n + 0.5), 1, n), start = span_start(n, length, random);
    for (int place = start; place < start + length; place++) {
        e.labels.push(e.rows.count(), s.ids[place]);
        e.rows.push(s.ids[place - 1], o.target_type, place - 1, s.name);
        e.source.ids[place] = hidden_as(s.ids[place], random.uniform_double(), random, o);
    }
    return e;
}

}  // namespace

const std::vector<Objective>& encoder_decoder_objectives() {
    static const std::vector<Objective> all = {
        {"seq2seq", "the target of a pair, from all of its source",
         Objective::pairs | Objective::writes | Objective::encoder, seq2seq, two_stacks<causal_mask>},
        {"seq2seq-reverse", "the same, from the last token of the target to the first",
         Objective::pairs | Objective::writes | Objective::encoder | Objective::last_first, last_first<seq2seq>,
         two_stacks<causal_mask>},
        {"mass", "a hidden span of a sentence, from the rest of it", Objective::mask_token | Objective::encoder, mass,
         two_stacks<causal_mask>},
        {"diffusion", "a random number of hidden tokens of the target, by a bound on the likelihood",
         Objective::pairs | Objective::encoder | diffusion_traits, in_form<DiffusionForm::two_stacks>,
         two_stacks<full_mask>, rows_in_form<DiffusionForm::two_stacks>},
        {"gaps", "how many tokens are missing before each token that is left of the target",
         Objective::pairs | Objective::encoder | Objective::counts, in_form<DiffusionForm::two_stacks, gaps>,
         two_stacks<full_mask>},
    };
    return all;
}

}  // namespace masquerade
