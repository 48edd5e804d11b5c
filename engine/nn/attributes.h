// SPDX-License-Identifier: MIT
// What a record needs beside its tensors.
#pragma once
#include <memory>
#include <utility>

#include "engine/tensor/view.h"

namespace masquerade {

template <class T>
std::shared_ptr<const void> attributes(T value) {
    return std::make_shared<const T>(std::move(value));
}

struct IndexAttributes {
    Ints ints;
};

}  // namespace masquerade
