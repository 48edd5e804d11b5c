// SPDX-License-Identifier: MIT
// Runs a step (forward, backward and update of one batch) as one CUDA graph. A capture records the kernels, copies
// and fills of the stream in order, instead of running them. Afterwards, one launch runs the whole graph, and the GPU
// does not wait for the host between two kernels.
//
// Steps of similar size have the same name (launch_graph()) and could use one graph, but every step is captured anew.
// The reason is that many kernel arguments differ between such steps: the streams of random numbers, the number of
// tiles of a mask, the weight of a loss term. A capture takes as long as launching the kernels one by one.
// Instantiating the captured graph would take longer. Therefore the instantiated graph of the previous step with this
// name is updated. If the new graph has other nodes than the previous one, the update fails, and the new graph is
// instantiated.
#include "engine/ops/cuda/capture.h"

#include <map>
#include <string>
#include <vector>

#include "engine/ops/cuda/kernel.cuh"

namespace masquerade::cuda {
namespace {

std::uint64_t number = 0;  // grows when a capture begins or ends, so it is odd during a capture

// Blocks of pinned host memory. stage() hands out parts of the newest block, blocks.back().
struct Block {
    char* data;
    std::size_t bytes;
};
std::vector<Block> blocks;
std::size_t used = 0;  // number of bytes of blocks.back() that stage() has handed out

void take_block(std::size_t bytes) {
    Block block{nullptr, bytes};
    check(cudaMallocHost(&block.data, bytes), "taking ", bytes, " bytes of pinned memory");
    blocks.push_back(block);
    used = 0;
}

std::map<std::string, cudaGraphExec_t>& executables() {
    static std::map<std::string, cudaGraphExec_t> all;
    return all;
}

}  // namespace

bool capturing() { return number % 2 == 1; }
std::uint64_t capture_number() { return number; }

void* stage(std::size_t bytes) {
    bytes = (bytes + 63) / 64 * 64;
    if (blocks.empty() || used + bytes > blocks.back().bytes) {
        std::size_t larger = std::size_t(1) << 20;
        while (larger < bytes) larger *= 2;
        take_block(larger);
    }
    used += bytes;
    return blocks.back().data + used - bytes;
}

void forget_staged() {
    used = 0;
    if (blocks.size() < 2) return;
    std::size_t all = 0;  // total size; one block of this size replaces all blocks
    for (const Block& block : blocks) {
        all += block.bytes;
        check(cudaFreeHost(block.data), "releasing pinned memory");
    }
    blocks.clear();
    take_block(all);
}

// The capture mode is relaxed, because an op may allocate memory during the capture if its shape is larger than ever
// before. The allocation does not become part of the graph.
void begin_graph() {
    if (capturing()) throw Error("a step is captured already; launch or abandon it first");
    check(cudaStreamBeginCapture(cuda_stream(), cudaStreamCaptureModeRelaxed), "capturing a step");
    number++;
}

void launch_graph(const char* name) {
    if (!capturing()) throw Error("no step is being captured that could be launched as ", name);
    cudaGraph_t graph = nullptr;
    number++;
    check(cudaStreamEndCapture(cuda_stream(), &graph), "the capture of a step");
    cudaGraphExec_t& executable = executables()[name];
    cudaGraphExecUpdateResultInfo difference;
    if (executable && cudaGraphExecUpdate(executable, graph, &difference) != cudaSuccess) {
        cudaGetLastError();
        cudaGraphExecDestroy(executable);
        executable = nullptr;
    }
    const cudaError_t status = executable ? cudaSuccess : cudaGraphInstantiate(&executable, graph, 0);
    cudaGraphDestroy(graph);
    if (status != cudaSuccess) executables().erase(name);
    check(status, "making the graph of a step, ", name);
    check(cudaGraphLaunch(executable, cuda_stream()), "launching the graph of a step, ", name);
}

void abandon_graph() noexcept {
    if (!capturing()) return;
    cudaGraph_t graph = nullptr;
    number++;
    if (cudaStreamEndCapture(cuda_stream(), &graph) == cudaSuccess) cudaGraphDestroy(graph);
    cudaGetLastError();
}

}  // namespace masquerade::cuda
