// SPDX-License-Identifier: MIT
// What ./bench decode measures: writing by models of random weights, each sentence as long as one may be.
#pragma once
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tools/bench/decode_peer.h"
#include "tools/bench/decode_work.h"
#include "tools/program.h"

namespace masquerade {

struct DecodeOptions {
    std::vector<std::string> models = {"univae-default", "univae-base", "unilm-default"};
    std::vector<int> sentences = {1, 64, 512};  // of UniVAE, asked for at once
    std::vector<int> sources = {1, 16, 64};     // of UniLM
    int beams = 4;
    bool uncached = true;  // UniLM is measured without a cache, too
    std::string peer;      // a Python; empty: the first that can; "none"
    int repeats = 3;
    bool table = true;  // lines as they are found
};

using FoundRow = std::function<void(nlohmann::ordered_json row)>;  // takes what was measured

// ./generate of UniVAE: greedily, from latents.
class UniVaeWriting {
  public:
    UniVaeWriting(const DecodeOptions& options, const Common& common) : a_(options), common_(common) {}
    static bool knows(const std::string& model);
    void measure(const std::string& model, const FoundRow& found);

  private:
    const DecodeOptions& a_;
    const Common& common_;
    bool head_ = false;  // whether the table's was printed
};

// ./generate of UniLM: beams, the keys of a source kept and shared by them. Beside it the same search without a cache, and
// generate of Hugging Face's transformers with the same weights, where a Python has it.
class UniLmWriting {
  public:
    UniLmWriting(const DecodeOptions& options, const Common& common) : a_(options), common_(common) {}
    static bool knows(const std::string& model);
    // Throws Error where the cache changes what is written; on a GPU, where a product may have other bits in another shape,
    // the row says so.
    void measure(const std::string& model, const FoundRow& found);
    nlohmann::ordered_json peer() const;  // its versions; null: there is none

  private:
    nlohmann::ordered_json measure(const std::string& model, BeamWork& work);
    // Does it where there is a peer; one that fails is not asked again.
    template <class Ask>
    void with_peer(Ask ask);
    void print(const nlohmann::ordered_json& row);
    void head();

    const DecodeOptions& a_;
    const Common& common_;
    std::unique_ptr<GeneratePeer> peer_;
    bool started_ = false;
};

}  // namespace masquerade
