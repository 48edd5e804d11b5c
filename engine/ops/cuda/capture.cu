// SPDX-License-Identifier: MIT
// Runs a step as one CUDA graph: a step of training (forward, backward and update of one batch) or of decoding. A
// capture records the kernels, copies and fills of the stream in order, instead of running them. Afterwards, one launch
// runs the whole graph, and the GPU does not wait for the host between two kernels.
//
// Steps of similar size have the same name (launch_graph()) and could use one graph, but every step is captured anew.
// The reason is that many kernel arguments differ between such steps: the streams of random numbers, the number of
// tiles of a mask, the weight of a loss term. A capture takes as long as launching the kernels one by one.
// Instantiating the captured graph would take longer. Therefore the instantiated graph of the previous step with this
// name is updated. If the new graph has other nodes than the previous one, the update fails, and the new graph is
// instantiated.
#include "engine/ops/cuda/capture.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "engine/ops/cuda/workspace.cuh"

namespace masquerade::cuda {
namespace {

std::uint64_t number = 0;  // grows when a capture begins or ends, so it is odd during a capture

// A block of pinned host memory, and a block of the GPU's memory to which launch_graph() copies it.
struct Block {
    char *here, *there;
    std::size_t bytes;
    std::size_t used;  // bytes that stage() has handed out
    std::size_t sent;  // bytes at the start that were staged, and sent, before the capture
};

// Staged data lies in one of two halves. The GPU may still be copying from one half, for the step under way, while
// the host fills the other half for the next step. stage() hands out parts of the newest block of a half.
struct Half {
    std::vector<Block> blocks;
    cudaEvent_t copied = nullptr;  // an event after the last work that copies from this half
};
Half halves[2];
Half* filled = &halves[0];

// At least as many bytes as the step that is captured next may stage. If a step needs more, it is abandoned, and the
// number becomes twice as many bytes as the step has staged so far.
std::size_t room = std::size_t(1) << 18;

constexpr std::size_t least_block = std::size_t(1) << 20;
void take_block(std::size_t bytes) {
    use_gpu();
    Block block{nullptr, nullptr, bytes, 0, 0};
    check(cudaMallocHost(&block.here, bytes), "taking ", bytes, " bytes of pinned memory");
    const cudaError_t status = cudaMalloc(&block.there, bytes);
    if (status != cudaSuccess) report_later(cudaFreeHost(block.here), "releasing pinned memory");
    check(status, "taking ", bytes, " bytes of memory for what is sent");
    filled->blocks.push_back(block);
    bytes_of_workspaces() += bytes;
}

// Begins to fill the other half. Waits until the GPU has copied everything from that half. With one part a step, the
// host has usually waited for the results of the step that used that half, so this wait is short. With several parts,
// the host waits here until the part before the last one is finished.
void turn() {
    use_gpu();
    if (!filled->copied) check(cudaEventCreateWithFlags(&filled->copied, cudaEventDisableTiming), "making an event");
    check(cudaEventRecord(filled->copied, cuda_stream()), "recording an event");
    filled = filled == &halves[0] ? &halves[1] : &halves[0];
    if (filled->copied) check(cudaEventSynchronize(filled->copied), "work before what is sent");
    std::vector<Block>& blocks = filled->blocks;
    if (blocks.size() > 1) {
        std::size_t all = 0;  // total size; one block of this size replaces all blocks
        for (const Block& block : blocks) {
            all += block.bytes;
            report_later(cudaFreeHost(block.here), "releasing pinned memory");
            report_later(cudaFree(block.there), "releasing memory for what was sent");
            bytes_of_workspaces() -= block.bytes;
        }
        blocks.clear();
        take_block(all);
    }
    for (Block& block : blocks) block.used = block.sent = 0;
}

struct {
    int status = cudaSuccess;
    const char* what = "";
} not_reported;  // the first failure that report() has not thrown yet

std::map<std::string, cudaGraphExec_t>& executables() {
    static std::map<std::string, cudaGraphExec_t> all;
    return all;
}

}  // namespace

bool capturing() { return number % 2 == 1; }
void expect_no_capture(std::size_t bytes) {
    if (capturing())
        throw OutgrownInCapture(
            "CUDA: ", bytes,
            " more bytes of working memory are needed while a step is captured as a graph; run it op by op first");
}
std::uint64_t capture_number() { return number; }

void report_later(int status, const char* what) noexcept {
    if (status == cudaSuccess) return;
    cudaGetLastError();
    if (not_reported.status == cudaSuccess) not_reported = {status, what};
}
void report() { check(cudaError_t(std::exchange(not_reported.status, cudaSuccess)), not_reported.what); }

Staged stage(std::size_t bytes) {
    bytes = (bytes + 63) / 64 * 64;
    const auto full = [&] {
        return filled->blocks.empty() || filled->blocks.back().used + bytes > filled->blocks.back().bytes;
    };
    if (full() && !filled->blocks.empty() && !capturing()) turn();
    if (full()) {
        if (capturing()) room = 2 * (filled->blocks.back().used - filled->blocks.back().sent + bytes);
        expect_no_capture(bytes);
        take_block(std::max(bytes, least_block));
    }
    Block& block = filled->blocks.back();
    const std::size_t from = std::exchange(block.used, block.used + bytes);
    return {block.here + from, capturing() ? block.there + from : nullptr};
}

void begin_graph() {
    if (capturing()) throw Error("a step is captured already; launch or abandon it first");
    const std::vector<Block>& blocks = filled->blocks;
    if (blocks.empty() || blocks.back().bytes - blocks.back().used < room) take_block(std::max(room, least_block));
    for (Block& block : filled->blocks) block.sent = block.used;
    // The mode is relaxed: it forbids no call. expect_no_capture() refuses what must not happen during a capture.
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
        report_later(cudaGraphExecDestroy(executable), "destroying the old graph of a step");
        executable = nullptr;
    }
    const cudaError_t status = executable ? cudaSuccess : cudaGraphInstantiate(&executable, graph, 0);
    report_later(cudaGraphDestroy(graph), "destroying what was captured");
    if (status != cudaSuccess) executables().erase(name);
    check(status, "making the graph of a step, ", name);
    report();
    for (const Block& block : filled->blocks)
        if (block.used > block.sent)
            check(cudaMemcpyAsync(block.there + block.sent, block.here + block.sent, block.used - block.sent,
                                  cudaMemcpyHostToDevice, cuda_stream()),
                  "sending what a step needs");
    check(cudaGraphLaunch(executable, cuda_stream()), "launching the graph of a step, ", name);
    turn();
}

void abandon_graph() noexcept {
    if (!capturing()) return;
    cudaGraph_t graph = nullptr;
    number++;
    for (Block& block : filled->blocks) block.used = block.sent;
    // If the capture has failed, the caller is handling an error already, and there is no graph.
    if (cudaStreamEndCapture(cuda_stream(), &graph) == cudaSuccess)
        report_later(cudaGraphDestroy(graph), "destroying what was captured");
    else
        cudaGetLastError();
}

}  // namespace masquerade::cuda
