// SPDX-License-Identifier: MIT
#include "models/runs/flow_prior.h"

#include <filesystem>

#include "engine/base/named.h"
#include "engine/io/checksum.h"
#include "models/runs/flow_run.h"
#include "models/runs/origin.h"

namespace masquerade {
namespace {

namespace fs = std::filesystem;

class FlowPrior : public LatentPrior {
  public:
    explicit FlowPrior(std::unique_ptr<const FlowRun> flow) : flow_(std::move(flow)) {}
    Numbers draw(const PriorDraw& how) const override {
        return flow_->draw(how.seed, how.line, how.temperature.value_or(1), how.number);
    }

  private:
    const std::unique_ptr<const FlowRun> flow_;
};

// Throws BadUsage if a flow cannot learn the latents of the run. `path` is the run's path, for messages.
void expect_density(const UniVaeRun& run, const std::string& path) {
    if (run.model.options.latent_layers == 0)
        throw BadUsage("points=", path, ": the run is a language model without latents (latent_layers=0)");
    if (run.model.options.latent.source_prior)
        throw BadUsage("points=", path, ": the run has source_prior=true, so its prior is learned with the model");
    Strings able;
    for (const LatentKindRow& row : latent_kinds())
        if (row.has(LatentKindRow::fills_space)) able.push_back(row.name);
    for (int l = 0; l < run.model.space.layers(); l++) {
        const Latent& latent = run.model.space.layer(l);
        const LatentKindRow& row = row_of(latent.options.kind);
        if (!row.has(LatentKindRow::fills_space))
            throw BadUsage("points=", path, ": the latents of latent=", row.name,
                           latent.code_parts() > 0 ? " are codes" : " lie on a sphere",
                           ", so they have no density that a flow could learn; expected a run with latent=",
                           joined(able));
    }
}

}  // namespace

std::unique_ptr<UniVaeRun> load_latent_run(const std::string& path, std::int64_t step) {
    if (step >= 0 && !fs::exists(path))
        throw BadInput(path, " is gone: the flow was trained on the latents of this run; restore the run");
    std::string chosen = path;
    if (step >= 0) {
        const RunFolder folder = RunFolder::open(path);
        chosen = folder.step_folder(step);
        if (!fs::exists(chosen))
            throw BadInput(folder.path(), " no longer has step ", step,
                           ": the flow was trained on the latents of this step; restore the step, or train a new "
                           "flow");
    }
    const Family& family = family_of_run(chosen);
    if (&family != &find_family(UniVaeSettings::name))
        throw BadUsage("points=", path, " is a run of ", family.name, "; expected a run of univae with latents");
    std::unique_ptr<UniVaeRun> run = load_run<UniVaeRun>(chosen, true);
    run->use_moving_average();
    expect_density(*run, path);
    return run;
}

std::unique_ptr<VectorSource> latents_as_points(const UniVaeRun& run, std::uint64_t seed) {
    const std::string folder = fs::absolute(fs::path(run.step_folder).parent_path()).lexically_normal().string();
    const auto all = run.encoded_sentences(read_again(origin_of(run.run_json, folder + "/run.json")));
    const StoredSentences chosen = sentences_for_prior(run.model, *all, run.prior_count(), run.settings.train.seed);
    Matrix latents{std::int64_t(chosen.size()), run.model.space.numbers(), {}};
    for (const Numbers& z : mean_latents(run.model, pointers_to(chosen))) append(latents.numbers, z);
    std::unique_ptr<VectorSource> points =
        rows_as_points(std::move(latents), folder, checksum_of(run.parameters), seed);
    points->step = run.step;
    return points;
}

std::shared_ptr<const LatentPrior> load_flow_prior(const std::string& path, const UniVaeRun& run) {
    const char* const expected = "; expected fitted, uniform or a run of ./train flow points=RUN";
    if (!fs::exists(path)) throw BadUsage("--prior: there is no run ", path, expected);
    if (const Family& family = family_of_run(path); &family != &find_family(FlowSettings::name))
        throw BadUsage("--prior: ", path, " is a run of ", family.name, expected);
    std::unique_ptr<FlowRun> flow = load_run<FlowRun>(path);
    if (!flow->of_latents())
        throw BadUsage("--prior: ", path, " was trained on ", flow->settings.points, ", not on latents of a run",
                       expected);
    if (run.averaged)
        throw BadUsage("--prior: ", path,
                       " was trained on latents of one checkpoint, not of the mean of several; "
                       "leave out --average, or choose another prior");
    const std::uint64_t wanted = flow->hash(), found = checksum_of(run.parameters);
    if (wanted != found)
        throw BadInput("--prior: ", path, " was trained on latents of the weights ", hexadecimal(wanted), " (step ",
                       flow->latent_step(), " of ", flow->settings.points, "), but ", run.step_folder,
                       " has the weights ", hexadecimal(found),
                       "; expected the same checksum: name that step of the run, or train a flow on these weights");
    if (flow->settings.columns != run.model.space.numbers())
        throw BadInput("--prior: ", path, " has vectors of ", flow->settings.columns, " numbers, but ", run.step_folder,
                       " has latents of ", run.model.space.numbers());
    return std::make_shared<FlowPrior>(std::move(flow));
}

}  // namespace masquerade
