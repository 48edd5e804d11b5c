// SPDX-License-Identifier: MIT
// Runs the work of CPU ops on several threads. The work is cut into pieces, and a free thread runs the next piece. The
// result of a piece must not depend on the thread that runs it.
#pragma once
#include <algorithm>
#include <cstdint>
#include <functional>

namespace masquerade {

// The number of threads on which ops run. If the program has not set it (--threads), it is the number that the
// affinity mask and the cgroup quota of the process allow. set_threads(0) restores this default.
int threads();
void set_threads(int count);

namespace detail {
void run_pieces(std::int64_t pieces, void (*piece)(void*, std::int64_t), void* context);

// Calls f(...). This function is never inlined or copied, so that f is compiled only once. A compiler may vectorise
// two copies of a sum in different orders; the bits would then depend on how the work is cut.
template <class F, class... Numbers>
[[gnu::noinline, gnu::noclone]] void call(F& f, Numbers... numbers) {
    f(numbers...);
}
}  // namespace detail

// Calls f(i) for i in [0, n). Each i is a piece of work, which the next free thread runs. A single piece runs in the
// calling thread.
template <class F>
void parallel_each(std::int64_t n, F f) {
    detail::run_pieces(
        n, [](void* p, std::int64_t i) { detail::call(*static_cast<F*>(p), i); }, &f);
}

// Cuts [0, n) into at most n / grain pieces (rounded up), but not more than one per thread, and calls f(begin, end)
// for each piece.
template <class F>
void parallel_for(std::int64_t n, std::int64_t grain, F f) {
    const std::int64_t pieces = std::min<std::int64_t>((n + grain - 1) / grain, threads());
    parallel_each(pieces, [&](std::int64_t i) { detail::call(f, n * i / pieces, n * (i + 1) / pieces); });
}

}  // namespace masquerade
