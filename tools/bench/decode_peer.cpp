// SPDX-License-Identifier: MIT
#include "tools/bench/decode_peer.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "engine/ops/cpu/parallel.h"
#include "tools/bench/machine.h"
#include "tools/bench/train_peers.h"

namespace masquerade {
namespace {

// The weights, for as long as they are read.
struct Folder {
    std::string path = (std::filesystem::temp_directory_path() / "masquerade-bench-XXXXXX").string();

    Folder() {
        if (!mkdtemp(path.data()))
            throw BadInput(text("no folder can be made as ", path, "; is there room?"));
    }
    Folder(const Folder&) = delete;
    ~Folder() {
        std::error_code ignored;
        std::filesystem::remove_all(path, ignored);
    }
};

}  // namespace

GeneratePeer::GeneratePeer(const std::string& asked, Device device) {
    const std::vector<std::string> candidates = asked.empty() ? pythons() : std::vector<std::string>{asked};
    if (candidates.empty()) throw PeerError("there is no python3");
    for (std::size_t i = 0;; i++) try {
            peer_ = std::make_unique<Peer>(
                candidates[i], source_file("tools/bench/decode_peer.py").string(),
                Peer::Environment{{"OMP_NUM_THREADS", std::to_string(threads())}, {"HF_HUB_OFFLINE", "1"}});
            const nlohmann::json start = {
                {"do", "start"}, {"device", name_of(device)}, {"threads", threads()}};
            version_ = peer_->ask(start, peer_patience).at("version").get<std::string>();
            return;
        } catch (const PeerError&) {
            if (i + 1 == candidates.size()) throw;
        }
}

nlohmann::json GeneratePeer::load(const BeamWork& work, double seconds) {
    const Folder folder;
    work.save(folder.path);
    nlohmann::json request = {{"do", "load"},
                              {"folder", folder.path},
                              {"beams", work.sizes.beams},
                              {"tokens", work.sizes.target_tokens},
                              {"forbidden", work.search_options().forbidden},
                              {"end", work.end()},
                              {"seconds", seconds}};
    for (const Sentence& s : work.sources()) request["sources"].push_back(s.ids);
    return peer_->ask(request, peer_patience);
}

double GeneratePeer::run() { return peer_->ask({{"do", "run"}}, peer_patience).at("seconds"); }

nlohmann::json GeneratePeer::compare(const Written& ours) {
    const nlohmann::json theirs = peer_->ask({{"do", "written"}}, peer_patience);
    int equal = 0;
    nlohmann::json error;
    for (std::size_t i = 0; i < ours.size(); i++) {
        const Hypothesis& best = ours[i].front();
        equal += theirs.at("ids").at(i).get<std::vector<int>>() == best.tokens;
        if (theirs.at("scores").is_array())
            error = std::max(error.is_null() ? 0.0 : error.get<double>(),
                             std::fabs(theirs.at("scores").at(i).get<double>() - best.score));
    }
    return {{"same_targets", equal}, {"score_error", error}};
}

}  // namespace masquerade
