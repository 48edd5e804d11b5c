// SPDX-License-Identifier: MIT
#include "tools/bench/train_profile.h"

#include <cstring>

#include "engine/tensor/copy.h"
#include "tools/bench/measure.h"

namespace masquerade {
namespace {

struct PartOfOp {
    const char *op, *part;
};
constexpr PartOfOp parts_by_op[] = {
    {"attention", "attention"},
    {"cross_entropy", "loss"},
    {"weighted_sum", "loss"},
    {"layernorm", "normalisation"},
    {"residual_norm", "normalisation"},
    {"normalise", "latents"},
    {"dropout", "dropout"},
    {"gelu", "activation"},
    {"embedding", "embedding"},
    {"rotary", "positions"},
    {"linear_rotary", "positions"},  // on a GPU: linear layers
    {"vmf_sample", "latents"},
    {"gaussian_sample", "latents"},
    {"gaussian_kl", "latents"},
    {"convert", "latents"},
    {"token_losses", "loss"},
    {"gather_rows", "rows"},
    {"replace_rows", "rows"},
    {"add", "residual"},
    {"linear", "bias"},
    {"linear_gelu", "bias"},
    {"gelu_linear", "bias"},
};
constexpr const char* order_of_parts[] = {
    "linear layers", "attention", "loss", "normalisation", "dropout", "activation", "embedding",
    "optimiser",     "residual",  "bias", "positions",     "latents", "rows"};

const char* part_of(const std::string& op, Device device) {
    const bool linear = op.find("linear") != op.npos;
    if (device == Device::cuda && linear) return "linear layers";
    for (const PartOfOp& p : parts_by_op)
        if (op == p.op) return p.part;
    return "rest";
}

char letter(const Factor& f) { return f.column == 1 ? 'N' : 'T'; }

}  // namespace

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
    std::map<std::string, double> found;
    double products = 0, known = profile.update;
    for (const auto& [op, time] : profile.ops) {
        const double all = time.forward + time.backward, inside = op == "attention" ? 0 : time.products;
        found[part_of(op, profile.device)] += all - inside;
        products += inside;
        known += all;
    }
    found["optimiser"] = profile.update;
    found["rest"] += profile.seconds - known;
    std::vector<StepPart> parts;
    if (profile.device == Device::cpu) parts.push_back({"GEMM", products / steps});
    for (const char* name : order_of_parts)
        if (found.count(name)) parts.push_back({name, found[name] / steps});
    parts.push_back({"rest", found["rest"] / steps});
    return parts;
}

}  // namespace masquerade
