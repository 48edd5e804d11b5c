// SPDX-License-Identifier: MIT
// A stand-in for NCCL between processes of one machine, whose GPUs are those of tests/cuda/library/fake.cpp with
// MASQUERADE_FAKE_OPEN=1. Bytes go through Unix sockets, one for each pair of processes. An exchange happens in
// ncclGroupEnd(), so it is as if all work of the GPU were done at once. The process ends with an error if it asks NCCL
// to move memory of the host, and if a message has another size than the receiver expects: NCCL would crash or hang.
// If another process is gone, or does not answer for two seconds, the communicator has an error, as NCCL reports it.
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

namespace {

[[noreturn]] void fail(const std::string& why) {
    std::fprintf(stderr, "error: the fake NCCL: %s (%s)\n", why.c_str(), std::strerror(errno));
    std::_Exit(3);
}

// The memory of the fake GPU is one mapping of 16 GiB.
void expect_on_gpu(const void* data, std::size_t bytes) {
    std::ifstream maps("/proc/self/maps");
    const auto at = reinterpret_cast<unsigned long>(data);
    for (std::string line; std::getline(maps, line);) {
        unsigned long begin = 0, end = 0;
        std::sscanf(line.c_str(), "%lx-%lx", &begin, &end);
        if (end - begin >= 1ul << 34 && begin <= at && at + bytes <= end) return;
    }
    fail("asked to move memory that is not on the GPU");
}

struct Id {
    char folder[128];
};

// A message under way: its size, then its bytes.
struct Message {
    char* data;
    std::size_t size, done = 0;  // `done` counts the bytes of the size, too
    int peer;
    bool sent;
};

struct Communicator {
    int rank, count;
    std::vector<int> sockets;  // to each other process
    std::vector<Message> messages;
};
Communicator* joined = nullptr;
bool broken = false;    // another process is gone or hangs
std::size_t sizes[64];  // the received size of the message from each process

sockaddr_un address(const Id& id, int rank) {
    sockaddr_un to{};
    to.sun_family = AF_UNIX;
    std::snprintf(to.sun_path, sizeof to.sun_path, "%.80s-%d", id.folder, rank);
    return to;
}

// Sends or receives what is possible now. Returns false if nothing was.
bool advance(Communicator& all, Message& m) {
    constexpr std::size_t head = sizeof(std::size_t);
    char* const size = reinterpret_cast<char*>(m.sent ? &m.size : &sizes[m.peer]);
    char* const at = m.done < head ? size + m.done : m.data + (m.done - head);
    const std::size_t left = m.done < head ? head - m.done : m.size + head - m.done;
    const int socket = all.sockets[std::size_t(m.peer)];
    const ssize_t moved =
        m.sent ? send(socket, at, left, MSG_DONTWAIT | MSG_NOSIGNAL) : recv(socket, at, left, MSG_DONTWAIT);
    if (moved < 0 && (errno == EAGAIN || errno == EINTR)) return false;
    if (moved <= 0) {
        broken = true;
        return false;
    }
    m.done += std::size_t(moved);
    if (!m.sent && m.done == head && sizes[m.peer] != m.size) fail("a message has another size than expected");
    return true;
}
bool finished(const Message& m) { return m.done == m.size + sizeof(std::size_t); }

}  // namespace

extern "C" {

// If NCCL_COMM_ID is set, all processes make the same id, like those of NCCL.
int ncclGetUniqueId(Id* id) {
    const char* const meeting = std::getenv("NCCL_COMM_ID");
    const char* const folder = std::getenv("TMPDIR");
    std::snprintf(id->folder, sizeof id->folder, "%.60s/nccl-%.40s", folder ? folder : "/tmp",
                  meeting ? meeting : std::to_string(getpid()).c_str());
    return 0;
}

// Each process listens, connects to all processes before it, and accepts those after it.
int ncclCommInitRank(Communicator** made, int count, Id id, int rank) {
    joined = *made = new Communicator{rank, count, std::vector<int>(std::size_t(count), -1), {}};
    const int listener = socket(AF_UNIX, SOCK_STREAM, 0);
    const sockaddr_un own = address(id, rank);
    unlink(own.sun_path);
    if (bind(listener, reinterpret_cast<const sockaddr*>(&own), sizeof own) != 0 || listen(listener, count) != 0)
        fail(std::string("cannot listen at ") + own.sun_path);
    for (int peer = 0; peer < rank; peer++) {
        const sockaddr_un to = address(id, peer);
        int& made_socket = joined->sockets[std::size_t(peer)];
        for (int i = 0; i < 3000; i++) {
            made_socket = socket(AF_UNIX, SOCK_STREAM, 0);
            if (connect(made_socket, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0) break;
            close(made_socket);
            made_socket = -1;
            usleep(10000);
        }
        if (made_socket < 0) fail("process " + std::to_string(peer) + " does not come");
        if (send(made_socket, &rank, sizeof rank, 0) != sizeof rank) fail("cannot send");
    }
    for (int i = rank + 1; i < count; i++) {
        const int accepted = accept(listener, nullptr, nullptr);
        int peer = 0;
        if (recv(accepted, &peer, sizeof peer, MSG_WAITALL) != sizeof peer) fail("cannot receive");
        joined->sockets[std::size_t(peer)] = accepted;
    }
    close(listener);
    unlink(own.sun_path);
    return 0;
}
int ncclCommDestroy(Communicator*) { return 0; }
int ncclCommGetAsyncError(Communicator*, int* status) {
    *status = broken ? 6 : 0;  // ncclRemoteError
    return 0;
}
const char* ncclGetErrorString(int) { return "remote process exited or there was a network error"; }

int ncclGroupStart() { return 0; }
int ncclSend(const void* data, std::size_t bytes, int, int peer, Communicator* all, void*) {
    expect_on_gpu(data, bytes);
    all->messages.push_back({static_cast<char*>(const_cast<void*>(data)), bytes, 0, peer, true});
    return 0;
}
int ncclRecv(void* data, std::size_t bytes, int, int peer, Communicator* all, void*) {
    expect_on_gpu(data, bytes);
    all->messages.push_back({static_cast<char*>(data), bytes, 0, peer, false});
    return 0;
}
int ncclGroupEnd() {
    int waits = 0;  // one after another
    for (bool busy = true; busy && !broken;) {
        busy = false;
        bool advanced = false;
        std::vector<pollfd> sockets;
        for (Message& m : joined->messages) {
            if (finished(m)) continue;
            busy = true;
            advanced = advance(*joined, m) || advanced;
            sockets.push_back({joined->sockets[std::size_t(m.peer)], short(m.sent ? POLLOUT : POLLIN), 0});
        }
        waits = advanced ? 0 : waits + 1;
        if (busy && !advanced && !broken) poll(sockets.data(), sockets.size(), 100);
        if (waits > 20) broken = true;
    }
    joined->messages.clear();
    return 0;
}

}  // extern "C"
