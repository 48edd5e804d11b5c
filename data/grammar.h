// SPDX-License-Identifier: MIT
// A built-in grammar that generates English questions: training text for machines without a package catalogue.
#pragma once
#include "data/text.h"

namespace masquerade {

// Returns `count` distinct questions. Equal seeds give the same questions on every machine.
Strings grammar_questions(std::uint64_t seed, int count);

// Writes questions.{train,dev,test}.txt and SOURCE.json, and returns a table that lists the files. The hash of a
// question determines the split to which the question belongs.
std::string write_grammar_corpus(std::uint64_t seed, const std::string& folder);

}  // namespace masquerade
