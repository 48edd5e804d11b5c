// SPDX-License-Identifier: MIT
#include "tests/emulator/fiber.h"

#include <sys/mman.h>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
// If an error stops a fiber, its stack is never unwound. Memory that the fiber still owns is therefore not reported as
// a leak.
extern "C" const char* __lsan_default_suppressions() { return "leak:masquerade::emulator::Fiber::begin\n"; }
extern "C" const char* __lsan_default_options() { return "print_suppressions=0"; }
#else
namespace {
void __sanitizer_start_switch_fiber(void**, const void*, std::size_t) {}
void __sanitizer_finish_switch_fiber(void*, const void**, std::size_t*) {}
}  // namespace
#define ASAN_UNPOISON_MEMORY_REGION(address, size) ((void)(address), (void)(size))
#endif

#ifndef SWITCH_BY_UCONTEXT
// Pushes the registers that a called function must preserve, and stores the stack pointer in *left. Then sets the stack
// pointer to `entered` and pops the same registers. The floating-point modes are the same in all fibers, so they are
// not switched.
extern "C" void masquerade_switch_stacks(void** left, void* entered);
asm(R"(
    .text
    .globl  masquerade_switch_stacks
    .hidden masquerade_switch_stacks
    .type   masquerade_switch_stacks, @function
masquerade_switch_stacks:
    pushq   %rbx
    pushq   %rbp
    pushq   %r12
    pushq   %r13
    pushq   %r14
    pushq   %r15
    movq    %rsp, (%rdi)
    movq    %rsi, %rsp
    popq    %r15
    popq    %r14
    popq    %r13
    popq    %r12
    popq    %rbp
    popq    %rbx
    ret
    .size   masquerade_switch_stacks, . - masquerade_switch_stacks
)");
#endif

namespace masquerade::emulator {
namespace {

constexpr std::size_t page = 4096;
Fiber* beginning = nullptr;  // the fiber that is being entered for the first time

}  // namespace

Fiber::Fiber(void* stack, std::size_t skew) : bottom_(static_cast<char*>(stack)), top_(bottom_ + bytes - skew) {
    mprotect(bottom_, page, PROT_NONE);
}

void Fiber::start(void (*body)()) {
    ASAN_UNPOISON_MEMORY_REGION(bottom_ + page, bytes - page);
    body_ = body;
    fake_here_ = nullptr;
#ifdef SWITCH_BY_UCONTEXT
    getcontext(&here_);
    here_.uc_stack.ss_sp = bottom_;
    here_.uc_stack.ss_size = std::size_t(top_ - bottom_);
    here_.uc_link = nullptr;
    makecontext(&here_, &Fiber::begin, 0);
#else
    // From low to high addresses: six registers, the address to which `ret` jumps, and the return address of begin(),
    // which is null because begin() never returns. At the start of a function, the stack pointer must be 8 below a
    // multiple of 16.
    auto* top = reinterpret_cast<void**>(top_) - 8;
    for (int i = 0; i < 8; i++) top[i] = nullptr;
    top[6] = reinterpret_cast<void*>(&Fiber::begin);
    here_ = top;
#endif
}

void Fiber::enter() {
    beginning = this;
    __sanitizer_start_switch_fiber(&fake_host_, bottom_, bytes);
#ifdef SWITCH_BY_UCONTEXT
    swapcontext(&host_, &here_);
#else
    masquerade_switch_stacks(&host_, here_);
#endif
    __sanitizer_finish_switch_fiber(fake_host_, nullptr, nullptr);
}

void Fiber::leave(bool for_good) {
    __sanitizer_start_switch_fiber(for_good ? nullptr : &fake_here_, host_bottom_, host_bytes_);
#ifdef SWITCH_BY_UCONTEXT
    swapcontext(&here_, &host_);
#else
    masquerade_switch_stacks(&here_, host_);
#endif
    __sanitizer_finish_switch_fiber(fake_here_, &host_bottom_, &host_bytes_);
}

void Fiber::begin() {
    Fiber* self = beginning;
    __sanitizer_finish_switch_fiber(nullptr, &self->host_bottom_, &self->host_bytes_);
    self->body_();
    self->leave(true);
    __builtin_trap();
}

}  // namespace masquerade::emulator
