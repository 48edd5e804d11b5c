// SPDX-License-Identifier: MIT
// A run of a normalising flow, which learns the density of vectors with D numbers. The vectors are points of a toy
// distribution, the rows of a .npy file, or the latents of a univae run (models/runs/flow_prior.h).
#pragma once
#include "data/points.h"
#include "models/nets/flow.h"
#include "models/runs/measures.h"
#include "models/runs/run_of.h"

namespace masquerade {

class UniVaeRun;

struct FlowSettings : RunSettings {
    static constexpr const char* name = "flow";
    std::string points = "moons";
    FlowOptions flow;
    int held_out = 1000;
    int columns = 0;  // D, taken from the points or from the weights, so it is no setting; 0: not known yet

    FlowSettings();
    const char* family() const override { return name; }
    void declare(Config& config) override;
    // A vocabulary that nothing reads. It exists because every run must have one.
    Strings words() const override { return {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "number"}; }
    void adopt(const Stacks& stacks) override;
    FlowNetOptions net(int /*vocabulary*/) const { return {columns, flow}; }
};

class FlowRun : public RunOf<FlowSettings, FlowNet> {
  public:
    explicit FlowRun(const FlowSettings& s, Vocabulary v, DType storage = DType::f32, Device device = Device::cpu,
                     const TensorFile* weights = nullptr);

    Stacks stacks() const override;
    std::unique_ptr<Task> task(const TrainingText& text) override;
    void complete(TextOrigin& origin) const override;
    std::string description() const override;
    std::string writing_command(const std::string& folder) const override;
    // Returns the measures on at most `count` held-out vectors. The first one is the mean of -log p.
    MeasureRows measures(std::uint64_t count);
    Measures measures(const Measuring& how) override;
    RunWriter writer(const Writing& how) override;

    // Returns the points. In a loaded run, the first call opens them, and throws BadInput if the file of points, or the
    // weights of the univae run, have changed since training.
    const VectorSource& points();
    // of_latents(): whether the points are latents of a univae run. hash(): the checksum of the weights of this univae
    // run, or the hash of the file of points, or 0 for a toy.
    bool of_latents() const { return latent_step_ >= 0; }
    std::uint64_t hash() const { return hash_; }
    std::int64_t latent_step() const { return latent_step_; }  // of the univae run; -1 if there is none
    Vectors rows(std::uint64_t first, std::uint64_t count, bool held_out);
    // Draws a vector, which depends only on the seed, the line and the number of the vector for this line.
    // `temperature` scales the noise.
    Numbers draw(std::uint64_t seed, std::uint32_t line, double temperature = 1, std::uint32_t number = 0) const;

  protected:
    void loaded(const nlohmann::json& record) override;

  private:
    // `points` are the points of a new run; null if the run will be loaded.
    FlowRun(std::unique_ptr<VectorSource> points, const FlowSettings& s, Vocabulary v, DType storage, Device device,
            const TensorFile* weights);
    // Loads the univae run whose latents are the points. Throws BadInput if its weights have changed since training.
    std::unique_ptr<UniVaeRun> latent_run() const;

    std::unique_ptr<VectorSource> points_;
    // From the points of a new run, or from run.json of a loaded run. hash_: see hash(). latent_step_: the step of the
    // univae run whose latents are the points, or -1.
    std::uint64_t hash_ = 0;
    std::int64_t latent_step_ = -1;
    std::string latent_folder_;  // path of the folder of this univae run
};

}  // namespace masquerade
