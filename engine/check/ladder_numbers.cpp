// SPDX-License-Identifier: MIT
// The checks of the test ladder that compare numbers with exact ones: check_calculus() and check_precision().
#include "engine/ops/cpu/gemm.h"
#include "engine/check/ladder.h"

#include <algorithm>
#include <cmath>

namespace masquerade::ladder {

void keep_largest(double& worst, double error) {
    if (error > worst || std::isnan(error)) worst = error;
}

double error_of(const View& found, const View& exact, double floor) {
    double worst = 0, scale = floor > 0 ? floor : 1e-300;
    for (std::int64_t i = 0; i < exact.count(); i++) {
        const double a = number(found, i).real(), b = number(exact, i).real();
        if (a != b) keep_largest(worst, std::fabs(a - b));
        if (std::isfinite(b)) scale = std::max(scale, std::fabs(b));
    }
    return worst / scale;
}

namespace {

// Runs the forward and returns the scalar whose gradient the backward computes: the sum of all outputs times their
// cotangents.
complex scalar_of(const Call& call) {
    call.forward();
    complex s = 0;
    for (std::size_t i = 0; i < call.op.operands.size(); i++) {
        if (call.op.operands[i].role != Role::output) continue;
        const View &y = call.values[i].view(), &dy = call.gradients[i]->view();
        for (std::int64_t k = 0; k < y.count(); k++) s += number(y, k) * number(dy, k);
    }
    return s;
}

constexpr double step = 1e-30, near = 1e-12;

void expect_calculus(Findings& findings, const Operand& o, double error, const std::string& how) {
    std::string tensor = "d" + o.name;
    keep_largest(findings.of(tensor).complex_step, error);
    findings.expect(error <= near, tensor, "complex step", text(error, " > ", near, how));
}

// For each input, calls check(operand, gradient, value, call). The gradient is computed in f64; `value` is the input's
// value in `call`, which computes with complex numbers.
template <class F>
void each_input(const Op& op, Sizes sizes, F check) {
    const Case c = prepared(op, sizes);
    const Call exact(c, DType::f64), shifted(c, DType::c128);
    exact.both();
    for (std::size_t i = 0; i < c.operands.size(); i++)
        if (const Operand& o = c.operands[i]; o.role == Role::input && o.shape.count() > 0)
            check(o, exact.gradients[i]->view(), shifted.values[i].view(), shifted);
}

void check_elements(const Op& op, Sizes sizes, Findings& findings) {
    each_input(op, sizes, [&](const Operand& o, const View& g, const View& x, const Call& shifted) {
        const Guarded gradient(o.shape, DType::f64, "complex step");
        for (std::int64_t k = 0; k < x.count(); k++) {
            const complex before = number(x, k);
            set_number(x, k, before + complex(0, step));
            set_number(gradient.view(), k, scalar_of(shifted).imag() / step);
            set_number(x, k, before);
        }
        expect_calculus(findings, o, error_of(g, gradient.view(), o.floor), at(sizes));
    });
}

void check_directions(const Op& op, Sizes sizes, Findings& findings) {
    each_input(op, sizes, [&](const Operand& o, const View& g, const View& x, const Call& shifted) {
        for (std::uint32_t direction = 0; direction < 8; direction++) {
            Sequence random(hash_of(op.name), o.name + ".direction", direction);
            double along = 0, size = o.floor * o.floor;
            for (std::int64_t k = 0; k < x.count(); k++) {
                const double d = 2 * random.uniform_double() - 1, term = d * number(g, k).real();
                set_number(x, k, complex(o.numbers[k], step * d));
                along += term;
                size += term * term;
            }
            const double error = std::fabs(scalar_of(shifted).imag() / step - along) / std::sqrt(size + 1e-300);
            expect_calculus(findings, o, error, " along a direction" + at(sizes));
        }
        for (std::int64_t k = 0; k < x.count(); k++) set_number(x, k, o.numbers[k]);
    });
}

// Returns a call with the outputs and all gradients in f64, computed from numbers that are rounded to `type`.
Call exact_call(const Case& c, DType type) {
    Call exact(c, DType::f64, type);
    exact.both();
    return exact;
}

// Runs the case in `type` on the device, and checks that every result differs from `exact` by at most bound_of(). `how`
// is the name of the instruction set or device in error messages.
void compare(const Call& exact, Sizes sizes, DType type, Device device, const std::string& how, Findings& findings) {
    Call fast(exact.op, type, type, device);
    fast.both();
    each_result(fast, exact, [&](const Operand& o, const std::string& tensor, const Guarded& a, const Guarded& b) {
        double error = error_of(a.view(), b.view(), o.floor), bound = bound_of(o, type, device);
        Errors& errors = findings.of(tensor);
        keep_largest(type == DType::bf16 ? errors.bf16 : errors.f32, error);
        findings.expect(error <= bound, tensor, text(name_of(type), " on ", how),
                        text("is off by ", error, " > ", bound, at(sizes)));
    });
}

void check_against_double(const Op& op, Sizes sizes, DType type, Findings& findings) {
    const Case c = prepared(op, sizes);
    const Call exact = exact_call(c, type);
    std::string first = instruction_set();
    for (const char* set : {"generic", "avx2", "avx512"})
        if (set_instruction_set(set)) compare(exact, sizes, type, Device::cpu, set, findings);
    set_instruction_set(first.c_str());
}

}  // namespace

double bound_of(const Operand& o, DType type, Device device) {
    auto unit = [](DType t) { return t == DType::f64 ? 0x1p-53 : t == DType::bf16 ? 0x1p-8 : 0x1p-24; };
    double arithmetic = o.factor * unit(arithmetic_of(type)) * (2 + std::sqrt(o.length));
    int roundings = (o.kind == Kind::storage && !o.weight) + o.rounded + (o.biased && device != Device::cpu);
    return type == DType::bf16 ? roundings * unit(type) + arithmetic : arithmetic;
}

void check_calculus(const Op& op, Findings& findings) {
    if (!prepared(op, op.all.front()).backward) return;
    for (Sizes s : op.small) findings.attempt(s, [&] { check_elements(op, s, findings); });
    for (Sizes s : op.middle) findings.attempt(s, [&] { check_directions(op, s, findings); });
    // check_precision() compares types with each other, so it cannot find an error that all types share. A comparison
    // with the complex step finds such an error. At the far sizes, it also finds errors that occur only after the first
    // tile of a kernel.
    for (Sizes s : op.far)
        if (!op.costly) findings.attempt(s, [&] { check_directions(op, s, findings); });
}

void check_precision(const Op& op, Findings& findings) {
    bool has_storage = prepared(op, op.all.front()).has_storage();
    std::vector<Sizes> sizes = op.all;
    sizes.insert(sizes.end(), op.far.begin(), op.far.end());
    for (Sizes s : sizes)
        findings.attempt(s, [&] {
            check_against_double(op, s, DType::f32, findings);
            if (has_storage) check_against_double(op, s, DType::bf16, findings);
        });
}

void check_precision_on(Device device, const Op& op, Sizes sizes, Findings& findings) {
    for (DType type : {DType::f32, DType::bf16})
        findings.attempt(sizes, [&] {
            const Case c = prepared(op, sizes);
            if (type == DType::f32 || c.has_storage())
                compare(exact_call(c, type), sizes, type, device, name_of(device), findings);
        });
}

}  // namespace masquerade::ladder
