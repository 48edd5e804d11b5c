// SPDX-License-Identifier: MIT
// Hugging Face tokenizers beside ours: tokenizer_peer.py, one child for each number of threads, since the
// library fixes them when it starts.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/wordpiece.h"
#include "tools/bench/peer.h"
#include "tools/bench/text.h"

namespace masquerade {

class TokenizerPeers {
  public:
    // asked: a Python, none, or nothing: then the first that can import the library, and a note where none
    // can. Throws PeerError where the Python that was asked for cannot. The vocabulary is a vocab.txt, used
    // with these options, or a tokenizer.json, which has its own.
    TokenizerPeers(const std::string& asked, const BenchText& text, const std::string& vocabulary,
                   const WordPiece::Options& options);

    bool here() const { return !children_.empty(); }
    const std::string& version() const { return version_; }  // "0.23.3, Python 3.11.7"

    // Tries the library's calls for this work and keeps the fastest: what it said, "call" and "tried".
    nlohmann::json choose(const std::string& work, int threads);

    // Seconds of one run of that call.
    double run(const std::string& work, int threads);

    // The ids of every line: how many, then those.
    std::vector<int> ids();

    // No more is asked of it; the children end.
    void give_up() { children_.clear(); }

  private:
    Peer& child(int threads);
    std::unique_ptr<Peer> start(const std::string& python, int threads);

    SharedFile text_, ids_;
    nlohmann::json start_;  // the first request to each child
    double patience_;       // seconds to wait for an answer
    std::string python_, version_;
    std::map<int, std::unique_ptr<Peer>> children_;
    std::map<std::pair<std::string, int>, nlohmann::json> chosen_;
};

struct IdComparison {
    std::size_t ours = 0, theirs = 0;           // tokens
    std::size_t different = 0, first_line = 0;  // lines whose ids differ, and the number of the first, from 1
};

// The ids this tokenizer gives each line against what TokenizerPeers::ids returned.
IdComparison compare_ids(const BenchText& text, const WordPiece& tokenizer, const std::vector<int>& theirs);

}  // namespace masquerade
