// SPDX-License-Identifier: MIT
// A built-in grammar of English questions, for machines without a package catalogue.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace masquerade {

// `count` distinct questions, the same for the same seed on every machine.
std::vector<std::string> grammar_questions(std::uint64_t seed, int count);

// questions.{train,dev,test}.txt and SOURCE.json, and a table of them. A question is held out by its own hash.
std::string write_grammar_corpus(std::uint64_t seed, const std::string& folder);

}  // namespace masquerade
