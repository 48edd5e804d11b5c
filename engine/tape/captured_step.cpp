// SPDX-License-Identifier: MIT
#include "engine/tape/captured_step.h"

#include "engine/tensor/runtime.h"

namespace masquerade {

CapturedStep::CapturedStep(const Tape& tape, bool wanted)
    : capturing_(wanted && tape.device != Device::cpu && tape.planned() && !tape.observed()) {
    if (capturing_) cuda_runtime().begin_graph();
}

CapturedStep::~CapturedStep() {
    if (capturing_) cuda_runtime().abandon_graph();
}

void CapturedStep::run(const std::string& bucket) {
    if (!capturing_) return;
    capturing_ = false;
    cuda_runtime().launch_graph(bucket.c_str());
}

}  // namespace masquerade
