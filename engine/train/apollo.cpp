// SPDX-License-Identifier: MIT
// Apollo, a quasi-Newton method. Its approximation of the Hessian is diagonal and satisfies one secant equation for
// each parameter tensor.                                                                                        Ma 2020
#include <cmath>

#include "engine/train/optimiser.h"

namespace masquerade {
namespace {

class Apollo : public Optimiser {
  public:
    Apollo(Parameters& parameters, const OptimiserRule& rule)
        : Optimiser(parameters, {"apollo.mean", "apollo.curvature", "apollo.direction"}), rule_(rule) {}

    void update(std::int64_t t, double learning_rate) override {
        const View numbers = control({learning_rate, (1 - rule_.beta1) / (1 - std::pow(rule_.beta1, double(t)))});
        global_norm(parameters_.gradients(), norm_view());
        for (const Tensor& one : parameters_.all()) {
            if (!one.needs_grad) continue;
            auto of = [&](const View& all) { return parameters_.slice(all, one); };
            OptimiserRule rule = rule_;
            if (one.shape.rank < 2) rule.decay = 0;
            const View all = parameters_.rounded(), rounded = all ? of(all) : View();
            apollo(of(parameters_.values()), of(parameters_.gradients()), of(state(0)), of(state(1)), of(state(2)),
                   norm_view(), numbers, rule, rounded);
        }
    }

  private:
    OptimiserRule rule_;
};

}  // namespace

std::unique_ptr<Optimiser> make_apollo(Parameters& parameters, const OptimiserOptions& o) {
    return std::make_unique<Apollo>(parameters, o.rule(o.apollo_eps));
}

}  // namespace masquerade
