// SPDX-License-Identifier: MIT
#include "tools/bench/train_floor.h"

#include <algorithm>

#include "engine/tensor/buffer.h"
#include "tools/bench/measure.h"

namespace masquerade {
namespace {

// A matrix of numbers that are not zero, compact.
class Matrix {
  public:
    Matrix(std::int64_t rows, std::int64_t columns, DType type)
        : rows_(rows), columns_(columns), type_(type), memory_(std::size_t(rows * columns) * bytes_of(type)) {
        for (std::int64_t i = 0; i < rows * columns; i++) {
            const float x = float(i % 13 + 1) / 16;
            if (type == DType::f32)
                static_cast<float*>(memory_.data())[i] = x;
            else
                static_cast<bfloat16*>(memory_.data())[i] = bfloat16(x);
        }
    }
    View view() const { return {memory_.data(), type_, Device::cpu, {rows_, columns_}, "floor"}; }

  private:
    std::int64_t rows_, columns_;
    DType type_;
    Buffer memory_;
};

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

std::vector<FloorProduct> floor_products(const StepProfile& profile) {
    std::vector<FloorProduct> products;
    for (auto [kind, seconds] : profile.products) {
        FloorProduct product{kind, double(seconds.size()) / double(profile.steps)};
        product.in_step = spread_of(std::move(seconds)).median;
        products.push_back(product);
    }
    return products;
}

double seconds_alone(const ProductKind& p, double budget) {
    const bool a_turned = p.order[0] == 'T', b_turned = p.order[1] == 'T';
    const Matrix a = a_turned ? Matrix(p.k, p.m, p.a) : Matrix(p.m, p.k, p.a);
    const Matrix b = b_turned ? Matrix(p.n, p.k, p.b) : Matrix(p.k, p.n, p.b);
    const Matrix c(p.m, p.n, p.c);
    const Factor left = factor(a.view()), right = factor(b.view());
    auto multiply = [&] {
        gemm(p.m, p.n, p.k, a_turned ? transposed(left) : left, b_turned ? transposed(right) : right,
             product(c.view(), p.add));
    };
    multiply();
    const double start = steady_seconds();
    double now = start;
    int times = 0;
    for (; times == 0 || now - start < budget; times++, now = steady_seconds()) multiply();
    return (now - start) / times;
}

}  // namespace masquerade
