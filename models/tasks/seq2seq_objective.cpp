// SPDX-License-Identifier: MIT
#include "models/tasks/seq2seq_objective.h"

#include <algorithm>

#include "models/tasks/objective_parts.h"

namespace masquerade {
namespace {

// The decoder is fed [CLS] and the target but for its last token, which is [SEP]; positions start at 0 again.
PairExample seq2seq(const Sentence& s, std::uint32_t, const ObjectiveOptions& o) {
    PairExample e;
    for (std::size_t i = 0; i < s.ids.size(); i++) e.source.push(s.ids[i], o.source_type, int(i), s.name);
    for (std::size_t t = 0; t < s.target.size(); t++)
        e.target.push(t == 0 ? s.ids[0] : s.target[t - 1], o.target_type, int(t), s.name);
    e.asked = s.target;
    return e;
}

// The first place of a span of `length` among places 1 .. n: the first and the last possible one with a probability of 0.2
// each, else any.
int span_start(int n, int length, Sequence& random) {
    const int last = n - length + 1;
    const double u = random.uniform_double();
    const int any = 1 + int(random.below(std::uint32_t(last)));
    return u < 0.2 ? 1 : u < 0.4 ? last : any;
}

// Of a pair its source alone. [CLS] and [SEP] stay, so there is a true token before every span.
PairExample mass(const Sentence& s, std::uint32_t step, const ObjectiveOptions& o) {
    PairExample e;
    const int n = int(s.ids.size()) - 2;
    for (std::size_t i = 0; i < s.ids.size(); i++) e.source.push(s.ids[i], o.source_type, int(i), s.name);
    if (n < 1) return e;
    Sequence random(o.seed, "mass", std::uint32_t(s.name), step);
    const int length = std::clamp(int(o.span * n + 0.5), 1, n), start = span_start(n, length, random);
    for (int place = start; place < start + length; place++) {
        const auto at = std::size_t(place);
        e.target.push(s.ids[at - 1], o.target_type, place - 1, s.name);
        e.asked.push_back(s.ids[at]);
        e.source.ids[at] = hidden_as(s.ids[at], random, o);
    }
    return e;
}

}  // namespace

PairBatch PairObjective::batch(const std::vector<const Sentence*>& sentences, std::uint32_t step,
                               const ObjectiveOptions& options, int pad_to) const {
    PairBatch b;
    b.documents = int(sentences.size());
    Documents all;
    b.target_begin.push_back(0);
    for (const Sentence* s : sentences) {
        expect_fitting(name, traits, *s, options);
        const PairExample e = make(*s, step, options);
        for (int i = 0; i < e.source.count(); i++) append(b.source, e.source, i);
        for (int i = 0; i < e.target.count(); i++) append(b.target, e.target, i);
        b.targets.insert(b.targets.end(), e.asked.begin(), e.asked.end());
        b.target_begin.push_back(int(b.targets.size()));
        all.push_back({e.source.count(), e.target.count()});
    }
    b.target_count = int(b.targets.size());
    const std::vector<int> sources = fillers(b.source.count(), b.documents, 1, pad_to),
                           targets = fillers(b.target.count(), b.documents, 1, pad_to);
    for (std::size_t f = 0; f < sources.size(); f++) {
        for (int i = 0; i < sources[f]; i++) b.source.push(0, 0, 0, first_filler - int(f));
        for (int i = 0; i < targets[f]; i++) b.target.push(0, 0, 0, first_filler - int(f));
        all.push_back({sources[f], targets[f]});
    }
    b.weights.assign(std::size_t(b.target_count), 1);
    b.weights.resize(std::size_t(b.target.count()), 0);
    b.targets.resize(std::size_t(b.target.count()), 0);
    b.encoder_graph = full_mask(sources_of(all));
    b.decoder_graph = causal_mask(targets_of(all));
    b.cross_graph = cross_mask(all);
    b.bucket = text(name, ",", b.source.count(), ",", b.target.count(), ",", all.size());
    return b;
}

const std::vector<PairObjective>& pair_objectives() {
    static const std::vector<PairObjective> all = {
        {"seq2seq", "the target of a pair, from all of its source", Objective::pairs, seq2seq},
        {"mass", "a hidden span of a sentence, from the rest of it", Objective::mask_token, mass},
    };
    return all;
}

const PairObjective& find_pair_objective(const std::string& name) {
    std::string names;
    for (const PairObjective& o : pair_objectives()) {
        if (o.name == name) return o;
        names += names.empty() ? o.name : std::string(", ") + o.name;
    }
    throw BadUsage(text("two stacks have no objective ", name, "; there are ", names));
}

}  // namespace masquerade
