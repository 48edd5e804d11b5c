// SPDX-License-Identifier: MIT
#include "models/writing/shortlists.h"

#include "engine/ops/ops.h"
#include "engine/ops/shortlist.h"
#include "engine/tensor/copy.h"

namespace masquerade {

void Shortlists::prepare(int rows, int width, int V, Device device) {
    rows_ = rows, width_ = width, parts_ = int(logit_parts(V));
    numbers_.resize(rows * std::size_t(2 * width_ + parts_));
    const std::size_t bytes = numbers_.size() * sizeof(float);
    if (bytes > memory_.bytes()) memory_ = Buffer(bytes, device);
}

void Shortlists::compute(const View& logits) {
    float* const best = static_cast<float*>(memory_.data());
    float* const ids = best + std::int64_t(rows_) * width_;
    float* const parts = ids + std::int64_t(rows_) * width_;
    const Shape lists{rows_, width_};
    shortlist(logits, {best, DType::f32, logits.device, lists, "shortlists.best"},
              {ids, DType::f32, logits.device, lists, "shortlists.ids"},
              {parts, DType::f32, logits.device, {rows_, parts_}, "shortlists.parts"});
}

void Shortlists::read() {
    copy_bytes(memory_.data(), memory_.device(), numbers_.data(), Device::cpu, numbers_.size() * sizeof(float));
}

}  // namespace masquerade
