// SPDX-License-Identifier: MIT
// The exchange between processes by NCCL, which moves bytes from the memory of one GPU to that of another. The library
// is opened only if several processes use GPUs. The functions are declared here, so that no header of NCCL is needed to
// compile them.
#pragma once
#include "engine/base/library_places.h"
#include "engine/base/processes.h"
#include "engine/tensor/buffer.h"

namespace masquerade {

// The functions of NCCL 2 that are used, found by name in the opened library. All but get_error_string() return 0 for
// success.
struct NcclLibrary {
    struct Id {
        char bytes[128];
    };
    struct Communicator;
    static constexpr int of_bytes = 0;  // ncclInt8: a count of numbers of this type is a count of bytes

    // Throws BadInput if the library lacks a function, as before NCCL 2.7.
    explicit NcclLibrary(const OpenedLibrary& opened);
    // Throws Error if `status` is not a success. `what` says what has failed.
    void expect(int status, const char* what) const;

    int (*get_unique_id)(Id* id);
    int (*comm_init_rank)(Communicator** made, int count, Id id, int rank);
    int (*comm_destroy)(Communicator*);
    int (*comm_get_async_error)(Communicator*, int* status);
    int (*send)(const void* data, std::size_t count, int type, int peer, Communicator*, void* stream);
    int (*recv)(void* data, std::size_t count, int type, int peer, Communicator*, void* stream);
    int (*group_start)();
    int (*group_end)();
    const char* (*get_error_string)(int status);
};

// The processes of a communicator of NCCL. Device::cuda must be in use.
class Nccl : public Processes {
  public:
    // Waits until all processes have called this, and have sent a byte to one another. `hosts` moves the bytes on
    // hosts; if it is null, NCCL does, through a buffer on the GPU. With `hosts`, process 0 makes the id of the
    // communicator, and `hosts` brings it to the others. Otherwise, the environment variable NCCL_COMM_ID,
    // ADDRESS:PORT, says where NCCL finds process 0.
    Nccl(NcclLibrary library, int rank, int count, Processes* hosts);
    int rank() const override { return rank_; }
    int count() const override { return count_; }
    bool reaches_gpus() const override { return true; }
    // Bytes on a GPU are sent after all work that was requested before from this GPU. If an exchange fails, calls
    // abort(), because no more work can be requested from a GPU that waits for another one, not even to release memory.
    void exchange(const std::vector<Bytes>& send, const std::vector<Bytes>& receive, int line) override;
    [[noreturn]] void abort(int status) override;
    void leave() override;

  private:
    void expect_same_place(const std::vector<Bytes>& send, const std::vector<Bytes>& receive, int line);
    void move(const std::vector<Bytes>& send, const std::vector<Bytes>& receive);
    void wait();
    [[noreturn]] void fail(const std::string& why);

    const NcclLibrary library_;
    NcclLibrary::Communicator* communicator_ = nullptr;
    const int rank_, count_;
    Processes* const hosts_;
    Buffer on_gpu_;  // copies of bytes on the host, while NCCL moves them
};

// All processes must call this after they have chosen their devices. If they have chosen GPUs, opens NCCL; from then
// on, processes() moves bytes on GPUs by NCCL. If that is impossible, because two processes share a GPU or one of them
// does not find NCCL, a note says why, and bytes on a GPU have to pass through the host. The processes of torchrun have
// no MPI, so they cannot go on without NCCL, nor on the CPU: throws BadInput. Throws BadUsage if some of the processes
// have chosen GPUs and others the CPU.
void meet_by_nccl(Device device);

}  // namespace masquerade
