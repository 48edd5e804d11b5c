// SPDX-License-Identifier: MIT
#include "tools/bench/train_variants.h"

#include <cmath>

#include "doctest/doctest.h"
#include "engine/base/error.h"

using namespace masquerade;

namespace {

// Seconds: 8, less for the better choices; combinations that do not run have none.
struct Work {
    std::vector<Variant> asked;
    std::vector<double> limits;

    TriedVariant operator()(const Variant& v, double limit) {
        asked.push_back(v);
        limits.push_back(limit);
        if (v.at("memory") == "missing") return {v, 0, "not here"};
        double seconds = 8;
        if (v.at("memory") == "kept") seconds -= 2;
        if (v.at("mode") == "fast") seconds -= 1;
        if (v.at("mode") == "slow") seconds += 1;
        return {v, seconds, ""};
    }
};

const std::vector<VariantAxis> axes = {{"memory", {"plain", "missing", "kept"}}, {"mode", {"slow", "fast"}}};

}  // namespace

TEST_CASE("train variants: one axis after the other, the fastest stays") {
    Work work;
    VariantSearch search;
    search_variants(search, axes, std::ref(work));
    REQUIRE(search.fastest());
    CHECK(search.fastest()->variant == Variant{{"memory", "kept"}, {"mode", "fast"}});
    CHECK(search.fastest()->seconds == 5);
    CHECK(work.asked.size() == 4);  // one for the first choices, one for each further one
    CHECK(work.asked.back().at("memory") == "kept");
    CHECK(search.tried[1].failed == "not here");
}

TEST_CASE("train variants: a limit comes with every try, from the fastest of all so far") {
    Work work;
    VariantSearch search;
    search.add({{{"memory", "another program's"}}, 1, ""});
    search_variants(search, axes, std::ref(work));
    for (double limit : work.limits) CHECK(limit < 1.5);
    CHECK(search.fastest()->seconds == 1);

    Work first;
    VariantSearch fresh;
    search_variants(fresh, axes, std::ref(first));
    CHECK(std::isinf(first.limits.front()));
    CHECK(first.limits.back() < 12);
}

TEST_CASE(
    "train variants: where the first choices fail the others still count; where all fail nothing does") {
    Work work;
    VariantSearch search;
    search_variants(search, {{"memory", {"missing", "plain"}}, {"mode", {"fast"}}}, std::ref(work));
    REQUIRE(search.fastest());
    CHECK(search.fastest()->variant.at("memory") == "plain");

    VariantSearch nothing;
    search_variants(nothing, {{"memory", {"missing"}}, {"mode", {"slow", "fast"}}}, std::ref(work));
    CHECK(nothing.fastest() == nullptr);
    CHECK(nothing.tried.size() == 2);
}

TEST_CASE("variants: settings by name; what there is not is refused with the list") {
    CHECK(variant_named("").empty());
    const Variant found = variant_named("mode=layers compiled,attention=sdpa");
    CHECK(found == Variant{{"mode", "layers compiled"}, {"attention", "sdpa"}});
    for (const char* wrong : {"mode", "mode=", "mode=fast", "sdpa", "=", "mode=eager,loss=sdpa"})
        CHECK_THROWS_WITH_AS(variant_named(wrong),
                             doctest::Contains("attention=explicit|sdpa, optimiser=single|"), BadUsage);
}
