// SPDX-License-Identifier: MIT
// What a new UniLM starts with: the weights, sizes and vocabulary of a run, or of a BERT or RoFormer of Hugging Face's.
#pragma once
#include "models/unilm_run.h"

namespace masquerade {

class UniLmStart {
  public:
    virtual ~UniLmStart() = default;
    virtual std::string source() const = 0;  // for run.json
    virtual const Vocabulary& vocabulary() const = 0;
    // Makes the sizes those of the weights; what else is set stays.
    virtual void adopt(UniLmSettings& settings) const = 0;
    // BadInput where the sizes have been changed since.
    virtual void give_weights(UniLmRun& run) const = 0;

    static std::unique_ptr<UniLmStart> open(const std::string& path);
};

}  // namespace masquerade
