// SPDX-License-Identifier: MIT
// Where the time of a training step goes, by op, which matrix products it holds, and what these take alone: the floor.
#pragma once
#include <map>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

#include "engine/ops/cpu/gemm_meter.h"
#include "engine/tape/tape.h"

namespace masquerade {

// Products that take the same time: C(M,N) = A(M,K) B(K,N), each factor as it lies in memory (N) or turned (T).
struct ProductKind {
    std::int64_t m, n, k;
    std::string order;  // "NT": a linear layer; "NN": its dx; "TN": its dw
    DType a, b, c;
    bool add;  // to what is there

    double multiply_adds() const { return double(m) * double(n) * double(k); }
    bool operator<(const ProductKind& o) const {
        return std::tie(m, n, k, order, a, b, c, add) <
               std::tie(o.m, o.n, o.k, o.order, o.a, o.b, o.c, o.add);
    }
};
ProductKind kind_of(const GemmCall& call);

// By the type that they are multiplied in: bf16 where both factors are, else f32.
struct MultiplyAdds {
    double bf16 = 0, f32 = 0;

    double all() const { return bf16 + f32; }
    void add(double number, bool rounded) { (rounded ? bf16 : f32) += number; }
};

// Adds those of linear layers and of the loss, from a record of the tape: the same on every device.
// Attention has products, too, but what it needs of them depends on
// its mask (OurTraining::attention_multiply_adds); they are not in here.
void count_products(const Record& record, bool backward, MultiplyAdds& work);

struct OpTime {
    double forward = 0, backward = 0;  // seconds
    double products = 0;               // of those, inside matrix products
    long calls = 0;
};

// Watches steps from start() to finish(); sums over all of them. A GPU is waited for before and after every
// op, so that an op's time is its own; the time of products inside it is known on the CPU alone.
class StepProfile : public Observer, public GemmMeter {
  public:
    explicit StepProfile(Device where = Device::cpu) : device(where) {}
    ~StepProfile() override { gemm_meter = nullptr; }
    void start();
    void finish(double update_seconds);

    void before(const Record& record, bool backward) override;
    void after(const Record& record, bool backward) override;
    void note(const GemmCall& call) override;

    const Device device;
    std::map<std::string, OpTime> ops;
    MultiplyAdds work;                                    // of the products
    std::map<ProductKind, std::vector<double>> products;  // seconds of each, without those inside attention
    double seconds = 0, update = 0;                       // of the steps, of clipping and AdamW in them
    long steps = 0;

  private:
    std::mutex lock_;
    bool on_ = false;
    double started_ = 0, record_started_ = 0;
    OpTime* current_ = nullptr;
    bool in_attention_ = false;
};

struct StepPart {
    std::string name;
    double seconds;  // of one step
};

// GEMM first; what an op spends in products counts there, but for attention's. Then ops and the optimiser, the longest first;
// what is left over comes last. On a GPU there is no GEMM: an op keeps its products.
std::vector<StepPart> parts_of(const StepProfile& profile);

// The floor of a training step: its matrix products, each alone, by the fastest product at hand.
struct FloorProduct {
    ProductKind kind;
    double count;               // in a step
    double ours = 0, peer = 0;  // seconds of one, alone; 0: not measured
    double in_step = 0;         // the median of those of the steps
    std::vector<double> our_runs = {}, peer_runs = {};
    void settle();  // ours and peer become the medians of the runs
    double fastest() const { return peer > 0 && (ours == 0 || peer < ours) ? peer : ours; }
};

struct Floor {
    std::vector<FloorProduct> products;
    double attention = 0;  // multiply-adds of attention, which are no products of their own

    double multiply_adds() const;     // of the products
    double products_seconds() const;  // of a step
    double best_rate() const;         // multiply-adds a second of the fastest product
    // Attention's multiply-adds are counted at the best rate.
    double attention_seconds() const { return attention / best_rate(); }
    double seconds() const { return products_seconds() + attention_seconds(); }
};

// The products of a profile, not timed yet. On a GPU, where it is not the shapes that are asked about but how
// well the device is used: the step's multiply-adds as so many products of side x side x side, in each type
// that has any.
std::vector<FloorProduct> floor_products(const StepProfile& profile, std::int64_t side);

// A run of one product, found as those of the steps are that it is held against: the mean of as many as fill
// `budget` seconds, after one that is not counted, so that it meets the machine as it is.
// By gemm() on the CPU, by linear_forward on a GPU, which has the order NT and does not add.
double seconds_alone(const ProductKind& kind, double budget, Device device = Device::cpu);

}  // namespace masquerade
