// SPDX-License-Identifier: MIT
// A run of a normalising flow, which learns the density of vectors with D numbers. The vectors are points of a toy
// distribution, or the rows of a .npy file.
#pragma once
#include "data/points.h"
#include "models/nets/flow.h"
#include "models/runs/measures.h"
#include "models/runs/run_of.h"

namespace masquerade {

struct FlowSettings : RunSettings {
    static constexpr const char *name = "flow", *what = "a normalising flow: an exact density of vectors, and samples";
    static constexpr TextKind reads = TextKind::none;
    static constexpr auto options = Family::of_vectors;
    static Strings objectives() { return {}; }
    std::string points = "moons";
    FlowOptions flow;
    int held_out = 1000;
    int columns = 0;  // D, taken from the points or from the weights, so it is no setting; 0: not known yet

    FlowSettings();
    const char* family() const override { return name; }
    const char* architecture() const override { return "Flow"; }
    void declare(Config& config) override;
    // A vocabulary that nothing reads. It exists because every run must have one.
    Strings words() const override { return {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "number"}; }
    void adopt(const Stacks& stacks) override;
    FlowNetOptions net(int vocabulary) const;
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
    std::vector<Measure> measures(std::uint64_t count);
    Measures measures(const Measuring& how) override;
    RunWriter writer(const Writing& how) override;

    // Returns the points. The first call opens them. Throws BadInput if the run was loaded and the file of points has
    // changed since training.
    const VectorSource& points();
    std::vector<Numbers> rows(std::uint64_t first, std::uint64_t count, bool held_out);
    // Draws a vector, which depends only on the seed and the line. `temperature` scales the noise.
    Numbers draw(std::uint64_t seed, std::uint32_t line, double temperature = 1) const;

  protected:
    void loaded(const nlohmann::json& record) override;

  private:
    std::unique_ptr<VectorSource> points_;
    std::uint64_t hash_ = 0;  // hash of the file of points, from run.json of a loaded run; 0: there is none
};

}  // namespace masquerade
