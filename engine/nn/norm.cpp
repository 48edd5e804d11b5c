// SPDX-License-Identifier: MIT
#include "engine/nn/norm.h"

#include "engine/base/named.h"
#include "engine/tape/op_record.h"

namespace masquerade {

Tensor* rms_norm(Tape& t, Tensor* x, Tensor* w, double eps, const std::string& name) {
    return run_op(t, name, rms_norm_forward, rms_norm_backward, {x, w}, eps);
}

namespace {

// Divides each row by its root mean square and multiplies it by `weight`. Zhang & Sennrich 2019
struct RmsNorm : Norm {
    Tensor* weight;  // (C): one number per column
    double eps;
    RmsNorm(Parameters& p, const std::string& path, int width, double epsilon)
        : weight(p.add(path + ".weight", {width}, {Init::ones})), eps(epsilon) {}
    using Norm::operator();
    Tensor* operator()(Tape& tape, Tensor* x, const std::string& name) const override {
        return rms_norm(tape, x, weight, eps, name);
    }
};

template <class Class>
std::unique_ptr<const Norm> make(Parameters& p, const std::string& path, int width, double eps) {
    return std::make_unique<Class>(p, path, width, eps);
}

}  // namespace

const std::vector<NormKind>& norm_kinds() {
    static const std::vector<NormKind> all = {
        {"layer", "layer norm: mean and variance of a row, a gain and a bias", make<LayerNorm>},
        {"rms", "RMSNorm: the root mean square of a row, and a gain", make<RmsNorm>}};
    return all;
}

const NormKind& find_norm(const std::string& name) { return find_named(norm_kinds(), name, "norm"); }

}  // namespace masquerade
