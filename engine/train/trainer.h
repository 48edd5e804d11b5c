// SPDX-License-Identifier: MIT
// The training loop. It knows no model: a model hands it a Task, which picks the batch of a step, computes its loss on
// the tape, and says what to show. Every step is a pure function of (parameters, moments, step, seed, place in the
// data), so that a resumed run ends with the same bits as one that was never stopped.
#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "engine/nn/parameters.h"
#include "engine/tape/tape.h"
#include "engine/train/optimiser.h"
#include "engine/io/config.h"
#include "engine/io/run_folder.h"

namespace masquerade {

struct TrainOptions : OptimiserOptions {
    double learning_rate = 2e-3;
    std::int64_t warmup = 300;
    // The learning rate decays from schedule_start to schedule_steps. 0: `steps` if no minutes are given, else chosen
    // once from measured speed so that the run of `minutes` ends there; then printed and kept in the checkpoint.
    std::int64_t schedule_start = 0, schedule_steps = 0;
    std::int64_t steps = 0;  // stop after so many; 0: no limit
    double minutes = 10;     // stop after so long; 0: no limit
    // a resumed run stops where its schedule ends, if that is ahead: `minutes` do not count
    bool to_schedule_end = false;
    std::int64_t save_every = 0;  // steps; 0: every minute
    std::int64_t keep = 3;        // checkpoints that stay, and the best one
    std::uint64_t seed = 1;
    std::string recompute;  // scopes to compute again in the backward: "decoder.layer.*"
    bool plan_memory = true;
    bool tf32 = false;           // on a GPU factors of f32 are rounded to TF32
    bool deterministic = false;  // on a GPU the engine's own kernels make all products
    bool graph = true;           // on a GPU a step is one CUDA graph (tape/rehearsal.h)

    void declare(Config& config);
    Blocks blocks() const { return plan_memory ? Blocks::planned : Blocks::loose; }
};

// A number for the progress line and log.jsonl.
struct Metric {
    std::string name;
    double value;
};

class Task {
  public:
    virtual ~Task() = default;
    // Chooses the batch of this step and names its bucket: every size that may differ between steps.
    virtual std::string next_batch(std::int64_t step) = 0;
    // The loss of the chosen batch, (1). `schedule_steps` 0: not known yet.
    virtual Tensor* loss(Tape& tape, std::int64_t step, std::int64_t schedule_steps) = 0;
    // After the backward and before the optimiser, part of the step that a device captures: changes the states of the
    // model (Parameters::add_state) by ops, and reads nothing back.
    virtual void learn(Tape& /*tape*/) {}
    // Lines for the user about text that training loses, "warning: ..." or "note: ...", before the first step.
    virtual std::vector<std::string> warnings() const { return {}; }
    virtual std::int64_t batch_tokens() const = 0;  // scored tokens of the chosen batch
    // Further numbers of the last loss, after it was computed and before the step's tensors are gone.
    virtual std::vector<Metric> metrics() { return {}; }
    // The held-out loss (what "best" means) and other numbers; the first one is it.
    virtual std::vector<Metric> validate() { return {}; }
    // Text that a reader wants to see now and then: samples, reconstructions.
    virtual std::string show(std::int64_t /*step*/) { return {}; }
    // Training has ended and its last checkpoint lies in `step_folder`: what else belongs there, before the last show.
    virtual void finish(const std::string& /*step_folder*/) {}
    // The place in the data, as numbers for the checkpoint.
    virtual std::vector<std::uint64_t> place() const { return {}; }
    virtual void move_to(const std::vector<std::uint64_t>&) {}
    // The model's own files of a checkpoint: config.json.
    virtual void save(const std::string& folder) const = 0;
};

enum class StopReason { steps, minutes, schedule, asked, unheard };  // unheard: standard output is gone

class Trainer {
  public:
    Trainer(Parameters& parameters, Task& task, RunFolder& folder, const TrainOptions& options);

    // Goes on from the folder's latest checkpoint. A schedule that the options name counts, else that of the
    // checkpoint.
    void resume();
    // Trains until a limit, the end of the schedule, or `stop` says so; saves; returns why it ended.
    StopReason run(const std::function<bool()>& stop);

    std::int64_t step() const { return step_; }
    void observe(Observer* observer) { tape_.observe(observer); }
    // Called once, when the first step of this sitting has succeeded, before anything is written: a new run makes its
    // folder here, so that a training that is refused leaves none.
    std::function<void()> begin;
    std::function<void()> saved;  // called when the last checkpoint is written: what follows may be cut short
    bool quiet = false;           // nothing on standard output; the run folder gets everything
    bool terminal = false;        // the progress line is rewritten in place; elsewhere plain lines come now and then
    std::function<int()> columns = [] { return 80; };  // of the terminal, asked whenever something is printed
    double seconds_before = 0;                         // already spent by the program: the minutes count from its start

  private:
    double train_step();
    void choose_schedule(double now, double seconds_per_step);
    void set_schedule(std::uint64_t start, std::uint64_t steps);
    // Prints at once. Where that fails, training ends as if asked to stop.
    void say(const std::string& text) const;
    void report_memory() const;
    std::string advice() const;
    void save();
    void log(double loss, double now) const;
    void progress(double loss, double now) const;
    void show(double now);
    double seconds() const;

    Parameters& parameters_;
    Task& task_;
    RunFolder& folder_;
    TrainOptions options_;
    std::unique_ptr<Optimiser> optimiser_;
    Arena arena_;
    Tape tape_;
    std::chrono::steady_clock::time_point start_;
    std::int64_t step_ = 0, first_step_ = 0, tokens_ = 0,
                 first_tokens_ = 0;                          // first: where this sitting began
    std::uint64_t schedule_start_ = 0, schedule_steps_ = 0;  // 0: not chosen yet
    double best_;
    double norm_ = 0;  // of the last step's gradient
    std::int64_t saved_step_ = -1;
    std::vector<Metric> metrics_;   // of the last step
    mutable bool unheard_ = false;  // something could not be printed
};

// "3:07", or "1:02:33"
std::string clock_text(double seconds);

}  // namespace masquerade
