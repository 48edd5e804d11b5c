// SPDX-License-Identifier: MIT
// Tests the memory plan: blocks that are in use at the same time do not overlap.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>

#include "engine/base/error.h"
#include "engine/base/random.h"
#include "engine/tape/plan.h"

using namespace masquerade;

namespace {

bool live_together(const ArenaBlock& a, const ArenaBlock& b) { return a.first <= b.last && b.first <= a.last; }
bool overlap(const ArenaBlock& a, const ArenaBlock& b) {
    return a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
}

// Returns the number of bytes in use at the busiest tick. No plan can need less.
std::size_t peak(const std::vector<ArenaBlock>& blocks, int ticks) {
    std::size_t most = 0;
    for (int t = 0; t < ticks; t++) {
        std::size_t live = 0;
        for (const ArenaBlock& b : blocks)
            if (b.first <= t && t <= b.last) live += (b.bytes + 63) / 64 * 64;
        most = std::max(most, live);
    }
    return most;
}

}  // namespace

TEST_CASE("plan: no two blocks that live together overlap, in 300 random logs") {
    for (std::uint64_t seed = 0; seed < 300; seed++) {
        Sequence random(seed, "plan");
        const int ticks = 1 + int(random.below(60)), count = int(random.below(80));
        std::vector<ArenaBlock> blocks;
        for (int i = 0; i < count; i++) {
            ArenaBlock b;
            b.bytes = random.below(8) == 0 ? 0 : 1 + random.below(random.below(2) ? 300 : 100000);
            b.first = int(random.below(std::uint32_t(ticks)));
            b.last = b.first + int(random.below(std::uint32_t(ticks - b.first)));
            blocks.push_back(b);
        }
        const std::size_t needed = place_blocks(blocks);
        std::size_t side_by_side = 0, clashes = 0, outside = 0;
        for (std::size_t i = 0; i < blocks.size(); i++) {
            side_by_side += (blocks[i].bytes + 63) / 64 * 64;
            outside += blocks[i].offset % 64 != 0 || blocks[i].offset + blocks[i].bytes > needed;
            for (std::size_t j = 0; j < i; j++)
                clashes += live_together(blocks[i], blocks[j]) && overlap(blocks[i], blocks[j]);
        }
        CAPTURE(seed);
        CHECK(clashes == 0);
        CHECK(outside == 0);
        CHECK(needed <= side_by_side);
        CHECK(needed >= peak(blocks, ticks));
    }
}

TEST_CASE("plan: blocks that follow one another share their place") {
    std::vector<ArenaBlock> blocks = {{1000, 0, 3}, {1000, 4, 7}, {1000, 8, 9}};
    CHECK(place_blocks(blocks) == 1024);
    blocks[1].first = 3;
    CHECK(place_blocks(blocks) == 2048);
}

TEST_CASE("arena: the second step of a bucket has the plan of the first") {
    Arena arena;
    auto step = [&](const std::string& bucket, std::size_t bytes) {
        std::vector<void*> at(3);
        std::vector<int> block(3);
        arena.begin_step(bucket);
        for (std::size_t i = 0; i < 3; i++) {  // each block is used until the next one is taken
            arena.tick();
            at[i] = arena.take(bytes, &block[i]);
            if (i > 0) arena.touch(block[i - 1]);
        }
        return at;
    };
    step("small", 1000);
    CHECK_FALSE(arena.planned());
    arena.end_step();
    CHECK(arena.unplanned_bytes() == 3 * 1024);
    CHECK(arena.planned_bytes() == 2048);
    auto a = step("small", 1000);
    CHECK(arena.planned());
    CHECK(a[0] == a[2]);
    CHECK(a[0] != a[1]);
    step("large", 5000);  // another bucket, which needs more room
    arena.end_step();
    CHECK(arena.planned_bytes() == 2 * 5056);
    auto b = step("small", 1000);
    CHECK(arena.planned());
    CHECK(b[0] == b[2]);
    CHECK(arena.plan("small")->size() == 3);
    CHECK(arena.plan("unknown") == nullptr);
}

TEST_CASE("arena: kept blocks lie side by side in one buffer, which grows with the largest step") {
    Arena arena(Device::cpu, Blocks::kept);
    auto step = [&](const std::vector<std::size_t>& sizes) {
        std::vector<char*> at;
        int block;
        arena.begin_step("any");
        for (std::size_t bytes : sizes) {
            at.push_back(static_cast<char*>(arena.take(bytes, &block)));
            CHECK(reinterpret_cast<std::uintptr_t>(at.back()) % 64 == 0);
            std::memset(at.back(), int(at.size()), bytes);
        }
        for (std::size_t i = 0; i < sizes.size(); i++)
            CHECK(std::count(at[i], at[i] + sizes[i], char(i + 1)) == std::ptrdiff_t(sizes[i]));
        arena.end_step();
        return at;
    };
    step({1000, 40});
    CHECK(arena.planned_bytes() == 1024 + 64);
    const auto small = step({40, 1000});
    CHECK(small[1] == small[0] + 64);
    step({40, 1000, 500});  // the planned memory has no room for the last block
    CHECK(arena.planned_bytes() == 64 + 1024 + 512);
    const auto all = step({40, 1000, 500}), again = step({500, 1000, 40});
    CHECK(all[2] == all[0] + 64 + 1024);
    CHECK(again[0] == all[0]);
}

namespace {

// The uses of a block in a step of random ops: the op that makes it and the last op that reads it (-1: none does).
struct Use {
    int made, read;
    bool retained;
};

// Runs a step of `uses` with blocks of random sizes, and checks that every block has its bytes until its last use.
void run_reused(Arena& arena, const std::string& bucket, const std::vector<Use>& uses, int ticks, Sequence& random) {
    struct Block {
        int number;
        std::vector<char> bytes;
        char* at;
    };
    std::vector<Block> blocks;
    const auto intact = [](const Block& b) { return std::memcmp(b.at, b.bytes.data(), b.bytes.size()) == 0; };
    arena.begin_step(bucket);
    for (int t = 0; t < ticks; t++) {
        arena.tick();
        for (const Use& use : uses) {
            if (use.made != t) continue;
            Block b{0, std::vector<char>(1 + random.below(random.below(2) ? 300 : 100000), char(blocks.size())),
                    nullptr};
            b.at = static_cast<char*>(arena.take(b.bytes.size(), &b.number));
            CHECK(reinterpret_cast<std::uintptr_t>(b.at) % 64 == 0);
            if (use.retained) arena.retain(b.number);
            blocks.push_back(b);
        }
        for (std::size_t i = 0; i < blocks.size(); i++)
            if (uses[i].read == t) {
                arena.touch(blocks[i].number);
                CHECK(intact(blocks[i]));
            }
        for (const Block& b : blocks)
            if (uses[std::size_t(b.number)].made == t) std::memcpy(b.at, b.bytes.data(), b.bytes.size());
    }
    for (const Block& b : blocks)
        if (uses[std::size_t(b.number)].retained) CHECK(intact(b));
    arena.end_step();
}

}  // namespace

TEST_CASE("arena: reused blocks keep their bytes until their last use, whatever their sizes, in 100 random programs") {
    for (std::uint64_t seed = 0; seed < 100; seed++) {
        CAPTURE(seed);
        Sequence random(seed, "reused");
        const int ticks = 1 + int(random.below(40));
        std::vector<Use> uses;
        for (int t = 0; t < ticks; t++)
            for (std::uint32_t more = random.below(4); more > 0; more--) {
                const int read = t + 1 + int(random.below(6));
                uses.push_back({t, read < ticks ? read : -1, random.below(20) == 0});
            }
        Arena arena(Device::cpu, Blocks::reused);
        for (int step = 0; step < 6; step++) run_reused(arena, "any", uses, ticks, random);
        CHECK_FALSE(arena.planned());
        CHECK(arena.planned_bytes() <= arena.unplanned_bytes());
    }
}

TEST_CASE("arena: reused blocks share memory from the second step of a bucket on") {
    Arena arena(Device::cpu, Blocks::reused);
    const std::vector<Use> chain = {{0, 1, false}, {1, 2, false}, {2, 3, false}, {3, 4, false}, {4, -1, true}};
    const auto step = [&](std::size_t bytes) {
        std::vector<void*> at;
        arena.begin_step("chain");
        for (int i = 0, block; i < int(chain.size()); i++) {
            arena.tick();
            at.push_back(arena.take(bytes, &block));
            if (i > 0) arena.touch(i - 1);
            if (chain[std::size_t(i)].retained) arena.retain(block);
        }
        arena.end_step();
        return at;
    };
    step(1000);
    CHECK(arena.planned_bytes() == 2 * 1024);
    for (std::size_t bytes : {1000, 5000, 200}) {
        step(bytes);  // its memory grows for the next step
        const auto at = step(bytes);
        CHECK(at[0] == at[2]);
        CHECK(at[1] == at[3]);
        CHECK(at[0] == at[4]);
        CHECK(at[0] != at[1]);
        CHECK(arena.planned_bytes() == (bytes == 1000 ? 2 * 1024 : 2 * 5056));
    }
}

TEST_CASE("arena: blocks of other ops than the plan's share no memory, and a use that the plan lacks is refused") {
    Sequence random(1, "other");
    const std::vector<Use> first = {{0, 1, false}, {1, 2, false}, {2, 3, false}, {3, -1, true}};
    // At tick 2, the first program makes one block, and the second program makes two. Their fourth blocks differ.
    const std::vector<Use> second = {{0, 1, false}, {1, 2, false}, {2, 3, false}, {2, 5, false}, {3, 5, false}};
    Arena arena(Device::cpu, Blocks::reused);
    for (int round = 0; round < 3; round++) {
        run_reused(arena, "any", first, 4, random);
        run_reused(arena, "any", first, 4, random);
        run_reused(arena, "any", second, 6, random);
        run_reused(arena, "any", second, 6, random);
    }
    arena.begin_step("late");
    int block, other;
    arena.tick(), arena.take(64, &block), arena.tick(), arena.take(64, &other), arena.touch(block);
    arena.end_step();
    arena.begin_step("late");
    arena.tick(), arena.take(64, &block), arena.tick(), arena.take(64, &other), arena.touch(block);
    arena.tick();
    CHECK_THROWS_WITH_AS(
        arena.touch(block),
        "arena: block 0 is used at tick 3, but at tick 2 for the last time in the step that planned bucket "
        "late; steps that run different ops need different buckets",
        Error);
    CHECK_THROWS_WITH_AS(arena.retain(block), doctest::Contains("was not retained when bucket late was planned"),
                         Error);
}

TEST_CASE("arena: what is retained keeps its bytes to the end of the step") {
    Arena arena;
    for (int repeat = 0; repeat < 2; repeat++) {
        arena.begin_step("a");
        int kept, other;
        char* memory = static_cast<char*>(arena.take(100, &kept));
        std::memset(memory, 7, 100);
        arena.retain(kept);
        for (int i = 0; i < 5; i++) {
            arena.tick();
            std::memset(arena.take(100, &other), 9, 100);
        }
        CHECK(std::count(memory, memory + 100, char(7)) == 100);
        arena.end_step();
    }
}

TEST_CASE("arena: a step that was given up says nothing of its bucket") {
    Arena arena;
    int block;
    arena.begin_step("a");
    arena.take(64, &block);  // as if an exception had ended the step
    for (int repeat = 0; repeat < 3; repeat++) {
        arena.begin_step("a");
        CHECK(arena.planned() == (repeat > 0));
        arena.take(64, &block);
        arena.take(128, &block);
        arena.end_step();
        REQUIRE(arena.plan("a") != nullptr);
        CHECK(arena.plan("a")->size() == 2);
    }
}

TEST_CASE("arena: what was not retained when its bucket was planned is refused later") {
    Arena arena;
    int block;
    arena.begin_step("a");
    arena.take(64, &block);
    arena.end_step();
    arena.begin_step("a");
    arena.take(64, &block);
    CHECK_THROWS_WITH_AS(arena.retain(block),
                         "arena: block 0 was not retained when bucket a was planned, and its place is used "
                         "again; retain it in every step",
                         Error);
}

TEST_CASE("arena: a bucket that does not name its sizes is refused") {
    Arena arena;
    int block;
    CHECK_THROWS_WITH_AS(arena.take(8, &block), "arena: a block is taken outside a step; call begin_step first", Error);
    arena.begin_step("a");
    arena.take(64, &block);
    arena.end_step();
    arena.begin_step("a");
    CHECK_THROWS_WITH_AS(arena.take(128, &block),
                         "arena: block 0 of 128 bytes differs from the plan of bucket a; a bucket must name everything "
                         "that sizes depend on",
                         Error);
}
