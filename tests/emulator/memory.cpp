// SPDX-License-Identifier: MIT
// Watches the memory accesses of kernels. With -fsanitize=thread, g++ puts a call before every access. The sanitizer
// itself is not linked; this file defines the called functions. For every byte, they record which thread wrote it last,
// which threads read it last, and whether a barrier lies between. Therefore, a race is found in any order of the
// threads, even if the result is right.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <unordered_map>

#include "tests/emulator/block.h"

#ifndef WATCHES_MEMORY  // a sanitizer is linked, and defines these functions itself
namespace masquerade::emulator {
bool can_watch_memory() { return false; }
namespace memory {
void start_launch() {}
void start_block(const uint3&) {}
void block_met() {}
void warp_met(int, unsigned) {}
void atomic(const void*, std::size_t) {}
}  // namespace memory
}  // namespace masquerade::emulator
#else

extern "C" char _end[], __start_emulator_built_in[], __stop_emulator_built_in[];  // defined by the linker
extern "C" __attribute__((weak)) char __data_start[];                             // not defined in a shared library

namespace masquerade::emulator {
namespace {

// The range of static shared memory. In a shared library, which runs translated PTX, the range is empty: there, static
// shared memory is the first part of dynamic shared memory.
const Bytes statics{__data_start, __data_start ? _end : nullptr};
const Bytes built_in{__start_emulator_built_in, __stop_emulator_built_in};

// A time, in barriers: counts the barriers of blocks, or of warps, since the start of the program.
using Tick = std::uint32_t;

// The last accesses to a word of 4 bytes, or to a byte. Ticks before the current launch have no meaning, because
// launches run one after the other.
struct Cell {
    // When the last write was: after which barrier of the block, and after which barrier of the warp.
    Tick written, written_between;
    // When the last reads were, in the same two counts. The readers are the lanes `lanes` (a bit for each) of warp
    // `warp`. If `warp` is many_warps, they are threads of several warps, and `lanes` has no meaning.
    Tick read, read_between;
    Tick read_elsewhere;  // when a thread of an earlier block has read it, too
    unsigned lanes;
    std::uint16_t writer, warp;  // writer: the number of the thread that has written last
    bool atomic;                 // true if the last write was an atomic operation
};
constexpr std::uint16_t many_warps = 0xffff;

// An access to a whole word is recorded in the cell of the word, and any other access in the cells of its bytes. Each
// access is checked against both kinds of cells.
constexpr std::uintptr_t page = 4096, word = 4;
struct alignas(64) Page {
    Tick words_used, bytes_used;  // the last launch with accesses to whole words, and with accesses to bytes
    Cell words[page / word], bytes[page];
};
// Pages are allocated in groups, one page after the other, so that their cells are in different sets of the cache.
constexpr std::size_t pages_at_once = 16;

struct Watch {
    Tick launch = 1, block = 1,
         now = 1;  // the first stretch of the launch, the first stretch of the block, and the current stretch
    Tick warp_now = 1;
    Tick between[1024] = {};  // for each thread: the last barrier of its warp that it has passed
    // For each thread and each lane of its warp: accesses of this lane before this tick are ordered before the thread's
    // next access.
    Tick known[1024][32] = {};
    Tick known_by_all[32] = {};  // for each warp: its last barrier in which all 32 lanes took part
    std::vector<std::pair<Tick, uint3> > blocks;
    std::unordered_map<std::uintptr_t, Page*> pages;
    std::vector<std::unique_ptr<Page[]> > all;
    std::vector<Page*> free;
    std::uintptr_t last_number[64] = {};
    Page* last[64] = {};

    Page& page_of(std::uintptr_t address) {
        const std::uintptr_t number = address / page, slot = number % 64;
        if (last_number[slot] != number) {
            Page*& found = pages[number];
            if (!found) {
                if (free.empty()) {
                    Page* fresh = all.emplace_back(std::make_unique<Page[]>(pages_at_once)).get();
                    for (std::size_t i = 0; i < pages_at_once; i++) free.push_back(fresh + i);
                }
                found = free.back();
                free.pop_back();
            }
            last_number[slot] = number;
            last[slot] = found;
        }
        return *last[slot];
    }
};

Watch watch;

std::string name_of_block(Tick tick) {
    const auto& blocks = watch.blocks;
    auto after = std::upper_bound(blocks.begin(), blocks.end(), tick,
                                  [](Tick t, const std::pair<Tick, uint3>& block) { return t < block.first; });
    return name_of((after - 1)->second);
}

enum Does { reads, writes, changes };
struct Access {
    const Thread& self;
    std::uintptr_t address;
    std::size_t size;
    Does does;
    bool shared;

    [[noreturn]] void fail(const std::string& why) const {
        char where[32];
        std::snprintf(where, sizeof where, "0x%llx", static_cast<unsigned long long>(address));
        const char* verb = does == reads ? "reads " : does == writes ? "writes " : "atomically changes ";
        std::string last = running->call ? text(" (its last meeting: ", running->call, " at ", running->place.file, ":",
                                                running->place.line, ")")
                                         : std::string();
        emulator::fail(text(verb, size, " bytes of ", shared ? "shared" : "global", " memory at ", where, why, last));
    }
    [[noreturn]] void race(int other, const char* did) const {
        fail(text(" that thread ", name_of(current_block().threads[std::size_t(other)].index), " ", did,
                  "; no barrier lies between"));
    }
};

// Whether an access of a lane in the stretch `between` is ordered before the next access of the thread `self`. The lane
// is in the same warp.
bool behind(const Thread& self, int lane, Tick between) {
    const Watch& w = watch;
    return lane == self.lane || std::max(w.known_by_all[self.warp], w.known[self.number][lane]) > between;
}

// Checks the access `a` against the accesses that the cell has recorded.
void check(const Cell& cell, const Access& a) {
    const Watch& w = watch;
    const Thread& self = a.self;
    const bool both_atomic = cell.atomic && a.does == changes;
    if (!a.shared && cell.written >= w.launch && cell.written < w.block && !both_atomic)
        a.fail(text(" that block ", name_of_block(cell.written), " wrote; nothing orders blocks"));
    if (cell.written == w.now && cell.writer != self.number && !both_atomic)
        if (cell.writer / 32 != self.warp || !behind(self, cell.writer % 32, cell.written_between))
            a.race(cell.writer, "wrote");
    if (a.does == reads) return;
    if (!a.shared)
        for (Tick read : {cell.read, cell.read_elsewhere})
            if (read >= w.launch && read < w.block)
                a.fail(text(" that block ", name_of_block(read), " read; nothing orders blocks"));
    if (cell.read != w.now) return;
    if (cell.warp == many_warps) a.fail(" that threads of several warps read; no barrier lies between");
    for (unsigned left = cell.lanes; left; left &= left - 1) {
        const int lane = __builtin_ctz(left);
        if (cell.warp != self.warp || !behind(self, lane, cell.read_between)) a.race(cell.warp * 32 + lane, "read");
    }
}

void note_read(Cell& cell, const Thread& self) {
    const Watch& w = watch;
    const Tick between = w.between[self.number];
    const unsigned own = 1u << self.lane;
    if (cell.read == w.now && cell.warp != self.warp) {
        cell.warp = many_warps;
        return;
    }
    bool fresh = cell.read != w.now;
    if (fresh && cell.read >= w.launch && cell.read < w.block) cell.read_elsewhere = cell.read;
    // fresh: all earlier reads are ordered before this one, so they can be forgotten.
    if (!fresh && cell.read_between != between) {
        fresh = true;
        for (unsigned left = cell.lanes; left; left &= left - 1)
            fresh = fresh && behind(self, __builtin_ctz(left), cell.read_between);
    }
    cell.lanes = fresh ? own : cell.lanes | own;
    cell.read_between = fresh ? between : std::min(cell.read_between, between);
    cell.read = w.now;
    cell.warp = std::uint16_t(self.warp);
}

void note(Cell& cell, const Access& a) {
    if (a.does == reads) return note_read(cell, a.self);
    cell.written = watch.now;
    cell.written_between = watch.between[a.self.number];
    cell.writer = std::uint16_t(a.self.number);
    cell.atomic = a.does == changes;
}

// Checks and records an access to one word (`whole`), or to one byte, of the page.
inline void access_one(const Access& a, Page& p, std::uintptr_t address, bool whole) {
    const Watch& w = watch;
    Cell &of_word = p.words[address % page / word], *of_bytes = p.bytes + address % page;
    bool written = of_word.written >= w.block;
    if (p.words_used == w.launch) check(of_word, a);
    if (p.bytes_used == w.launch || !whole) {
        bool each_written = true;
        for (Cell* cell = of_bytes; cell < of_bytes + (whole ? word : 1); cell++) {
            check(*cell, a);
            each_written = each_written && cell->written >= w.block;
        }
        written = written || each_written;
    }
    if (a.shared && a.does != writes && !written) a.fail(" that no thread of the block has written");
    (whole ? p.words_used : p.bytes_used) = w.launch;
    note(whole ? of_word : *of_bytes, a);
}

[[gnu::noinline]] void access_beyond_own_stack(const Thread& self, const char* at, std::size_t size, Does does) {
    const bool on_stack = places.stacks.hold(at);
    if (!on_stack && (places.parameters.hold(at) || built_in.hold(at))) return;
    counted.accesses++;
    const Access a{self, std::uintptr_t(at), size, does, places.shared.hold(at) || statics.hold(at)};
    if (places.shared.hold(at) && at + size > places.asked.end)
        a.fail(text(" past the ", places.asked.end - places.asked.begin, " bytes that the launch asked for"));
    if (on_stack) a.fail(" that is another thread's own");
    const std::uintptr_t end = a.address + size;
    const bool whole = a.address % word == 0 && size % word == 0;
    for (std::uintptr_t i = a.address; i < end;) {
        Page& p = watch.page_of(i);
        const std::uintptr_t stop = std::min(end, (i / page + 1) * page);
        for (; i < stop; i += whole ? word : 1) access_one(a, p, i, whole);
    }
}

// Most accesses of a kernel are to the thread's own stack, where nothing is checked. They must cost little.
inline void access(const void* pointer, std::size_t size, Does does) {
    const Thread* const self = running;
    const char* const at = static_cast<const char*>(pointer);
    if (self && places.watched && !self->stack.hold(at)) access_beyond_own_stack(*self, at, size, does);
}

}  // namespace

bool can_watch_memory() { return true; }

namespace memory {

void start_launch() {
    Watch& w = watch;
    w.launch = ++w.now;
    w.blocks.clear();
    for (auto& [number, used] : w.pages) w.free.push_back(used);
    w.pages.clear();
    std::fill(std::begin(w.last_number), std::end(w.last_number), 0);
}

void start_block(const uint3& block) {
    Watch& w = watch;
    w.block = ++w.now;
    w.warp_now++;
    w.blocks.emplace_back(w.block, block);
    std::fill(std::begin(w.between), std::end(w.between), w.warp_now);
}

void block_met() { watch.now++; }

// After a barrier of a warp, each of its lanes knows everything that any of the other lanes knew.
void warp_met(int warp, unsigned lanes) {
    Watch& w = watch;
    const Tick tick = ++w.warp_now;
    if (lanes == 0xffffffffu) {  // every lane knows everything before this barrier
        w.known_by_all[warp] = tick;
        std::fill_n(w.between + warp * 32, 32, tick);
        return;
    }
    Tick known[32] = {};
    for (int t = 0; t < 32; t++)
        if (lanes >> t & 1u)
            for (int l = 0; l < 32; l++)
                known[l] = lanes >> l & 1u ? tick : std::max(known[l], w.known[warp * 32 + t][l]);
    for (int t = 0; t < 32; t++) {
        if (!(lanes >> t & 1u)) continue;
        std::copy(known, known + 32, w.known[warp * 32 + t]);
        w.between[warp * 32 + t] = tick;
    }
}

void atomic(const void* address, std::size_t size) { access(address, size, changes); }

}  // namespace memory
}  // namespace masquerade::emulator

// The functions that the compiler calls before memory accesses.
using namespace masquerade::emulator;
#define HOOKS(size)                                                                    \
    extern "C" void __tsan_read##size(void* at) { access(at, size, reads); }           \
    extern "C" void __tsan_write##size(void* at) { access(at, size, writes); }         \
    extern "C" void __tsan_unaligned_read##size(void* at) { access(at, size, reads); } \
    extern "C" void __tsan_unaligned_write##size(void* at) { access(at, size, writes); }
HOOKS(1)
HOOKS(2)
HOOKS(4)
HOOKS(8)
HOOKS(16)
#undef HOOKS
extern "C" void __tsan_read_range(void* at, std::size_t size) { access(at, size, reads); }
extern "C" void __tsan_write_range(void* at, std::size_t size) { access(at, size, writes); }
// Only clang calls these, in place of functions of the C library, and for the guard of a static variable.
extern "C" void* __tsan_memset(void* to, int value, std::size_t size) {
    if (size > 0) access(to, size, writes);
    return std::memset(to, value, size);
}
extern "C" void* __tsan_memcpy(void* to, void* from, std::size_t size) {
    if (size > 0) access(from, size, reads), access(to, size, writes);
    return std::memcpy(to, from, size);
}
extern "C" void* __tsan_memmove(void* to, void* from, std::size_t size) {
    if (size > 0) access(from, size, reads), access(to, size, writes);
    return std::memmove(to, from, size);
}
extern "C" unsigned char __tsan_atomic8_load(const volatile unsigned char* at, int) {
    return __atomic_load_n(at, __ATOMIC_SEQ_CST);
}
extern "C" void __tsan_vptr_update(void**, void*) {}
extern "C" void __tsan_vptr_read(void**) {}
extern "C" void __tsan_init() {}
extern "C" void __tsan_func_entry(void*) {}
extern "C" void __tsan_func_exit() {}
#endif
