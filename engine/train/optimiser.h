// SPDX-License-Identifier: MIT
// The interface of optimisers, which update the parameters from the gradients. optimiser_kinds() lists all
// optimisers.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "engine/io/config.h"
#include "engine/nn/parameters.h"
#include "engine/ops/ops.h"

namespace masquerade {

struct OptimiserOptions {
    std::string optimiser = "adamw";  // the name of an entry of optimiser_kinds()
    double clip = 1, beta1 = 0.9, beta2 = 0.98, eps = 1e-8, apollo_eps = 1e-4, weight_decay = 0;
    double ema = 0;                        // decay of the moving average of the weights; 0: there is no average
    void declare_numbers(Config& config);  // declares all settings except `optimiser`
    OptimiserRule rule(double epsilon) const { return {beta1, beta2, epsilon, weight_decay, clip}; }
};

class Optimiser {
  public:
    // `states` are the names of the optimiser's state buffers in checkpoints. Each buffer is as long as the parameter
    // buffer and starts as zeros.
    Optimiser(Parameters& parameters, std::vector<const char*> states);
    virtual ~Optimiser() = default;
    // Updates the parameters; t counts the updates from 1. update() also computes the norm of the gradient, which stays
    // on the device of the parameters. norm() copies the norm to the host.
    virtual void update(std::int64_t t, double learning_rate) = 0;

    // The moving average of the weights. start_average() adds a last state buffer for the average, and stores the
    // current weights there. average(t) must be called after update t, and adds the new weights to the average. In the
    // average, the weights after update s have a factor proportional to decay^(t - s). Without start_average(),
    // average() does nothing.
    void start_average(double decay);
    void average(std::int64_t t);
    // Exchanges the weights with their average, if there is one. The model's states (Parameters::add_state) have no
    // average and do not change.
    void exchange_average();
    View norm_view() const;  // the global norm of the gradient, on the device of the parameters
    double norm() const;
    std::size_t states() const { return states_.size(); }
    View state(std::size_t i) const { return parameters_.flat(states_[i], names_[i]); }

  protected:
    // Copies up to three numbers of the current step, such as the learning rate, to the device of the parameters and
    // returns a view of them there.
    View control(const std::vector<double>& numbers) { return written(1, numbers); }

    Parameters& parameters_;

  private:
    // The weights that update() changes, and their average.
    View weights() const { return parameters_.trained(parameters_.values()); }
    View averaged_weights() const { return parameters_.trained(state(states_.size() - 1)); }
    // Writes the numbers to the device buffer small_, from index `first` on.
    View written(int first, const std::vector<double>& numbers);

    std::vector<const char*> names_;
    std::vector<Buffer> states_;
    Buffer small_;  // the gradient norm, the numbers of control(), and the two factors that average() uses
    double decay_ = 0;
};

struct OptimiserKind {
    const char *name, *what;
    std::unique_ptr<Optimiser> (*make)(Parameters& parameters, const OptimiserOptions& options);
};
const std::vector<OptimiserKind>& optimiser_kinds();
constexpr const char* average_of_weights = "ema";  // name of the state buffer with the moving average

// While an object of this class exists, the model computes with the moving average of the weights, if there is one.
class Averaged {
  public:
    explicit Averaged(Optimiser& optimiser) : optimiser_(optimiser) { optimiser_.exchange_average(); }
    ~Averaged() { optimiser_.exchange_average(); }
    Averaged(const Averaged&) = delete;
    Averaged& operator=(const Averaged&) = delete;

  private:
    Optimiser& optimiser_;
};

// Makes the optimiser that the options name. Throws BadUsage if optimiser_kinds() has no such name.
std::unique_ptr<Optimiser> make_optimiser(Parameters& parameters, const OptimiserOptions& options);

}  // namespace masquerade
