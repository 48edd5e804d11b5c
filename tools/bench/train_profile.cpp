// SPDX-License-Identifier: MIT
#include "tools/bench/train_profile.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "engine/ops/cpu/parallel.h"
#include "engine/ops/ops.h"
#include "engine/tensor/buffer.h"
#include "engine/tensor/copy.h"
#include "engine/tensor/numbers.h"
#include "tools/bench/measure.h"

namespace masquerade {
namespace {

char letter(const Factor& f) { return f.column == 1 ? 'N' : 'T'; }

bool rounded(const Tensor* a, const Tensor* b) { return a->dtype == DType::bf16 && b->dtype == DType::bf16; }

double product_of(const Tensor* x, const Tensor* w) {  // x(M,I) and w(O,I)
    return double(x->rows()) * double(x->columns()) * double(w->shape[0]);
}

// y = x w^T; from dy(M,O): dx = dy w and dw = dy^T x, each where somebody asks for it. `wants_dx` is x or
// what it was made of.
void count_linear(const Record& r, bool backward, const Tensor* x, const Tensor* w, const Tensor* wants_dx,
                  MultiplyAdds& work) {
    const double each = product_of(x, w);
    if (!backward) return work.add(each, rounded(x, w));
    const Tensor* dy = r.out[0];  // of the gradient's type
    if (wants_dx->needs_grad) work.add(each, rounded(dy, w));
    if (w->needs_grad) work.add(each, rounded(dy, x));
}

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

void count_products(const Record& r, bool backward, MultiplyAdds& work) {
    const std::string_view op = r.op;
    if (op == "linear" || op == "linear_gelu" || op == "linear_rotary")
        count_linear(r, backward, r.in[0], r.in[1], r.in[0], work);
    if (op == "gelu_linear") count_linear(r, backward, r.in[1], r.in[2], r.in[0], work);
    if (op == "token_losses") work.add(product_of(r.in[0], r.in[1]), rounded(r.in[0], r.in[1]));
    if (op == "cross_entropy" && !backward) {  // logits, and from them the gradients in the same pass
        const Tensor *h = r.in[0], *w = r.in[1];
        work.add(product_of(h, w) * (1 + h->needs_grad + w->needs_grad), rounded(h, w));
    }
}

ProductKind kind_of(const GemmCall& c) {
    return {c.m, c.n, c.k, {letter(c.a), letter(c.b)}, c.a.dtype, c.b.dtype, c.c.dtype, c.c.add};
}

void StepProfile::start() {
    on_ = true;
    gemm_meter = this;
    started_ = steady_seconds();
}

void StepProfile::finish(double update_seconds) {
    seconds += steady_seconds() - started_;
    update += update_seconds;
    steps++;
    on_ = false;
    gemm_meter = nullptr;
}

void StepProfile::before(const Record& record, bool backward) {
    if (!on_) return;
    count_products(record, backward, work);
    wait_for(device);
    current_ = &ops[record.op];
    in_attention_ = std::strcmp(record.op, "attention") == 0;
    record_started_ = steady_seconds();
}

void StepProfile::after(const Record&, bool backward) {
    if (!on_) return;
    wait_for(device);
    (backward ? current_->backward : current_->forward) += steady_seconds() - record_started_;
    if (!backward) current_->calls++;
    current_ = nullptr;
}

void StepProfile::note(const GemmCall& call) {
    std::lock_guard<std::mutex> guard(lock_);
    if (current_) current_->products += call.alone ? call.seconds : call.seconds / threads();
    if (!in_attention_) products[kind_of(call)].push_back(call.seconds);
}

std::vector<StepPart> parts_of(const StepProfile& profile) {
    const double steps = double(profile.steps);
    std::vector<StepPart> parts = {{"optimiser", profile.update / steps}};
    double products = 0, known = profile.update;
    for (const auto& [op, time] : profile.ops) {
        const double all = time.forward + time.backward, inside = op == "attention" ? 0 : time.products;
        parts.push_back({op, (all - inside) / steps});
        products += inside;
        known += all;
    }
    std::sort(parts.begin(), parts.end(), [](auto& a, auto& b) { return a.seconds > b.seconds; });
    if (profile.device == Device::cpu) parts.insert(parts.begin(), {"GEMM", products / steps});
    parts.push_back({"rest", (profile.seconds - known) / steps});
    return parts;
}

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
