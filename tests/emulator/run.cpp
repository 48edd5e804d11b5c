// SPDX-License-Identifier: MIT
// Who runs when: the threads of a block between its barriers, and the lanes of a warp where they meet.
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <numeric>

#include "tests/emulator/block.h"

// In a section of their own, so that memory.cpp can tell them from shared memory.
#define BUILT_IN __attribute__((section("emulator_built_in")))
BUILT_IN uint3 threadIdx, blockIdx;
BUILT_IN dim3 blockDim, gridDim;

namespace masquerade::emulator {

thread_local Thread* running = nullptr;
Counts counted;
Places places;

namespace {

constexpr int most_threads = 1024;
constexpr std::size_t bytes_of_stacks = most_threads * Fiber::bytes;  // only what is touched takes memory
constexpr std::size_t most_shared = 227 << 10;  // bytes that a block may ask for on compute capability 9.0

struct Warp {
    unsigned exists, ready, finished;  // bits by lane
    unsigned meets;                    // who waits for other lanes
};

struct Block {
    std::vector<Thread> threads;
    std::vector<Warp> warps;
    int arrived, votes;     // at the barrier of the block
    const Thread *first, *finished;  // who came to it first; some thread that has finished
};

// One launch at a time, as shared memory is static.
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

    std::uint32_t draw(std::uint32_t below) {  // a linear congruence, its upper bits
        random = random * 1664525u + 1013904223u;
        return std::uint32_t((std::uint64_t(random) * below) >> 32);
    }
    // Of n things, at most 32.
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

bool same(Place a, Place b) { return a.line == b.line && (a.file == b.file || !std::strcmp(a.file, b.file)); }

std::string at(const char* call, Place place) { return text(call, " at ", place.file, ":", place.line); }

std::string what_of(const Thread& t) {
    std::string who = text("thread ", name_of(t.index));
    if (t.state == Thread::State::finished) return who + " has finished";
    return t.state == Thread::State::waits ? text(who, " waits in ", at(t.call, t.place)) : who + " runs";
}

// The first of these lanes that has not come to where the running thread is.
const Thread& missing(int warp, unsigned lanes) {
    return launch().block.threads[std::size_t(warp * 32 + __builtin_ctz(lanes))];
}

void wait() {
    Thread& self = *running;
    self.state = Thread::State::waits;
    launch().block.warps[std::size_t(self.warp)].ready &= ~(1u << self.lane);
    self.fiber->leave(false);
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
            l.fibers.push_back(std::make_unique<Fiber>(const_cast<char*>(places.stacks.begin) + n * Fiber::bytes, n % 16 * 256));
            l.free.push_back(l.fibers.back().get());
        }
        t.fiber = l.free.back();
        l.free.pop_back();
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

// Lets the warp run on as far as it can alone; in a shuffled order, sometimes less far.
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
    std::memset(const_cast<char*>(places.asked.begin), 0xff, shared_bytes);  // NaN
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
            if (alive && !stuck) stuck = &missing(int(&w - b.warps.data()), alive);
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

// The order of the threads that a fault left on their stacks is of no account: nothing of them is unwound.
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
const Thread& thread_of_block(int number) { return launch().block.threads[std::size_t(number)]; }

void fail(const std::string& what) {
    launch().fault = text(launch().kernel, ": block ", name_of(blockIdx), ", thread ", name_of(running->index), ": ",
                          what);
    running->fiber->leave(true);
    __builtin_unreachable();
}

int meet_block(bool vote, const char* call, Place place) {
    Block& b = launch().block;
    Thread& self = *running;
    self.call = call, self.place = place, self.mask = 0;
    if (b.finished)
        fail(text("waits in ", at(call, place), ", but ", what_of(*b.finished),
                  "; every thread of a block comes to every barrier"));
    if (b.arrived++ == 0) b.first = &self;
    if (!same(b.first->place, place))
        fail(text("waits in ", at(call, place), ", but ", what_of(*b.first), "; a block comes to one barrier at a time"));
    b.votes += vote;
    if (b.arrived < int(b.threads.size())) {
        wait();
        return int(self.result);
    }
    for (Thread& t : b.threads) {
        t.result = std::uint64_t(b.votes);
        t.state = Thread::State::ready;
        b.warps[std::size_t(t.warp)].ready |= 1u << t.lane;
    }
    b.arrived = b.votes = 0;
    memory::block_met();
    self.fiber->leave(false);  // another may be the first to go on
    return int(self.result);
}

namespace {

// Which lane's value a lane gets: its own where there is none to get.
int source_of(const Thread& t) {
    const int first = t.lane / t.width * t.width, in = t.lane - first;
    int from = in;
    if (t.kind == Exchange::lane) from = t.argument & (t.width - 1);
    if (t.kind == Exchange::up && in >= t.argument) from = in - t.argument;
    if (t.kind == Exchange::down && in + t.argument < t.width) from = in + t.argument;
    if (t.kind == Exchange::across && (in ^ t.argument) < t.width) from = in ^ t.argument;
    return first + from;
}

}  // namespace

std::uint64_t meet_warp(Exchange kind, unsigned mask, std::uint64_t value, int argument, int width, const char* call,
                        Place place) {
    Thread& self = *running;
    Warp& warp = launch().block.warps[std::size_t(self.warp)];
    Thread* lanes = &launch().block.threads[std::size_t(self.warp * 32)];
    const unsigned named = mask & warp.exists, own = 1u << self.lane;
    self.call = call, self.place = place, self.kind = kind, self.mask = mask;
    self.value = value, self.argument = argument, self.width = width;
    auto complain = [&](const std::string& why) { fail(text("in ", at(call, place), ": ", why)); };
    auto expect_beside = [&](const Thread& other) {
        if (other.mask == mask && other.kind == kind && same(other.place, place)) return;
        complain(text("the mask 0x", std::hex, mask, " names lane ", std::dec, other.lane, ", but ", what_of(other),
                      " with mask 0x", std::hex, other.mask, ": the lanes have parted"));
    };
    if (!(mask & own)) complain(text("lane ", self.lane, " is not in its own mask 0x", std::hex, mask));
    if (width < 1 || width > 32 || (width & (width - 1)))
        complain(text("the width is ", width, ", expected a power of two up to 32"));
    if (named & warp.finished) {
        const Thread& gone = lanes[__builtin_ctz(named & warp.finished)];
        complain(text("the mask 0x", std::hex, mask, " names lane ", std::dec, gone.lane, ", but ", what_of(gone)));
    }
    if (named & warp.meets) expect_beside(lanes[__builtin_ctz(named & warp.meets)]);
    warp.meets |= own;
    if (named & ~warp.meets) {
        wait();
        return self.result;
    }
    for (unsigned left = named & ~own; left; left &= left - 1) expect_beside(lanes[__builtin_ctz(left)]);
    warp.meets &= ~named;
    std::uint64_t votes = 0;
    for (unsigned left = named; left; left &= left - 1) {
        const int lane = __builtin_ctz(left);
        if (lanes[lane].value) votes |= 1u << lane;
    }
    for (unsigned left = named; left; left &= left - 1) {
        Thread& t = lanes[__builtin_ctz(left)];
        const int from = source_of(t);
        if (kind != Exchange::barrier && kind != Exchange::ballot && !(named >> from & 1u))
            complain(text("lane ", t.lane, " reads lane ", from, ", which takes no part (mask 0x", std::hex, mask, ")"));
        t.result = kind == Exchange::ballot ? votes : lanes[from].value;
        t.state = Thread::State::ready;
        warp.ready |= 1u << t.lane;
    }
    if (kind == Exchange::barrier) memory::warp_met(self.warp, named);
    self.fiber->leave(false);
    return self.result;
}

void access_atomically(const void* address, std::size_t size) {
    if (running) memory::atomic(address, size);
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
        throw Error(text(kernel, ": launched on (", blocks.x, ",", blocks.y, ",", blocks.z, ") blocks of (", threads.x,
                         ",", threads.y, ",", threads.z, ") threads with ", shared_bytes,
                         " bytes of shared memory; expected 1 to ", most_threads, " threads, some blocks, at most 65535 in y and z, and ",
                         most_shared, " bytes"));
    if (!places.stacks.begin) {
        void* memory = mmap(nullptr, bytes_of_stacks, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (memory == MAP_FAILED) throw Error(text("no memory for ", most_threads, " stacks of ", Fiber::bytes, " bytes"));
        places.stacks = {static_cast<char*>(memory), static_cast<char*>(memory) + bytes_of_stacks};
    }
    l.kernel = kernel, l.body = body, l.context = context;
    l.fault.clear();
    l.random = settings().seed * 2654435761u + 1;
    // 128 bytes apart, as CUDA aligns it
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
