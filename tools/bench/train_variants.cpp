// SPDX-License-Identifier: MIT
#include "tools/bench/train_variants.h"

#include <limits>

namespace masquerade {

void VariantSearch::add(TriedVariant one) {
    tried.push_back(std::move(one));
    const TriedVariant& last = tried.back();
    if (last.failed.empty() && (best < 0 || last.seconds < fastest()->seconds)) best = int(tried.size()) - 1;
}

void search_variants(VariantSearch& search, const std::vector<VariantAxis>& axes, const TryVariant& attempt) {
    constexpr double hopeless = 1.2;  // times the fastest so far
    auto run = [&](const Variant& variant) {
        const TriedVariant* best = search.fastest();
        search.add(
            attempt(variant, best ? hopeless * best->seconds : std::numeric_limits<double>::infinity()));
        return search.tried.back();
    };
    Variant first;
    for (const VariantAxis& axis : axes) first[axis.name] = axis.choices.front();
    TriedVariant here = run(first);
    for (const VariantAxis& axis : axes) {
        const Variant before = here.variant;
        for (std::size_t i = 1; i < axis.choices.size(); i++) {
            Variant next = before;
            next[axis.name] = axis.choices[i];
            TriedVariant found = run(next);
            if (!found.failed.empty()) continue;
            if (!here.failed.empty() || found.seconds < here.seconds) here = found;
        }
    }
}

}  // namespace masquerade
