// SPDX-License-Identifier: MIT
#include "tools/bench/train_profile.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "engine/tensor/copy.h"
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

}  // namespace masquerade
