// SPDX-License-Identifier: MIT
// A kernel that computes the random words of Philox twice for the same counters and keys: by engine/base/random.h and
// by cuRAND. The test `gpu: Philox has the words of cuRAND` compares them. This file is compiled into a separate
// library, which only tests open.
#include <curand_philox4x32_x.h>

#include "engine/base/random.h"

namespace {

struct Question {
    std::uint32_t counter[4], key[2];
};
struct Answer {
    std::uint32_t ours[4], theirs[4];
};

__global__ void philox_kernel(int count, const Question* questions, Answer* answers) {
    const int i = int(blockIdx.x * blockDim.x + threadIdx.x);
    if (i >= count) return;
    const Question q = questions[i];
    const masquerade::Four ours =
        masquerade::philox({{q.counter[0], q.counter[1], q.counter[2], q.counter[3]}}, q.key[0], q.key[1]);
    const uint4 theirs = curand_Philox4x32_10(make_uint4(q.counter[0], q.counter[1], q.counter[2], q.counter[3]),
                                              make_uint2(q.key[0], q.key[1]));
    answers[i] = {{ours[0], ours[1], ours[2], ours[3]}, {theirs.x, theirs.y, theirs.z, theirs.w}};
}

}  // namespace

// `questions` has 6 words for each question: the counter (4) and the key (2). `answers` receives 8 words for each
// question: the engine's four words, then cuRAND's. Returns a CUDA error code, or 0.
extern "C" __attribute__((visibility("default"))) int philox_beside_curand(int count, const void* questions,
                                                                           void* answers) {
    cudaStream_t stream = nullptr;
    Question* asked = nullptr;
    Answer* found = nullptr;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    cudaMalloc(&asked, std::size_t(count) * sizeof(Question));
    cudaMalloc(&found, std::size_t(count) * sizeof(Answer));
    cudaMemcpyAsync(asked, questions, std::size_t(count) * sizeof(Question), cudaMemcpyHostToDevice, stream);
    philox_kernel<<<(count + 63) / 64, 64, 0, stream>>>(count, asked, found);
    cudaMemcpyAsync(answers, found, std::size_t(count) * sizeof(Answer), cudaMemcpyDeviceToHost, stream);
    cudaStreamSynchronize(stream);
    cudaFree(asked);
    cudaFree(found);
    return int(cudaGetLastError());
}
