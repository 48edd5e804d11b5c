// SPDX-License-Identifier: MIT
// The training loop. It is independent of the model: the model provides a Task, which chooses the batch of each step,
// computes the loss on the tape, and generates the samples that are shown to the user. With the same settings, a step
// is a pure function of (parameters, optimiser state, step, schedule, position in the data). The checkpoint stores all
// of these, so a resumed run is bit-identical to an uninterrupted one.
#pragma once
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "engine/nn/parameters.h"
#include "engine/tape/tape.h"
#include "engine/tensor/numbers.h"
#include "engine/train/optimiser.h"
#include "engine/train/part_sum.h"
#include "engine/io/config.h"
#include "engine/io/run_folder.h"

namespace masquerade {

struct TrainOptions : OptimiserOptions {
    double learning_rate = 2e-3;
    std::int64_t warmup = 300;
    // The learning rate decays from step schedule_start to step schedule_steps. In a new run, a value of 0 means:
    //   schedule_start   `warmup`
    //   schedule_steps   `steps`. If this is 0, too, schedule_steps is chosen from the measured speed, so that the
    //                    schedule ends when `minutes` are over or, without a limit, after 10 minutes; schedule_start is
    //                    then the step of this choice. The chosen values are printed and stored in the checkpoint.
    // In a resumed run, a value of 0 means the value in the checkpoint.
    std::int64_t schedule_start = 0, schedule_steps = 0;
    std::int64_t steps = 0;  // stop after this many steps; 0: no limit
    double minutes = 10;     // stop after this many minutes; 0: no limit
    // If true and the run is resumed before the end of its schedule, training ignores `minutes` and stops at the end of
    // the schedule or, if `steps` is not 0, after `steps` steps.
    bool to_schedule_end = false;
    std::int64_t save_every = 0;  // steps between checkpoints; 0: every minute
    std::int64_t keep = 3;        // number of latest checkpoints that are kept, besides the best one
    std::uint64_t seed = 1;
    std::string recompute;  // parts of the model that the backward recomputes to save memory: "decoder.layer.*"
    // The batch of a step is cut into this many parts, so that activations need memory for one part. One process
    // computes them one after the other; several processes (engine/base/processes.h) share them. The loss and the
    // gradient are those of the whole batch.
    int parts = 1;
    bool plan_memory = true;
    bool tf32 = false;           // on a GPU, f32 factors of products are rounded to TF32: faster, but less exact
    bool deterministic = false;  // on a GPU, products use the engine's own kernels: same bits in any batch, but slower
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
    // Chooses the batch of this step and returns its bucket, a name. Two batches may have the same bucket only if they
    // need the same memory, that is, if all their sizes are equal. If the task cuts the batch into parts, next_batch()
    // chooses the first part and returns its bucket.
    virtual std::string next_batch(std::int64_t step) = 0;
    // The number of parts of the batch: at most TrainOptions::parts, and fewer if the batch has too few documents. A
    // task that always returns 1 ignores TrainOptions::parts.
    virtual int parts() const { return 1; }
    // Chooses the next part of the batch, and returns its bucket. Called parts() - 1 times in each step.
    virtual std::string next_part() { return ""; }
    // Computes the loss of the chosen part, a tensor with one number. The losses of all parts add up to the loss of the
    // batch, so means are taken over the whole batch. If schedule_steps is 0, the length of the schedule is not known
    // yet.
    virtual Tensor* loss(Tape& tape, std::int64_t step, std::int64_t schedule_steps) = 0;
    // Called after the backward of each part that this process computes, if a batch has several parts or there are
    // several processes. Keeps what learn() needs of this part.
    virtual void keep() {}
    // Called once in each step, after the backward of the last part and before the optimiser. May change the model's
    // state tensors (Parameters::add_state) by ops. Several processes must exchange what they have kept of their parts,
    // so that the states change equally in all of them. If keep() was not called, learns from the tensors of the only
    // part; then it may not read numbers back from a GPU, because the step may be captured as a CUDA graph.
    virtual void learn(Tape& /*tape*/) {}
    // Returns lines for the user about text that training skips or truncates: "warning: ..." or "note: ...". Called
    // before the first step.
    virtual std::vector<std::string> warnings() const { return {}; }
    // Returns the number of tokens of the whole batch, over all its parts, from which tokens per second are computed.
    // Each task decides what it counts as a token: a label, a row, or a vector of numbers.
    virtual std::int64_t batch_tokens() const = 0;
    // Returns the first documents of the batch as text, with lines of at most `columns` characters: what the model
    // reads and what it must predict.
    virtual std::string first_documents(int /*columns*/) const { return {}; }
    // Returns a function that returns further numbers of the chosen part, such as terms of its loss. The numbers of all
    // parts are added up. metrics() is called before the tensors of the part are released, and requests the numbers
    // from the device (ReadLater). The returned function is called once, possibly after the next step has been
    // requested.
    virtual std::function<std::vector<Metric>()> metrics() {
        return [] { return std::vector<Metric>(); };
    }
    // validate(), show() and finish() are called with the moving average of the weights, if there is one
    // (OptimiserOptions::ema). validate() returns measurements on held-out data. The first one is the loss that decides
    // which checkpoint is the best.
    virtual std::vector<Metric> validate() { return {}; }
    // Returns text that is shown to the user now and then, such as samples and reconstructions.
    virtual std::string show(std::int64_t /*step*/) { return {}; }
    // Called at the end of training, before the last show(), when the last checkpoint is in `step_folder`. May write
    // further files into this folder.
    virtual void finish(const std::string& /*step_folder*/) {}
    // Returns the position in the data, as numbers that the checkpoint stores. When a run is resumed, move_to()
    // receives these numbers and restores the position.
    virtual std::vector<std::uint64_t> place() const { return {}; }
    virtual void move_to(const std::vector<std::uint64_t>&) {}
    // Writes the model's own files of a checkpoint, such as config.json.
    virtual void save(const std::string& folder) const = 0;
};

// Why training stopped: a limit was reached (steps, minutes), the schedule ended, the function `stop` returned true
// (asked), or standard output was closed (unheard). If several processes train, `stop` may return true in any of them;
// for everything else, the clock and the output of process 0 count, so that all processes stop after the same step.
enum class StopReason { steps, minutes, schedule, asked, unheard };

// Trains the model, alone or with other processes (engine/base/processes.h). Each process computes its share of the
// parts of a batch. Otherwise all processes do the same work, so their parameters always have the same bits. Only
// process 0 validates, prints, and writes into the run folder.
class Trainer {
  public:
    Trainer(Parameters& parameters, Task& task, RunFolder& folder, const TrainOptions& options);

    // Continues from the latest checkpoint of the folder. Values of TrainOptions::schedule_start and schedule_steps
    // that are not 0 override the values in the checkpoint. Changes nothing in the folder: run() rewinds the folder
    // (RunFolder::rewind) after its first step has succeeded, so that a resume that fails at once loses no later step.
    void resume();
    // Trains until a limit is reached or, if there is no limit, until the end of the schedule. Stops earlier if `stop`
    // returns true or standard output is closed. Then saves a checkpoint, and returns why training stopped.
    StopReason run(const std::function<bool()>& stop);

    // Runs one step and prints the memory it needs, its loss and the first documents of its batch. Writes no file.
    void try_step();
    // Runs one step, waits until it is finished, and returns the loss before the update. run() works differently: on a
    // GPU, it requests the next step before it reads the results of a step.
    double train_step();
    std::int64_t step() const { return step_; }  // the number of steps that have been requested
    bool has_schedule() const { return options_.schedule_steps > 0; }
    // The norm of the gradient, and Task::metrics() over all parts, of the latest step whose results have been read.
    double norm() const { return norm_; }
    const std::vector<Metric>& metrics() const { return metrics_; }
    std::size_t planned_bytes() const { return arena_.planned_bytes(); }
    void observe(Observer* observer) { tape_.observe(observer); }
    void ignore(Observer* observer) { tape_.ignore(observer); }
    // Called once, before anything is written: after the first step has succeeded or, if there is no step to do, at the
    // end of run(). A new run creates its folder in this function, so that a run that fails in its first step leaves no
    // folder.
    std::function<void()> begin;
    // Called in each step before Task::learn() and the optimiser, when all ops of the gradient have been called. If the
    // step is captured as a CUDA graph, they are only recorded by then, and a first step may call this several times.
    std::function<void()> before_update;
    // Called when the results of a step have been read, with the number of the step, from 1, and its loss.
    std::function<void(std::int64_t step, double loss)> after_step;
    std::function<void()> saved;  // called when the last checkpoint is on disk; from then on, Ctrl-C loses no training
    bool quiet = false;           // print nothing to standard output; the run folder is written nevertheless
    bool terminal = false;        // redraw the progress line in place; otherwise print lines
    std::function<int()> columns = [] { return 80; };  // width of the terminal, read before each print
    double seconds_before = 0;  // seconds from program start to run(); they count towards `minutes`

  private:
    // The results of a step that has been requested.
    struct Results {
        std::int64_t step, tokens;      // steps and tokens of the whole run up to the end of this step
        int parts;                      // of all processes
        std::vector<ReadLater> losses;  // the loss of each part of this process
        std::optional<ReadLater> norm;
        std::vector<std::function<std::vector<Metric>()>> metrics;  // Task::metrics() of each part of this process
    };
    // Sends all ops of a step to the device, and does not wait for them.
    Results request_step();
    // Waits for the results, exchanges them with the other processes, sets norm_ and metrics_, and returns the loss.
    // Throws Error if the loss or the norm is not finite.
    double read(Results& results);
    // The facts by which all processes make the same decision to stop or to go on.
    struct Moment {
        double seconds;      // since the start of process 0
        bool asked, closed;  // whether to stop: asked in any process, or the output of process 0 is closed
    };
    Moment agree(const std::function<bool()>& stop) const;
    void choose_schedule(double now, double seconds_per_step);
    std::int64_t last_step() const;
    // Prints and flushes. If this fails, training stops early with StopReason::unheard.
    void say(const std::string& text) const;
    void report_memory() const;
    std::string advice(std::int64_t updates) const;
    void rewind();
    void save();
    void log(const Results& results, double loss, double now);
    void progress(double loss, double now) const;
    void show(double now);
    double seconds() const;

    Parameters& parameters_;
    Task& task_;
    RunFolder& folder_;
    TrainOptions options_;  // schedule_steps is 0 until the schedule is chosen
    const bool start_given_ = options_.schedule_start > 0;
    std::unique_ptr<Optimiser> optimiser_;
    GradientSum gradient_sum_;
    Arena arena_;
    Tape tape_;
    double start_ = 0;  // steady_seconds() at the start of run()
    std::int64_t step_ = 0, first_step_ = 0, tokens_ = 0,
                 first_tokens_ = 0;   // first_*: values of step_ and tokens_ at the start of run()
    std::int64_t logged_tokens_ = 0;  // tokens_ and seconds() at the latest line of log.jsonl, or at the start of run()
    double logged_seconds_ = 0;
    double seconds_logged_ = 0;  // in log.jsonl, when the run was resumed
    double best_ = std::numeric_limits<double>::infinity();
    double norm_ = 0;
    std::int64_t saved_step_ = -1;
    bool to_rewind_ = false;              // true from resume() until rewind()
    std::vector<Metric> metrics_;         // Task::metrics() of the latest step whose results have been read
    mutable bool output_closed_ = false;  // true after printing to standard output has failed
};

// Formats a time as "3:07" or "1:02:33".
std::string clock_text(double seconds);

}  // namespace masquerade
