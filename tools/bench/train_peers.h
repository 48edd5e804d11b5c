// SPDX-License-Identifier: MIT
// PyTorch beside ours: train_peer.py, its settings searched for the fastest, then run in a process of its own.
#pragma once
#include <functional>
#include <memory>

#include "tools/bench/peer.h"
#include "tools/bench/train_variants.h"

namespace masquerade {

// What a child does: a form of the model (bert, split, joint) in f32, autocast (bf16 with f32 masters) or bf16.
struct PeerWork {
    std::string form, precision;
};

struct PeerChoice {
    PeerWork work;
    std::string python, version;  // "2.15.0, Python 3.11.7"
    bool slow_blas = false;       // its matrix products are those of the reference BLAS
    Variant variant;
    VariantSearch search;
    nlohmann::json check;  // loss, norm, next, parameters
};

// For a line of progress.
using PeerProgress = std::function<void(const std::string&)>;

// A Python with an allocator of host memory, ready for the batch of a mark.
struct TrainPeer {
    std::string python, allocator, version;
    bool slow_blas = false;
    nlohmann::json features;  // what this PyTorch can do
    Peer peer;

    TrainPeer(const std::string& python, const std::string& allocator, nlohmann::json start, int threads);
};

class TrainPeers {
  public:
    // pythons: those to try, until one can train or, with `all`, every one. start: the first request to a child.
    // compiled: torch.compile is tried, too. only: where it names choices, nothing is searched; the rest is as the search
    // begins.
    TrainPeers(std::vector<std::string> pythons, bool all, bool compiled, Variant only, nlohmann::json start,
               int threads);

    // The fastest that the pythons have, its loss compared with ours. `like`: with its python and allocator.
    // Throws PeerError where none can do the work.
    PeerChoice choose(const PeerWork& work, const PeerChoice* like, const PeerProgress& progress);

    // A fresh child with that model built; `loss`: of its first step.
    std::unique_ptr<TrainPeer> start(const PeerChoice& choice, double& loss) const;

    std::vector<std::string> failures;  // of pythons that cannot take part, a line each

  private:
    TrainPeer& child(const std::string& python, const std::string& allocator);
    void search(PeerChoice& choice, const std::string& python, const PeerChoice* like,
                const PeerProgress& progress);
    void compare(PeerChoice& choice);

    std::vector<std::string> pythons_;
    bool all_, compiled_;
    Variant only_;
    nlohmann::json start_;
    int threads_;
    std::unique_ptr<TrainPeer> child_;  // one at a time: each holds a model
};

// Seconds to wait for an answer: compiling a model takes minutes on a slow machine.
constexpr double peer_patience = 900;

}  // namespace masquerade
