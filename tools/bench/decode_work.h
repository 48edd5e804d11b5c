// SPDX-License-Identifier: MIT
// What ./bench decode lets a UniLM of random weights write: targets of one length for sources of one length, by beams.
#pragma once
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "models/writing/unilm_decoder.h"

namespace masquerade {

struct BeamSizes {
    BackboneOptions model;
    int source_tokens = 64, target_tokens = 24;  // a source's with [CLS] and [SEP]
    int sources = 1, beams = 4;
};

using Written = std::vector<std::vector<Hypothesis>>;

// Sources are read from left to right and have the segment id of targets: so a BERT reads that is made a decoder.
class BeamWork {
  public:
    BeamWork(const BeamSizes& sizes, Device device, std::uint64_t seed);
    // Both as ./generate writes. No token ends a target before it is full. Without a cache a step runs the stack over the
    // source and all that is written, of every prefix: this is what a cache saves; both have the same bits.
    Written with_cache() { return write(cached_); }
    Written without_cache() { return write(*uncached_); }

    const BeamSizes sizes;
    // Saves what another program needs to write the same; `folder` gets the weights, as Hugging Face's library keeps them.
    nlohmann::ordered_json save(const std::string& folder) const;

  private:
    Written write(SourceReader& reader) const;

    std::uint64_t seed_;
    Parameters parameters_;
    UniLm model_;
    std::vector<Sentence> sources_;
    SearchOptions options_;
    UniLmDecoder cached_;
    std::unique_ptr<SourceReader> uncached_;
};

// Whether both wrote the same best hypotheses, with the same scores.
bool same(const Written& a, const Written& b);

}  // namespace masquerade
