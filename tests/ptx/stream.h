// SPDX-License-Identifier: MIT
// The one stream of the stand-ins for CUDA's runtime and cuBLASLt. Work that is submitted runs when the host waits for
// it. During a capture, it becomes part of the graph instead.
#pragma once
#include <functional>
#include <string>

namespace masquerade::ptx {

// Prints on standard error what the host did although CUDA's manual forbids it, and aborts, so that the running test
// fails.
[[noreturn]] void complain(const std::string& what);

// Adds a launch to the counts that PTX_COUNTS requests (kernels.cpp), under the name of a function that is no
// translated kernel, such as a product of cuBLASLt.
void count_launch(const char* name);

// `work` returns the fault that it ends with, or "". After a fault, every later call of the runtime fails, as on a GPU.
void submit(std::function<std::string()> work);
void submit_launch(std::function<std::string()> work);  // a kernel or a product, which StreamCounts counts

// Counts of the host's requests so far. Captured copies are counted, too. A test finds the function stream_counts() in
// the library by name.
struct StreamCounts {
    int uploads = 0, reads = 0, moves = 0;  // copies to the device, from it, within it
    int launches = 0;                       // kernels and products that are not captured
    int graphs = 0;                         // launches of captured graphs
    int idle = 0;                           // waits after which the device had nothing left to do
    long read_bytes = 0;                    // bytes of the copies from the device
};
extern "C" StreamCounts* stream_counts();

}  // namespace masquerade::ptx
