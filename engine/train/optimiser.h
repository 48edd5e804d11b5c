// SPDX-License-Identifier: MIT
// The interface of optimisers, which update the parameters from the gradients. Each optimiser is a row of
// optimiser_kinds().
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "engine/io/config.h"
#include "engine/nn/parameters.h"
#include "engine/ops/ops.h"

namespace masquerade {

struct OptimiserOptions {
    std::string optimiser = "adamw";  // a name of optimiser_kinds()
    double clip = 1, beta1 = 0.9, beta2 = 0.98, eps = 1e-8, apollo_eps = 1e-4, weight_decay = 0;
    void declare_numbers(Config& config);  // all but the name
    OptimiserRule rule(double epsilon) const { return {beta1, beta2, epsilon, weight_decay, clip}; }
};

class Optimiser {
  public:
    // `states` names the optimiser's state buffers in checkpoints. Each is as large as the parameters and starts at 0.
    Optimiser(Parameters& parameters, std::vector<const char*> states);
    virtual ~Optimiser() = default;
    // Does update number t = 1, 2, ... The gradient norm stays on the device of the parameters; norm() reads it.
    virtual void update(std::int64_t t, double learning_rate) = 0;
    double norm() const;
    std::size_t states() const { return states_.size(); }
    View state(std::size_t i) const { return parameters_.flat(states_[i], names_[i]); }

  protected:
    // Both views are on the device of the parameters. norm_view(): the global norm. control(): a copy of up to three
    // numbers of the current step, such as the learning rate.
    View norm_view() const;
    View control(const std::vector<double>& numbers);

    Parameters& parameters_;

  private:
    std::vector<const char*> names_;
    std::vector<Buffer> states_;
    Buffer small_;  // the norm, then the control numbers
};

struct OptimiserKind {
    const char* name;
    std::unique_ptr<Optimiser> (*make)(Parameters& parameters, const OptimiserOptions& options);
};
const std::vector<OptimiserKind>& optimiser_kinds();
// Makes the optimiser that the options name. BadUsage if there is none of this name.
std::unique_ptr<Optimiser> make_optimiser(Parameters& parameters, const OptimiserOptions& options);

}  // namespace masquerade
