// SPDX-License-Identifier: MIT
// Defines the keywords and variables of CUDA for g++, so that a kernel runs on the CPU. Each thread of a block is a
// fiber, which has its own stack. A fiber is left at a barrier, and resumed when all threads of the block have reached
// the barrier. Numbers in shared and global memory have the type Float, which records which threads read and write
// them. This is a small version of the engine's emulator (docs/kernels-on-the-cpu.md).
#pragma once
#ifdef __CUDACC__
using Float = float;
#else
#include <ucontext.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#define __global__
#define __shared__ static

struct Index {
    int x, y;
};
inline Index threadIdx, blockIdx, blockDim, gridDim;  // the values for the thread that is running

namespace fibers {

struct Fiber {
    ucontext_t here;
    std::unique_ptr<char[]> stack;
    Index index;
    int barrier;  // the line where it waits
    bool ended;
};

// Time is counted in stretches. A stretch ends when all threads of the block have reached a barrier or have ended.
struct Machine {
    std::vector<Fiber> fibers;
    ucontext_t host;
    std::function<void()> kernel;
    std::string fault;                    // the first error, which ends the launch; "" if there is none
    int running = -1;                     // index of the thread that is running; -1: the host
    long now = 0, launch = 0, block = 0;  // the current stretch, the first stretch of the launch, and that of the block
};
inline Machine machine;

inline std::string name(Index i) { return "(" + std::to_string(i.x) + "," + std::to_string(i.y) + ")"; }
inline std::string name(int thread) {
    return thread < 0 ? "other threads" : "thread " + name(machine.fibers[std::size_t(thread)].index);
}
inline void leave() { swapcontext(&machine.fibers[std::size_t(machine.running)].here, &machine.host); }
// Reports an error of the thread that is running. The thread is not resumed, and the launch ends.
inline void fail(const std::string& what) {
    machine.fault = "block " + name(blockIdx) + ", " + name(machine.running) + " " + what;
    leave();
}

// Which thread wrote a number last, which thread read it last, and in which stretches. -1 as a thread stands for
// several threads.
struct Trace {
    const char* matrix = nullptr;  // name of the matrix in global memory; null if the number is in shared memory
    bool outside = false;          // whether the number is in a margin of the matrix
    long loads = 0, written = -1, read = -1;
    int writer = -1, reader = -1;

    void note(bool writes) {
        const Machine& m = machine;
        if (m.running < 0) return;
        const std::string verb = writes ? "writes " : "reads ", what = matrix ? matrix : "shared memory";
        const auto race = [&](int thread, const char* did) {
            fail(verb + what + " that " + name(thread) + " " + did + "; no barrier lies between");
        };
        if (outside) fail(verb + "outside of " + what);
        if (!matrix && !writes && written < m.block)
            fail("reads shared memory that no thread of the block has written");
        if (matrix && written >= m.launch && written < m.block)
            fail(verb + what + " where another block wrote it; nothing orders blocks");
        if (written == m.now && writer != m.running) race(writer, "wrote");
        if (writes && read == m.now && reader != m.running) race(reader, "read");
        if (writes)
            written = m.now, writer = m.running;
        else
            reader = read == m.now && reader != m.running ? -1 : m.running, read = m.now, loads++;
    }
};

}  // namespace fibers

// A float in shared or global memory. The local variables of a thread are plain floats.
class Float {
  public:
    Float() = default;
    Float(const Float&) = delete;
    operator float() const {
        trace.note(false);
        return value_;
    }
    template <class Whole, class = std::enable_if_t<std::is_integral_v<Whole> > >
    operator Whole() const {
        static_assert(sizeof(Whole) == 0, "a Float becomes a float and no whole number; the zero of a float is 0.0f");
    }
    Float& operator=(float x) {
        trace.note(true);
        value_ = x;
        return *this;
    }
    Float& operator=(const Float& x) { return *this = float(x); }
    Float& operator+=(float x) { return *this = float(*this) + x; }

    mutable fibers::Trace trace;

  private:
    float value_ = 0;
};

// Returns when all threads of the block have called this function. `line` tells different barriers apart.
inline void __syncthreads(int line = __builtin_LINE()) {
    using fibers::machine;
    machine.fibers[std::size_t(machine.running)].barrier = line;
    fibers::leave();
}

namespace fibers {

// A matrix in global memory, between two margins that no thread may read or write.
class Matrix {
  public:
    Matrix(const char* name, const std::vector<double>& numbers)
        : size_(numbers.size()), all_(new Float[size_ + 2 * margin]) {
        for (std::size_t i = 0; i < size_ + 2 * margin; i++) {
            all_[i].trace.matrix = name;
            all_[i].trace.outside = i < margin || i >= margin + size_;
            if (!all_[i].trace.outside) all_[i] = float(numbers[i - margin]);
        }
    }
    Float* data() { return all_.get() + margin; }
    std::vector<double> numbers() { return {data(), data() + size_}; }
    long most_loads() {
        long most = 0;
        for (std::size_t i = 0; i < size_; i++) most = std::max(most, data()[i].trace.loads);
        return most;
    }

  private:
    static constexpr std::size_t margin = 4096;
    std::size_t size_;
    std::unique_ptr<Float[]> all_;
};

inline void body() {
    machine.kernel();
    machine.fibers[std::size_t(machine.running)].ended = true;
    leave();
}

// Call this when every thread of the block waits at a barrier or has ended. Returns an error if they do not all wait at
// the same barrier; otherwise "".
inline std::string meeting() {
    const auto& all = machine.fibers;
    const auto ended = std::find_if(all.begin(), all.end(), [](const Fiber& f) { return f.ended; });
    const auto waits = std::find_if(all.begin(), all.end(), [](const Fiber& f) { return !f.ended; });
    const std::string who = "block " + name(blockIdx) + ", thread " + name(waits->index) + " waits at a barrier";
    if (ended != all.end()) return who + "; thread " + name(ended->index) + " is at its end";
    for (const Fiber& f : all)
        if (f.barrier != waits->barrier) return who + "; thread " + name(f.index) + " waits at another one";
    return "";
}

// Runs kernel() in every thread of every block. The threads of a block run in order or, if `from_the_last` is true, in
// reverse order. Returns the first error, or "".
inline std::string launch(Index blocks, Index threads, const std::function<void()>& kernel,
                          bool from_the_last = false) {
    constexpr std::size_t bytes = 64 << 10;  // size of a fiber's stack
    Machine& m = machine;
    const int count = threads.x * threads.y;
    m.fibers = std::vector<Fiber>(std::size_t(count));
    for (int t = 0; t < count; t++) {
        m.fibers[std::size_t(t)].stack.reset(new char[bytes]);
        m.fibers[std::size_t(t)].index = {t % threads.x, t / threads.x};
    }
    m.kernel = kernel, m.fault = "", m.launch = m.now + 1, blockDim = threads, gridDim = blocks;
    for (int block = 0; block < blocks.x * blocks.y; block++) {
        blockIdx = {block % blocks.x, block / blocks.x};
        m.block = ++m.now;
        for (Fiber& f : m.fibers) {
            f.ended = false;
            getcontext(&f.here);
            f.here.uc_stack.ss_sp = f.stack.get(), f.here.uc_stack.ss_size = bytes, f.here.uc_link = nullptr;
            makecontext(&f.here, body, 0);
        }
        for (int left = count; left > 0; m.now++) {
            for (int i = 0; i < count; i++) {
                m.running = from_the_last ? count - 1 - i : i;
                Fiber& f = m.fibers[std::size_t(m.running)];
                threadIdx = f.index;
                swapcontext(&m.host, &f.here);
                left -= f.ended;
                if (!m.fault.empty()) break;
            }
            m.running = -1;
            if (m.fault.empty() && left > 0) m.fault = meeting();
            if (!m.fault.empty()) return m.fault;
        }
    }
    return "";
}

}  // namespace fibers
#endif
