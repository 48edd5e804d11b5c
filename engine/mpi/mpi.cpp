// SPDX-License-Identifier: MIT
// The exchange between processes by MPI (MPI 3.1, The MPI Forum 2015). It is a shared library of its own, so that the
// programs need MPI only if mpirun or srun starts them.
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <thread>

#include "engine/base/deadline.h"
#include "engine/base/mpi_library.h"
#include "engine/base/other_process.h"

namespace masquerade {
namespace {

class Mpi : public Processes {
  public:
    Mpi() {
        const StartDeadline deadline;
        int provided = 0;  // only the thread that trains calls MPI
        MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided);
        MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
        MPI_Comm_size(MPI_COMM_WORLD, &count_);
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);  // a message that is longer than expected
        all_.resize(std::size_t(count_));
        const OtherProcess self = OtherProcess::self();
        MPI_Allgather(&self, sizeof self, MPI_BYTE, all_.data(), sizeof self, MPI_BYTE, MPI_COMM_WORLD);
    }
    int rank() const override { return rank_; }
    int count() const override { return count_; }

    void exchange(const std::vector<Bytes>& send, const std::vector<Bytes>& receive, int line) override {
        requests_.clear();
        peers_.clear();
        sizes_.clear();
        receives_ = 0;
        for (const bool sends : {false, true})
            for (int peer = 0; peer < count_; peer++)
                if (peer != rank_) request((sends ? send : receive)[std::size_t(peer)], peer, sends, line);
        wait(line);
        for (std::size_t i = 0; i < receives_; i++) expect_own_place(i, line);
    }

    // Informs the others, so that they do not report the end of this process as well: it has printed the reason.
    [[noreturn]] void abort(int status) override {
        std::vector<MPI_Request> told(std::size_t(count_), MPI_REQUEST_NULL);
        for (int peer = 0; peer < count_; peer++)
            if (peer != rank_) MPI_Isend(nullptr, 0, MPI_BYTE, peer, aborts, MPI_COMM_WORLD, &told[std::size_t(peer)]);
        int done = 0;
        MPI_Testall(count_, told.data(), &done, MPI_STATUSES_IGNORE);
        MPI_Abort(MPI_COMM_WORLD, status);
        std::_Exit(status);
    }

    void leave() override { MPI_Finalize(); }

  private:
    // Requests the messages that carry these bytes. A message of MPI has at most 2^31 - 1 bytes.
    void request(const Bytes& bytes, int peer, bool sends, int line) {
        constexpr std::size_t largest = std::size_t(1) << 30;
        for (std::size_t from = 0; from < bytes.size; from += largest) {
            char* const at = static_cast<char*>(bytes.data) + from;
            const int size = int(std::min(largest, bytes.size - from));
            MPI_Request& made = requests_.emplace_back();
            peers_.push_back(peer);
            sizes_.push_back(size);
            receives_ += !sends;
            if (sends)
                MPI_Isend(at, size, MPI_BYTE, peer, line, MPI_COMM_WORLD, &made);
            else
                MPI_Irecv(at, size, MPI_BYTE, peer, MPI_ANY_TAG, MPI_COMM_WORLD, &made);
        }
        if (sends) bytes_sent += bytes.size;
    }

    // Ends all processes if message i, which has arrived, was sent from another line of the source.
    void expect_own_place(std::size_t i, int line) {
        int bytes = 0;
        MPI_Get_count(&statuses_[i], MPI_BYTE, &bytes);
        if (statuses_[i].MPI_TAG == line && bytes == sizes_[i]) return;
        if (statuses_[i].MPI_TAG == aborts) std::_Exit(1);
        fail(at_different_places(peers_[i], std::size_t(bytes), statuses_[i].MPI_TAG, rank_, std::size_t(sizes_[i]),
                                 line));
    }

    [[noreturn]] void fail(const std::string& why) {
        log_error(why);
        abort(1);
    }

    // Reports an error of MPI_Testall, and ends all processes. One process may have sent more than another expects.
    [[noreturn]] void fail(int error, int line) {
        for (std::size_t i = 0; error == MPI_ERR_IN_STATUS && i < requests_.size(); i++) {
            const int own = statuses_[i].MPI_ERROR;
            if (own == MPI_SUCCESS || own == MPI_ERR_PENDING) continue;
            error = own;
            if (i < receives_ && own == MPI_ERR_TRUNCATE) expect_own_place(i, line);
        }
        char words[MPI_MAX_ERROR_STRING] = "";
        int length = 0;
        MPI_Error_string(error, words, &length);
        fail(text("process ", rank_, " cannot exchange messages: ", words));
    }

    // Waits until all messages have arrived. At first asks without a pause, then at growing intervals, because other
    // processes may need this processor to compute what this process waits for.
    void wait(int line) {
        Waited time;
        statuses_.resize(requests_.size());
        auto pause = std::chrono::microseconds(0);
        for (double next_look = 0.05;;) {
            int done = 0;
            const int error = MPI_Testall(int(requests_.size()), requests_.data(), &done, statuses_.data());
            if (error != MPI_SUCCESS) fail(error, line);
            if (done) return;
            const double waited = time.seconds();
            if (waited < 50e-6) continue;
            if (waited > next_look) {
                next_look = waited + 0.05;
                expect_living(line);
                // Each process waits a little longer than the one before it, so that one of them alone reports the
                // error.
                if (waited > patience + rank_) report();
            }
            std::this_thread::sleep_for(pause);
            pause = std::min(pause + std::chrono::microseconds(5), std::chrono::microseconds(500));
        }
    }

    // Ends all processes if one of this machine has ended. The living process with the lowest rank reports this; the
    // others leave it the time to do so.
    void expect_living(int line) {
        const int ended = first_in_state('Z');
        if (ended < 0) {
            dead_looks_ = 0;
            return;
        }
        // It may have told the others before it ended, in place of a message that this process expects, or besides.
        int told = 0;
        MPI_Iprobe(MPI_ANY_SOURCE, aborts, MPI_COMM_WORLD, &told, MPI_STATUS_IGNORE);
        if (told) std::_Exit(1);
        for (std::size_t i = 0; i < receives_; i++) {
            int done = 0;
            MPI_Request_get_status(requests_[i], &done, &statuses_[i]);
            if (done) expect_own_place(i, line);
        }
        const int before = int(std::count_if(all_.begin(), all_.begin() + rank_, [&](const OtherProcess& each) {
            const char state = each.state(all_[std::size_t(rank_)]);
            return state != 'Z' && state != '?';
        }));
        if (dead_looks_++ < 2 * before) return;
        fail(text("process ", ended, " of ", count_, " (PID ", all_[std::size_t(ended)].pid,
                  ") has ended without a message, so the others end, too: was it killed, perhaps for lack of memory?"));
    }

    // Returns the lowest rank of a process of this machine that is in this state (OtherProcess::state), or -1.
    int first_in_state(char state) const {
        for (int peer = 0; peer < count_; peer++)
            if (peer != rank_ && all_[std::size_t(peer)].state(all_[std::size_t(rank_)]) == state) return peer;
        return -1;
    }

    // Names a process that is stopped, or one that has not answered; it may wait for yet another one itself.
    void report() {
        int silent = first_in_state('T');
        for (std::size_t i = 0; i < requests_.size() && silent < 0; i++) {
            int done = 0;
            MPI_Request_get_status(requests_[i], &done, MPI_STATUS_IGNORE);
            if (!done) silent = peers_[i];
        }
        if (silent < 0) return;  // all messages have arrived meanwhile
        fail(text("process ", silent, " of ", count_, " has not answered process ", rank_, " for ", patience,
                  " s: does it hang, or is its machine gone? A larger --patience waits longer"));
    }

    static constexpr int aborts = 32767;  // the tag of a message that says that its sender ends all processes
    int rank_ = 0, count_ = 1;
    std::vector<OtherProcess> all_;  // by rank
    int dead_looks_ = 0;             // how often this process has seen that another one has ended
    std::vector<MPI_Request> requests_;
    std::vector<int> peers_, sizes_;  // the process and the bytes of each request
    std::size_t receives_ = 0;        // the first requests receive
    std::vector<MPI_Status> statuses_;
};

}  // namespace
}  // namespace masquerade

const char* masquerade_mpi_stamp() { return mpi_stamp; }

masquerade::Processes* masquerade_mpi_join() {
    static masquerade::Processes* const all = new masquerade::Mpi;
    return all;
}
