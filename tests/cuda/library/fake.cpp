// SPDX-License-Identifier: MIT
// A device library without a GPU. Its ops are the CPU's ops of the program that opened the library, or the ops that a
// test sets (FakeControl::backing). The host cannot access the memory of the device: a read or write outside a call of
// the library ends the program, as it would on a GPU.
//
// The environment variable MASQUERADE_FAKE_FAULT makes the device faulty. Its value is "none" (no device answers),
// "shared" (all processes have the same device), or a list of faults of ops, separated by commas: OP:wrong (the op
// writes nothing), OP:hang (the op never ends), OP:crash (the op ends the program). With MASQUERADE_FAKE_OPEN=1, the
// host can always access the memory. This is faster, because a program otherwise spends most of its time on opening and
// closing the memory.
#include "tests/cuda/library/fake.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <new>
#include <string>
#include <tuple>
#include <vector>

#include "engine/ops/cuda/missing.h"
#include "engine/ops/library.h"

namespace masquerade {
namespace {

constexpr std::size_t page = 4096;
constexpr std::size_t bytes_of_region = std::size_t(1) << 34;  // address space only; pages are allocated on first use

FakeControl of_a_program() {
    FakeControl control;
    using Entry = const OpTable* (*)();
    if (auto ops = reinterpret_cast<Entry>(dlsym(RTLD_DEFAULT, "masquerade_cpu_ops"))) control.backing = ops();
    control.limit = bytes_of_region / 2;
    return control;
}
FakeControl control = of_a_program();

// Returns true if MASQUERADE_FAKE_FAULT lists `what`.
bool faulty(const std::string& what) {
    const char* named = std::getenv("MASQUERADE_FAKE_FAULT");
    return named && text(',', named, ',').find(text(',', what, ',')) != std::string::npos;
}
const bool always_open = std::getenv("MASQUERADE_FAKE_OPEN") != nullptr;
std::map<char*, std::size_t> blocks;  // address and size in whole pages of each block; all lie in region()

char* region() {
    static void* const begin = mmap(nullptr, bytes_of_region, always_open ? PROT_READ | PROT_WRITE : PROT_NONE,
                                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (begin == MAP_FAILED) throw Error("the fake device: mmap failed");
    madvise(begin, bytes_of_region,
            MADV_HUGEPAGE);  // pages are opened and closed at every op, which takes less time with fewer pages
    return static_cast<char*>(begin);
}

// While an Open exists, the host can access all memory of the device.
class Open {
  public:
    Open() {
        if (depth++ == 0) protect(PROT_READ | PROT_WRITE);
    }
    ~Open() {
        if (--depth == 0) protect(PROT_NONE);
    }

  private:
    // Changes neighbouring blocks by one call. Hundreds of calls for each op would take most of a test's time.
    static void protect(int how) {
        if (always_open) return;
        for (auto block = blocks.begin(); block != blocks.end();) {
            char *begin = block->first, *end = begin;
            for (; block != blocks.end() && block->first == end; ++block) end += block->second;
            mprotect(begin, std::size_t(end - begin), how);
        }
    }
    static inline int depth = 0;
};

void* allocate(std::size_t bytes) {
    const std::size_t whole = (bytes / page + 1) * page;
    control.allocations++;
    if (control.taken + bytes > control.limit) return nullptr;
    char* data = region();  // becomes the first gap that is wide enough
    for (auto [taken, bytes_taken] : blocks) {
        if (data + whole <= taken) break;
        data = taken + bytes_taken;
    }
    control.taken += whole;
    control.blocks++;
    blocks[data] = whole;
    if (control.backing) {  // fills with NaN, which unwritten memory may contain
        Open open;
        std::memset(data, 0xff, whole);
    }
    return data;
}

void release(void* data) noexcept {
    auto block = blocks.find(static_cast<char*>(data));
    control.taken -= block->second;
    control.blocks--;
    madvise(data, block->second, MADV_DONTNEED);  // gives the pages back; they are zeros at the next use
    blocks.erase(block);
}

// While a step is captured, `kept` contains the work that was requested.
bool capturing = false;
std::vector<std::function<void()>> kept;
std::uint64_t done = 0;  // calls that were done; a graph counts as one call

void do_or_keep(std::function<void()> work) {
    if (capturing && control.outgrown > 0 && !kept.empty()) {
        control.outgrown--;
        throw OutgrownInCapture("the fake device: an op needs more memory");
    }
    if (capturing) return kept.push_back(std::move(work));
    done++;
    Open open;
    work();
}
void expect_no_capture(const char* what) {
    if (capturing) throw Error("the fake device: ", what, " while a step is captured");
}

void begin_graph() {
    expect_no_capture("another capture");
    capturing = true;
}
void launch_graph(const char*) {
    capturing = false;
    control.graphs++;
    done++;
    control.kept = int(kept.size());
    Open open;
    for (const auto& work : std::exchange(kept, {})) work();
}
void abandon_graph() noexcept {
    capturing = false;
    kept.clear();
}

void copy(void* to, const void* from, std::size_t bytes, Way way) {
    control.ways[int(way)]++;
    if (way == Way::from_device) expect_no_capture("a copy to the host"), control.idle++;
    if (way != Way::to_device || !capturing) return do_or_keep([=] { std::memmove(to, from, bytes); });
    // The caller may change its memory as soon as copy() returns, so the bytes are copied now.
    std::string numbers(static_cast<const char*>(from), bytes);
    kept.push_back([=] { std::memcpy(to, numbers.data(), bytes); });
}

void fill(void* to, int byte, std::size_t bytes) {
    do_or_keep([=] { std::memset(to, byte, bytes); });
}

// The bytes that were read, and the value of the variable `done` at that time.
struct Read {
    std::string bytes;
    std::uint64_t done;
};
DeviceRead* begin_read(const void* from, std::size_t bytes) {
    expect_no_capture("a copy to the host");
    control.ways[int(Way::from_device)]++;
    Open open;
    return reinterpret_cast<DeviceRead*>(new Read{{static_cast<const char*>(from), bytes}, done});
}
void finish_read(DeviceRead* begun, void* to) {
    const std::unique_ptr<Read> read(reinterpret_cast<Read*>(begun));
    if (!to) return;
    std::memcpy(to, read->bytes.data(), read->bytes.size());
    if (read->done == done) control.idle++;
}

void synchronise() {
    expect_no_capture("waiting");
    control.idle++;
    if (control.fault == 1) throw Error("the fake device: an error");
    if (control.fault == 2) throw BadInput("the fake device: bad input");
    if (control.fault == 3) throw std::bad_alloc();
}

Answer answer(int) { return faulty("none") ? Answer{0, "the fake device was told not to"} : Answer{1, ""}; }

DeviceFacts facts() {
    DeviceFacts facts;
    std::strcpy(facts.name, "fake GPU");
    // Each process has its own fake GPU, unless it is asked to share one.
    if (!faulty("shared")) std::snprintf(facts.uuid, sizeof facts.uuid, "%d", int(getpid()));
    facts.bytes = control.limit;
    facts.bytes_free = control.limit - control.taken;
    return facts;
}

// Moments are numbered. One second passes from each moment to the next.
DeviceEvent* note_moment() {
    static int moments = 0;
    return reinterpret_cast<DeviceEvent*>(new int(moments++));
}
int& number_of(DeviceEvent* event) { return *reinterpret_cast<int*>(event); }
double seconds_between(DeviceEvent* from, DeviceEvent* to) { return number_of(to) - number_of(from); }
void forget_moment(DeviceEvent* event) noexcept { delete &number_of(event); }

// Sums that an op has left for later (Grad::late): add_late_sums() adds `sum` to the gradient, or stores it there. Until
// then, a gradient that is not added to is NaN. For these ops, the CPU has the same bits if the sum is added afterwards.
struct LateSum {
    Grad to;
    std::shared_ptr<std::vector<float>> sum;
};
std::vector<LateSum> late_sums;

template <class T>
const T& leaving_sums(const T& argument) {
    return argument;
}
Grad leaving_sums(const Grad& to) {
    if (!to || !to.late || to.view.dtype != DType::f32) return to;
    for (const LateSum& s : late_sums)
        if (s.to.view.data == to.view.data) throw Error("the fake device: two late sums for ", to.view.path);
    late_sums.push_back({to, std::make_shared<std::vector<float>>(to.view.count())});
    control.late++;
    if (!to.add) fill(to.view.data, 0xff, to.view.bytes());
    Grad left = to;
    left.view.data = late_sums.back().sum->data(), left.add = false;
    return left;
}
bool leaves_sums(const std::string& op) {
    return op == "layernorm_backward" || op == "residual_norm_backward" || op == "rms_norm_backward";
}
void add_late_sums(const void* gradient) {
    if (control.add_late_sums) return do_or_keep([=] { control.add_late_sums(gradient); });
    const auto wanted = [gradient](const LateSum& s) { return !gradient || s.to.view.data == gradient; };
    if (std::none_of(late_sums.begin(), late_sums.end(), wanted)) return;
    for (const LateSum& s : std::exchange(late_sums, {}))
        do_or_keep([s] {
            float* to = s.to.view.as<float>();
            for (std::size_t i = 0; i < s.sum->size(); i++) to[i] = s.to.add ? to[i] + (*s.sum)[i] : (*s.sum)[i];
        });
}
void forget_late_sums() noexcept {
    late_sums.clear();
    if (control.forget_late_sums) control.forget_late_sums();
}

template <int Number, auto Member, class Slot>
struct Backed;
template <int Number, auto Member, class... Parameters>
struct Backed<Number, Member, void (*)(Parameters...)> {
    static void call(Parameters... parameters) {
        static const std::string name = op_names[Number];
        static const bool wrong = faulty(name + ":wrong"), hangs = faulty(name + ":hang"),
                          crashes = faulty(name + ":crash");
        if (crashes) std::abort();
        while (hangs) pause();
        static const bool may_leave = leaves_sums(name);
        const bool leaves = may_leave && !control.add_late_sums;
        using Arguments = std::tuple<std::decay_t<Parameters>...>;
        const std::size_t first = late_sums.size();
        Arguments all = leaves ? Arguments{leaving_sums(parameters)...} : Arguments{parameters...};
        const std::vector<LateSum> left(late_sums.begin() + std::ptrdiff_t(first), late_sums.end());
        do_or_keep([all = std::move(all), left] {  // `left` keeps the memory of the sums
            if (control.backing && !wrong) std::apply(control.backing->*Member, all);
        });
    }
};

#ifdef WITHOUT
constexpr OpNumber without = OpNumber::WITHOUT;
#else
constexpr OpNumber without = OpNumber(-1);
#endif

const bool has[] = {
#define OP(name, parameters, ...) OpNumber::name != without,
#include "engine/ops/ops.h"
#undef OP
};
const OpTable table = {
#define OP(name, parameters, ...)                                                                           \
    OpNumber::name != without ? &Backed<int(OpNumber::name), &OpTable::name, decltype(OpTable::name)>::call \
                              : &Missing<int(OpNumber::name), decltype(OpTable::name)>::call,
#include "engine/ops/ops.h"
#undef OP
};

}  // namespace
}  // namespace masquerade

#define EXPORTED extern "C" __attribute__((visibility("default")))

EXPORTED const masquerade::CudaLibrary* masquerade_cuda() {
    using namespace masquerade;
    static const CudaLibrary library = {this_stamp(),
                                        &table,
                                        has,
                                        {answer,
                                         facts,
                                         allocate,
                                         release,
                                         copy,
                                         fill,
                                         begin_read,
                                         finish_read,
                                         add_late_sums,
                                         forget_late_sums,
                                         synchronise,
                                         note_moment,
                                         seconds_between,
                                         forget_moment,
                                         begin_graph,
                                         launch_graph,
                                         [](const void*, std::size_t) -> const void* { return nullptr; },
                                         abandon_graph,
                                         [](ProductRule rule) { control.products = rule; },
                                         [] { return ""; },
                                         []() -> void* { return nullptr; },
                                         [] {
                                             expect_no_capture("asking whether work is finished");
                                             return true;
                                         }}};
    return &library;
}

EXPORTED masquerade::FakeControl* fake_control() { return &masquerade::control; }
