// SPDX-License-Identifier: MIT
// Base class of the decoders of insertion and of masked diffusion. They write the target of a source in any order. Its
// canvas consists of the tokens that are already there. If the model has an encoder, each source is encoded once.
#pragma once
#include <memory>

#include "models/writing/seq2seq_decoder.h"

namespace masquerade {

class CanvasDecoder {
  protected:
    // `options` are the options of `objective` that were used in training.
    CanvasDecoder(const TargetNet& net, const Objective& objective, const ObjectiveOptions& options)
        : net_(net),
          objective_(objective),
          options_(options),
          arena_(net.head_stack().device(), net.head_stack().blocks()),
          tape_(arena_, net.head_stack().storage()) {
        if (const EncoderDecoder* two = net.two_stacks()) reader_ = std::make_unique<EncoderReader>(*two, options);
    }
    // Makes a batch with its masks. If the sources are encoded, document i belongs to source sources[i]. If `sources`
    // is empty, the batch does not use what is stored.
    Batch batch_of(const std::vector<Example>& examples, const std::vector<int>& sources = {}) const {
        Batch batch = pack(examples, 1);
        if (reader_ && !memory_.layers.empty() && !sources.empty()) reader_->attach(batch, memory_, sources);
        objective_.give_masks(batch, options_);
        return batch;
    }

    const TargetNet& net_;
    const Objective& objective_;
    const ObjectiveOptions options_;
    Arena arena_;
    Tape tape_;
    Sentences sources_;
    std::unique_ptr<EncoderReader> reader_;  // null if the model has one stack
    Memory memory_;                          // the encoded sources; without layers: nothing is stored
};

}  // namespace masquerade
