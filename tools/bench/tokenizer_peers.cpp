// SPDX-License-Identifier: MIT
#include "tools/bench/tokenizer_peers.h"

#include <algorithm>
#include <cstring>

#include "engine/base/log.h"
#include "tools/bench/machine.h"

namespace masquerade {

TokenizerPeers::TokenizerPeers(const std::string& asked, const BenchText& text, const std::string& vocabulary,
                               const WordPiece::Options& options)
    : text_(asked == "none" ? std::string_view() : text.bytes),
      ids_({}),
      start_{{"do", "start"}, {"text", text_.path()}, {"vocabulary", vocabulary}},
      patience_(60 + 30 * text.megabytes()) {
    start_["recognise"] = options.recognise_special;
    start_["normalizer"] = {{"lowercase", options.lower},
                            {"clean_text", options.clean},
                            {"handle_chinese_chars", options.split_ideographs},
                            {"strip_accents", options.strips()}};
    if (asked == "none") return;
    for (const std::string& python : asked.empty() ? pythons() : std::vector<std::string>{asked}) {
        try {
            children_[1] = start(python, 1);
            python_ = python;
            return;
        } catch (const PeerError&) {
            if (!asked.empty()) throw;
        }
    }
    log_line("note: no python3 here can import tokenizers: no peer (--peer PYTHON names one)");
}

std::unique_ptr<Peer> TokenizerPeers::start(const std::string& python, int threads) {
    auto peer =
        std::make_unique<Peer>(python, source_file("tools/bench/tokenizer_peer.py").string(),
                               Peer::Environment{{"TOKENIZERS_PARALLELISM", threads > 1 ? "true" : "false"},
                                                 {"RAYON_NUM_THREADS", std::to_string(threads)}});
    const nlohmann::json answer = peer->ask(start_, patience_);
    version_ = answer.at("version").get<std::string>() + ", Python " + answer.at("python").get<std::string>();
    return peer;
}

Peer& TokenizerPeers::child(int threads) {
    std::unique_ptr<Peer>& peer = children_[threads];
    if (!peer) peer = start(python_, threads);
    return *peer;
}

nlohmann::json TokenizerPeers::choose(const std::string& work, int threads) {
    nlohmann::json& chosen = chosen_[{work, threads}];
    if (chosen.is_null()) chosen = child(threads).ask({{"do", "choose"}, {"work", work}}, patience_);
    return chosen;
}

double TokenizerPeers::run(const std::string& work, int threads) {
    return child(threads).ask({{"do", "run"}, {"work", work}}, patience_).at("seconds");
}

std::vector<int> TokenizerPeers::ids() {
    child(1).ask({{"do", "ids"}, {"to", ids_.path()}}, patience_);
    const std::string bytes = ids_.read();
    std::vector<int> ids(bytes.size() / sizeof(int));
    std::memcpy(ids.data(), bytes.data(), ids.size() * sizeof(int));
    return ids;
}

IdComparison compare_ids(const BenchText& text, const WordPiece& tokenizer, const std::vector<int>& theirs) {
    IdComparison found;
    Encoder encoder(tokenizer);
    std::vector<int> ids;
    std::size_t at = 0;
    for (std::size_t i = 0; i < text.lines.size(); i++) {
        ids.clear();
        encoder.append(text.lines[i], ids);
        found.ours += ids.size();
        if (at == theirs.size()) throw PeerError("the peer gave ids for too few lines");
        const std::size_t count = std::size_t(theirs[at++]);
        if (count > theirs.size() - at) throw PeerError("the peer's ids end in the middle of a line");
        const int* begin = theirs.data() + at;
        if (!std::equal(ids.begin(), ids.end(), begin, begin + count) && found.different++ == 0)
            found.first_line = i + 1;
        found.theirs += count;
        at += count;
    }
    if (at != theirs.size()) throw PeerError("the peer gave ids for too many lines");
    return found;
}

}  // namespace masquerade
