// SPDX-License-Identifier: MIT
// PyTorch's ways of training a mark, beside ours: each chosen, compared, started, run in turns and described.
#pragma once
#include "tools/bench/train_floor.h"
#include "tools/bench/train_measure.h"
#include "tools/bench/train_peers.h"

namespace masquerade {

class TrainRivals {
  public:
    TrainRivals(const TrainMeasurement& what, PeerProgress progress)
        : what_(what), progress_(std::move(progress)) {}

    // start: the first request to a child. Without Pythons nothing happens.
    void prepare(const nlohmann::json& start);
    // A run of steps of each.
    void run();
    // A run of each product of the floor, by the first that is there.
    void measure(Floor& floor);
    // What was found; `ours` holds "check", "first_loss" and the seconds.
    nlohmann::ordered_json describe(const nlohmann::ordered_json& ours, std::int64_t parameters);

    // Which settings were found so far, and the seconds of each that was tried: of a measurement that was stopped.
    nlohmann::ordered_json chosen() const;

    std::vector<std::string> notes;  // of what could not be done, a line each

  private:
    struct Rival {
        PeerChoice choice;
        std::unique_ptr<TrainPeer> child;  // null: it failed
        std::vector<double> runs;
        double faults = 0, first_loss = 0;
    };

    std::vector<PeerWork> works() const;
    void choose(TrainPeers& peers, const PeerWork& work);
    void run(Rival& rival);
    void ask_products(TrainPeer& peer, Floor& floor);
    static nlohmann::ordered_json json_of(const PeerChoice& choice);
    nlohmann::ordered_json json_of(Rival& rival, const nlohmann::ordered_json& ours, std::int64_t parameters);
    bool agrees(const Rival& rival, const nlohmann::ordered_json& ours, std::int64_t parameters) const;
    template <class Ask>
    void or_drop(Rival& rival, Ask ask);

    const TrainMeasurement& what_;
    PeerProgress progress_;
    std::vector<Rival> rivals_;
};

// The runs of one program: the spread of their seconds, tokens a second.
nlohmann::ordered_json json_of_runs(const std::vector<double>& runs, double tokens);

}  // namespace masquerade
