// SPDX-License-Identifier: MIT
// Optimisers move parameters by their gradients. Each is a row of optimiser_kinds(); the trainer knows this interface
// alone.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "engine/nn/parameters.h"
#include "engine/ops/ops.h"

namespace masquerade {

struct OptimiserOptions {
    std::string optimiser = "adamw";  // a name of optimiser_kinds()
    double clip = 1, beta1 = 0.9, beta2 = 0.98, eps = 1e-8, apollo_eps = 1e-4, weight_decay = 0;
};

class Optimiser {
  public:
    // `states`: what checkpoints call the rows, as long as the parameters, that start at 0.
    Optimiser(Parameters& parameters, std::vector<const char*> states);
    virtual ~Optimiser() = default;
    // Update number t = 1, 2, ...; returns nothing: the norm stays where the gradients are, norm() reads it.
    virtual void update(std::int64_t t, double learning_rate) = 0;
    double norm() const;
    std::size_t states() const { return states_.size(); }
    View state(std::size_t i) const { return parameters_.flat(states_[i], names_[i]); }

  protected:
    // The global norm and up to three numbers of the step, where the parameters are.
    View norm_view() const;
    View control(const std::vector<double>& numbers);

    Parameters& parameters_;

  private:
    std::vector<const char*> names_;
    std::vector<Buffer> states_;
    Buffer small_;  // norm, then control
};

struct OptimiserKind {
    const char* name;
    std::unique_ptr<Optimiser> (*make)(Parameters& parameters, const OptimiserOptions& options);
};
const std::vector<OptimiserKind>& optimiser_kinds();
std::unique_ptr<Optimiser> make_optimiser(Parameters& parameters, const OptimiserOptions& options);  // BadUsage

std::unique_ptr<Optimiser> make_adamw(Parameters& parameters, const OptimiserOptions& options);
std::unique_ptr<Optimiser> make_apollo(Parameters& parameters, const OptimiserOptions& options);

}  // namespace masquerade
