// SPDX-License-Identifier: MIT
#include "tools/bench/train_variants.h"

#include <algorithm>
#include <limits>
#include <sstream>

#include "engine/base/error.h"

namespace masquerade {
namespace {

// What can be chosen by hand.
const std::vector<VariantAxis>& named_axes() {
    static const std::vector<VariantAxis> axes = {{"mode", {"eager", "layers compiled", "compiled"}},
                                                  {"attention", {"explicit", "sdpa"}},
                                                  {"optimiser", {"single", "foreach", "fused"}},
                                                  {"loss", {"logits", "chunked"}}};
    return axes;
}

}  // namespace

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

Variant variant_named(const std::string& named) {
    Variant variant;
    std::istringstream in(named);
    for (std::string one; std::getline(in, one, ',');) {
        const std::size_t sign = std::min(one.find('='), one.size());
        const std::string name = one.substr(0, sign), choice = sign < one.size() ? one.substr(sign + 1) : "";
        bool known = false;
        for (const VariantAxis& axis : named_axes())
            known |= name == axis.name && std::count(axis.choices.begin(), axis.choices.end(), choice) > 0;
        if (!known)
            throw BadUsage(text("--variant: there is no ", one, "; there are ", choices_of_variants()));
        variant[name] = choice;
    }
    return variant;
}

std::string choices_of_variants() {
    std::string all;
    for (const VariantAxis& axis : named_axes()) {
        all += (all.empty() ? "" : ", ") + axis.name;
        for (const std::string& choice : axis.choices)
            all += (choice == axis.choices[0] ? "=" : "|") + choice;
    }
    return all;
}

std::string describe(const Variant& variant) {
    std::string all;
    for (const char* axis : {"mode", "attention", "loss", "optimiser", "allocator"})
        if (const auto choice = variant.find(axis); choice != variant.end())
            all += (all.empty() ? "" : ", ") + choice->second +
                   (choice->first == "attention" || choice->first == "loss" ? " " + choice->first
                    : choice->first == "optimiser"                          ? " AdamW"
                                                                            : "");
    return all;
}

}  // namespace masquerade
