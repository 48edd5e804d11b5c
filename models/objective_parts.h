// SPDX-License-Identifier: MIT
// What the making of objectives shares, of one stack and of two.
#pragma once
#include "engine/base/random.h"
#include "models/objective.h"

namespace masquerade {

bool is_special(int id, const ObjectiveOptions& options);

// What is read where `id` is hidden: [MASK], or by the shares `kept` and `random` the token itself or any other.
int hidden_as(int id, Sequence& random, const ObjectiveOptions& options);

// Refuses what objective `name` with these traits cannot use.
void expect_fitting(const char* name, unsigned traits, const Sentence& sentence,
                    const ObjectiveOptions& options);

int rounded_up(int n, int to);

// Lengths of the inert documents that fill a batch: documents up to a multiple of 8, rows, at least `at_least` new ones, to
// one of `pad_to`. None where pad_to is 1.
std::vector<int> fillers(int rows, int documents, int at_least, int pad_to);
// The name of the first of them; the next have smaller ones.
constexpr int first_filler = 0x7fffffff;

void append(TokenRows& all, const TokenRows& rows, int row);

}  // namespace masquerade
