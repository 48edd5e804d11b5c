// SPDX-License-Identifier: MIT
// The declarations that the files of the op table share.
#pragma once
#include "engine/nn/functions.h"
#include "engine/check/ladder_record.h"

namespace masquerade::ladder {

// `count` whole numbers in [0, bound), with repeats.
std::vector<int> some_below(int count, int bound, std::uint32_t salt);
// `count` different ones, in no order.
std::vector<int> different_below(int count, int bound);
// Normal numbers of this deviation.
Draw scaled(double deviation);

std::vector<Op> attention_ops();

}  // namespace masquerade::ladder
