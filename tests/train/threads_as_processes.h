// SPDX-License-Identifier: MIT
// Threads of the test that play the processes of a run (engine/base/processes.h).
#pragma once
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "engine/base/processes.h"

namespace masquerade {

class Meeting {
  public:
    explicit Meeting(int count) : count_(count), sent_(std::size_t(count)), lines_(std::size_t(count)) {}
    int count() const { return count_; }
    void exchange(int rank, const std::vector<Bytes>& send, const std::vector<Bytes>& receive, int line) {
        sent_[std::size_t(rank)] = send;
        lines_[std::size_t(rank)] = line;
        meet();
        for (std::size_t i = 0; i < receive.size(); i++) {
            const Bytes& from = sent_[i][std::size_t(rank)];
            if (int(i) == rank) continue;
            if (lines_[i] != line) at_other_places = true;
            if (from.size != receive[i].size) wrong_sizes = true;
            if (from.size == receive[i].size && from.size > 0) std::memcpy(receive[i].data, from.data, from.size);
        }
        meet();
    }
    std::atomic<bool> wrong_sizes{false}, at_other_places{false};

  private:
    void meet() {  // waits for all threads
        std::unique_lock<std::mutex> lock(mutex_);
        const int turn = turn_;
        if (++here_ == count_) {
            here_ = 0;
            turn_++;
            all_here_.notify_all();
        }
        all_here_.wait(lock, [&] { return turn_ != turn; });
    }

    const int count_;
    std::vector<std::vector<Bytes>> sent_;
    std::vector<int> lines_;
    std::mutex mutex_;
    std::condition_variable all_here_;
    int here_ = 0, turn_ = 0;
};

// Calls work(rank) in `count` threads. An error of work() must occur in all of them, or the others wait for ever; it is
// thrown again.
inline void as_processes(int count, const std::function<void(int)>& work) {
    class Player : public Processes {
      public:
        Player(Meeting& meeting, int rank) : meeting_(meeting), rank_(rank) {}
        int rank() const override { return rank_; }
        int count() const override { return meeting_.count(); }
        void exchange(const std::vector<Bytes>& send, const std::vector<Bytes>& receive, int line) override {
            meeting_.exchange(rank_, send, receive, line);
        }
        [[noreturn]] void abort(int) override { std::terminate(); }
        void leave() override {}

      private:
        Meeting& meeting_;
        const int rank_;
    };
    Meeting meeting(count);
    std::vector<std::exception_ptr> thrown(static_cast<std::size_t>(count));
    std::vector<std::thread> threads;
    for (int rank = 0; rank < count; rank++)
        threads.emplace_back([&, rank] {
            Player player(meeting, rank);
            use_processes(&player);
            try {
                work(rank);
            } catch (...) {
                thrown[std::size_t(rank)] = std::current_exception();
            }
            use_processes(nullptr);
        });
    for (std::thread& each : threads) each.join();
    for (const std::exception_ptr& each : thrown)
        if (each) std::rethrow_exception(each);
    if (meeting.at_other_places) throw std::runtime_error("processes have come to different places of the program");
    if (meeting.wrong_sizes) throw std::runtime_error("processes disagree about the size of a message");
}

}  // namespace masquerade
