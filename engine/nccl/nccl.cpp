// SPDX-License-Identifier: MIT
#include "engine/nccl/nccl.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <set>
#include <thread>

#include "engine/base/deadline.h"
#include "engine/base/log.h"
#include "engine/tensor/copy.h"
#include "engine/tensor/runtime.h"

namespace masquerade {
namespace {

template <class Function>
void find(const OpenedLibrary& opened, const char* name, Function& function) {
    function = reinterpret_cast<Function>(dlsym(opened.library, name));
    if (!function)
        throw BadInput(opened.place, " has no ", name, ": expected NCCL 2.7 or later; name another in MASQUERADE_NCCL");
}

bool any_on_gpu(const std::vector<Bytes>& all) {
    return std::any_of(all.begin(), all.end(), [](const Bytes& bytes) { return bytes.on_gpu; });
}

// torchrun tells all processes the address of one machine, and a port that torchrun itself uses there. NCCL gets the
// next port.
void choose_meeting_place() {
    const char *address = std::getenv("MASTER_ADDR"), *port = std::getenv("MASTER_PORT");
    if (std::getenv("NCCL_COMM_ID")) return;
    const int number = port ? std::atoi(port) : 0;
    if (!address || number < 1 || number > 65534)
        throw BadInput(
            "torchrun sets MASTER_ADDR and MASTER_PORT, a number below 65535, of which one is missing or wrong; or set "
            "NCCL_COMM_ID to ADDRESS:PORT, where all processes find process 0");
    const bool version_6 = std::strchr(address, ':') != nullptr;  // of IP
    setenv("NCCL_COMM_ID", text(version_6 ? "[" : "", address, version_6 ? "]:" : ":", number + 1).c_str(), 1);
}

// Opens NCCL. If this is impossible, returns nothing, and sets `why_not` to the reason.
std::optional<NcclLibrary> opened_nccl(std::string& why_not) {
    const OpenedLibrary opened = open_first(nccl_search());
    why_not = opened.reason;
    try {
        if (opened.library) return NcclLibrary(opened);
    } catch (const BadInput& e) {
        why_not = e.what();
    }
    return {};
}

// Returns the reason why the processes of MPI cannot use NCCL, the same in all processes; "" if they can. `own_reason`
// is the reason why this process cannot open it.
std::string why_no_nccl(const std::string& own_reason) {
    const DeviceFacts facts = cuda_runtime().facts();
    std::set<std::string> gpus;
    for (const std::string& gpu : gather_messages(std::string(facts.uuid, sizeof facts.uuid))) gpus.insert(gpu);
    for (const std::string& reason : gather_messages(own_reason))
        if (!reason.empty()) return reason;
    const int count = processes().count();
    return int(gpus.size()) < count ? text(count, " processes share ", gpus.size(), gpus.size() == 1 ? " GPU" : " GPUs")
                                    : "";
}

}  // namespace

NcclLibrary::NcclLibrary(const OpenedLibrary& opened) {
    find(opened, "ncclGetUniqueId", get_unique_id);
    find(opened, "ncclCommInitRank", comm_init_rank);
    find(opened, "ncclCommDestroy", comm_destroy);
    find(opened, "ncclCommGetAsyncError", comm_get_async_error);
    find(opened, "ncclSend", send);
    find(opened, "ncclRecv", recv);
    find(opened, "ncclGroupStart", group_start);
    find(opened, "ncclGroupEnd", group_end);
    find(opened, "ncclGetErrorString", get_error_string);
}

void NcclLibrary::expect(int status, const char* what) const {
    if (status != 0)
        throw Error("NCCL: ", what, " failed: ", get_error_string(status), "; with NCCL_DEBUG=WARN, it says more");
}

Nccl::Nccl(NcclLibrary library, int rank, int count, Processes* hosts)
    : library_(std::move(library)), rank_(rank), count_(count), hosts_(hosts) {
    patience = processes().patience;
    NcclLibrary::Id id{};
    if (!hosts_ || rank_ == 0) library_.expect(library_.get_unique_id(&id), "making an id");
    if (hosts_) id = gather_values(id)[0];
    const StartDeadline deadline;
    const char* const meeting = hosts_ ? nullptr : std::getenv("NCCL_COMM_ID");
    const std::string what =
        text("meeting the other processes", meeting ? " at NCCL_COMM_ID=" : "", meeting ? meeting : "");
    library_.expect(library_.comm_init_rank(&communicator_, count_, id, rank_), what.c_str());
    // NCCL connects two processes when they first exchange something.
    std::vector<char> bytes(2 * std::size_t(count_));
    std::vector<Bytes> send, receive;
    for (std::size_t i = 0; i < std::size_t(count_); i++) {
        send.push_back({&bytes[2 * i], 1});
        receive.push_back({&bytes[2 * i + 1], 1});
    }
    move(send, receive);
}

void Nccl::exchange(const std::vector<Bytes>& send, const std::vector<Bytes>& receive, int line) {
    for (int peer = 0; peer < count_; peer++)
        if (peer != rank_) bytes_sent += send[std::size_t(peer)].size;
    if (hosts_ && !any_on_gpu(send) && !any_on_gpu(receive)) return hosts_->exchange(send, receive, line);
    expect_same_place(send, receive, line);
    move(send, receive);
}

// Throws Error if another process is at another line, or sends another number of bytes than the other one receives.
// NCCL itself would wait for ever, or move the wrong bytes. Both processes notice it.
void Nccl::expect_same_place(const std::vector<Bytes>& send, const std::vector<Bytes>& receive, int line) {
    struct Place {
        std::int64_t line;
        std::uint64_t sent, expected;
    };
    std::vector<Place> mine, theirs(send.size());
    for (std::size_t i = 0; i < send.size(); i++) mine.push_back({line, send[i].size, receive[i].size});
    std::vector<Bytes> from, to;
    for (Place& place : mine) from.push_back({&place, sizeof place});
    for (Place& place : theirs) to.push_back({&place, sizeof place});
    if (hosts_)
        hosts_->exchange(from, to, line);
    else
        move(from, to);
    for (int peer = 0; peer < count_; peer++) {
        const Place &own = mine[std::size_t(peer)], &their = theirs[std::size_t(peer)];
        if (peer == rank_) continue;
        if (their.line != line || their.sent != own.expected)
            throw Error(at_different_places(peer, their.sent, int(their.line), rank_, own.expected, line));
        if (their.expected != own.sent)
            throw Error(at_different_places(rank_, own.sent, line, peer, their.expected, int(their.line)));
    }
}

void Nccl::move(const std::vector<Bytes>& send, const std::vector<Bytes>& receive) {
    std::size_t needed = 0;
    const auto place = [&](const Bytes& bytes) -> void* {  // of the bytes on the GPU
        if (bytes.on_gpu) return bytes.data;
        void* const own = on_gpu_.data() ? static_cast<char*>(on_gpu_.data()) + needed : nullptr;
        needed += (bytes.size + 63) / 64 * 64;
        return own;
    };
    for (const auto* list : {&send, &receive})
        for (const Bytes& bytes : *list) place(bytes);
    if (on_gpu_.bytes() < needed) on_gpu_ = Buffer(needed, Device::cuda);
    needed = 0;

    std::vector<void*> from, to;
    for (const Bytes& bytes : send) {
        from.push_back(place(bytes));
        if (!bytes.on_gpu) copy_bytes(bytes.data, Device::cpu, from.back(), Device::cuda, bytes.size);
    }
    for (const Bytes& bytes : receive) to.push_back(place(bytes));
    wait_for(Device::cuda);  // the time until here is not the fault of other processes
    void* const stream = cuda_runtime().stream();
    library_.expect(library_.group_start(), "beginning an exchange");
    for (std::size_t peer = 0; peer < send.size(); peer++) {
        if (int(peer) == rank_) continue;
        if (send[peer].size > 0)
            library_.expect(library_.send(from[peer], send[peer].size, NcclLibrary::of_bytes, int(peer), communicator_,
                                          stream),
                            "sending");
        if (receive[peer].size > 0)
            library_.expect(library_.recv(to[peer], receive[peer].size, NcclLibrary::of_bytes, int(peer), communicator_,
                                          stream),
                            "receiving");
    }
    library_.expect(library_.group_end(), "starting an exchange");
    wait();
    for (std::size_t peer = 0; peer < receive.size(); peer++)
        if (int(peer) != rank_ && !receive[peer].on_gpu)
            copy_bytes(to[peer], Device::cuda, receive[peer].data, Device::cpu, receive[peer].size);
}

// Waits until the exchange is done.
void Nccl::wait() {
    Waited time;
    for (;;) {
        int status = 0;
        library_.expect(library_.comm_get_async_error(communicator_, &status), "asking about an exchange");
        if (status != 0)
            fail(text("the exchange with other processes has failed: ", library_.get_error_string(status)));
        if (cuda_runtime().finished()) return;
        const double waited = time.seconds();
        // Each process waits a little longer than the one before it, so that one of them alone reports the error.
        if (waited > patience + rank_)
            fail(text("has waited ", patience,
                      " s for the others: does one of them hang, or is its machine gone? A "
                      "larger --patience waits longer"));
        if (waited > 1e-3) std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
}

void Nccl::fail(const std::string& why) {
    log_line("error: process ", rank_, " of ", count_, ": ", why);
    Nccl::abort(1);
}

void Nccl::abort(int status) {
    if (hosts_) hosts_->abort(status);
    std::_Exit(status);  // torchrun then ends the others
}

void Nccl::leave() {
    library_.expect(library_.comm_destroy(communicator_), "leaving");
    if (hosts_) hosts_->leave();
}

void meet_by_nccl(Device device) {
    const Launch launch = launched();
    const bool by_mpi = !alone();
    if (launch.count == 1) return;
    const std::vector<Device> devices = gather_values(device);
    for (std::size_t i = 0; i < devices.size(); i++)
        if (devices[i] != devices[0])
            throw BadUsage("processes 0 and ", i, " have chosen different devices, ", name_of(devices[0]), " and ",
                           name_of(devices[i]), ": name one for all of them with --device");
    if (by_mpi && device == Device::cpu) return;
    const std::string started = text(launch.by, " has started ", launch.count, " processes, which exchange by NCCL");
    if (device == Device::cpu)
        throw BadInput(started, ", and NCCL works on GPUs only: give --device cuda, or start them by mpirun or srun");
    std::string why_not;
    const std::optional<NcclLibrary> library = opened_nccl(why_not);
    if (by_mpi) why_not = why_no_nccl(why_not);
    if (!why_not.empty() && !by_mpi) throw BadInput(started, ", but ", why_not);
    if (!why_not.empty())
        return log_line("note: ", why_not,
                        "; without NCCL, gradients pass through the memory of the host, which is "
                        "slower");
    if (!by_mpi) choose_meeting_place();
    use_processes(new Nccl(*library, launch.rank, launch.count, by_mpi ? &processes() : nullptr));
}

}  // namespace masquerade
