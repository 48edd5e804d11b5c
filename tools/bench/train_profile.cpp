// SPDX-License-Identifier: MIT
#include "tools/bench/train_profile.h"

#include <algorithm>
#include <string_view>

#include "engine/ops/cpu/parallel.h"

namespace masquerade {
namespace {

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

void StepProfile::before(const Record& record, bool backward) {
    count_products(record, backward, recorded);
    op_ = record.op;
    Clock::before(record, backward);
}

void StepProfile::after(const Record& record, bool backward) {
    Clock::after(record, backward);
    op_.clear();
}

// A product that one thread runs while others do something else counts by its share of the threads.
void StepProfile::note(const GemmCall& call) {
    std::lock_guard<std::mutex> guard(lock_);
    if (op_.empty() || op_ == "attention") return;
    inside_[op_] += call.alone ? call.seconds : call.seconds / threads();
    metered.add(double(call.m) * double(call.n) * double(call.k), call.a.dtype == DType::bf16 && call.b.dtype == DType::bf16);
}

void StepProfile::clear() {
    Clock::clear();
    inside_.clear();
    recorded = metered = {};
}

std::vector<StepPart> StepProfile::parts(int steps, double seconds, double update) const {
    std::vector<StepPart> parts = {{"optimiser", update / steps}};
    double products = 0, known = update;
    for (const auto& [op, share] : shares()) {
        const double all = share.forward + share.backward;
        const auto found = inside_.find(op);
        const double inside = found == inside_.end() ? 0 : found->second;
        parts.push_back({op, (all - inside) / steps});
        products += inside;
        known += all;
    }
    std::sort(parts.begin(), parts.end(), [](auto& a, auto& b) { return a.seconds > b.seconds; });
    if (products > 0) parts.insert(parts.begin(), {"GEMM", products / steps});
    parts.push_back({"rest", (seconds - known) / steps});
    return parts;
}

}  // namespace masquerade
