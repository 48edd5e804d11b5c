// SPDX-License-Identifier: MIT
// Pictures of a step: what flows where, which block of memory lives when, which op ran when.
#pragma once
#include <chrono>
#include <string>
#include <vector>

#include "engine/tape/plan.h"
#include "engine/tape/tape.h"

namespace masquerade {

// Ops in the boxes of their scopes, by Graphviz; a blue line brings a gradient back, a grey one does not.
void draw_graph_of(const Tape& tape, const std::string& file);

// An SVG: ticks of the step from left to right, the forward's and then the backward's; bytes of its buffer from below.
std::string memory_picture(const Tape& tape, const std::vector<ArenaBlock>& plan);

// When each op began and ended, as the trace event format of Chrome has it.
class Timeline : public Observer {
  public:
    void before(const Record& record, bool backward) override;
    void after(const Record& record, bool backward) override;
    void clear() { events_.clear(), first_ = std::chrono::steady_clock::now(); }
    std::string json() const;

  private:
    double microseconds() const;
    struct Event {
        std::string op, path, shape;
        bool backward;
        double start, length;  // microseconds
    };
    std::chrono::steady_clock::time_point first_;
    std::vector<Event> events_;
    double start_ = 0;
};

}  // namespace masquerade
