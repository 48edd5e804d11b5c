// SPDX-License-Identifier: MIT
// The inert tail that fills a batch up to its bucket.
#pragma once
#include <vector>

#include "models/batch/rows.h"

namespace masquerade {

inline int rounded_up(int n, int to) { return (n + to - 1) / to * to; }

// Lengths of the inert documents that fill a batch: documents up to a multiple of 8, rows, at least `at_least` new ones, to
// one of `pad_to`. None where pad_to is 1.
std::vector<int> fillers(int rows, int documents, int at_least, int pad_to);
// The name of the first of them; the next have smaller ones.
constexpr int first_filler = 0x7fffffff;

}  // namespace masquerade
