// SPDX-License-Identifier: MIT
// Connects a flow with the latents of a univae run: latents_as_points() gives the vectors on which the flow is trained,
// and load_flow_prior() gives the trained flow as a prior from which latents are drawn.
#pragma once
#include "data/points.h"
#include "models/runs/univae_run.h"

namespace masquerade {

// Loads the univae run in the folder `path`, to encode its training sentences. If `step` is not -1, loads this step of
// the run. Throws BadInput if the run or the step is missing, and BadUsage if the run is of another family or if a flow
// cannot learn its latents: there are none, they lie on a sphere, they are codes, or their prior depends on the source.
// The run is always loaded on the CPU, so that the latents have the same bits whatever device trains the flow.
std::unique_ptr<UniVaeRun> load_latent_run(const std::string& path, std::int64_t step = -1);

// Returns the latent vectors of the run's training sentences as points. They are the vectors to which the fitted prior
// of the run is fitted: latents without noise, of at most `prior_sentences` sentences (UniVaeRun::prior_count). `seed`
// decides which training vector belongs to which number (VectorSource::row).
std::unique_ptr<VectorSource> latents_as_points(const UniVaeRun& run, std::uint64_t seed);

// Loads the flow in the run folder `path` as a prior of the latents of `run`. Throws BadUsage if `path` is no run of a
// flow that was trained on latents, and BadInput if they are not the latents of `run` with its current weights.
std::shared_ptr<const LatentPrior> load_flow_prior(const std::string& path, const UniVaeRun& run);

}  // namespace masquerade
