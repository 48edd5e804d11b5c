// SPDX-License-Identifier: MIT
// Classification. Sentence::asked lists the rows of an example that predict a label, and Sentence::target lists these
// labels in the same order.
#include "models/tasks/objective_parts.h"

namespace masquerade {
namespace {

Example questions(const Sentence& s, const ObjectiveOptions& o) {
    Example e;
    e.rows.push_text(s.ids, o.source_type, 0, s.name);
    for (std::size_t m = 0; m < s.asked.size(); m++) e.labels.push(s.asked[m], s.target[m]);
    e.document = {e.rows.count(), 0};
    return e;
}

void mask_of_examples(Batch& b, const ObjectiveOptions& o) {
    b.graph = (*o.example_mask)(b.parts);
    b.masks = o.masks->graphs(b.parts, b.inert());
}

}  // namespace

const std::vector<Objective>& question_objectives() {
    static const std::vector<Objective> all = {
        {"classify", "the answers to an example's questions", Objective::none, questions, mask_of_examples},
        {"label", "the same, where questions are put to rows anywhere", Objective::scattered, questions,
         mask_of_examples},
    };
    return all;
}

}  // namespace masquerade
