// SPDX-License-Identifier: MIT
// Packing the documents of an objective, and the inert tail that fills a bucket.
#include <algorithm>

#include "models/tasks/objective_parts.h"

namespace masquerade {

void expect_fitting(const char* name, unsigned traits, const Sentence& s, const ObjectiveOptions& o) {
    if (traits & Objective::mask_token && o.mask < 0)
        throw BadUsage(text("objective ", name, " needs [MASK] in the vocabulary, which has none"));
    if (traits & Objective::pairs && s.target.empty())
        throw BadInput(text("objective ", name, " needs pairs, but sentence ", s.name,
                            " has no target; give text with source<TAB>target on every line"));
    if (s.ids.size() < 2)
        throw Error(text("sentence ", s.name, " has ", s.ids.size(), " tokens, expected [CLS] ... [SEP]"));
}

ObjectiveBatch Objective::batch(const std::vector<const Sentence*>& sentences, std::uint32_t step,
                                const ObjectiveOptions& options, int pad_to) const {
    ObjectiveBatch b;
    b.documents = int(sentences.size());
    Documents all;
    std::vector<int> rank;
    b.scored_begin.push_back(0);
    for (const Sentence* s : sentences) {
        expect_fitting(name, traits, *s, options);
        const Example e = make(*s, step, options);
        const int first = b.rows.count();
        for (int i = 0; i < e.rows.count(); i++) append(b.rows, e.rows, i);
        for (const Example::Scored& scored : e.scored) {
            b.scored_rows.push_back(first + scored.row);
            b.targets.push_back(scored.target);
            b.weights.push_back(1);
        }
        b.scored_begin.push_back(int(b.targets.size()));
        rank.insert(rank.end(), e.rank.begin(), e.rank.end());
        all.push_back(e.document);
    }
    b.target_count = int(b.targets.size());
    const int missing = pad_to > 1 ? rounded_up(b.target_count, pad_to) - b.target_count : 0;
    int filler = first_filler;
    for (int length : fillers(b.rows.count(), b.documents, missing, pad_to)) {
        for (int i = 0; i < length; i++) b.rows.push(0, 0, 0, filler);
        all.push_back({length, 0});
        filler--;
    }
    if (!rank.empty()) rank.resize(std::size_t(b.rows.count()), -1);
    for (int i = missing; i > 0; i--) {
        b.scored_rows.push_back(b.rows.count() - i);
        b.targets.push_back(0);
        b.weights.push_back(0);
    }
    for (int row : b.scored_rows) append(b.scored, b.rows, row);
    b.graph = mask(all, rank);
    if (!has(scattered)) b.scored_graph = only_queries(b.graph, b.scored_rows);
    b.bucket = text(name, ",", b.rows.count(), ",", b.scored_rows.size(), ",", all.size(), ",",
                    b.scored_graph.queries.size());
    return b;
}

}  // namespace masquerade
