// SPDX-License-Identifier: MIT
// The base class of the training tasks whose examples are something other than sentences, such as vectors. The examples
// are numbered. Checkpoints store the number of the next example.
#pragma once
#include <fmt/format.h>

#include "models/runs/measures.h"
#include "models/runs/run.h"

namespace masquerade {

class NumberedTask : public Task {
  public:
    // `unit` is the word for one example in messages, such as "vector".
    NumberedTask(Run& run, const char* unit) : base_run_(run), unit_(unit) {}

    std::vector<Metric> validate() override {
        shown_ = measured();  // even if show() has measured these weights: only process 0 calls show()
        std::vector<Metric> metrics;
        for (const Measure& m : shown_) metrics.push_back({m.key, m.value});
        return metrics;
    }
    std::string show(std::int64_t) override {
        if (shown_.empty()) shown_ = measured();
        std::string out = text("  held-out ", unit_, "s\n");
        for (const Measure& m : shown_)
            out += fmt::format("    {:20}{:>9.3f}  {:14}{}\n", m.key, m.value, m.unit, m.meaning);
        return out;
    }
    // Returns the number of the next example, and the hash of the task's files.
    std::vector<std::uint64_t> place() const override { return {next_, hash()}; }
    void move_to(const std::vector<std::uint64_t>& place) override {
        if (place.size() != 2) throw BadInput("the checkpoint does not record the number of the next ", unit_);
        if (place[1] != hash()) throw BadInput(changed());
        next_ = place[0];
    }
    void save(const std::string& folder) const override { base_run_.save_config(folder); }

  protected:
    virtual std::uint64_t hash() const = 0;
    virtual std::string changed() const = 0;  // the error message if hash() has changed
    // Returns measures on held-out examples. The processes share the examples, so all of them must call it.
    virtual MeasureRows measured() const = 0;
    void advance(std::size_t count) {
        next_ += count;
        shown_.clear();
    }
    std::uint64_t next() const { return next_; }

  private:
    Run& base_run_;
    const char* const unit_;
    std::uint64_t next_ = 0;
    MeasureRows shown_;  // measures of the current weights; empty: not yet measured
};

}  // namespace masquerade
