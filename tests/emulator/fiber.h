// SPDX-License-Identifier: MIT
// A fiber has its own stack, on which a function runs. The function can be left in the middle and resumed later. There
// are many fibers and one host; every switch is between the host and a fiber. Only one thread of the operating system
// may use fibers at a time.
#pragma once
#include <cstddef>

#if !defined(__x86_64__) || defined(FIBERS_BY_UCONTEXT)
#define SWITCH_BY_UCONTEXT
#include <ucontext.h>
#endif

namespace masquerade::emulator {

class Fiber {
  public:
    // An odd number of pages, so that the stacks of many fibers do not share cache sets.
    static constexpr std::size_t bytes = 65 * 4096;

    // Uses the memory from `stack` on (`bytes` bytes, page-aligned) as the stack. The lowest page becomes inaccessible,
    // so that a stack overflow ends the program. The stack begins `skew` bytes below the end of this memory; `skew` is
    // a multiple of 64.
    Fiber(void* stack, std::size_t skew);
    Fiber(const Fiber&) = delete;

    // After this call, enter() runs `body` from its beginning. A function that ran here before is abandoned, and its
    // stack is not unwound.
    void start(void (*body)());
    // Called by the host: runs the fiber until it calls leave().
    void enter();
    // Called by the fiber: returns to the host. `for_good` is true if the fiber will not be entered again.
    void leave(bool for_good);

    const char* stack() const { return bottom_; }  // the lowest of its `bytes` bytes

  private:
    static void begin();

    char *bottom_, *top_;
    void (*body_)() = nullptr;
#ifdef SWITCH_BY_UCONTEXT
    ucontext_t here_, host_;
#else
    // The stack pointers of the fiber and of the host, while they are not running.
    void *here_ = nullptr, *host_ = nullptr;
#endif
    // The state that the address sanitizer needs for a switch.
    void *fake_here_ = nullptr, *fake_host_ = nullptr;
    const void* host_bottom_ = nullptr;
    std::size_t host_bytes_ = 0;
};

}  // namespace masquerade::emulator
