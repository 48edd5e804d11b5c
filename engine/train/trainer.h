// SPDX-License-Identifier: MIT
// The training loop. It is independent of the model: the model provides a Task, which chooses the batch of each step,
// computes the loss on the tape, and says what to show. A step is a pure function of (parameters, optimiser state,
// step, seed, position in the data), so a resumed run is bit-identical to an uninterrupted one.
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
    // The learning rate decays from step schedule_start to step schedule_steps. If schedule_steps is 0 and `steps` is
    // the only limit, schedule_steps becomes `steps`. Otherwise a schedule_steps of 0 means that both are chosen from
    // the measured speed, so that the schedule ends with the `minutes` (without a limit, after 10 minutes); they are
    // printed and stored in the checkpoint. If only schedule_start is 0, it becomes `warmup`.
    std::int64_t schedule_start = 0, schedule_steps = 0;
    std::int64_t steps = 0;  // stop after this many steps; 0: no limit
    double minutes = 10;     // stop after this time; 0: no limit
    // If a run is resumed before the end of its schedule, it ignores `minutes` and stops at the end of the schedule.
    bool to_schedule_end = false;
    std::int64_t save_every = 0;  // steps between checkpoints; 0: every minute
    std::int64_t keep = 3;        // number of checkpoints kept besides the best one
    std::uint64_t seed = 1;
    std::string recompute;  // scopes to recompute in the backward: "decoder.layer.*"
    bool plan_memory = true;
    bool tf32 = false;           // on a GPU, f32 factors of products are rounded to TF32
    bool deterministic = false;  // on a GPU, own kernels compute all products: bit-identical in any batch; slower
    bool graph = true;           // on a GPU, a step is captured as one CUDA graph (tape/rehearsal.h)

    void declare(Config& config);
    Blocks blocks() const { return plan_memory ? Blocks::planned : Blocks::loose; }
};

// A named number for the progress line and log.jsonl.
struct Metric {
    std::string name;
    double value;
};

class Task {
  public:
    virtual ~Task() = default;
    // Chooses the batch of this step. Returns its bucket: a name that is equal only for batches whose sizes are equal.
    virtual std::string next_batch(std::int64_t step) = 0;
    // Computes the loss of the chosen batch, a tensor with one number. If schedule_steps is 0, the length of the
    // schedule is not known yet.
    virtual Tensor* loss(Tape& tape, std::int64_t step, std::int64_t schedule_steps) = 0;
    // Called after the backward and before the optimiser, inside the captured part of the step. May change the model's
    // state tensors (Parameters::add_state) by ops; may not read numbers back.
    virtual void learn(Tape& /*tape*/) {}
    // Lines for the user about text that training skips or truncates, "warning: ..." or "note: ...". Called before the
    // first step.
    virtual std::vector<std::string> warnings() const { return {}; }
    virtual std::int64_t batch_tokens() const = 0;  // number of scored tokens in the chosen batch
    // Further numbers of the last loss. Called before the tensors of the step are released.
    virtual std::vector<Metric> metrics() { return {}; }
    // Numbers on held-out data. The first one is the loss that defines the best checkpoint.
    virtual std::vector<Metric> validate() { return {}; }
    // Text that is shown to the user now and then: samples, reconstructions.
    virtual std::string show(std::int64_t /*step*/) { return {}; }
    // Called at the end of training, before the last show(), when the last checkpoint is in `step_folder`. May write
    // further files into this folder.
    virtual void finish(const std::string& /*step_folder*/) {}
    // The position in the data, as numbers for the checkpoint. move_to() returns to such a position.
    virtual std::vector<std::uint64_t> place() const { return {}; }
    virtual void move_to(const std::vector<std::uint64_t>&) {}
    // Writes the model's own files of a checkpoint, such as config.json.
    virtual void save(const std::string& folder) const = 0;
};

enum class StopReason { steps, minutes, schedule, asked, unheard };  // unheard: standard output was closed

class Trainer {
  public:
    Trainer(Parameters& parameters, Task& task, RunFolder& folder, const TrainOptions& options);

    // Continues from the latest checkpoint of the folder. A schedule given in the options overrides the schedule of the
    // checkpoint.
    void resume();
    // Trains until a limit, the end of the schedule, or `stop` returns true; then saves, and returns the reason.
    StopReason run(const std::function<bool()>& stop);

    std::int64_t step() const { return step_; }
    void observe(Observer* observer) { tape_.observe(observer); }
    // Called once, after the first step has succeeded (or at the end, if there is no step to do) and before anything is
    // written. A new run creates its folder here, so that a run that fails in its first step leaves no folder.
    std::function<void()> begin;
    std::function<void()> saved;  // called after the last checkpoint; work after it may be interrupted
    bool quiet = false;           // print nothing; the run folder still gets everything
    bool terminal = false;        // redraw the progress line in place; otherwise print lines
    std::function<int()> columns = [] { return 80; };  // width of the terminal, read before each print
    double seconds_before = 0;  // seconds from program start to run(); they count towards `minutes`

  private:
    double train_step();
    void choose_schedule(double now, double seconds_per_step);
    void set_schedule(std::uint64_t start, std::uint64_t steps);
    // Prints and flushes. If this fails, training stops early with StopReason::unheard.
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
                 first_tokens_ = 0;                          // first_*: values at the start or resume of this run
    std::uint64_t schedule_start_ = 0, schedule_steps_ = 0;  // 0: not chosen yet
    double best_;
    double norm_ = 0;  // gradient norm of the last step
    std::int64_t saved_step_ = -1;
    std::vector<Metric> metrics_;         // metrics of the last step
    mutable bool output_closed_ = false;  // whether a print has failed
};

// Formats a time as "3:07" or "1:02:33".
std::string clock_text(double seconds);

}  // namespace masquerade
