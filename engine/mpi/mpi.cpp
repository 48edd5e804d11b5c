// SPDX-License-Identifier: MIT
// The exchange between processes by MPI (MPI 3.1, The MPI Forum 2015). It is a shared library of its own, so that the
// programs need MPI only if mpirun or srun starts them.
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <thread>

#include "engine/base/deadline.h"
#include "engine/base/mpi_library.h"

namespace masquerade {
namespace {

class Mpi : public Processes {
  public:
    Mpi() {
        int provided = 0;  // only the thread that trains calls MPI
        {
            const StartDeadline deadline;
            MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided);
        }
        MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
        MPI_Comm_size(MPI_COMM_WORLD, &count_);
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);  // a message that is longer than expected
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

    [[noreturn]] void abort(int status) override {
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
        const std::string error = at_different_places(peers_[i], std::size_t(bytes), statuses_[i].MPI_TAG, rank_,
                                                      std::size_t(sizes_[i]), line);
        std::fprintf(stderr, "error: %s\n", error.c_str());
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
        std::fprintf(stderr, "error: process %d cannot exchange messages: %s\n", rank_, words);
        abort(1);
    }

    // Waits until all messages have arrived. At first asks without a pause, then at growing intervals, because other
    // processes may need this processor to compute what this process waits for.
    void wait(int line) {
        Waited time;
        statuses_.resize(requests_.size());
        auto pause = std::chrono::microseconds(0);
        for (;;) {
            int done = 0;
            const int error = MPI_Testall(int(requests_.size()), requests_.data(), &done, statuses_.data());
            if (error != MPI_SUCCESS) fail(error, line);
            if (done) return;
            const double waited = time.seconds();
            if (waited < 50e-6) continue;
            // Each process waits a little longer than the one before it, so that one of them alone reports the error.
            if (waited > patience + rank_) report();
            std::this_thread::sleep_for(pause);
            pause = std::min(pause + std::chrono::microseconds(5), std::chrono::microseconds(500));
        }
    }

    [[noreturn]] void report() {
        for (std::size_t i = 0; i < requests_.size(); i++) {
            int done = 0;
            MPI_Test(&requests_[i], &done, MPI_STATUS_IGNORE);
            if (done) continue;
            std::fprintf(stderr,
                         "error: process %d of %d has not answered process %d for %.0f s: does it hang, or is its "
                         "machine gone? A larger --patience waits longer\n",
                         peers_[i], count_, rank_, patience);
            break;
        }
        abort(1);
    }

    int rank_ = 0, count_ = 1;
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
