// SPDX-License-Identifier: MIT
// Distributes calls among several threads and rethrows an exception of a call.
#pragma once
#include <atomic>
#include <cstddef>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace masquerade {

// Calls work(i) for every i below `count` in several threads. Each thread gets its own `work` from make_work(). If a
// call throws, no new calls begin, and after the running calls have ended, the first exception is rethrown.
template <class MakeWork>
void share_out(int threads, std::size_t count, MakeWork make_work) {
    std::atomic<std::size_t> next{0};
    std::mutex mutex;
    std::exception_ptr error;
    auto run = [&] {
        try {
            auto work = make_work();
            for (std::size_t i; (i = next++) < count;) work(i);
        } catch (...) {
            std::lock_guard<std::mutex> lock(mutex);
            next = count;
            if (!error) error = std::current_exception();
        }
    };
    std::vector<std::thread> others;
    try {
        for (int t = 1; t < threads; t++) others.emplace_back(run);
    } catch (const std::exception&) {  // no more threads or no more memory: continue with fewer threads
    }
    run();
    for (std::thread& other : others) other.join();
    if (error) std::rethrow_exception(error);
}

}  // namespace masquerade
