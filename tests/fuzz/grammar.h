// SPDX-License-Identifier: MIT
// Text that asks for trouble, from random numbers: the same for the same seed on every machine.
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

    // A new text, of a few bytes as a rule, and now and then of very many.
    std::string text();

    // An earlier text, changed in a few places.
    std::string mutated(std::string text, const std::string& other);

  private:
    std::uint64_t random();  // SplitMix64
    bool one_in(std::size_t n) { return below(n) == 0; }
    void append_piece(std::string& text);
    void append_point(std::string& text);
    void append_run(std::string& text);

    std::uint64_t state_;
    bool tame_ = false;  // only what the vocabulary has tokens for
};

}  // namespace masquerade::fuzz
