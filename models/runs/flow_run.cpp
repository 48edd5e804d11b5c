// SPDX-License-Identifier: MIT
#include "models/runs/flow_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "engine/base/named.h"
#include "engine/base/printable.h"
#include "engine/base/processes.h"
#include "engine/io/checksum.h"
#include "engine/tape/trace.h"
#include "engine/tensor/numbers.h"
#include "models/density/cholesky.h"
#include "models/latent/normals.h"
#include "models/runs/flow_prior.h"
#include "models/runs/numbered_task.h"
#include "models/runs/origin.h"
#include "models/runs/writer.h"
#include "models/tasks/batch_parts.h"

namespace masquerade {
namespace {

constexpr double log_2_pi = 1.83787706640934548356;

Tensor* constant_rows(Tape& tape, const Vectors& rows, const char* name) {
    Numbers all;
    for (const Numbers& row : rows) append(all, row);
    const std::int64_t B = rows.size(), D = rows[0].size();
    return tape.constant(name, {B, D}, arithmetic_of(tape.dtype), all.data());
}

// Let p be the normal distribution with the mean and the covariance of the vectors `known`. Returns the mean of -log p
// over the vectors `asked`, in nats; infinity if the covariance has no inverse.
double gaussian_loss(const Vectors& known, const Vectors& asked) {
    const auto D = known[0].size();
    const double share = 1.0 / known.size();
    Numbers mean(D), l(D * D);
    for (const Numbers& row : known)
        for (std::size_t i = 0; i < D; i++) mean[i] += share * row[i];
    for (const Numbers& row : known)
        for (std::size_t i = 0; i < D; i++)
            for (std::size_t j = 0; j <= i; j++) l[i * D + j] += share * (row[i] - mean[i]) * (row[j] - mean[j]);
    if (!cholesky(l.data(), int(D))) return INFINITY;
    double log_det = 0, sum = 0;
    for (std::size_t i = 0; i < D; i++) log_det += std::log(l[i * D + i]);
    invert_lower(l.data(), int(D));
    for (const Numbers& row : asked)
        for (std::size_t i = 0; i < D; i++) {
            double u = 0;
            for (std::size_t j = 0; j <= i; j++) u += l[i * D + j] * (row[j] - mean[j]);
            sum += u * u / 2;
        }
    return sum / asked.size() + log_det + D * log_2_pi / 2;
}

class FlowTask : public NumberedTask {
  public:
    explicit FlowTask(FlowRun& run) : NumberedTask(run, "vector"), run_(run) {}

    std::string next_batch(std::int64_t step) override {
        batch_ = run_.rows(next(), run_.settings.batch_tokens, false);
        begin_ = cut_evenly(std::vector<std::size_t>(batch_.size(), 1), run_.settings.train.parts);
        part_ = 0;
        advance(batch_.size());
        if (step == 0 && run_.model.steps.waits_for_data()) run_.model.steps.start(batch_);
        return bucket();
    }
    int parts() const override { return int(begin_.size()) - 1; }
    std::string next_part() override {
        part_++;
        return bucket();
    }
    Tensor* loss(Tape& tape, std::int64_t, std::int64_t) override {
        const Vectors rows(batch_.begin() + begin_[part_], batch_.begin() + begin_[part_ + 1]);
        Tensor* losses = run_.model.losses(tape, constant_rows(tape, rows, "x"));
        const Numbers shares(rows.size(), 1.0 / batch_.size());
        const double constant = run_.model.constant() * rows.size() / batch_.size();
        Tensor* weights = tape.constant("shares", losses->shape, losses->dtype, shares.data());
        Tensor* total = add(tape, weighted_sum(tape, losses, weights, "mean"),
                            tape.constant("constant", {1}, losses->dtype, &constant), "loss");
        tape.retain(total);
        return total;
    }
    std::int64_t batch_tokens() const override { return batch_.size(); }
    std::string first_documents(int) const override {
        constexpr std::size_t most_rows = 3, most_numbers = 8;
        std::string all;
        for (std::size_t row = 0; row < std::min(batch_.size(), most_rows); row++) {
            all += text("  vector ", row + 1);
            for (std::size_t i = 0; i < std::min(batch_[row].size(), most_numbers); i++)
                all += fmt::format(" {:8.3f}", batch_[row][i]);
            all += batch_[row].size() > most_numbers ? " ...\n" : "\n";
        }
        return all;
    }

  private:
    std::string bucket() const { return text("rows ", begin_[part_ + 1] - begin_[part_]); }
    // A checkpoint stores only numbers below 2^62.
    std::uint64_t hash() const override { return run_.points().hash() & ((std::uint64_t(1) << 62) - 1); }
    std::string changed() const override {
        return text(run_.settings.points, " has changed since the run was started");
    }
    MeasureRows measured() const override { return run_.measures(run_.settings.held_out); }

    FlowRun& run_;
    Vectors batch_;
    std::vector<std::size_t> begin_;  // index of the first row of each part of the batch, then the number of rows
    std::size_t part_ = 0;            // index of the current part
};

// Opens the points of a new run. The name of a toy is never a folder.
std::unique_ptr<VectorSource> opened(const FlowSettings& s) {
    std::error_code unreadable;
    if (!find_toy(s.points) && std::filesystem::is_directory(s.points, unreadable))
        return latents_as_points(*load_latent_run(s.points), s.train.seed);
    return open_points(s.points, s.train.seed);
}

// Returns `s` with `columns` set to the length of the vectors: from the points or, if `points` is null, from the
// weights.
FlowSettings with_columns(FlowSettings s, const VectorSource* points, const TensorFile* weights) {
    if (points) {
        s.columns = points->columns;
        return s;
    }
    for (const StoredTensor& t : weights->tensors())
        if (t.name == "flow.0.mix.weight") s.columns = std::lround(std::sqrt(t.shape.count()));
    if (s.columns < 2) throw BadInput(weights->path(), " holds no flow: it has no flow.0.mix.weight");
    return s;
}

}  // namespace

FlowSettings::FlowSettings() {
    batch_tokens = 256;
    flow.steps = 8;
    flow.actnorm = true;
    train.warmup = 100;
}

void FlowSettings::declare(Config& c) {
    c.topic("Vectors");
    c.add_path("points", &points,
               "the vectors: random points of a shape, " + described(toys()) +
                   ". Or PATH, vectors of your own: a .npy file with a row for each vector, or a run of univae (a "
                   "VAE, ./train univae), whose latents are the vectors",
               names_of(toys()));
    c.topic("Model");
    declare_flow(c, flow, "");
    c.topic("Optimiser");
    c.add("batch_rows", &batch_tokens, "vectors of a batch", 2, 1000000);
    c.topic("Run");
    c.add("held_out", &held_out, "maximum number of held-out vectors measured at a checkpoint", 1, 100000000);
    train.declare(c);
}

void FlowSettings::adopt(const Stacks&) {
    throw BadUsage("a flow has no layers that other weights could give: leave out --init");
}

FlowRun::FlowRun(const FlowSettings& s, Vocabulary v, DType storage, Device device, const TensorFile* weights)
    : FlowRun(weights ? nullptr : opened(s), s, std::move(v), storage, device, weights) {}

FlowRun::FlowRun(std::unique_ptr<VectorSource> points, const FlowSettings& s, Vocabulary v, DType storage,
                 Device device, const TensorFile* weights)
    : RunOf(with_columns(s, points.get(), weights), std::move(v), storage == DType::bf16 ? DType::f32 : storage, device,
            weights),
      points_(std::move(points)) {
    if (points_) hash_ = points_->hash(), latent_step_ = points_->step, latent_folder_ = points_->name;
    settings.precision = DType::f32;  // with numbers rounded to bf16, the inverse of the flow is inexact
}

Stacks FlowRun::stacks() const {
    Stacks none;
    none.first.layers = 0;
    return none;
}

std::unique_ptr<Task> FlowRun::task(const TrainingText&) {
    points();
    return std::make_unique<FlowTask>(*this);
}

const VectorSource& FlowRun::points() {
    if (points_) return *points_;
    std::unique_ptr<VectorSource> opened = of_latents() ? latents_as_points(*latent_run(), settings.train.seed)
                                                        : open_points(settings.points, settings.train.seed);
    if (opened->columns != settings.columns || (hash_ != 0 && opened->hash() != hash_))
        throw BadInput(settings.points,
                       " has changed since the run was started: restore the old file, or train on the new one "
                       "from the start");
    points_ = std::move(opened);
    return *points_;
}

void FlowRun::complete(TextOrigin& origin) const {
    if (!points_ || points_->hash() == 0) return;
    origin.step = points_->step;
    origin.name = (origin.step < 0 ? "vectors of " : "latents of ") + points_->name;
    origin.file = points_->name;
    origin.hash = points_->hash();
}

void FlowRun::loaded(const nlohmann::json& record) {
    hash_ = file_hash(record);
    latent_step_ = masquerade::latent_step(record);
    if (of_latents()) latent_folder_ = origin_of(run_json, "run.json").file;
}

std::unique_ptr<UniVaeRun> FlowRun::latent_run() const {
    std::unique_ptr<UniVaeRun> run = load_latent_run(latent_folder_, latent_step_);
    if (const std::uint64_t found = checksum_of(run->parameters); found != hash_)
        throw BadInput(run->step_folder, " has the weights ", hexadecimal(found),
                       ", but the flow was trained on latents of the weights ", hexadecimal(hash_),
                       "; expected the same checksum: restore the old weights, or train a new flow");
    return run;
}

std::string FlowRun::description() const {
    return text(settings.flow.steps, " steps of width ", settings.flow.width, " on ",
                of_latents() ? "latents" : "vectors", " of ", settings.columns, " numbers, ", settings.points);
}

std::string FlowRun::writing_command(const std::string& folder) const {
    // The latest step of the univae run may be newer than the one whose latents are the points.
    const std::string run =
        of_latents() ? shell_word(latent_folder_ + "/" + RunFolder::step_name(latent_step_)) + " --prior " : "";
    return "./generate " + run + shell_word(folder) + " --count 10";
}

Vectors FlowRun::rows(std::uint64_t first, std::uint64_t count, bool held_out) {
    const VectorSource& from = points();
    Vectors all;
    for (std::uint64_t i = 0; i < count; i++) all.push_back(from.row(first + i, held_out));
    return all;
}

Numbers FlowRun::draw(std::uint64_t seed, std::uint32_t line, double temperature, std::uint32_t number) const {
    Numbers u = normals(make_stream(seed, "flow.sample", number), line, 0, settings.columns);
    for (double& each : u) each *= temperature;
    return model.steps.inverse(std::move(u));
}

MeasureRows FlowRun::measures(std::uint64_t count) {
    count = std::min(count, points().held_out());
    const Vectors asked = rows(0, count, true);
    Arena arena(parameters.device(), Blocks::kept);
    Tape tape(arena, parameters.storage());
    constexpr std::size_t at_once = 256;
    const auto [begin, end] = own_items(asked.size(), at_once);
    Numbers own;  // the losses of the vectors of this process
    for (std::size_t first = begin; first < end; first += at_once) {
        const auto row = asked.begin() + first;
        const Vectors some(row, row + std::min(at_once, end - first));
        tape.begin("evaluate");
        for (double each : numbers_of(model.losses(tape, constant_rows(tape, some, "x"))->view())) own.push_back(each);
        tape.end();
    }
    double loss = 0;
    for (double each : gather_numbers(own)) loss += each + model.constant();
    loss /= count;
    const double bit = settings.columns * std::log(2.0);
    return {{"loss", loss, "nats/vector", "-log p"},
            {"bits", loss / bit, "bits/number", "-log2 p per number of a vector; below 0 where densities exceed 1"},
            {"baseline.normal", gaussian_loss(rows(0, 4096, false), asked) / bit, "bits/number",
             "normal distribution with mean and covariance of 4,096 training vectors"},
            {"vectors", double(count), "", "held out"}};
}

Measures FlowRun::measures(const Measuring& how) {
    if (!how.data.empty()) throw BadUsage("--data: ", how.run, " is measured on its held-out vectors");
    return {{}, {}, measures(how.limit)};
}

RunWriter FlowRun::writer(const Writing& how) {
    if (how.search.top_k > 0 || how.search.top_p < 1)
        throw BadUsage("--top-k and --top-p choose among tokens: a flow has none");
    if (!how.nearest.empty()) throw BadUsage("--nearest compares sentences: a flow has none");
    if (!how.states.empty() || how.posterior)
        throw BadUsage("--states and --posterior choose the vectors of lines: a flow reads no lines");
    if (of_latents()) latent_run();  // throws if the weights have changed, because samples are latents of them only
    const auto drawn = std::make_shared<Numbers>();  // all samples, for --vectors
    RunWriter writer;
    writer.samples = how.count > 0 ? how.count : 10;
    writer.write = [=](const Strings& lines, std::uint32_t first) {
        std::string all;
        for (std::uint32_t i = 0; i < lines.size(); i++) {
            const Numbers x = draw(how.seed, first + i, how.temperature.value_or(1));
            if (how.vectors.empty()) all += fmt::format("{:.6g}\n", fmt::join(x, "\t"));
            append(*drawn, x);
        }
        return all;
    };
    writer.finish = [=] {
        const std::int64_t rows = drawn->size() / settings.columns;
        if (!how.vectors.empty())
            write_npy(how.vectors, {drawn->data(), DType::f64, Device::cpu, {rows, settings.columns}, "samples"});
    };
    return writer;
}

}  // namespace masquerade
