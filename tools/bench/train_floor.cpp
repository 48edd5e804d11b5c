// SPDX-License-Identifier: MIT
#include "tools/bench/train_profile.h"

#include <algorithm>

#include "engine/ops/ops.h"
#include "engine/tensor/buffer.h"
#include "engine/tensor/numbers.h"
#include "tools/bench/measure.h"

namespace masquerade {
namespace {

// A matrix of numbers that are not zero, compact.
class Matrix {
  public:
    Matrix(std::int64_t rows, std::int64_t columns, DType type, Device device = Device::cpu)
        : rows_(rows),
          columns_(columns),
          type_(type),
          memory_(std::size_t(rows * columns) * bytes_of(type), device) {
        std::vector<float> numbers(std::size_t(rows * columns));
        for (std::size_t i = 0; i < numbers.size(); i++) numbers[i] = float(i % 13 + 1) / 16;
        write_numbers(view(), numbers.data());
    }
    View view() const { return {memory_.data(), type_, memory_.device(), {rows_, columns_}, "floor"}; }

  private:
    std::int64_t rows_, columns_;
    DType type_;
    Buffer memory_;
};

double seconds_on_gpu(const ProductKind& p, double budget) {
    const Matrix a(p.m, p.k, p.a, Device::cuda), b(p.n, p.k, p.b, Device::cuda),
        c(p.m, p.n, p.c, Device::cuda);
    return mean_seconds(budget, Device::cuda, [&] { linear_forward(a.view(), b.view(), View{}, c.view()); });
}

}  // namespace

void FloorProduct::settle() {
    ours = our_runs.empty() ? 0 : spread_of(our_runs).median;
    peer = peer_runs.empty() ? 0 : spread_of(peer_runs).median;
}

double Floor::multiply_adds() const {
    double sum = 0;
    for (const FloorProduct& p : products) sum += p.count * p.kind.multiply_adds();
    return sum;
}

double Floor::products_seconds() const {
    double sum = 0;
    for (const FloorProduct& p : products) sum += p.count * p.fastest();
    return sum;
}

double Floor::best_rate() const {
    double best = 0;
    for (const FloorProduct& p : products) best = std::max(best, p.kind.multiply_adds() / p.fastest());
    return best;
}

std::vector<FloorProduct> floor_products(const StepProfile& profile, std::int64_t side) {
    std::vector<FloorProduct> products;
    if (profile.device != Device::cpu) {
        for (DType type : {DType::bf16, DType::f32}) {
            const double work = type == DType::bf16 ? profile.work.bf16 : profile.work.f32;
            const ProductKind kind{side, side, side, "NT", type, type, type, false};
            if (work > 0) products.push_back({kind, work / double(profile.steps) / kind.multiply_adds()});
        }
        return products;
    }
    for (auto [kind, seconds] : profile.products) {
        FloorProduct product{kind, double(seconds.size()) / double(profile.steps)};
        product.in_step = spread_of(std::move(seconds)).median;
        products.push_back(product);
    }
    return products;
}

double seconds_alone(const ProductKind& p, double budget, Device device) {
    if (device != Device::cpu) return seconds_on_gpu(p, budget);
    const bool a_turned = p.order[0] == 'T', b_turned = p.order[1] == 'T';
    const Matrix a = a_turned ? Matrix(p.k, p.m, p.a) : Matrix(p.m, p.k, p.a);
    const Matrix b = b_turned ? Matrix(p.n, p.k, p.b) : Matrix(p.k, p.n, p.b);
    const Matrix c(p.m, p.n, p.c);
    const Factor left = factor(a.view()), right = factor(b.view());
    return mean_seconds(budget, Device::cpu, [&] {
        gemm(p.m, p.n, p.k, a_turned ? transposed(left) : left, b_turned ? transposed(right) : right,
             product(c.view(), p.add));
    });
}

}  // namespace masquerade
