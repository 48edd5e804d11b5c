// SPDX-License-Identifier: MIT
// Threads of the CPU ops. Work is cut into pieces; the result of a piece does not depend on the thread that runs it.
#pragma once
#include <cstdint>
#include <functional>
#include <type_traits>

namespace masquerade {

// The number of threads of the ops: set by the program (--threads), else as many as affinity mask and cgroup quota
// allow.
int threads();
void set_threads(int count);

namespace detail {
void run_pieces(std::int64_t pieces, void (*piece)(void*, std::int64_t), void* context);

// Calls f(...), compiled once and never inlined: a compiler may vectorise two copies of a sum in different orders, and
// then the bits would depend on how the work is cut.
template <class F, class... Numbers>
[[gnu::noinline, gnu::noclone]] void call(F& f, Numbers... numbers) {
    f(numbers...);
}
}  // namespace detail

// Cuts [0, n) into pieces, at most one per thread and at most n / grain (rounded up), and calls f(begin, end) for each.
// A single piece runs in the calling thread.
template <class F>
void parallel_for(std::int64_t n, std::int64_t grain, F f) {
    if (n <= 0) return;
    std::int64_t most = std::int64_t(threads()), pieces = (n + grain - 1) / grain;
    if (pieces > most) pieces = most;
    if (pieces <= 1) return detail::call(f, std::int64_t(0), n);
    struct Context {
        F* f;
        std::int64_t n, pieces;
    } context{&f, n, pieces};
    detail::run_pieces(
        pieces,
        [](void* p, std::int64_t i) {
            auto& c = *static_cast<Context*>(p);
            detail::call(*c.f, c.n * i / c.pieces, c.n * (i + 1) / c.pieces);
        },
        &context);
}

// Calls f(i) for i in [0, n). Each i is a piece of work, which the next free thread runs.
template <class F>
void parallel_each(std::int64_t n, F f) {
    if (n <= 1 || threads() <= 1) {
        for (std::int64_t i = 0; i < n; i++) detail::call(f, i);
        return;
    }
    detail::run_pieces(
        n, [](void* p, std::int64_t i) { detail::call(*static_cast<F*>(p), i); }, &f);
}

}  // namespace masquerade
