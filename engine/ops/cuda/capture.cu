// SPDX-License-Identifier: MIT
// A step as one CUDA graph. All work goes to one stream; a capture records kernels, copies and fills in their order.
// After the launch of the graph, the host has nothing to do between two kernels.
//
// Every step is captured anew, because much that differs between the steps of one bucket is a kernel argument: the
// streams of random numbers, the number of tiles of a mask, the weight of a loss term. A capture takes as long as
// launching the kernels one by one. Instantiating a graph would take longer; therefore the graph of the bucket's last
// step is updated node by node, and a new one is instantiated only if the steps differ in their nodes.
#include "engine/ops/cuda/capture.h"

#include <map>
#include <string>
#include <vector>

#include "engine/ops/cuda/kernel.cuh"

namespace masquerade::cuda {
namespace {

std::uint64_t number = 0;  // odd while a step is being captured

// Blocks of pinned memory; the last one is being filled.
struct Block {
    char* data;
    std::size_t bytes;
};
std::vector<Block> blocks;
std::size_t used = 0;  // number of bytes used in the last block

void take_block(std::size_t bytes) {
    Block block{nullptr, bytes};
    check(cudaMallocHost(&block.data, bytes), text("taking ", bytes, " bytes of pinned memory"));
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
    std::size_t all = 0;  // one block of this size replaces all blocks
    for (const Block& block : blocks) {
        all += block.bytes;
        check(cudaFreeHost(block.data), "releasing pinned memory");
    }
    blocks.clear();
    take_block(all);
}

// The mode is relaxed, because an op may allocate memory during the capture if its shape is larger than ever before.
// The allocation does not become part of the graph.
void begin_graph() {
    if (capturing()) throw Error("a step is captured already; launch or abandon it first");
    check(cudaStreamBeginCapture(cuda_stream(), cudaStreamCaptureModeRelaxed), "capturing a step");
    number++;
}

void launch_graph(const char* name) {
    if (!capturing()) throw Error(text("no step is being captured that could be launched as ", name));
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
    check(status, text("making the graph of a step, ", name));
    check(cudaGraphLaunch(executable, cuda_stream()), text("launching the graph of a step, ", name));
}

void abandon_graph() noexcept {
    if (!capturing()) return;
    cudaGraph_t graph = nullptr;
    number++;
    if (cudaStreamEndCapture(cuda_stream(), &graph) == cudaSuccess) cudaGraphDestroy(graph);
    cudaGetLastError();
}

}  // namespace masquerade::cuda
