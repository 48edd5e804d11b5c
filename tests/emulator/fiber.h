// SPDX-License-Identifier: MIT
// A stack of its own on which a function runs, is left in the middle and is resumed. One host, many fibers: all
// switches are between the host and a fiber. One thread of the operating system at a time.
#pragma once
#include <cstddef>

#if !defined(__x86_64__) || defined(FIBERS_BY_UCONTEXT)
#define SWITCH_BY_UCONTEXT
#include <ucontext.h>
#endif

namespace masquerade::emulator {

class Fiber {
  public:
    static constexpr std::size_t bytes = 65 * 4096;  // an odd number of pages: a thousand stacks share no cache set

    // On these bytes of memory, page-aligned. The lowest page is given away: a stack that overflows ends the program.
    // The stack begins `skew` bytes, a multiple of 64, below their end.
    Fiber(void* stack, std::size_t skew);
    Fiber(const Fiber&) = delete;

    // From now on enter() runs body from its beginning; what ran here before is forgotten, not unwound.
    void start(void (*body)());
    // The host's side: runs the fiber until it leaves.
    void enter();
    // The fiber's side: back to the host; `for_good` where the fiber will not be entered again.
    void leave(bool for_good);

    bool holds(const void* address) const { return address >= bottom_ && address < bottom_ + bytes; }

  private:
    static void begin();

    char *bottom_, *top_;
    void (*body_)() = nullptr;
#ifdef SWITCH_BY_UCONTEXT
    ucontext_t here_, host_;
#else
    void *here_ = nullptr, *host_ = nullptr;  // the stack pointers of who does not run
#endif
    // The state that the address sanitizer needs for a switch.
    void *fake_here_ = nullptr, *fake_host_ = nullptr;
    const void* host_bottom_ = nullptr;
    std::size_t host_bytes_ = 0;
};

}  // namespace masquerade::emulator
