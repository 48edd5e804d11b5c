// SPDX-License-Identifier: MIT
// Where the time of a training step goes, by op, and how many multiply-adds its matrix products are.
#pragma once
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "engine/ops/cpu/gemm_meter.h"
#include "engine/tape/trace.h"

namespace masquerade {

// Multiply-adds by the type of the product: bf16 if both factors are bf16, else f32.
struct MultiplyAdds {
    double bf16 = 0, f32 = 0;

    void add(double number, bool rounded) { (rounded ? bf16 : f32) += number; }
};

// Adds those of linear layers and of the loss, from a record of the tape: the same on every device. Attention has products,
// too, but what it needs of them depends on its mask (OurTraining::attention_multiply_adds); they are not in here.
void count_products(const Record& record, bool backward, MultiplyAdds& work);

struct StepPart {
    std::string name;
    double seconds;  // of one step
};

// Watches steps while it lives; clear() forgets what was seen. A GPU is waited for before and after every op, so that
// an op's time is its own; the time of products inside it is known on the CPU alone.
class StepProfile : public Clock, public GemmMeter {
  public:
    StepProfile() { gemm_meter = this; }
    ~StepProfile() override { gemm_meter = nullptr; }

    void before(const Record& record, bool backward) override;
    void after(const Record& record, bool backward) override;
    void note(const GemmCall& call) override;
    void clear();

    // The parts of `steps` steps, which took `seconds` in all and `update` of them for updates. GEMM is first: the time of
    // an op's products counts there, but for attention's. Then ops and the optimiser, the longest first; the rest is last.
    std::vector<StepPart> parts(int steps, double seconds, double update) const;

    MultiplyAdds recorded, metered;  // by the tape's records; by the meter, on the CPU

  private:
    std::mutex lock_;
    std::string op_;                        // that runs; empty between ops
    std::map<std::string, double> inside_;  // seconds in products, by op
};

}  // namespace masquerade
