// SPDX-License-Identifier: MIT
// Decides which thread runs when: runs the blocks, and the threads of a block between its barriers.
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <numeric>

#include "tests/emulator/block.h"

// These variables are in a separate section, so that memory.cpp can distinguish them from shared memory.
#define BUILT_IN __attribute__((section("emulator_built_in")))
BUILT_IN uint3 threadIdx, blockIdx;
BUILT_IN dim3 blockDim, gridDim;

namespace masquerade::emulator {

__thread Thread* running = nullptr;
Counts counted;
Places places;

namespace {

constexpr int most_threads = 1024;
constexpr std::size_t bytes_of_stacks = most_threads * Fiber::bytes;  // only pages that are touched take memory
constexpr std::size_t most_shared = 227 << 10;  // the maximum of a block on compute capability 9.0, in bytes

// The data of a launch. Only one launch runs at a time, because shared memory is static.
struct Launch {
    std::mutex one;
    const char* kernel = "";
    void (*body)(const void*) = nullptr;
    const void* context = nullptr;
    std::string fault;
    Block block;
    std::vector<std::unique_ptr<Fiber>> fibers;
    std::vector<Fiber*> free;
    std::vector<char> shared = std::vector<char>(most_shared + 128);
    std::uint32_t random = 0;

    std::uint32_t draw(std::uint32_t below) {  // a linear congruential generator, of which the upper bits are used
        random = random * 1664525u + 1013904223u;
        return std::uint32_t((std::uint64_t(random) * below) >> 32);
    }
    // Returns an order of the numbers 0 to n - 1; n is at most 32.
    std::array<int, 32> order_of(int n) {
        std::array<int, 32> all{};
        auto* order = all.data();
        std::iota(order, order + n, 0);
        if (settings().order == Order::reversed) std::reverse(order, order + n);
        if (settings().order == Order::shuffled)
            for (int i = n; i > 1; i--) std::swap(order[i - 1], order[draw(std::uint32_t(i))]);
        return all;
    }
};

Launch& launch() {
    static Launch the_one;
    return the_one;
}

void run_on_fiber() {
    Launch& l = launch();
    l.body(l.context);
    running->state = Thread::State::finished;
}

// Runs the thread until it waits or has finished.
void resume(Thread& t) {
    Launch& l = launch();
    if (!t.fiber) {
        if (l.free.empty()) {
            const std::size_t n = l.fibers.size();
            l.fibers.push_back(
                std::make_unique<Fiber>(const_cast<char*>(places.stacks.begin) + n * Fiber::bytes, n % 16 * 256));
            l.free.push_back(l.fibers.back().get());
        }
        t.fiber = l.free.back();
        l.free.pop_back();
        t.stack = {t.fiber->stack(), t.fiber->stack() + Fiber::bytes};
        t.fiber->start(run_on_fiber);
    }
    t.state = Thread::State::ready;
    threadIdx = t.index;
    running = &t;
    counted.switches++;
    t.fiber->enter();
    running = nullptr;
    if (!l.fault.empty()) throw Error(l.fault);
    if (t.state != Thread::State::finished) return;
    Warp& warp = l.block.warps[std::size_t(t.warp)];
    warp.ready &= ~(1u << t.lane);
    warp.finished |= 1u << t.lane;
    l.block.finished = &t;
    l.free.push_back(t.fiber);
    t.fiber = nullptr;
}

// Runs the lanes of a warp until all of them wait for threads of other warps or have finished. In a shuffled order, it
// sometimes stops earlier.
bool run_warp(Warp& warp, Thread* lanes, const std::array<int, 32>& order) {
    bool moved = false;
    while (warp.ready) {
        for (int lane : order)
            if (warp.ready >> lane & 1u) resume(lanes[lane]), moved = true;
        if (settings().order == Order::shuffled && launch().draw(4) == 0) break;
    }
    return moved;
}

void run_block(uint3 index, dim3 size, std::size_t shared_bytes) {
    Launch& l = launch();
    Block& b = l.block;
    const int count = int(size.x * size.y * size.z);
    b.threads.assign(std::size_t(count), Thread{});
    b.warps.assign(std::size_t(count + 31) / 32, Warp{});
    b.arrived = b.votes = 0;
    b.first = b.finished = nullptr;
    for (int i = 0; i < count; i++) {
        Thread& t = b.threads[std::size_t(i)];
        const unsigned n = unsigned(i);
        t.index = {n % size.x, n / size.x % size.y, n / size.x / size.y};
        t.number = i, t.warp = i / 32, t.lane = i % 32;
        b.warps[std::size_t(t.warp)].exists |= 1u << t.lane;
        b.warps[std::size_t(t.warp)].ready |= 1u << t.lane;
    }
    blockIdx = index;
    std::memset(const_cast<char*>(places.asked.begin), 0xff, shared_bytes);  // the bytes of NaN
    memory::start_block(index);
    for (bool left = true; left;) {
        bool moved = false;
        const std::array<int, 32> order = l.order_of(int(b.warps.size()));
        for (std::size_t i = 0; i < b.warps.size(); i++) {
            const std::size_t w = std::size_t(order[i]);
            if (b.warps[w].ready) moved |= run_warp(b.warps[w], &b.threads[w * 32], l.order_of(32));
        }
        left = false;
        const Thread* stuck = nullptr;
        for (const Warp& w : b.warps) {
            unsigned alive = w.exists & ~w.finished;
            left = left || alive != 0;
            if (alive && !stuck) stuck = &b.threads[std::size_t((&w - b.warps.data()) * 32 + __builtin_ctz(alive))];
        }
        if (moved || !left) continue;
        std::string all = text(l.kernel, ": block ", name_of(index), ": no thread can go on: ", what_of(*stuck));
        for (const Thread& t : b.threads)
            if (t.state == Thread::State::waits && !same(t.place, stuck->place)) {
                all += "; " + what_of(t);
                break;
            }
        if (b.finished) all += "; " + what_of(*b.finished);
        throw Error(all);
    }
}

// Forgets the threads of a block after an error. Their stacks are abandoned in any order, because none of them is
// unwound.
void forget_block() {
    Launch& l = launch();
    running = nullptr;
    for (Thread& t : l.block.threads)
        if (t.fiber) l.free.push_back(t.fiber);
    l.block.threads.clear();
}

}  // namespace

Settings& settings() {
    static Settings chosen;
    return chosen;
}
const Counts& counts() { return counted; }
std::string name_of(const uint3& i) { return text("(", i.x, ",", i.y, ",", i.z, ")"); }
Block& current_block() { return launch().block; }

void fail(const std::string& what) {
    launch().fault =
        text(launch().kernel, ": block ", name_of(blockIdx), ", thread ", name_of(running->index), ": ", what);
    running->fiber->leave(true);
    __builtin_unreachable();
}

void access_atomically(const void* address, std::size_t size) {
    if (running) memory::atomic(address, size);
}

void expect_aligned(const void* address, std::size_t size) {
    const std::size_t past = reinterpret_cast<std::uintptr_t>(address) % size;
    if (running && past != 0)
        fail(text("reaches ", size, " bytes at once, ", past, " bytes past a multiple of ", size));
}

void* dynamic_shared_memory() { return const_cast<char*>(places.asked.begin); }

void run(const char* kernel, dim3 blocks, dim3 threads, std::size_t shared_bytes, void (*body)(const void*),
         const void* context, std::size_t context_bytes) {
    Launch& l = launch();
    const std::lock_guard<std::mutex> lock(l.one);
    const std::uint64_t count = std::uint64_t(blocks.x) * blocks.y * blocks.z;
    const std::uint64_t size = std::uint64_t(threads.x) * threads.y * threads.z;
    if (count == 0 || blocks.y > 65535 || blocks.z > 65535 || size == 0 || size > most_threads || threads.z > 64 ||
        shared_bytes > most_shared)
        throw Error(kernel, ": launched on (", blocks.x, ",", blocks.y, ",", blocks.z, ") blocks of (", threads.x, ",",
                    threads.y, ",", threads.z, ") threads with ", shared_bytes,
                    " bytes of shared memory; expected 1 to ", most_threads,
                    " threads, some blocks, at most 65535 in y and z, and ", most_shared, " bytes");
    if (!places.stacks.begin) {
        void* memory =
            mmap(nullptr, bytes_of_stacks, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (memory == MAP_FAILED) throw Error("no memory for ", most_threads, " stacks of ", Fiber::bytes, " bytes");
        places.stacks = {static_cast<char*>(memory), static_cast<char*>(memory) + bytes_of_stacks};
    }
    l.kernel = kernel, l.body = body, l.context = context;
    l.fault.clear();
    l.random = settings().seed * 2654435761u + 1;
    // Aligns the memory to 128 bytes, as CUDA does.
    const char* from = l.shared.data() + (128 - reinterpret_cast<std::uintptr_t>(l.shared.data()) % 128) % 128;
    places.shared = {from, from + most_shared};
    places.asked = {from, from + shared_bytes};
    places.parameters = {static_cast<const char*>(context), static_cast<const char*>(context) + context_bytes};
    places.watched = settings().watch_memory;
    gridDim = blocks, blockDim = threads;
    counted.launches++;
    memory::start_launch();
    try {
        for (std::uint64_t i = 0; i < count; i++) {
            std::uint64_t n = settings().order == Order::reversed ? count - 1 - i : i;
            run_block({unsigned(n % blocks.x), unsigned(n / blocks.x % blocks.y), unsigned(n / blocks.x / blocks.y)},
                      threads, shared_bytes);
        }
    } catch (...) {
        forget_block();
        throw;
    }
}

}  // namespace masquerade::emulator
