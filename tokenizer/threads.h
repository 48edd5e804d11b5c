// SPDX-License-Identifier: MIT
// Distributes calls among several threads and rethrows an exception of a call.
#pragma once
#include <atomic>
#include <cstddef>
#include <exception>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>
#include <vector>

namespace masquerade {

// Calls work(i) for every i below `count` in several threads. Each thread gets its own `work` from make_work(). If a
// call throws, no new calls begin. After the running calls have ended, the exception of the failed call with the lowest
// i is rethrown. Calls begin in the order of i, so all calls with a lower i have succeeded.
template <class MakeWork>
void share_out(int threads, std::size_t count, MakeWork make_work) {
    std::atomic<std::size_t> next{0};
    std::mutex mutex;
    std::exception_ptr error;
    std::size_t failed = 0;
    auto run = [&] {
        std::size_t i = count;
        try {
            auto work = make_work();
            while ((i = next++) < count) work(i);
        } catch (...) {
            std::lock_guard<std::mutex> lock(mutex);
            next = count;
            if (error && failed < i) return;
            error = std::current_exception();
            failed = i;
        }
    };
    std::vector<std::thread> others;
    try {
        for (int t = 1; t < threads; t++) others.emplace_back(run);
    } catch (const std::system_error&) {  // no more threads are available: continue with fewer threads
    } catch (const std::bad_alloc&) {
    }
    run();
    for (std::thread& other : others) other.join();
    if (error) std::rethrow_exception(error);
}

}  // namespace masquerade
