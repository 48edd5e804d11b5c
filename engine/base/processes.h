// SPDX-License-Identifier: MIT
// The processes that train one model together, on one machine or on several. A launcher starts them, all with the same
// command: mpirun, srun or torchrun. They exchange bytes and compute nothing in the exchange: each sum is computed by
// the engine, in an order that does not depend on the number of processes.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "engine/base/error.h"

namespace masquerade {

// Bytes that a process sends, or a place for bytes that it receives.
struct Bytes {
    void* data = nullptr;
    std::size_t size = 0;
    bool on_gpu = false;  // in the memory of the GPU that this process uses, and not of the host
};

// MPI (engine/mpi) and NCCL (engine/nccl) implement this interface. All processes must call the same functions in the
// same order.
class Processes {
  public:
    virtual ~Processes() = default;
    virtual int rank() const = 0;   // number of this process, from 0 on
    virtual int count() const = 0;  // number of processes
    // Whether exchange() accepts bytes on a GPU.
    virtual bool reaches_gpus() const { return false; }
    // Sends send[i] to process i, and receives receive[i] from process i. Both lists have one entry for each process;
    // the entries of this process itself are ignored. Returns when all bytes have arrived and all entries of `send` may
    // be changed. If a process does not answer for `patience` seconds, logs an error that names it, and calls abort().
    // `line` is the line of the source that asks for the exchange. It is the same in all processes, or they have come
    // to different places of the program; this is an error, too.
    virtual void exchange(const std::vector<Bytes>& send, const std::vector<Bytes>& receive, int line) = 0;
    [[noreturn]] virtual void abort(int status) = 0;  // ends all processes
    virtual void leave() = 0;                         // waits until all processes call leave(); must be the last call

    double patience = 600;
    void (*log_error)(const std::string& why) = nullptr;  // set by join_processes()
    std::uint64_t bytes_sent = 0;                         // by this process, in all calls of exchange()
};

// The group of processes to which this process belongs. A program that was not started together with others has rank 0
// of 1.
Processes& processes();
inline bool alone() { return processes().count() == 1; }
inline bool first_process() { return processes().rank() == 0; }

// How this process was started. Without a launcher, it is the only process.
struct Launch {
    const char* by = "";                  // the launcher: "mpirun", "srun" or "torchrun"
    int rank = 0, count = 1;              // of all processes
    int local_rank = 0, local_count = 1;  // of those on this machine
    bool mpi = true;                      // whether the launcher brings MPI
};
Launch launched();

// Joins the other processes by MPI if mpirun or srun has started this process together with others, and otherwise does
// nothing. In all processes but the first, nothing is printed from then on but errors. Throws BadInput if the library
// that is needed cannot be opened. torchrun brings no MPI: its processes can meet only after they have chosen their
// GPUs, in meet_by_nccl() (engine/nccl/nccl.h).
void join_processes();
// Sets the result of processes() in this thread; null restores the default, one process. Called by join_processes(),
// and by tests, in which threads play the processes.
void use_processes(Processes* all);

// While an object of this class exists, processes() is one process, and so nothing is exchanged. For work that one of
// the processes does without the others.
class ByItself {
  public:
    ByItself();
    ByItself(const ByItself&) = delete;
    ~ByItself() { use_processes(all_); }

  private:
    Processes* all_;
};

// All processes must call each of the functions below. `line` is the line of the source that calls the function; see
// Processes::exchange().

// parts[i] holds the bytes of process i, and has the same size in all processes. Fills the parts of all other
// processes.
void gather(const std::vector<Bytes>& parts, int line = __builtin_LINE());
// Returns the values of all processes, by rank. T is a type that can be copied byte by byte.
template <class T>
std::vector<T> gather_values(const T& mine, int line = __builtin_LINE()) {
    static_assert(std::is_trivially_copyable_v<T>);
    std::vector<T> all(std::size_t(processes().count()), mine);
    std::vector<Bytes> parts;
    for (T& each : all) parts.push_back({&each, sizeof each});
    gather(parts, line);
    return all;
}
// Returns the value that process 0 has passed.
inline double from_first(double value, int line = __builtin_LINE()) { return gather_values(value, line)[0]; }
// Returns the messages of all processes, by rank. They may differ in length.
std::vector<std::string> gather_messages(const std::string& mine, int line = __builtin_LINE());
// Each process passes some lists; a list is a string, or a vector of numbers. Returns the lists of all processes: first
// those of process 0, then those of process 1, and so on.
template <class List>
std::vector<List> gather_lists(const std::vector<List>& mine, int line = __builtin_LINE()) {
    using Item = typename List::value_type;
    static_assert(std::is_trivially_copyable_v<Item>);
    if (alone()) return mine;
    std::string bytes;  // of each list the length, then the items
    for (const List& each : mine) {
        const std::size_t count = each.size();
        bytes.append(reinterpret_cast<const char*>(&count), sizeof count);
        bytes.append(reinterpret_cast<const char*>(each.data()), count * sizeof(Item));
    }
    std::vector<List> all;
    for (const std::string& message : gather_messages(bytes, line))
        for (std::size_t at = 0; at < message.size();) {
            std::size_t count;
            std::memcpy(&count, &message[at], sizeof count);
            List& each = all.emplace_back(count, Item());
            at += sizeof count;
            std::memcpy(each.data(), message.data() + at, count * sizeof(Item));
            at += count * sizeof(Item);
        }
    return all;
}
// Returns the numbers that all processes have passed: first those of process 0, then those of process 1, and so on.
inline std::vector<double> gather_numbers(const std::vector<double>& mine, int line = __builtin_LINE()) {
    std::vector<double> all;
    for (const auto& each : gather_lists<std::vector<double>>({mine}, line))
        all.insert(all.end(), each.begin(), each.end());
    return all;
}

// Returns an error message: process `sender` has sent `sent` bytes from line `their_line` of the source to process
// `receiver`, which expected `expected` bytes at line `own_line`.
inline std::string at_different_places(int sender, std::size_t sent, int their_line, int receiver, std::size_t expected,
                                       int own_line) {
    return text("processes ", sender, " and ", receiver, " have come to different places of the program (", sent,
                " bytes at line ", their_line, ", ", expected, " at line ", own_line,
                "): do their files or versions differ?");
}

// n items are shared among the processes in whole groups of `together` items, of which the last can be smaller. Returns
// the first of the items of this process, and the item after its last. The items of process 0 come first, then those of
// process 1, and so on.
std::pair<std::size_t, std::size_t> own_items(std::size_t n, std::size_t together);
template <class T>
std::vector<T> own_part(const std::vector<T>& all, std::size_t together) {
    const auto [begin, end] = own_items(all.size(), together);
    return {all.begin() + begin, all.begin() + end};
}

}  // namespace masquerade
