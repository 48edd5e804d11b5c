// SPDX-License-Identifier: MIT
#include "models/writing/unmask_decoder.h"

#include <algorithm>

#include "engine/tensor/copy.h"

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
    const Sentence& s = *sources_.at(canvas.source);
    const bool two_stacks = objective_.has(Objective::encoder);
    const int read = text_ ? 1 : int(s.ids.size()), places = int(canvas.tokens.size());
    const int type = text_ ? options_.source_type : options_.target_type;
    const int start = two_stacks ? 0 : text_ ? 1 : options_.target_position(read);
    // In blocks, the context grows by the places before the block that is asked, and the places behind it have no rows.
    const bool blocks = objective_.has(Objective::ranks);
    const int block = blocks ? options_.diffusion.block : places;
    const int first = canvas.asked.at(0) / block * block, end = std::min(first + block, places);
    Example e;
    for (int i = 0; i < read; i++) (two_stacks ? e.source : e.rows).push(s.ids[i], options_.source_type, i, s.name);
    const int context = e.rows.count();
    for (int i = 0; i < end; i++) {
        const int token = canvas.tokens[i];
        e.rows.push(token == MaskedCanvas::hidden ? options_.mask : token, type, start + i, s.name);
    }
    for (int place : canvas.asked) e.labels.push(context + place, 0);
    e.document = {context + first, end - first};
    if (blocks) e.rank.assign(context, -1);
    for (int i = 0; i < end && blocks; i++) e.rank.push_back(i / block);
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
