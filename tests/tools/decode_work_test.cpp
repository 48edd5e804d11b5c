// SPDX-License-Identifier: MIT
#include "tools/bench/decode_work.h"

#include <doctest/doctest.h>

#include <set>

using namespace masquerade;

namespace {

BeamSizes small(int sources, int beams) {
    BeamSizes s;
    s.model.vocabulary = 50;
    s.model.width = 16;
    s.model.heads = 2;
    s.model.inner = 32;
    s.model.layers = 2;
    s.model.rotary = false;
    s.model.deviation = 1;
    s.source_tokens = 7;
    s.target_tokens = 5;
    s.sources = sources;
    s.beams = beams;
    return s;
}

}  // namespace

TEST_CASE("decode work: with a cache and without, the same targets with the same scores, all full") {
    for (int beams : {1, 3}) {
        BeamWork work(small(66, beams), Device::cpu, 5);  // more than are written at a time
        const Written cached = work.with_cache();
        REQUIRE(cached.size() == 66);
        CHECK(same(cached, work.without_cache()));
        std::set<std::vector<int>> different;
        for (const auto& hypotheses : cached) {
            CHECK(hypotheses.front().tokens.size() == 5);
            CHECK_FALSE(hypotheses.front().ended);
            different.insert(hypotheses.front().tokens);
        }
        CHECK(different.size() > 8);  // what is written depends on the source
        CHECK_FALSE(same(cached, BeamWork(small(66, beams), Device::cpu, 6).with_cache()));
    }
}

TEST_CASE("decode work: a prefix sees its source and what was written before, without a cache too") {
    BeamWork three(small(9, 3), Device::cpu, 5), one(small(9, 1), Device::cpu, 5);
    const Written beams = three.without_cache(), greedy = one.without_cache();
    int better = 0;
    for (std::size_t i = 0; i < beams.size(); i++) better += beams[i].front().score > greedy[i].front().score;
    CHECK(better > 0);
    for (std::size_t i = 0; i < beams.size(); i++) CHECK(beams[i].size() == 1);
}
