// SPDX-License-Identifier: MIT
#include "models/writing/unmask_decoder.h"

#include <algorithm>

#include "engine/tensor/copy.h"
#include "models/tasks/diffusion_objective.h"

namespace masquerade {

UnmaskDecoder::UnmaskDecoder(const TargetNet& net, const Objective& objective, const ObjectiveOptions& options,
                             bool text)
    : net_(net),
      objective_(objective),
      options_(options),
      text_(text),
      arena_(net.head_stack().device(), Blocks::kept),
      tape_(arena_, net.head_stack().storage()) {}

Example UnmaskDecoder::example(const MaskedCanvas& canvas) const {
    const DiffusionForm form = diffusion_form(objective_);
    // In blocks, the context grows by the places before the block that is asked, and the places behind it have no rows.
    const int places = int(canvas.tokens.size());
    const int block = form == DiffusionForm::blocks ? options_.diffusion.block : places;
    const int first = canvas.asked.at(0) / block * block, end = std::min(first + block, places);
    const auto tokens = canvas.tokens.begin();
    Tokens shown(tokens + first, tokens + end);
    std::replace(shown.begin(), shown.end(), int(MaskedCanvas::hidden), options_.mask);
    Example e =
        canvas_rows(form, *sources_.at(canvas.source), !text_, Tokens(tokens, tokens + first), first, shown, options_);
    for (int place : canvas.asked) e.labels.push(e.document.source + place - first, 0);
    return e;
}

const float* UnmaskDecoder::logits(const std::vector<const MaskedCanvas*>& canvases) {
    std::vector<Example> examples;
    for (const MaskedCanvas* canvas : canvases) examples.push_back(example(*canvas));
    Batch batch = pack(examples, 1);
    objective_.give_masks(batch, options_);
    tape_.begin("unmask");
    const View z = net_.head_stack().logits(tape_, net_.hidden(tape_, batch))->view();
    logits_.resize(z.count());
    copy_bytes(z.data, z.device, logits_.data(), Device::cpu, z.bytes());
    tape_.end();
    return logits_.data();
}

}  // namespace masquerade
