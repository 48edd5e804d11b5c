// SPDX-License-Identifier: MIT
#include "engine/train/trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <optional>
#include <utility>

#include "engine/base/clock.h"
#include "engine/base/log.h"
#include "engine/base/memory.h"
#include "engine/base/named.h"
#include "engine/base/processes.h"
#include "engine/base/wrap.h"
#include "engine/tape/rehearsal.h"
#include "engine/tensor/numbers.h"
#include "engine/tensor/runtime.h"
#include "engine/io/checkpoint.h"
#include "engine/train/schedule.h"

namespace masquerade {
namespace {
constexpr double measuring_seconds = 20;  // training time after which the schedule is chosen from the measured speed

// Returns the time in seconds at which the steps of a run of `minutes` minutes must end. The remaining 8 seconds (in a
// run of less than 80 seconds, a tenth of the run) are for the last validation, the samples and the checkpoint.
double last_second(double minutes) { return 60 * minutes - std::min(8.0, 6 * minutes); }

std::atomic<bool> bar_shown{false};  // true if the terminal shows a progress bar, which has no newline
void clear_bar() {
    if (bar_shown.exchange(false)) std::fputs("\r\x1b[K", stdout), std::fflush(stdout);
}

// Returns one field of a line of log.jsonl. A value that is not finite is written as null.
std::string entry(const std::string& name, double value) {
    return std::isfinite(value) ? fmt::format(",\"{}\":{:.6g}", name, value) : fmt::format(",\"{}\":null", name);
}

// Returns the parameter or state that contains the first number that is not finite, and this number. Returns null and 0
// if all numbers are finite. Only trained parameters are refused for being infinite: the scores of order=FILE, which
// are not trained, are infinite in some older runs.
std::pair<const Tensor*, double> first_not_finite(const Parameters& parameters) {
    const OnHost values(parameters.values());
    for (const Tensor& p : parameters.all()) {
        const View weights = parameters.slice(values.view(), p);
        for (std::int64_t i = 0; i < weights.count(); i++)
            if (const double x = number_at(weights, i); p.needs_grad ? !std::isfinite(x) : std::isnan(x))
                return {&p, x};
    }
    return {nullptr, 0};
}
}  // namespace

void TrainOptions::declare(Config& c) {
    c.topic("Run");
    c.add("seed", &seed, "seed of all random numbers of the run; --seed sets it, too");
    c.topic("Optimiser");
    c.add("optimiser", &optimiser, "rule that updates the parameters: " + described(optimiser_kinds()),
          names_of(optimiser_kinds()));
    c.add("learning_rate", &learning_rate, "peak of the learning rate", 0, 1);
    c.add("warmup", &warmup, "steps of linear warm-up", 0, 1000000);
    declare_numbers(c);
    c.add("schedule_start", &schedule_start, "step at which the learning rate starts to decay; 0: chosen automatically",
          0, 1000000000);
    c.add("schedule_steps", &schedule_steps,
          "step at which the decay ends; 0: the last step, which is that of --steps or, without this option, the step "
          "that the run will reach within --minutes at the measured speed (see ./train --help-all)",
          0, 1000000000);
    c.topic("Run");
    c.add("save_every", &save_every, "steps between checkpoints; 0: every minute", 0, 1000000000);
    c.add("keep", &keep,
          "number of latest checkpoints that are kept, besides the best one; ./evaluate and ./generate can "
          "average them (--average)",
          1, 1000000);
    c.add("recompute", &recompute,
          "names of scopes, such as layer.0 (* stands for any characters): the values of their tensors are not kept "
          "but recomputed in the backward pass; the names that \"./inspect program\" lists begin with their scope");
    c.add("parts", &parts,
          "number of parts into which a batch is cut; they are computed one after the other, so that "
          "the batch needs less memory",
          1, 65536);
    c.add("plan_memory", &plan_memory,
          "place the tensors of a training step in one planned block of memory; false: in separate blocks");
    c.add("tf32", &tf32, "on a GPU, round the f32 factors of products to TF32: faster, but only 10 bits of mantissa");
    c.add("deterministic", &deterministic,
          "on a GPU, compute matrix products with this program's own kernels instead of cuBLAS: a row gets the same "
          "bits in any batch; slower");
    c.add("graph", &graph, "on a GPU, run a training step as one CUDA graph; false: op by op, for debuggers");
}

Trainer::Trainer(Parameters& parameters, Task& task, RunFolder& folder, const TrainOptions& options)
    : parameters_(parameters),
      task_(task),
      folder_(folder),
      options_(options),
      optimiser_(make_optimiser(parameters, options)),
      gradient_sum_(parameters),
      arena_(parameters.device(), options.blocks()),
      tape_(arena_, parameters.storage()) {
    if (parameters.device() != Device::cpu) cuda_runtime().choose_products({options.tf32, options.deterministic});
    if (!options.recompute.empty()) tape_.recompute(options.recompute);
}

double Trainer::seconds() const { return seconds_before + steady_seconds() - start_; }

// Returns the step at which the run ends: TrainOptions::steps or, if neither `steps` nor `minutes` is set, the end of
// the schedule. Returns 0 if only `minutes` is set, or if the schedule is not chosen yet.
std::int64_t Trainer::last_step() const {
    return options_.steps > 0 ? options_.steps : options_.minutes > 0 ? 0 : options_.schedule_steps;
}

void Trainer::try_step() {
    const double loss = train_step();
    report_memory();
    say(fmt::format("batch   {} tokens, loss {:.3f} before training\n{}", task_.batch_tokens(), loss,
                    printable_lines(task_.first_documents(columns()))));
}

double Trainer::train_step() {
    Results results = request_step();
    return read(results);
}

Trainer::Results Trainer::request_step() {
    std::string bucket = task_.next_batch(step_);
    const int parts = task_.parts();
    const PartRange mine = share_of(parts, processes().rank(), processes().count());
    const bool whole = parts == 1 && alone();  // one graph can then be the whole step, with the update
    parameters_.redraw(step_);
    const auto update = [&] {
        if (before_update) before_update();
        task_.learn(tape_);
        optimiser_->update(step_ + 1, learning_rate_at(step_, options_.learning_rate, options_.warmup,
                                                       options_.schedule_start, options_.schedule_steps));
        optimiser_->average(step_ + 1);
    };
    Results results;
    results.parts = parts;
    for (int part = 0; part < parts; part++) {
        if (part > 0) bucket = task_.next_part();
        if (!mine.has(part)) continue;
        Tensor* loss = nullptr;
        const auto work = [&] {
            loss = task_.loss(tape_, step_, options_.schedule_steps);
            parameters_.start_gradients();
            tape_.backward(loss);
            parameters_.finish_gradients();
            if (whole) update();
        };
        run_step(tape_, bucket, options_.seed, std::uint32_t(step_), options_.graph, work);
        if (!whole) {  // outside the CUDA graph, which is the same for every part
            task_.keep();
            gradient_sum_.add(part, parts);
        }
        // The copies of the results are requested before tape_.end() releases the tensors of the part.
        results.losses.emplace_back(loss->view());
        results.metrics.push_back(task_.metrics());
        tape_.end();
    }
    if (!whole) {
        gradient_sum_.finish(parts);
        update();
    }
    results.norm.emplace(optimiser_->norm_view());
    results.tokens = tokens_ += task_.batch_tokens();
    results.step = ++step_;
    return results;
}

double Trainer::read(Results& results) {
    metrics_.clear();
    std::vector<double> mine;  // of each part of this process, the loss and the metrics
    for (std::size_t part = 0; part < results.losses.size(); part++) {
        mine.push_back(results.losses[part][0]);
        std::vector<Metric> metrics = results.metrics[part]();
        for (const Metric& m : metrics) mine.push_back(m.value);
        if (part == 0) metrics_ = std::move(metrics);
    }
    const std::vector<double> all = gather_numbers(mine);
    const std::size_t parts = std::size_t(results.parts), numbers = all.size() / parts;
    std::vector<double> losses;
    for (std::size_t part = 0; part < parts; part++) losses.push_back(all[part * numbers]);
    const double value = sum_of_parts(losses);
    norm_ = (*results.norm)[0];
    for (std::size_t i = 0; i < metrics_.size(); i++) {
        metrics_[i].value = all[1 + i];
        for (std::size_t part = 1; part < parts; part++) metrics_[i].value += all[part * numbers + 1 + i];
    }
    if (!std::isfinite(value) || !std::isfinite(norm_))
        throw Error("step ", results.step - 1, ": the loss is ", value, " and the norm of the gradient ", norm_,
                    advice(results.step - 1));
    if (after_step) after_step(results.step, value);
    return value;
}

Trainer::Moment Trainer::agree(const std::function<bool()>& stop) const {
    const std::vector<Moment> all = gather_values(Moment{seconds(), stop(), output_closed_});
    Moment moment = all[0];
    for (const Moment& each : all) moment.asked = moment.asked || each.asked;
    return moment;
}

// Chooses the schedule from the measured speed. The decay starts at the step that schedule_start= names or, without it,
// at this step or at the end of the warm-up, whichever is later. It ends after 96 % of the steps that fit into the
// remaining time, but takes at least one step. If there is a limit in minutes, the remaining time ends at
// last_second(), otherwise at second 600.
void Trainer::choose_schedule(double now, double seconds_per_step) {
    const double left = (options_.minutes > 0 ? last_second(options_.minutes) : 600) - now;
    if (!start_given_) options_.schedule_start = std::max(step_, options_.warmup);
    const std::int64_t from = start_given_ ? step_ : options_.schedule_start;
    options_.schedule_steps =
        std::max(options_.schedule_start + 1, from + std::int64_t(std::max(1.0, 0.96 * left / seconds_per_step)));
    log_line("note: ", fmt::format("{:.1f} ms a step: schedule_start={} schedule_steps={}", 1e3 * seconds_per_step,
                                   options_.schedule_start, options_.schedule_steps));
}

void Trainer::say(const std::string& text) const {
    if (quiet || output_closed_) return;
    clear_bar();
    output_closed_ = std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0;
}

void Trainer::report_memory() const {
    if (quiet) return;
    auto mib = [](double bytes) { return fmt::format("{:.1f}", bytes / (1 << 20)); };
    const auto say = [this](const std::string& lines) { this->say(terminal ? wrapped(lines, columns()) : lines); };
    double all = double(parameters_.length()) * double(bytes_of(parameters_.dtype()));
    say(
        fmt::format("memory  parameters {}, gradients{} {}, moments{} {} MiB\n"
                    "        activations {} MiB, planned; {} without a plan\n",
                    mib(all), gradient_sum_.bytes() > 0 ? " and their sums" : "",
                    mib(all + double(gradient_sum_.bytes())), options_.ema > 0 ? " and average" : "",
                    mib(double(optimiser_->states()) * all), mib(double(arena_.planned_bytes())),
                    mib(double(arena_.unplanned_bytes()))));
    if (parameters_.device() != Device::cpu) {
        const DeviceFacts gpu = cuda_runtime().facts();
        say(fmt::format("        workspaces of ops {} MiB; free {} of {} MiB\n", mib(double(gpu.bytes_of_ops)),
                        mib(double(gpu.bytes_free)), mib(double(gpu.bytes))));
    }
}

// Returns what the user can do if a number is not finite after this number of updates: the last part of the error
// message.
std::string Trainer::advice(std::int64_t updates) const {
    if (updates == 0)
        return "; no update has been made yet, so the learning rate is not the cause, but the initial weights or a "
               "setting of the model, such as deviation, norm_eps or dropout; --trace nan finds the first such number";
    const std::vector<std::int64_t> steps = folder_.steps();
    // The checkpoint of the same number of updates would fail again. Steps after the last one that this run has saved
    // or continued from belong to an older training.
    const auto after = std::lower_bound(steps.begin(), steps.end(), std::min(updates, saved_step_ + 1));
    if (after == steps.begin())
        return text("; there is no earlier checkpoint: start again with a lower learning_rate than ",
                    options_.learning_rate, " or a longer warmup than ", options_.warmup);
    return text("; resume an earlier checkpoint with a lower learning rate: ./train --resume ",
                shell_word(folder_.step_folder(after[-1])), " learning_rate=", options_.learning_rate / 2,
                after == steps.end() && folder_.has("best") ? text("; the best one is ", folder_.file("best")) : "");
}

void Trainer::save() {
    if (saved_step_ == step_) return;
    std::vector<Metric> held_out;  // measured by all processes together
    {
        const Averaged weights(*optimiser_);
        held_out = task_.validate();
    }
    // If the held-out loss or a weight is not finite, no checkpoint is saved, because save_step() would remove an older
    // checkpoint, whose weights are still good.
    if (!held_out.empty() && !std::isfinite(held_out[0].value))
        throw Error("step ", step_, ": the held-out loss is ", held_out[0].value, advice(step_));
    if (const auto [parameter, number] = first_not_finite(parameters_); parameter)
        throw Error("step ", step_, ": ", parameter->path, " contains a weight that is ", number, advice(step_));
    saved_step_ = step_;
    if (!first_process()) return;
    // The held-out losses are logged before the checkpoint is saved. If the program crashes in between, the log has one
    // line too many, and resume() removes this line. In the other order, the log would lack a line.
    std::string line = fmt::format("{{\"step\":{}", step_);
    for (const Metric& m : held_out) line += entry("held_out_" + m.name, m.value);
    folder_.append_log(line + "}");
    folder_.keep = int(options_.keep);
    bool better = !held_out.empty() && held_out[0].value < best_;
    if (better) best_ = held_out[0].value;
    folder_.save_step(
        step_,
        [&](const std::string& folder) {
            task_.save(folder);
            write_model(folder, step_, parameters_);
            const std::int64_t counts[] = {step_, tokens_, options_.schedule_start, options_.schedule_steps};
            std::vector<std::uint64_t> numbers(std::begin(counts), std::end(counts)), place = task_.place();
            numbers.insert(numbers.end(), place.begin(), place.end());
            std::vector<StoredTensor> all;
            std::deque<OnHost> states;
            for (std::size_t i = 0; i < optimiser_->states(); i++) {
                const View state = optimiser_->state(i);
                all.push_back(stored(state.path, states.emplace_back(state).view()));
            }
            const std::vector<double> best = {best_};
            all.insert(all.end(), {stored("numbers", numbers), stored("best", best)});
            write_safetensors(folder + "/state.safetensors", all, state_of(parameters_));
        },
        better);
}

void Trainer::resume() {
    step_ = folder_.latest_step();
    read_weights(open_model(folder_, step_), parameters_);
    const TensorFile state = open_state(folder_, step_, parameters_);
    for (std::size_t i = 0; i < optimiser_->states(); i++)
        state.copy_to(optimiser_->state(i).path, optimiser_->state(i));
    std::vector<std::uint64_t> numbers = state.integers("numbers");
    const auto counts = [](std::uint64_t n) {
        return n <= std::uint64_t(std::numeric_limits<std::int64_t>::max() / 2);
    };
    if (numbers.size() < 4 || numbers[0] != std::uint64_t(step_) ||
        !std::all_of(numbers.begin(), numbers.end(), counts))
        throw BadInput(state.path(), ": tensor numbers does not belong to step ", step_, "; was the folder renamed?");
    tokens_ = std::int64_t(numbers[1]);
    if (options_.schedule_start == 0) options_.schedule_start = std::int64_t(numbers[2]);
    if (options_.schedule_steps == 0) options_.schedule_steps = std::int64_t(numbers[3]);
    task_.move_to({numbers.begin() + 4, numbers.end()});
    const std::vector<double> best = state.reals("best");
    if (best.size() != 1 || std::isnan(best[0]))
        throw BadInput(state.path(), ": tensor best has ", best.size(), " numbers, expected one held-out loss");
    best_ = best[0];
    saved_step_ = step_;
    to_rewind_ = first_process();
    if (options_.to_schedule_end && step_ < options_.schedule_steps) options_.minutes = 0;
}

void Trainer::rewind() {
    if (!std::exchange(to_rewind_, false)) return;
    const RunFolder::Past past = folder_.rewind(first_step_);
    seconds_logged_ = past.seconds;
    // The log has six digits. If the loss differs in these, the best step of all has been removed.
    if (std::isfinite(past.best) && entry("", past.best) != entry("", best_)) best_ = past.best;
}

void Trainer::log(const Results& results, double loss, double now) {
    const double rate = learning_rate_at(results.step - 1, options_.learning_rate, options_.warmup,
                                         options_.schedule_start, options_.schedule_steps);
    const double speed = double(results.tokens - logged_tokens_) / (now - logged_seconds_);
    logged_tokens_ = results.tokens, logged_seconds_ = now;
    std::string line = fmt::format("{{\"step\":{},\"tokens\":{}", results.step, results.tokens) + entry("loss", loss) +
                       entry("seconds", seconds_logged_ + now) + entry("tokens_per_second", speed) +
                       entry("memory", double(peak_resident_bytes()) / (1 << 20)) + entry("learning_rate", rate) +
                       entry("norm", norm_);
    for (const Metric& m : metrics_) line += entry(m.name, m.value);
    folder_.append_log(line + "}");
}

void Trainer::progress(double loss, double now) const {
    if (quiet) return;
    const std::int64_t last = last_step();
    // `share` is the finished part of the run since it was started or resumed, from 0 to 1. It is computed from the
    // steps and from the time, and the larger result is used.
    double share = last > first_step_ ? double(step_ - first_step_) / double(last - first_step_) : 0;
    if (options_.minutes > 0) share = std::max(share, now / (60 * options_.minutes));
    share = std::min(share, 1.0);
    double spent = now - seconds_before, left = share > 0 ? now / share - now : 0;
    std::string numbers = fmt::format("step {} loss {:.3f}", step_, loss);
    for (const Metric& m : metrics_) numbers += fmt::format(" {} {:.3g}", m.name, m.value);
    numbers += fmt::format(" {:.0f} tok/s {} left", double(tokens_ - first_tokens_) / spent, clock_text(left));
    if (!terminal) {
        say(numbers + "\n");
    } else {
        const int wide = columns(), width = std::max(0, std::min(24, wide - 4 - int(numbers.size())));
        say(fmt::format("[{}] {}", bar_of(share, width),
                        numbers.substr(0, std::size_t(std::max(0, wide - width - 4)))));
        bar_shown = true;
    }
}

void Trainer::show(double now) {
    if (!first_process()) return;
    const ByItself alone;
    std::string samples;
    {
        const Averaged weights(*optimiser_);
        samples = task_.show(step_);
    }
    if (samples.empty()) return;
    folder_.append_samples(step_, samples);
    samples = printable_lines(samples);
    say(fmt::format("\nafter {} steps, {}\n{}\n", step_, clock_text(now),
                    terminal ? wrapped(samples, columns()) : samples));
}

StopReason Trainer::run(const std::function<bool()>& stop) {
    start_ = steady_seconds();
    seconds_before = from_first(seconds_before);  // the schedule may depend on it
    before_log_line = clear_bar;
    first_step_ = step_;
    first_tokens_ = logged_tokens_ = tokens_;
    logged_seconds_ = seconds_before;
    const double between_lines = from_first(terminal ? 0.2 : 10);
    double next_show = 30, next_save = 60, next_line = from_first(seconds() + (terminal ? 0 : 10)), mean = 0;
    const double deadline = last_second(options_.minutes);
    double measured_from = 0;
    std::int64_t measured_step = -1;
    const bool minutes_count = options_.minutes > 0, resumed = saved_step_ >= 0;
    if (!resumed && options_.schedule_start == 0) options_.schedule_start = options_.warmup;
    if (options_.schedule_steps == 0) options_.schedule_steps = options_.steps;
    std::optional<StopReason> reason;
    auto reached = [&]() -> std::optional<StopReason> {
        if (const std::int64_t last = last_step(); last > 0 && step_ >= last)
            return options_.steps > 0 ? StopReason::steps : StopReason::schedule;
        const Moment now = agree(stop);
        if (minutes_count && now.seconds >= deadline) return StopReason::minutes;
        if (now.asked) return StopReason::asked;
        if (now.closed) return StopReason::unheard;
        return {};
    };
    // The results of the latest step. On a GPU, they are normally read after the next step has been requested, so that
    // the GPU always has work. They are read earlier if something needs them.
    std::optional<Results> unread;
    auto read_results = [&] {
        if (!unread) return;
        Results results = *std::exchange(unread, {});
        const double loss = read(results);
        const bool first = results.step == first_step_ + 1;
        mean = first ? loss : 0.98 * mean + 0.02 * loss;
        if (first) {
            rewind();
            if (begin) begin();
            report_memory();
        }
        if (results.step % 20 == 0 && first_process()) log(results, loss, seconds());
    };
    auto next_step = [&] {
        try {
            return request_step();
        } catch (...) {
            if (alone()) read_results();  // if the previous step has failed, throws its error, because it is the cause
            throw;
        }
    };
    while (!(reason = reached())) {
        Results requested = next_step();
        read_results();
        unread = std::move(requested);
        if (parameters_.device() == Device::cpu || step_ == first_step_ + 1) read_results();
        const double now = from_first(seconds());
        if (options_.schedule_steps == 0) {
            if (measured_step < 0 && now - seconds_before > 0.25 * measuring_seconds) {
                measured_step = step_;
                measured_from = now;
            } else if (measured_step >= 0 && now - seconds_before >= measuring_seconds) {
                choose_schedule(now, (now - measured_from) / double(step_ - measured_step));
            }
        }
        if (now >= next_line) {
            read_results();
            progress(mean, seconds());
            next_line = now + between_lines;
        }
        if (options_.save_every > 0 ? step_ % options_.save_every == 0 : now >= next_save) {
            read_results();
            save();
            next_save = from_first(seconds()) + 60;
        }
        if (now >= next_show) {  // after save(), so that samples that fail lose no training
            read_results();
            show(now);
            next_show += std::min(next_show, 300.0);
        }
    }
    read_results();
    if (step_ > first_step_) {
        progress(mean, seconds());
    } else {
        const std::vector<std::int64_t> steps = folder_.steps();
        if (!steps.empty() && steps.back() == step_) rewind();  // there is no later step that could be lost
        if (begin) begin();
    }
    if (bar_shown.exchange(false)) say("\n");
    save();
    if (saved && first_process()) saved();
    if (*reason == StopReason::asked)
        say(fmt::format("saved after {} steps; closing (Ctrl-C again: at once)\n", step_));
    if (step_ > 0 && first_process()) {
        const ByItself alone;
        const Averaged weights(*optimiser_);
        task_.finish(folder_.step_folder(step_));
    }
    if (!to_rewind_) show(seconds());  // a resume of an older step without a step to do changes nothing
    return *reason;
}

std::string clock_text(double seconds) {
    auto s = std::int64_t(std::max(0.0, seconds) + 0.5);
    if (s >= 3600) return fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60);
    return fmt::format("{}:{:02}", s / 60, s % 60);
}

}  // namespace masquerade
