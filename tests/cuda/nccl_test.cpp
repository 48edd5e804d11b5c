// SPDX-License-Identifier: MIT
// Tests the exchange by NCCL. Child processes of the test use the fake GPU (tests/cuda/library/fake.cpp) and the fake
// NCCL (tests/nccl/fake.cpp). Where a GPU and NCCL answer, one process sends to itself by the real library.
#include "engine/nccl/nccl.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>

#include "tests/cuda/gpu.h"

using namespace masquerade;

namespace {

// Runs work(processes) in `count` child processes, which NCCL has joined. Returns what each of them writes to its
// string: the last string of work(), or the message of an exception.
std::vector<std::string> by_children(int count, const std::function<std::string(Nccl&)>& work) {
    const TemporaryFolder folder;
    // A copy of the fake GPU, because this program may have opened the library with memory that NCCL cannot reach.
    const std::string gpu = folder.file("gpu.so");
    std::filesystem::copy_file(beside_the_tests("fake_cuda.so"), gpu);
    std::vector<pid_t> children;
    for (int rank = 0; rank < count; rank++) {
        children.push_back(fork());
        if (children.back() != 0) continue;
        std::string said;
        try {
            setenv("MASQUERADE_FAKE_OPEN", "1", 1);
            setenv("NCCL_COMM_ID", "test", 1);
            setenv("TMPDIR", folder.path.c_str(), 1);
            setenv("MASQUERADE_NCCL", beside_the_tests("fake_nccl.so").c_str(), 1);
            use_cuda_library(&open_cuda_library(gpu));
            Nccl all(NcclLibrary(open_first(nccl_search())), rank, count, nullptr);
            use_processes(&all);
            said = work(all);
        } catch (const std::exception& e) {
            said = e.what();
        }
        folder.write(text("said-", rank), said);
        _exit(0);
    }
    std::vector<std::string> all;
    for (int rank = 0; rank < count; rank++) {
        int status = 0;
        waitpid(children[std::size_t(rank)], &status, 0);
        CHECK(status == 0);  // 3: the fake NCCL has failed
        std::ifstream file(folder.file(text("said-", rank)));
        std::getline(file, all.emplace_back());
    }
    return all;
}

}  // namespace

TEST_CASE("nccl: bytes of hosts and of GPUs arrive, of any size") {
    // Process i sends 1000 i + j bytes to process j, which are all i + 10 j; from GPU to GPU if `on_gpu`.
    const auto work = [](Nccl& all) -> std::string {
        const std::size_t count = std::size_t(all.count()), own = std::size_t(all.rank());
        for (const bool on_gpu : {true, false}) {
            const Device device = on_gpu ? Device::cuda : Device::cpu;
            std::vector<Buffer> buffers;
            std::vector<Bytes> send, receive;
            for (std::size_t peer = 0; peer < count; peer++) {
                const std::size_t sizes[] = {own == 1 ? 0 : 1000 * own + peer, peer == 1 ? 0 : 1000 * peer + own};
                for (const bool sent : {true, false}) {
                    Buffer& buffer = buffers.emplace_back(sizes[sent ? 0 : 1], device);
                    (sent ? send : receive).push_back({buffer.data(), buffer.bytes(), on_gpu});
                }
                fill_bytes(send.back().data, int(own + 10 * peer), send.back().size, device);
            }
            all.exchange(send, receive, __LINE__);
            for (std::size_t peer = 0; peer < count; peer++) {
                if (peer == own) continue;
                std::string found(receive[peer].size, 0);
                copy_bytes(receive[peer].data, device, found.data(), Device::cpu, found.size());
                if (found != std::string(found.size(), char(peer + 10 * own))) return text("wrong bytes from ", peer);
            }
        }
        return all.bytes_sent == (own == 1 ? 0 : 2 * (1000 * own * (count - 1) + (count * (count - 1) / 2 - own)))
                   ? "as expected"
                   : text(all.bytes_sent, " bytes sent");
    };
    for (int count : {1, 2, 3, 5})
        for (const std::string& said : by_children(count, work)) CHECK(said == "as expected");
    // The functions that build on it.
    const auto gathers = [](Nccl& all) {
        std::string joined;
        for (const std::string& each : gather_messages(std::string(std::size_t(all.rank()), 'a' + char(all.rank()))))
            joined += each + ',';
        return joined;
    };
    for (const std::string& said : by_children(4, gathers)) CHECK(said == ",b,cc,ddd,");
}

TEST_CASE("nccl: it is an error if the processes are at different places, or sizes differ") {
    const auto at_lines = [](Nccl& all) {
        char in[2] = {}, out[2] = {};
        const int peer = 1 - all.rank();
        std::vector<Bytes> send(2), receive(2);
        send[std::size_t(peer)] = {out, 1}, receive[std::size_t(peer)] = {in, 1};
        all.exchange(send, receive, all.rank() == 0 ? 7 : 8);
        return std::string("no error");
    };
    std::vector<std::string> said = by_children(2, at_lines);
    CHECK(said[0].find(
              "processes 1 and 0 have come to different places of the program (1 bytes at line 8, 1 at line 7)") == 0);
    CHECK(said[1].find(
              "processes 0 and 1 have come to different places of the program (1 bytes at line 7, 1 at line 8)") == 0);
    const auto with_sizes = [](Nccl& all) {
        char in[2] = {}, out[2] = {};
        std::vector<Bytes> send(2), receive(2);
        if (all.rank() == 0) receive[1] = {in, 1};
        if (all.rank() == 1) send[0] = {out, 2};
        all.exchange(send, receive, 7);
        return std::string("no error");
    };
    said = by_children(2, with_sizes);
    CHECK(said[0].find(
              "processes 1 and 0 have come to different places of the program (2 bytes at line 7, 1 at line 7)") == 0);
    CHECK(said[1] == said[0]);
}

TEST_CASE("gpu: NCCL moves bytes on the stream of the ops, from one process to itself" *
          doctest::skip(!gpu() || std::getenv("MASQUERADE_CUDA")) * doctest::description("runs where a GPU answers")) {
    const OpenedLibrary opened = open_first(nccl_search());
    if (!opened.library) return;
    const Gpu used;
    const NcclLibrary nccl(opened);
    NcclLibrary::Id id{};
    nccl.expect(nccl.get_unique_id(&id), "making an id");
    NcclLibrary::Communicator* one = nullptr;
    nccl.expect(nccl.comm_init_rank(&one, 1, id, 0), "joining");
    constexpr std::size_t size = 1 << 20;
    Buffer from(size, Device::cuda), to(size, Device::cuda);
    void* const stream = cuda_runtime().stream();
    for (const int byte : {1, 2, 3}) {
        fill_bytes(from.data(), byte, size, Device::cuda);
        nccl.expect(nccl.group_start(), "beginning");
        nccl.expect(nccl.send(from.data(), size, NcclLibrary::of_bytes, 0, one, stream), "sending");
        nccl.expect(nccl.recv(to.data(), size, NcclLibrary::of_bytes, 0, one, stream), "receiving");
        nccl.expect(nccl.group_end(), "starting");
        std::string found(size, 0);
        copy_bytes(to.data(), Device::cuda, found.data(), Device::cpu, size);
        CHECK(found == std::string(size, char(byte)));
        CHECK(cuda_runtime().finished());
        int status = -1;
        nccl.expect(nccl.comm_get_async_error(one, &status), "asking");
        CHECK(status == 0);
    }
    nccl.expect(nccl.comm_destroy(one), "leaving");
}
