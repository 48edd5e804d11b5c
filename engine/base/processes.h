// SPDX-License-Identifier: MIT
// The processes that train one model together, on one machine or on several. mpirun or srun starts them, all with the
// same command. They exchange bytes and compute nothing in the exchange: each sum is computed by the engine, in an
// order that does not depend on the number of processes.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

namespace masquerade {

// Bytes in the memory of the host.
struct Bytes {
    void* data = nullptr;
    std::size_t size = 0;
};

// A library that moves bytes between processes, such as MPI, implements this interface. All processes must call the
// same functions in the same order.
class Processes {
  public:
    virtual ~Processes() = default;
    virtual int rank() const = 0;   // number of this process, from 0 on
    virtual int count() const = 0;  // number of processes
    // Sends send[i] to process i, and receives receive[i] from process i. Both lists have one entry for each process;
    // the entries of this process itself are ignored. Returns when all bytes have arrived and all entries of `send` may
    // be changed. If a process does not answer for `patience` seconds, logs an error that names it, and calls abort().
    virtual void exchange(const std::vector<Bytes>& send, const std::vector<Bytes>& receive) = 0;
    [[noreturn]] virtual void abort(int status) = 0;  // ends all processes
    virtual void leave() = 0;                         // waits until all processes call leave(); must be the last call

    double patience = 600;
    std::uint64_t bytes_sent = 0;  // by this process, in all calls of exchange()
};

// The group of processes to which this process belongs. A program that was not started together with others has rank 0
// of 1.
Processes& processes();
inline bool alone() { return processes().count() == 1; }
inline bool first_process() { return processes().rank() == 0; }

// Joins the other processes if mpirun or srun has started this process together with others, and otherwise does
// nothing. In all processes but the first, nothing is printed from then on but errors. Throws BadInput if the library
// that is needed cannot be opened.
void join_processes();
// Sets the result of processes() in this thread; null restores the default, one process. Called by join_processes(),
// and by tests, in which threads play the processes.
void use_processes(Processes* all);

// The rank and the number of the processes on this machine, which are 0 and 1 without mpirun or srun.
struct LocalProcesses {
    int rank = 0, count = 1;
};
LocalProcesses local_processes();

// parts[i] holds the bytes of process i, and has the same size in all processes. Fills the parts of all other
// processes.
void gather(const std::vector<Bytes>& parts);
// Returns the values of all processes, by rank. T is a type that can be copied byte by byte.
template <class T>
std::vector<T> gather_values(const T& mine) {
    static_assert(std::is_trivially_copyable_v<T>);
    std::vector<T> all(std::size_t(processes().count()), mine);
    std::vector<Bytes> parts;
    for (T& each : all) parts.push_back({&each, sizeof each});
    gather(parts);
    return all;
}
// Returns the value that process 0 has passed.
inline double from_first(double value) { return gather_values(value)[0]; }
// Returns the messages of all processes, by rank. They may differ in length.
std::vector<std::string> gather_messages(const std::string& mine);
// Returns the numbers of process 0, then those of process 1, and so on.
std::vector<double> gather_numbers(const std::vector<double>& mine);

}  // namespace masquerade
