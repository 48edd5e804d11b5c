// SPDX-License-Identifier: MIT
// Makes texts that are likely to cause trouble, from random numbers. The same seed gives the same texts on every
// machine.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace masquerade::fuzz {

class Grammar {
  public:
    explicit Grammar(std::uint64_t seed) : state_(seed) {}

    std::size_t below(std::size_t n) { return n == 0 ? 0 : std::size_t(random() % n); }

    // Returns a new text, usually of a few bytes, sometimes of very many.
    std::string text();

    // Returns an earlier text with changes in a few places; parts may come from `other`.
    std::string mutated(std::string text, const std::string& other);

  private:
    std::uint64_t random();  // SplitMix64
    bool one_in(std::size_t n) { return below(n) == 0; }
    void append_piece(std::string& text);
    void append_point(std::string& text);
    void append_run(std::string& text);

    std::uint64_t state_;
    bool tame_ = false;  // whether the text has only characters for which the vocabulary has tokens
};

}  // namespace masquerade::fuzz
