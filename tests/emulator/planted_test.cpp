// SPDX-License-Identifier: MIT
// Tests that the emulator does what CUDA defines, and that it reports the errors of a kernel.
#include "tests/emulator/planted.h"

#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

#include "engine/base/random.h"
#include "tests/emulator/emulator.h"

using namespace masquerade;
using emulator::AsCuda;
using emulator::Order;
using emulator::Settings;

namespace {

const Settings schedules[] = {
    {Order::forward}, {Order::reversed}, {Order::shuffled, 1}, {Order::shuffled, 2}, {Order::shuffled, 3}};

// Returns whole numbers, so that a sum is exact in any order.
std::vector<float> numbers(int n) {
    Sequence random(1, "planted");
    std::vector<float> x(static_cast<std::size_t>(n));
    for (float& each : x) each = float(random.below(1000));
    return x;
}

bool of_blocks(Fault fault) { return fault < Fault::no_warp_barrier; }

struct Outcome {
    std::string said;
    bool right = false;
};

constexpr int blocks = 3, rounds = 3;

Outcome outcome_of(Fault fault, bool shared, Settings settings) {
    AsCuda emulated(settings);
    const int width = of_blocks(fault) ? 64 : 32, each = of_blocks(fault) ? rounds : 1;
    const std::vector<float> x = numbers(blocks * width * each);
    std::vector<float> y(blocks, -1.f), expected(blocks, 0.f);
    for (std::size_t i = 0; i < x.size(); i++) expected[i / std::size_t(width) % blocks] += x[i];
    Outcome out;
    try {
        if (of_blocks(fault))
            fibers::block_sums(fault, shared, blocks, rounds, x.data(), y.data());
        else
            fibers::warp_sums(fault, blocks, x.data(), y.data());
    } catch (const Error& e) {
        out.said = e.what();
    }
    out.right = y == expected;
    return out;
}

}  // namespace

TEST_CASE("emulator: kernels without a fault give their sums in every order") {
    for (Settings settings : schedules)
        for (bool shared : {false, true}) {
            CAPTURE(int(settings.order));
            CHECK(outcome_of(Fault::none, shared, settings).said == "");
            CHECK(outcome_of(Fault::none, shared, settings).right);
        }
    AsCuda emulated;
    const std::vector<float> x = numbers(blocks * 32);
    std::vector<float> y(blocks);
    fibers::warp_sums(Fault::none, blocks, x.data(), y.data());
    for (int b = 0; b < blocks; b++) {
        float sum = 0;
        for (int i = 0; i < 32; i++) sum += x[std::size_t(b * 32 + i)];
        CHECK(y[std::size_t(b)] == sum);
    }
}

TEST_CASE("emulator: a fault is named, with kernel, block and thread") {
    struct {
        Fault fault;
        bool by_watching;  // whether the error is found only by watching every memory access
        const char* said;
    } all[] = {
        {Fault::no_barrier_before_reading, true, "of shared memory at 0x"},
        {Fault::no_barrier_before_writing, true, "; no barrier lies between"},
        {Fault::two_barriers, false, "a block comes to one barrier at a time"},
        {Fault::half_a_barrier, false, "a block comes to one barrier at a time"},
        {Fault::warp_waits_for_block, false, "no thread can go on"},
        {Fault::early_return, false, "thread (63,0,0) has finished"},
        {Fault::unwritten, true, "of shared memory at 0x"},
        {Fault::blocks_write_one_number, true, "wrote; nothing orders blocks"},
        {Fault::next_block_is_read, true, "nothing orders blocks"},
        {Fault::lent_stack, true, "that is another thread's own"},
        {Fault::past_the_end, true, "past the 256 bytes that the launch asked for"},
        {Fault::misaligned, false, "reaches 16 bytes at once, 4 bytes past a multiple of 16"},
        {Fault::no_warp_barrier, true, "of shared memory at 0x"},
        {Fault::shuffle_for_barrier, true, "; no barrier lies between"},
        {Fault::half_a_shuffle, false, "has finished"},
        {Fault::two_shuffles, false, "the lanes have parted"},
        {Fault::absent_lane, false, "reads lane 20, which takes no part"},
        {Fault::not_in_mask, false, "lane 7 is not in its own mask 0xffffff7f"},
    };
    for (const auto& planted : all) {
        if (planted.by_watching && !emulator::can_watch_memory()) continue;
        for (Settings settings : schedules) {
            CAPTURE(int(planted.fault));
            CAPTURE(int(settings.order));
            const std::string said = outcome_of(planted.fault, planted.fault == Fault::past_the_end, settings).said;
            CAPTURE(said);
            CHECK(said.find(planted.said) != std::string::npos);
            const std::string kernel = of_blocks(planted.fault) ? "block_sums_kernel" : "warp_sums_kernel";
            CHECK(said.find(kernel) != std::string::npos);
            CHECK(said.find('&') == std::string::npos);
            CHECK(said.find("block (") != std::string::npos);
            CHECK(said.find("thread (") != std::string::npos);
            // An error in an earlier launch does not affect later launches.
            CHECK(outcome_of(Fault::none, false, settings).right);
        }
    }
}

// Without watching, a missing barrier shows only as a wrong result, in some of the orders.
TEST_CASE("emulator: without a barrier some order spoils the result") {
    for (Fault fault : {Fault::no_barrier_before_reading, Fault::no_barrier_before_writing, Fault::no_warp_barrier}) {
        CAPTURE(int(fault));
        int spoiled = 0;
        for (Settings settings : schedules) {
            settings.watch_memory = false;
            const Outcome out = outcome_of(fault, false, settings);
            CHECK(out.said == "");
            spoiled += !out.right;
        }
        CHECK(spoiled > 0);
    }
    Settings blind;
    blind.watch_memory = false;
    // Wrong, because dynamic shared memory initially contains NaN.
    CHECK(!outcome_of(Fault::unwritten, true, blind).right);
}

TEST_CASE("emulator: each word of CUDA gives each lane what it should") {
    constexpr int lanes = 32;
    for (Settings settings : schedules) {
        AsCuda emulated(settings);
        std::vector<unsigned> to(16 * lanes);
        const unsigned given = 7;
        fibers::words(&given, to.data());
        for (int t = 0; t < lanes; t++) {
            auto of = [](int lane) { return unsigned(100 + lane); };
            const int group = t / 8 * 8;
            unsigned thirds = 0;
            for (int i = 0; i < lanes; i += 3) thirds |= 1u << i;
            const unsigned expected[16] = {of(3),
                                           of(group + (t + 1) % 8),
                                           of(t < 2 ? t : t - 2),
                                           of(t % 4 == 3 ? t - 3 : t),
                                           of(t % 8 < 4 ? t + 4 : t),
                                           of(t ^ 3),
                                           thirds,
                                           1,
                                           0,
                                           1,
                                           0,
                                           16,
                                           64,
                                           131,
                                           t < 8 ? of(t ^ 1) : 0,
                                           40 + unsigned(__builtin_popcount(of(t)))};
            for (int k = 0; k < 16; k++) {
                CAPTURE(t);
                CAPTURE(k);
                CHECK(to[std::size_t(16 * t + k)] == expected[k]);
            }
        }
    }
}

TEST_CASE("emulator: the verbs of a warp, whatever the length") {
    for (int n : {0, 1, 31, 32, 33, 100})
        for (bool add : {false, true}) {
            CAPTURE(n);
            AsCuda emulated;
            const std::vector<float> x = numbers(n);
            std::vector<float> found(4), y(std::size_t(2 * n) + 1, 7.f), stored(std::size_t(n) + 1, 7.f);
            int count = 0;
            fibers::verbs(n, x.data(), found.data(), y.data(), stored.data(), add, &count);
            float sum = 0, top = -INFINITY;
            int different = 0;
            for (std::size_t i = 0; i < x.size(); i++) {
                sum += x[i];
                top = std::fmax(top, x[i]);
                different +=
                    y[i] != x[i] || y[x.size() + i] != x[x.size() - 1 - i] || stored[i] != x[i] + (add ? 7 : 0);
            }
            CHECK(found == std::vector<float>{sum, sum, 2 * sum, top});
            CHECK(different == 0);
            CHECK(count == 1);
            CHECK(y.back() == 7);
            CHECK(stored.back() == 7);
        }
    const float with_nan[] = {1, NAN, 3};
    std::vector<float> found(4), y(6), stored(3);
    int count = 0;
    fibers::verbs(3, with_nan, found.data(), y.data(), stored.data(), false, &count);
    CHECK(std::isnan(found[3]));
}

// Working memory grows in powers of two, from 64 KiB on. In the emulator, the smaller block is freed when a larger one
// is needed.
TEST_CASE("emulator: the bytes that ops work in are counted") {
    CHECK(fibers::growth_by(0) == 0);
    CHECK(fibers::growth_by(1) == 65536);
    CHECK(fibers::growth_by(65536) == 0);
    CHECK(fibers::growth_by(65537) == 65536);
    CHECK(fibers::growth_by(500000) == 524288 - 131072);
    CHECK(fibers::growth_by(5) == 0);
}
