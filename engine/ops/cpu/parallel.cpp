// SPDX-License-Identifier: MIT
// A pool of threads for many short calls. A worker thread without work spins for some microseconds, then sleeps. The
// calling thread works too. The work of a call is cut into pieces. Each thread claims one piece after another, so that
// the call need not wait for a worker that has not begun.
#include "engine/ops/cpu/parallel.h"

#include <pthread.h>

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <fstream>
#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "engine/base/log.h"

namespace masquerade {
namespace {

// Returns the number of threads that the process may use: the processors of its affinity mask, or fewer if its control
// group limits the processor time.
int allowed_threads() {
    cpu_set_t set;
    int n = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : int(std::thread::hardware_concurrency());
    std::ifstream file("/sys/fs/cgroup/cpu.max");  // "quota period", in microseconds; the quota may be "max"
    std::string quota;
    double period = 0;
    if (file >> quota >> period && quota != "max" && period > 0) n = std::min(n, int(std::stod(quota) / period + 0.5));
    return std::max(1, n);
}

int chosen_threads = 0;
thread_local bool inside_piece = false;

void pause_briefly() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

using Piece = void (*)(void*, std::int64_t);

class Pool {
  public:
    ~Pool() {
        {
            std::lock_guard<std::mutex> lock(sleep_);
            stopping_ = true;
        }
        wake_.notify_all();
        for (std::thread& w : workers_) w.join();
    }

    void run(std::int64_t pieces, Piece piece, void* context, int team) {
        const std::string warning = run_alone(pieces, piece, context, team);
        if (!warning.empty()) log_line(warning);  // without a lock, because a user's log function may call the library
    }

  private:
    // Runs the pieces when no other call is running. Returns a warning, or an empty string.
    std::string run_alone(std::int64_t pieces, Piece piece, void* context, int team) {
        std::lock_guard<std::mutex> one_caller(calls_);
        const std::string warning = make_workers(team - 1);
        std::uint64_t generation = (ticket_.load() >> 32) + 2;
        ticket_ = (generation - 1) << 32;  // an odd generation: no piece can be claimed while the new job is set up
        piece_ = piece;
        context_ = context;
        pieces_ = std::uint32_t(pieces);
        team_ = team;
        done_ = 0;
        thrown_ = nullptr;
        {
            std::lock_guard<std::mutex> lock(sleep_);
            ticket_ = generation << 32;
        }
        if (sleeping_ > 0) wake_.notify_all();
        while (claim_and_run()) {
        }
        for (int spins = 0; done_.load() != std::uint32_t(pieces); spins++) {
            if (spins < 4000)
                pause_briefly();
            else
                std::this_thread::yield();
        }
        if (thrown_) std::rethrow_exception(thrown_);
        return warning;
    }

    // Creates workers until there are `count`. If the system refuses to create another thread, returns a warning; the
    // threads that exist then do the work, now and in later jobs. Results do not depend on the number of threads.
    std::string make_workers(int count) {
        try {
            while (int(workers_.size()) < std::min(count, most_workers_))
                workers_.emplace_back([this, me = int(workers_.size())] { work(me); });
        } catch (const std::system_error& e) {
            most_workers_ = int(workers_.size());
            return text("warning: only ", most_workers_ + 1, " of ", count + 1, " threads could be created (",
                        e.code().message(), "); they do all the work");
        }
        return "";
    }

    // Claims the next piece of the job (one call of run()) and runs the piece; returns false if there is none. The
    // upper half of the ticket is the generation, which changes with each job; the lower half is the number of the next
    // piece. A claim succeeds only if the ticket has not changed since it was read, so that a piece never runs with the
    // function of another job.
    bool claim_and_run() {
        std::uint64_t ticket = ticket_.load();
        for (;;) {
            Piece piece = piece_;
            void* context = context_;
            if ((ticket >> 32) % 2 || std::uint32_t(ticket) >= pieces_) return false;
            if (!ticket_.compare_exchange_weak(ticket, ticket + 1)) continue;
            inside_piece = true;
            try {
                piece(context, std::int64_t(std::uint32_t(ticket)));
            } catch (...) {
                std::lock_guard<std::mutex> lock(sleep_);
                if (!thrown_) thrown_ = std::current_exception();
            }
            inside_piece = false;
            done_++;
            return true;
        }
    }

    bool work_for(int me) {
        std::uint64_t ticket = ticket_.load();
        return (ticket >> 32) % 2 == 0 && std::uint32_t(ticket) < pieces_ && me < team_ - 1;
    }

    void work(int me) {
        for (;;) {
            int spins = 0;
            while (spins < 4000 && !work_for(me)) {
                pause_briefly();
                spins++;
            }
            if (spins == 4000) {
                std::unique_lock<std::mutex> lock(sleep_);
                sleeping_++;
                wake_.wait(lock, [&] { return stopping_ || work_for(me); });
                sleeping_--;
                if (stopping_) return;
            }
            while (work_for(me) && claim_and_run()) {
            }
        }
    }

    std::mutex calls_, sleep_;
    std::condition_variable wake_;
    std::vector<std::thread> workers_;
    int most_workers_ = std::numeric_limits<int>::max();  // the number of workers at which creating one more failed
    std::atomic<std::uint64_t> ticket_{0};
    std::atomic<Piece> piece_{nullptr};
    std::atomic<void*> context_{nullptr};
    std::atomic<std::uint32_t> pieces_{0}, done_{0};
    std::atomic<int> team_{1}, sleeping_{0};
    std::exception_ptr thrown_;
    bool stopping_ = false;
};

// Returns the pool of the process. A child of fork() has none of the threads of its parent's pool, and gets a pool of
// its own: a mutex of the old one may be locked for ever. The old one is not destroyed in the child, because the
// destructor of the condition variable would wait for ever for threads that do not exist there.
Pool& pool() {
    static auto kept = std::make_unique<Pool>();
    [[maybe_unused]] static const int at_fork = pthread_atfork(nullptr, nullptr, [] {
        static_cast<void>(kept.release());
        kept = std::make_unique<Pool>();
    });
    return *kept;
}

}  // namespace

int threads() {
    if (chosen_threads == 0) chosen_threads = allowed_threads();
    return chosen_threads;
}

void set_threads(int count) { chosen_threads = count > 0 ? count : allowed_threads(); }

namespace detail {

void run_pieces(std::int64_t pieces, void (*piece)(void*, std::int64_t), void* context) {
    if (pieces <= 1 || inside_piece || threads() == 1) {
        for (std::int64_t i = 0; i < pieces; i++) piece(context, i);
        return;
    }
    pool().run(pieces, piece, context, int(std::min<std::int64_t>(pieces, threads())));
}

}  // namespace detail

}  // namespace masquerade
