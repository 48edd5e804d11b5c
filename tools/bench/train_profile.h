// SPDX-License-Identifier: MIT
// Where the time of a training step goes, by op, and which matrix products it holds.
#pragma once
#include <map>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

#include "engine/ops/cpu/gemm_meter.h"
#include "engine/tape/tape.h"
#include "tools/bench/train_work.h"

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

// GEMM first; what an op spends in products counts there, but for attention's; what is left over comes last.
// On a GPU there is no GEMM: linear layers are one part with their products, and the loss keeps its own.
std::vector<StepPart> parts_of(const StepProfile& profile);

}  // namespace masquerade
