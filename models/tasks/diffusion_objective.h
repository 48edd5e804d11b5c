// SPDX-License-Identifier: MIT
// The objectives of masked diffusion, and the rows that they share with generation.
#pragma once
#include "models/tasks/objective.h"

namespace masquerade {

// All places of a text at once, on one stack; one block after another, on one stack; one place after another in a drawn
// order, on one stack; all places of a target at once in a decoder, whose source an encoder reads; and all places of a
// text or target alone, in the decoder half of a UniVAE.
enum class DiffusionForm { one_stack, blocks, streams, two_stacks, places };
inline DiffusionForm diffusion_form(const Objective& objective) {
    return objective.has(Objective::encoder)   ? DiffusionForm::two_stacks
           : objective.has(Objective::streams) ? DiffusionForm::streams
           : objective.has(Objective::ranks)   ? DiffusionForm::blocks
                                               : DiffusionForm::one_stack;
}
// Whether a canvas of this form has one place for each token, and a visible [SEP] behind them, which is not predicted.
inline bool draws_length(DiffusionForm form, const DiffusionRule& rule) {
    return form == DiffusionForm::streams || (form != DiffusionForm::blocks && rule.canvas == DiffusionRule::drawn);
}
constexpr unsigned diffusion_traits =
    Objective::mask_token | Objective::scattered | Objective::canvases | Objective::bound;

Example diffusion(DiffusionForm form, const Sentence& sentence, const ObjectiveOptions& options);
// Returns the number of rows of all canvases of a sentence.
std::size_t diffusion_rows(DiffusionForm form, const Sentence& sentence, const ObjectiveOptions& options);

// Predicts the tokens one by one in a drawn order, in two streams.
Example any_order(const Sentence& sentence, const ObjectiveOptions& options);

// The objective that tells diffusion how many tokens are missing where. From a text of n tokens, k are missing, with k
// uniform from 0 to n.
Example gaps(DiffusionForm form, const Sentence& sentence, const ObjectiveOptions& options);

// The functions of one form, for the tables of objectives.
template <DiffusionForm form, Example (*make)(DiffusionForm, const Sentence&, const ObjectiveOptions&) = diffusion>
Example in_form(const Sentence& sentence, const ObjectiveOptions& options) {
    return make(form, sentence, options);
}
template <DiffusionForm form>
std::size_t rows_in_form(const Sentence& sentence, const ObjectiveOptions& options) {
    return diffusion_rows(form, sentence, options);
}

// Returns the rows of one canvas without labels: first the context, which is the source of a pair or, if `pair` is
// false, the [CLS] of a text (DiffusionForm::places: none); then `clean`, the true tokens of blocks, from place 0 on;
// and then `shown`, the tokens or [MASK] of the places from `first` on. The rows of `shown` are the target of the
// document. With two stacks, the context goes to the encoder, once for all canvases.
Example canvas_rows(DiffusionForm form, const Sentence& sentence, bool pair, const Tokens& clean, int first,
                    const Tokens& shown, const ObjectiveOptions& options);

// Returns the rows of one canvas of any_order() without labels: the context, as canvas_rows() makes it; then a content
// row for each place whose token is not MaskedCanvas::hidden, -1; and then a query row, [MASK], for each asked place.
// rank[i] is the rank of place i (two_stream_mask). The query rows are the target of the document.
Example stream_rows(const Sentence& sentence, bool pair, const Tokens& tokens, const std::vector<int>& rank,
                    const std::vector<int>& asked, const ObjectiveOptions& options);

}  // namespace masquerade
