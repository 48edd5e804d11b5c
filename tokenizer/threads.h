// SPDX-License-Identifier: MIT
// Work shared out to threads, and its errors brought back.
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

// Calls work(i) for every i below `count`, in several threads, each with a `work` of its own. If calls fail, the
// lowest i's error is thrown: a failure stops all threads, but every lower i was taken before and is finished.
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
    } catch (const std::system_error&) {  // no more threads to be had: fewer do
    } catch (const std::bad_alloc&) {
    }
    run();
    for (std::thread& other : others) other.join();
    if (error) std::rethrow_exception(error);
}

}  // namespace masquerade
