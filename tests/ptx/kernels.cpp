// SPDX-License-Identifier: MIT
// Runs translated kernels on the fibers of tests/emulator. Environment variables:
//     PTX_ORDER=reversed or shuffled   runs blocks, warps and lanes in another order
//     PTX_WATCH=0                      does not search for races
//     PTX_SUMS=a100 or h100            computes products as the tensor cores of this GPU do, with the same sums
//     PTX_COUNTS=FILE                  writes counts to FILE when the program ends
// The file of counts has a line for each kernel that ran: its name, then the numbers of struct Counts in their order.
// Copies, fills, products of cuBLASLt, graphs and graph nodes have lines, too, but count only their launches.
#include "tests/ptx/kernels.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <map>
#include <unordered_map>

#include "tests/emulator/block.h"
#include "tests/ptx/ptx.h"
#include "tests/ptx/stream.h"

namespace masquerade::ptx {
namespace {

std::map<std::string, Kernel>& kernels() {
    static std::map<std::string, Kernel> all;
    return all;
}

std::map<const char*, std::size_t> memory;  // begin of each block of global memory -> bytes
emulator::Bytes last;                       // the block that was touched last
std::vector<Copy> of_threads[1024];         // asynchronous copies, by the number of the thread in its block

// The bytes of global memory that have been read and written: a mask for each 64 bytes.
struct Touched {
    std::unordered_map<u64, u64> read, written;
    void add(u64 address, int bytes, bool writes) {
        (writes ? written : read)[address / 64] |= ((u64(1) << bytes) - 1) << address % 64;
    }
    // Returns the number of these bytes, and forgets them.
    u64 take() {
        u64 count = 0;
        for (auto* masks : {&read, &written}) {
            for (const auto& [place, mask] : *masks) count += u64(__builtin_popcountll(mask));
            masks->clear();
        }
        return count;
    }
};
Touched by_block, by_launch;
Kernel* launched = nullptr;

std::string said(const char* variable) {
    const char* value = std::getenv(variable);
    return value ? value : "";
}

void choose_settings() {
    emulator::Settings& s = emulator::settings();
    s.watch_memory = said("PTX_WATCH") != "0";
    if (said("PTX_ORDER") == "reversed") s.order = emulator::Order::reversed;
    if (said("PTX_ORDER") == "shuffled") s.order = emulator::Order::shuffled;
    if (said("PTX_SUMS") == "a100") s.tensor_sums = emulator::TensorSums::as_a100;
    if (said("PTX_SUMS") == "h100") s.tensor_sums = emulator::TensorSums::as_h100;
}

void count_bytes(u64 address, int bytes, bool writes) {
    static const bool wanted = !said("PTX_COUNTS").empty();
    static uint3 block = {};
    if (!wanted) return;
    if (std::memcmp(&block, &blockIdx, sizeof block) != 0) launched->counts.once_a_block += by_block.take();
    block = blockIdx;
    by_block.add(address, bytes, writes), by_launch.add(address, bytes, writes);
}

struct AtEnd {
    AtEnd() { kernels(); }  // makes the map first, so that it is destroyed after this object
    ~AtEnd() {
        std::FILE* file = said("PTX_COUNTS").empty() ? nullptr : std::fopen(said("PTX_COUNTS").c_str(), "w");
        if (!file) return;
        for (const auto& [name, kernel] : kernels()) {
            const Counts& c = kernel.counts;
            if (c.launches == 0) continue;
            std::fputs(name.c_str(), file);
            for (std::uint64_t n : {c.instructions, c.loads, c.bytes_loaded, c.stores, c.bytes_stored, c.shared,
                                    c.products, c.launches, c.threads, c.once_a_block, c.once})
                std::fprintf(file, " %llu", static_cast<unsigned long long>(n));
            std::fputc('\n', file);
        }
        std::fclose(file);
    }
};

}  // namespace

Registered::Registered(std::initializer_list<Kernel> all) {
    static const AtEnd write_counts;
    for (const Kernel& k : all) kernels()[k.name] = k;
}

Kernel* find_kernel(const std::string& name) {
    auto found = kernels().find(name);
    return found == kernels().end() ? nullptr : &found->second;
}

void count_launch(const char* name) {
    Kernel& counted = kernels()[name];
    counted.name = name;
    counted.counts.launches++;
}

std::string run(Kernel& kernel, Size blocks, Size threads, std::size_t dynamic_shared,
                const std::vector<char>& parameters) {
    static const bool chosen = (choose_settings(), true);
    (void)chosen;
    struct Launch {
        Kernel* kernel;
        alignas(16) char parameters[4096];
    };
    static Launch launch;
    launch.kernel = launched = &kernel;
    if (parameters.size() > sizeof launch.parameters) return "a kernel takes at most 4096 bytes of parameters";
    std::copy(parameters.begin(), parameters.end(), launch.parameters);
    for (std::vector<Copy>& copies : of_threads) copies.clear();  // a launch with a fault may have left copies
    kernel.counts.launches++;
    kernel.counts.threads += std::uint64_t(blocks.x) * blocks.y * blocks.z * threads.x * threads.y * threads.z;
    try {
        emulator::run(
            kernel.name, {blocks.x, blocks.y, blocks.z}, {threads.x, threads.y, threads.z},
            std::size_t(kernel.static_shared) + dynamic_shared,
            [](const void* context) {
                const Launch* l = static_cast<const Launch*>(context);
                l->kernel->body(l->parameters, &l->kernel->counts);
                if (!of_threads[emulator::running->number].empty())
                    emulator::fail("ends without waiting for its copies (cp.async)");
            },
            &launch, sizeof launch);
    } catch (const Error& e) {
        return e.what();
    }
    kernel.counts.once_a_block += by_block.take(), kernel.counts.once += by_launch.take();
    return "";
}

void add_memory(const void* begin, std::size_t bytes) { memory[static_cast<const char*>(begin)] = bytes; }
void remove_memory(const void* begin) {
    memory.erase(static_cast<const char*>(begin));
    last = {};
}

char* global(u64 address, int bytes, bool writes) {
    char* const at = reinterpret_cast<char*>(address);
    count_bytes(address, bytes, writes);
    emulator::expect_aligned(at, std::size_t(bytes));
    if (at >= last.begin && at + bytes <= last.end) return at;
    auto after = memory.upper_bound(at);
    if (after != memory.begin()) {
        const auto [begin, size] = *std::prev(after);
        last = {begin, begin + size};
        if (at + bytes <= last.end) return at;
    }
    char text[100];
    std::snprintf(text, sizeof text, "touches %d bytes at %p, which is no memory of the device", bytes,
                  static_cast<void*>(at));
    emulator::fail(text);
}

bool begin_copy(const Copy& copy) {
    static u32 state = 1;
    state = state * 1664525u + 1013904223u;
    of_threads[emulator::running->number].push_back(copy);
    return state >> 31;
}
bool end_copy(Copy& copy) {
    std::vector<Copy>& all = of_threads[emulator::running->number];
    if (all.empty()) return false;
    copy = all.back();
    all.pop_back();
    return true;
}

char* shared(u64 offset, int bytes) {
    char* const at = static_cast<char*>(emulator::dynamic_shared_memory()) + offset;
    emulator::expect_aligned(at, std::size_t(bytes));
    return at;
}

}  // namespace masquerade::ptx
