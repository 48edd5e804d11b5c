// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "engine/base/processes.h"
#include "engine/io/checkpoint.h"
#include "engine/tensor/buffer.h"
#include "engine/tensor/copy.h"
#include "models/runs/training.h"
#include "tools/bench/many.h"
#include "tools/bench/measure.h"

namespace masquerade {
namespace {

constexpr int steps = 10;  // of a run

// Passes all exchanges on to the processes of this program, and counts their seconds. While an object of this class
// exists, processes() is this object.
class TimedProcesses : public Processes {
  public:
    TimedProcesses() : all_(processes()) { use_processes(this); }
    ~TimedProcesses() override { use_processes(&all_); }
    int rank() const override { return all_.rank(); }
    int count() const override { return all_.count(); }
    bool reaches_gpus() const override { return all_.reaches_gpus(); }
    void exchange(const std::vector<Bytes>& send, const std::vector<Bytes>& receive, int line) override {
        const double start = steady_seconds();
        all_.exchange(send, receive, line);
        seconds += steady_seconds() - start;
        bytes_sent = all_.bytes_sent;
    }
    void abort(int status) override { all_.abort(status); }
    void leave() override { all_.leave(); }

    double seconds = 0;

  private:
    Processes& all_;
};

std::unique_ptr<Training> training_of(const Bench& bench, const MeasuredRun& run) {
    NewTraining wanted;
    wanted.words = run.words;
    wanted.data = run.data;
    if (bench.common.seed_given) wanted.words.push_back("seed=" + std::to_string(bench.common.seed));
    wanted.device = bench.common.device;
    return std::make_unique<Training>(wanted);
}

double gradient_bytes(const Run& run) { return double(run.parameters.trained(run.parameters.gradients()).bytes()); }

// Exchanges messages of growing size, as the exchange of gradients does: at the same time, each process sends a message
// to each other process. The largest ones have `largest` bytes. If gradients go from GPU to GPU, the messages do, too.
// Adds their times to `row`.
void measure_messages(std::size_t largest, Device device, Json& row) {
    Processes& all = processes();
    const bool on_gpu = device != Device::cpu && all.reaches_gpus();
    const std::size_t count = std::size_t(all.count()), others = count - 1;
    std::vector<std::size_t> sizes;
    for (std::size_t size = 8; size < largest / 2; size *= 8) sizes.push_back(size);
    sizes.push_back(largest);
    Messages messages;
    const Buffer memory((count + 1) * largest, on_gpu ? device : Device::cpu);
    if (!on_gpu) std::memset(memory.data(), 'x', memory.bytes());  // gives each page memory of its own
    const auto message = [&](std::size_t i, std::size_t size) {
        return Bytes{static_cast<char*>(memory.data()) + i * largest, size, on_gpu};
    };
    for (std::size_t size : sizes) {
        std::vector<Bytes> send(count, message(count, size)), receive;
        for (std::size_t i = 0; i < count; i++) receive.push_back(message(i, size));
        const std::size_t turns = std::clamp<std::size_t>((1 << 25) / (size * others), 10, 500);
        Numbers seconds;
        for (std::size_t i = 0; i < 2 * turns; i++) {
            const double start = steady_seconds();
            all.exchange(send, receive, __LINE__);
            if (i >= turns) seconds.push_back(steady_seconds() - start);  // the first half only warms up
        }
        messages.emplace_back(double(size * others), from_first(spread_of(seconds).median));
        row["messages"].push_back({{"bytes", size * others}, {"seconds", messages.back().second}});
    }
    const auto [latency, bandwidth] = line_through(messages);
    row["latency"] = latency, row["bandwidth"] = bandwidth;
}

}  // namespace

RunSizes sizes_of(const Bench& bench, const MeasuredRun& run) {
    const auto made = training_of(bench, run);
    return {gradient_bytes(*made->run), made->options.parts};
}

Json measure_together(Bench& bench, const MeasuredRun& run) {
    TimedProcesses all;
    const auto made = training_of(bench, run);
    Training& t = *made;
    Trainer& trainer = t.trainer();
    double gradient_end = 0, exchanged = 0, update = 0;  // exchanged: all.seconds at the end of the gradient
    trainer.before_update = [&] {
        if (t.task->parts() > 1 || !alone()) wait_for(bench.common.device);  // otherwise, this is inside a CUDA graph
        gradient_end = steady_seconds(), exchanged = all.seconds;
    };
    const std::string weights = fmt::format("{:016x}", checksum_of(t.run->parameters));
    expect_equal("weights " + weights);
    const int count = all.count(), parts = t.options.parts;
    // One step, with the same exchanges as in Trainer::run(): whether to stop, and the time.
    const auto step = [&] {
        for (int asked : gather_values(int(stop_requested())))
            if (asked) throw Stopped{};
        trainer.train_step();
        update += steady_seconds() - gradient_end - (all.seconds - exchanged);
        from_first(steady_seconds());
    };
    step();
    step();  // the second step uses the memory plan
    Numbers runs, exchanges, updates;
    std::uint64_t sent = 0;
    for (int i = 0; i < bench.options.repeats; i++) {
        from_first(0);  // so that all processes begin together
        const double start = steady_seconds();
        all.seconds = update = 0;
        const std::uint64_t before = all.bytes_sent;
        for (int k = 0; k < steps; k++) step();
        runs.push_back((steady_seconds() - start) / steps);
        exchanges.push_back(all.seconds / steps), updates.push_back(update / steps);
        sent = (all.bytes_sent - before) / steps;
    }
    const Spread seconds = spread_of(runs);
    struct Shares {
        double exchange, update;
    };
    auto of_all = gather_values(Shares{spread_of(exchanges).median, spread_of(updates).median});
    std::sort(of_all.begin(), of_all.end(), [](const Shares& a, const Shares& b) { return a.exchange < b.exchange; });
    const Shares slowest = of_all.front();  // it has the most to compute, so the others wait for it
    const PartRange share = share_of(parts, 0, count);
    Json row = {
        {"name", text(t.kind->name, ", ", counted(count, "process"))},
        {"model", t.kind->name},
        {"description", t.run->description()},
        {"precision", name_of(t.run->common().precision)},
        {"parameters", t.run->parameters.count()},
        {"gradient_bytes", gradient_bytes(*t.run)},
        {"processes", count},
        {"threads", threads()},
        {"parts", parts},
        {"batch_tokens", t.task->batch_tokens()},
        {"seconds", json_of(seconds)},
        {"runs", runs},
        {"part", (seconds.median - slowest.exchange - slowest.update) / share.count()},
        {"update", slowest.update},
        {"exchange", {{"least", slowest.exchange}, {"most", of_all.back().exchange}}},
        {"sent", sent},
    };
    row["weights"] = fmt::format("{:016x}", checksum_of(t.run->parameters));
    if (count > 1)
        measure_messages(std::max<std::size_t>(1024, std::size_t(gradient_bytes(*t.run) / count)), bench.common.device,
                         row);
    return row;
}

}  // namespace masquerade
