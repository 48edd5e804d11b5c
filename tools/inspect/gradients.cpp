// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>
#include <set>

#include "engine/base/named.h"
#include "engine/base/random.h"
#include "engine/io/nearest.h"
#include "engine/tensor/numbers.h"
#include "engine/check/ladder.h"
#include "input/input.h"
#include "tools/device.h"
#include "tools/inspect/inspect.h"
#include "tools/inspect/small_model.h"
#include "tools/say.h"

namespace masquerade {
namespace {

std::string error_text(double error) { return error < 0 ? "-" : fmt::format("{:.1e}", error); }

void report(const Strings& faults) {
    for (const std::string& fault : faults) say("wrong: {}\n", fault);
    if (!faults.empty()) throw Error(counted(faults.size(), "check"), " failed, see above");
}

// Computes one training step. Returns the gradients of all parameters that have one, converted to double.
std::vector<Numbers> gradients_of(SmallStep&& step) {
    step.backward(step.loss());
    std::vector<Numbers> all;
    for (const Tensor& p : step.run->parameters.all())
        if (p.needs_grad) all.push_back(numbers_of(step.run->parameters.slice(step.run->parameters.gradients(), p)));
    step.tape.end();
    return all;
}

double length(const Numbers& x) {
    double sum = 0;
    for (double v : x) sum += v * v;
    return std::sqrt(sum);
}

double distance(Numbers a, const Numbers& b) {
    for (std::size_t i = 0; i < a.size(); i++) a[i] -= b[i];
    return length(a);
}

// Returns the error of the gradient g of one parameter p in a random direction d, by the complex step:
//     |Im L(p + i h d) / h - g . d|, where L is the loss.
double complex_step_error(SmallStep& step, const Tensor& p, const Numbers& gradient) {
    constexpr double h = 1e-40;
    complex* x = p.view().as<complex>();
    Sequence random(1, p.path);
    double expected = 0;
    for (std::size_t i = 0; i < gradient.size(); i++) {
        const double d = random.below(2) ? 1 : -1;
        x[i] = complex(x[i].real(), h * d);
        expected += d * gradient[i];
    }
    const double found = step.loss()->view().as<complex>()->imag() / h;
    step.tape.end();
    for (std::size_t i = 0; i < gradient.size(); i++) x[i] = x[i].real();
    return std::abs(found - expected);
}

}  // namespace

void check_ops(const Strings& names) {
    using namespace ladder;
    std::set<std::string> ops;  // without the special cases, which follow a comma
    for (const Op& op : ops_table()) ops.insert(op.name.substr(0, op.name.find(',')));
    for (const std::string& name : names)
        if (std::none_of(ops_table().begin(), ops_table().end(),
                         [&](const Op& op) { return op.name.rfind(name, 0) == 0; }))
            throw BadUsage("there is no op and no model of the name ", clipped(name), "; the nearest ops are ",
                           joined(nearest(clipped(name), {ops.begin(), ops.end()}, 3)),
                           "; engine/ops/ops.h has all; models: ", joined(names_of(families())));
    Strings faults;
    say("op                              tensor    complex step         f32        bf16\n");
    for (const Op& op : ops_table()) {
        const auto names_it = [&](const std::string& name) { return op.name.rfind(name, 0) == 0; };
        if (!names.empty() && std::none_of(names.begin(), names.end(), names_it)) continue;
        Findings found;
        found.op = op.name;
        check_calculus(op, found);
        check_precision(op, found);
        for (const auto& [tensor, e] : found.tensors)
            say("{:32}{:8}{:>14}{:>12}{:>12}\n", op.name, tensor, error_text(e.complex_step), error_text(e.f32),
                error_text(e.bf16));
        faults.insert(faults.end(), found.faults.begin(), found.faults.end());
    }
    say("\nlargest error relative to the largest number: of double against the complex step, at most\n"
        "1e-12; of f32 and bf16 against double, at most a few roundings\n");
    report(faults);
}

void check_model(const Strings& words, std::uint64_t seed) {
    constexpr double allowed = 1e-11;
    const auto exact = gradients_of(SmallStep(words, seed, DType::f64)),
               f32 = gradients_of(SmallStep(words, seed, DType::f32)),
               bf16 = gradients_of(SmallStep(words, seed, DType::bf16));
    SmallStep step(words, seed, DType::c128);
    Strings faults;
    double longest = 0;
    for (const Numbers& g : exact) longest = std::max(longest, length(g));
    say("{:44}{:>12}{:>12}{:>14}{:>10}{:>10}\n", "parameter", "shape", "gradient", "complex step", "f32", "bf16");
    std::size_t i = 0;
    Strings states;
    for (const Tensor& p : step.run->parameters.all()) {
        if (!p.needs_grad) {
            states.push_back(p.path);
            continue;
        }
        // The error is divided by the norm of this gradient, but at least by 1e-3 times the largest norm of all
        // gradients, so that an error of 1e-14 times this largest norm is always allowed. The reason: a gradient that
        // is mathematically 0 consists of rounding errors only, and a gradient that is a small difference of large
        // numbers has few correct digits.
        const double norm = length(exact[i]), scale = std::max(norm, 1e-3 * longest);
        const double error = complex_step_error(step, p, exact[i]) / scale;
        say("{:44}{:>12}{:>12.1e}{:>14.1e}{:>10.1e}{:>10.1e}\n", p.path, text(p.shape), norm, error,
            distance(f32[i], exact[i]) / scale, distance(bf16[i], exact[i]) / scale);
        if (!(error <= allowed))
            faults.push_back(text("the gradient of ", p.path, " misses the complex step by ", error));
        i++;
    }
    say("\n{}: {}; of a batch in bucket {}\n", step.kind.name, step.run->description(), step.bucket);
    say("gradient: its norm, in double; beside it errors relative to it: along a random direction against\n"
        "the complex step, at most {:.0e}; of f32 and bf16 against double, for reading\n",
        allowed);
    if (!states.empty()) fmt::print("without gradient, as no optimiser changes them: {}\n", joined(states));
    report(faults);
}

}  // namespace masquerade
