// SPDX-License-Identifier: MIT
// Checks of whole models on a device: a tiny model of every family of families() is trained, resumed, and asked to
// write. The checks are functions, because they run on a GPU, on the fake device, and with kernels as fibers.
#pragma once
#include <algorithm>
#include <cmath>
#include <set>

#include "engine/tape/rehearsal.h"
#include "engine/tensor/copy.h"
#include "engine/train/adamw.h"
#include "tests/models/runs/tiny_family.h"
#include "tests/train/tiny_run.h"
#include "models/runs/training.h"

namespace masquerade::end_to_end {

// AdamW's eps. Some gradients would be 0 in exact arithmetic, and consist only of rounding errors. For example, ActNorm
// initialises itself so that the means of its outputs are 0, and therefore the gradients of its biases, too. With the
// usual eps of 1e-8, AdamW turns such errors into whole steps, in another direction on each device. Gradients that
// matter are far above 1e-5.
constexpr double eps = 1e-5;

// Returns tiny settings with batches of such a size that some have more rows than others, and thus another bucket.
inline std::unique_ptr<RunSettings> small_batches(const Family& kind) {
    std::unique_ptr<RunSettings> settings = tiny(kind);
    settings->batch_tokens = kind.reads == TextKind::sentences ? 70 : 96;
    return settings;
}

// A model on a device, and training steps like those of the trainer.
struct Training {
    TrainingText text;
    std::unique_ptr<RunSettings> settings;
    std::unique_ptr<Run> run;
    std::unique_ptr<Task> task;
    AdamW optimiser;
    Arena arena;
    Tape tape;
    std::set<std::string> buckets;
    double last_loss = 0;

    Training(const Family& kind, DType precision, Device device)
        : text(text_for(kind)),
          settings(small_batches(kind)),
          run(kind.fresh(*settings, learn_vocabulary(*settings, text), precision, device)),
          task(run->task(text)),
          optimiser(run->parameters, {0.9, 0.98, eps, 0.01, 1}),
          arena(device),
          tape(arena, precision) {}

    // Requests a step, and returns its loss, which can be read until tape.end().
    Tensor* request(std::uint32_t number, bool graph) {
        const std::string bucket = task->next_batch(number);
        buckets.insert(bucket);
        Tensor* loss = nullptr;
        auto work = [&] {
            loss = task->loss(tape, number, settings->train.schedule_steps);
            run->parameters.start_gradients();
            tape.backward(loss);
            run->parameters.finish_gradients();
            optimiser.update(number + 1, 5e-3);
        };
        run_step(tape, bucket, 1, number, graph, work);
        return loss;
    }
    // Runs a step, and returns the bits of the loss, of all gradients, and of all weights after the update.
    std::vector<char> step(std::uint32_t number, bool graph) {
        const Tensor* const loss = request(number, graph);
        last_loss = OnHost(loss->view())[0];
        std::vector<char> all = bits_of(loss->view());
        for (const View& v : {run->parameters.gradients(), run->parameters.values()}) {
            const std::vector<char> bits = bits_of(v);
            all.insert(all.end(), bits.begin(), bits.end());
        }
        tape.end();
        return all;
    }
};

// Returns |a - b| / |b|, where |.| is the length of a vector.
inline double distance(const View& a, const View& b) {
    const OnHost here(a), there(b);
    double apart = 0, size = 0;
    for (std::int64_t i = 0; i < b.count(); i++) {
        apart += (here[i] - there[i]) * (here[i] - there[i]);
        size += there[i] * there[i];
    }
    return std::sqrt(apart / size);
}

// The largest difference allowed between a device and the CPU. In f32, the order of sums differs. In bf16, some numbers
// are rounded differently, too.
struct Tolerance {
    double gradient, loss;
};
inline Tolerance tolerance_of(DType precision) {
    return precision == DType::f32 ? Tolerance{1e-5, 1e-4} : Tolerance{3e-2, 2e-2};
}

// The faults that a check has found, one line each.
struct Faults {
    std::string where;
    std::vector<std::string> all;
    void expect(bool good, const std::string& what) {
        if (!good) all.push_back(text(where, ": ", what));
    }
    void expect_near(double found, double expected, double tolerance, const std::string& what) {
        expect(std::abs(found - expected) <= tolerance * (1 + std::abs(expected)),
               text(what, " is ", found, ", expected ", expected, " within ", tolerance));
    }
};

// Checks that a captured step has the same bits as a step that runs op by op, that the first gradient is near the CPU's
// gradient, and that every loss is near the CPU's loss. Six steps use at least two buckets, and at least one bucket
// twice.
inline Faults check_training(const Family& kind, DType precision, std::uint32_t steps = 6) {
    Faults faults{text(kind.name, ' ', name_of(precision)), {}};
    const bool of_vectors = kind.options == Family::of_vectors;
    const Tolerance near_enough = tolerance_of(precision);
    Training captured(kind, precision, Device::cuda), plain(kind, precision, Device::cuda),
        here(kind, precision, Device::cpu);
    for (std::uint32_t i = 0; i < steps; i++) {
        faults.expect(captured.step(i, true) == plain.step(i, false),
                      text("step ", i, " captured has other bits than op by op"));
        here.step(i, false);
        faults.expect_near(captured.last_loss, here.last_loss, near_enough.loss, text("the loss of step ", i));
        if (i > 0) continue;
        const double apart = distance(captured.run->parameters.gradients(), here.run->parameters.gradients());
        faults.expect(apart <= near_enough.gradient,
                      text("the gradient is ", apart, " from the CPU's, expected at most ", near_enough.gradient));
    }
    const std::size_t buckets = captured.buckets.size();
    // All batches of a flow have the same size, and so the same bucket.
    faults.expect(steps < 6 || of_vectors || (buckets >= 2 && buckets < steps),
                  text("there are ", buckets, " buckets"));
    return faults;
}

// Trains a run in a folder on a device, up to `steps` steps, and returns the held-out loss. If the folder exists, the
// training resumes from the folder's checkpoint. If `bits` is not null, it receives the bits of the weights.
inline double trained(const Family& kind, DType precision, Device device, const std::string& folder, std::int64_t steps,
                      std::vector<char>* bits = nullptr) {
    const TrainingText text = text_for(kind);
    std::unique_ptr<RunSettings> settings = tiny(kind);
    settings->precision = precision;
    auto run = kind.fresh(*settings, learn_vocabulary(*settings, text), precision, device);
    const std::unique_ptr<Task> task = run->task(text);
    const bool again = std::filesystem::exists(folder);
    RunFolder where = again ? RunFolder::resume(folder) : RunFolder::create(folder);
    TrainOptions options = settings->train;
    options.steps = steps;
    options.minutes = 0;
    options.eps = eps;
    Trainer trainer(run->parameters, *task, where, options);
    trainer.quiet = true;
    if (again) trainer.resume();
    trainer.run(never);
    if (bits) *bits = bits_of(run->parameters.values());
    return task->validate().at(0).value;
}

// Checks training that stops after 3 steps and is resumed for 3 more. If both halves run on the device, the weights
// must have the same bits as after 6 steps without a stop. If a half or both run on the CPU, the held-out loss must be
// near that of the 6 steps.
inline Faults check_resume(const Family& kind, DType precision) {
    Faults faults{text(kind.name, ' ', name_of(precision)), {}};
    const TemporaryFolder folder;
    std::vector<char> straight, resumed;
    const double expected = trained(kind, precision, Device::cuda, folder.file("straight"), 6, &straight);
    for (Device first : {Device::cuda, Device::cpu})
        for (Device second : {Device::cuda, Device::cpu}) {
            const std::string halves = text(name_of(first), ", then ", name_of(second));
            const std::string where = folder.file(text(name_of(first), '-', name_of(second)));
            trained(kind, precision, first, where, 3);
            const double found = trained(kind, precision, second, where, 6, &resumed);
            faults.expect_near(found, expected, tolerance_of(precision).loss, halves + ": the held-out loss");
            if (first == Device::cuda && second == Device::cuda)
                faults.expect(resumed == straight, halves + ": the weights have other bits than without a stop");
        }
    return faults;
}

// Trains a model on the CPU in f32, copies its weights to the device, and compares both models. The texts that they
// write greedily must be equal, and the held-out losses near.
inline Faults check_writing(const Family& kind) {
    Faults faults{kind.name, {}};
    Training here(kind, DType::f32, Device::cpu), there(kind, DType::f32, Device::cuda);
    for (std::uint32_t i = 0; i < 40; i++) here.step(i, false);
    copy(here.run->parameters.values(), there.run->parameters.values());
    const std::string expected = here.task->show(0), found = there.task->show(0);
    faults.expect(expected.size() > 100, "nothing is written on the CPU");
    faults.expect(found == expected, text("writes\n", found, "expected\n", expected));
    const std::vector<Metric> a = there.task->validate(), b = here.task->validate();
    for (std::size_t i = 0; i < b.size(); i++)
        faults.expect_near(a.at(i).value, b[i].value, 1e-5, "held-out " + b[i].name);
    return faults;
}

}  // namespace masquerade::end_to_end
