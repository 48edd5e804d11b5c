// SPDX-License-Identifier: MIT
// Tests memory for tensors: its alignment, requests that are refused, and the peak memory of the process.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <memory>

#include "engine/base/memory.h"

using namespace masquerade;

namespace {

struct Release {
    std::size_t bytes;
    void operator()(void* memory) const { release_aligned(memory, bytes); }
};
using Memory = std::unique_ptr<void, Release>;
Memory memory_of(std::size_t bytes) { return {allocate_aligned(bytes), Release{bytes}}; }
std::uintptr_t address(const Memory& memory) { return reinterpret_cast<std::uintptr_t>(memory.get()); }

constexpr std::size_t mib = std::size_t(1) << 20;

}  // namespace

TEST_CASE("memory: small blocks begin on a cache line, large ones on a page of 2 MiB") {
    for (std::size_t bytes : {std::size_t(0), std::size_t(1), std::size_t(65), 2 * mib - 1}) {
        Memory memory = memory_of(bytes);
        REQUIRE(memory);
        CHECK(address(memory) % 64 == 0);
        std::memset(memory.get(), 1, bytes);
    }
    for (std::size_t bytes : {2 * mib, 5 * mib + 1, 64 * mib - 1, 64 * mib, 67 * mib + 1}) {
        Memory memory = memory_of(bytes);
        REQUIRE(memory);
        CHECK(address(memory) % (2 * mib) == 0);
        std::memset(memory.get(), 1, bytes);
    }
}

TEST_CASE("memory: what is said to be fresh zeros is, also where a block of the size was written and released") {
    for (int time = 0; time < 2; time++) {
        Memory memory = memory_of(64 * mib);
        REQUIRE(memory);
        char* bytes = static_cast<char*>(memory.get());
        if (is_zero_when_fresh(64 * mib)) CHECK(std::all_of(bytes, bytes + 64 * mib, [](char c) { return c == 0; }));
        std::memset(bytes, 1, 64 * mib);
    }
    CHECK(!is_zero_when_fresh(mib));
}

TEST_CASE("memory: a size that cannot be rounded up is refused") {
    for (std::size_t less : {std::size_t(0), std::size_t(1), mib}) CHECK(!memory_of(SIZE_MAX - less));
}

TEST_CASE("memory: the peak counts what was written and is gone") {
    const std::int64_t before = peak_resident_bytes();
    {
        Memory memory = memory_of(std::size_t(before) + 64 * mib);
        REQUIRE(memory);
        std::memset(memory.get(), 1, std::size_t(before) + 64 * mib);
    }
    CHECK(peak_resident_bytes() >= before + std::int64_t(64 * mib));
}
