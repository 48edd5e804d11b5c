// SPDX-License-Identifier: MIT
// ./bench many: one run by several processes. Measures steps of training by different numbers of processes, and
// predicts the time of a step for any number of processes (docs/distributed-cost.md).
#pragma once
#include <utility>
#include <vector>

#include "tools/bench/bench.h"

namespace masquerade {

// The data that a process exchanges with the others in one step of training.
struct StepExchange {
    int calls = 0;     // of Processes::exchange()
    double bytes = 0;  // that a process sends in these calls; the largest number of all processes
};
// Returns the exchange of a step in which `count` processes share `parts` parts. The gradient has `gradient_bytes`
// bytes. The small messages, such as losses, are counted as calls, but not in bytes. Codebooks are not counted.
StepExchange exchange_of_step(int parts, int count, double gradient_bytes);

// A computer, or many, on which several processes train. All times are in seconds.
struct Cluster {
    double part = 0;     // to compute the loss and the gradient of one part
    double update = 0;   // for the rest of a step, which each process computes whole: mainly the optimiser
    double latency = 0;  // from the beginning of an exchange until its first byte arrives
    // Bytes that a process sends in a second: to processes on its own node (machine), and to those on other nodes. Both
    // are sent at the same time.
    double bandwidth = 1, bandwidth_between = 1;
    int node = 0;  // processes on a node; 0: all processes are on one node
};

struct Prediction {
    int parts = 1;
    double compute = 0, exchange = 0;  // seconds of a step
    double step() const { return compute + exchange; }
    double parts_per_second() const { return parts / step(); }
};
// Predicts a step. Nothing overlaps: a process computes its parts, exchanges gradients, and updates its parameters.
Prediction predict(const Cluster& cluster, int parts, int count, double gradient_bytes);

// Pairs (bytes, seconds), the smallest first.
using Messages = std::vector<std::pair<double, double>>;
// Returns latency and bandwidth, so that seconds = latency + bytes / bandwidth for the first and for the last message.
std::pair<double, double> line_through(const Messages& messages);

// A run to measure: the words and the option --data of ./train.
struct MeasuredRun {
    Strings words;
    std::string data;
};
// Trains in this process, together with the others that mpirun or srun has started. Returns a row of JSON:
//   seconds         of a step: median, least and most of the runs
//   part, update    seconds, as in Cluster, in the process that needs the most time for its parts
//   exchange        seconds of a step in Processes::exchange(), {least, most} of the processes. The slowest process
//                   waits for nobody, so `least` is the time of the exchange itself.
//   sent            bytes that process 0 sends in a step
//   messages        for each size: bytes that a process sends, and seconds. The largest ones are as large as those of
//                   a gradient. Missing if there is one process.
//   latency, bandwidth   of these messages (line_through())
//   weights         checksum of the weights after the last step, the same for every number of processes
Json measure_together(Bench& bench, const MeasuredRun& run);

struct RunSizes {
    double gradient_bytes = 0;
    int parts = 1;  // of a batch
};
// Returns the sizes of a new run with these settings.
RunSizes sizes_of(const Bench& bench, const MeasuredRun& run);

}  // namespace masquerade
