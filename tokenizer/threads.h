// SPDX-License-Identifier: MIT
// Runs work in several threads and rethrows the errors.
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

// Calls work(i) for every i below `count` in several threads; each thread makes its own `work`. If calls throw, no new
// calls begin, and the exception with the lowest i is rethrown. Calls begin in order of i, so all calls with a lower i
// have finished.
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
    } catch (const std::system_error&) {  // no more threads available: continue with fewer
    } catch (const std::bad_alloc&) {
    }
    run();
    for (std::thread& other : others) other.join();
    if (error) std::rethrow_exception(error);
}

}  // namespace masquerade
