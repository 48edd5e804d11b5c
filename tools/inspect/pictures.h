// SPDX-License-Identifier: MIT
// Pictures of a training step: the graph of its ops, its memory, and a timeline.
#pragma once
#include <chrono>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "engine/tape/plan.h"
#include "engine/tape/tape.h"

namespace masquerade {

// Draws the ops of the tape as a graph with Graphviz. Boxes around the ops show their scopes. An edge is blue if a
// gradient flows back along it; otherwise, it is grey.
void draw_graph_of(const Tape& tape, const std::string& file);

// Returns an SVG picture of the memory plan. Each block is a rectangle. The x axis is time, which advances by a tick
// for each op: first in the forward, then in the backward. The y axis is the offset in the arena.
std::string memory_picture(const Tape& tape, const std::vector<ArenaBlock>& plan);

// Records when each op began and ended, in microseconds since clear(). json() returns the events in Chrome's trace
// event format.
class Timeline : public Observer {
  public:
    void before(const Record& record, bool backward) override;
    void after(const Record& record, bool backward) override;
    void clear() { events_.clear(), first_ = std::chrono::steady_clock::now(); }
    std::string json() const;

  private:
    double microseconds() const;
    std::chrono::steady_clock::time_point first_;
    nlohmann::json events_ = nlohmann::json::array();
    double start_ = 0;
};

}  // namespace masquerade
