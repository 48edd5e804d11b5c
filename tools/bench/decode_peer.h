// SPDX-License-Identifier: MIT
// Hugging Face's generate beside ours: decode_peer.py, with the weights and sources of a BeamWork.
#pragma once
#include <memory>

#include "tools/bench/decode_work.h"
#include "tools/bench/peer.h"

namespace masquerade {

class GeneratePeer {
  public:
    // asked: a Python, or nothing: the first that has the libraries. Throws PeerError, where nothing was asked that of
    // the last Python.
    GeneratePeer(const std::string& asked, Device device);

    const std::string& version() const { return version_; }  // "transformers 5.0, PyTorch 2.9, Python 3.11"

    // Takes the weights and tries the ways of calling it: "way", the fastest, and "tried". It is run for at least so many
    // seconds at a time.
    nlohmann::json load(const BeamWork& work, double seconds);
    double run();
    // Of its best: "same_targets", how many sources it writes the same for as ours, and "score_error", the largest
    // difference of the scores of a source's best, null of a greedy search.
    nlohmann::json compare(const Written& ours);

  private:
    std::unique_ptr<Peer> peer_;
    std::string version_;
};

}  // namespace masquerade
