// SPDX-License-Identifier: MIT
// Finding the fastest way of another program to do a piece of work.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace masquerade {

using Variant = std::map<std::string, std::string>;  // what can be chosen -> the choice

struct VariantAxis {
    std::string name;
    std::vector<std::string> choices;  // the first is where the search begins
};

struct TriedVariant {
    Variant variant;
    double seconds = 0;
    std::string failed;  // why it did not run; empty: it did
};

// Seconds of the work; may give up once it is clear that they are more than `limit`. Throws what ends the search.
using TryVariant = std::function<TriedVariant(const Variant&, double limit)>;

struct VariantSearch {
    std::vector<TriedVariant> tried;
    int best = -1;  // of tried; -1: nothing ran

    const TriedVariant* fastest() const { return best < 0 ? nullptr : &tried[std::size_t(best)]; }
    void add(TriedVariant one);
};

// One axis after the other: its choices with the best of the other axes, of which the fastest stays. Not all
// combinations: what is best here is nearly always best there.
void search_variants(VariantSearch& search, const std::vector<VariantAxis>& axes, const TryVariant& attempt);

// "mode=compiled,attention=sdpa": what may be chosen of PyTorch by hand; BadUsage, with the list, for anything else.
Variant variant_named(const std::string& text);
std::string choices_of_variants();  // "mode=eager|layers compiled|compiled, ..."

// "compiled, explicit attention, ..."
std::string describe(const Variant& variant);

}  // namespace masquerade
