// SPDX-License-Identifier: MIT
// Rows of numbers that a vector holds, as the ops take them.
#pragma once
#include <vector>

#include "engine/tensor/view.h"

namespace masquerade {

// f32; what is read through it is not written. `numbers` must outlive the view.
inline View view_of(const std::vector<float>& numbers, const Shape& shape, const char* path) {
    View v;
    v.data = const_cast<float*>(numbers.data());
    v.shape = shape;
    v.path = path;
    return v;
}

}  // namespace masquerade
