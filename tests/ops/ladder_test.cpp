// SPDX-License-Identifier: MIT
// Runs the ladder on every op of ops.h, and tests that the ladder finds planted errors.
#include <doctest/doctest.h>

#include "engine/math/point.h"
#include "engine/check/ladder.h"

using namespace masquerade;
using namespace masquerade::ladder;

namespace {

Findings findings_of(const Op& op, void (*check)(const Op&, Findings&)) {
    Findings findings;
    findings.op = op.name;
    check(op, findings);
    return findings;
}

// Checks all rows of the op table for the op that a line of ops.h names. If the line names a backward, checks it with
// the complex step; otherwise, checks the op with its forward.
void climb(std::string line) {
    const std::size_t end = line.find("_backward");
    const bool backward = end != std::string::npos;
    const std::string name = line.substr(0, backward ? end : line.find("_forward"));
    bool found = false;
    for (const Op& op : ops_table()) {
        if (op.name.substr(0, op.name.find(',')) != name) continue;
        found = true;
        for (auto check : {check_calculus, check_precision, check_contract})
            if (backward == (check == check_calculus))
                for (const std::string& fault : findings_of(op, check).faults) FAIL_CHECK(fault);
    }
    if (!found) FAIL_CHECK(line << " has no row in engine/check/ops_table.cpp");
}

// A small op with one of several errors: y = gelu(x) w for every row, and its gradients.
struct Planted {
    const char* kind;
    bool in(const char* name) const { return std::string(name) == kind; }
};

void expect(bool fits) {
    if (!fits) throw Error("shapes differ, expected the same");
}

template <class A>
void forward(const Planted& fault, View x, View w, View y) {
    const std::int64_t C = x.columns();
    for (std::int64_t n = 0; n < x.rows(); n++)
        for (std::int64_t i = 0; i < C; i++) {
            A value = Gelu::value(x.as<A>()[n * C + i]) * w.as<A>()[i];
            if (fault.in("low precision") && sizeof(A) == 4) value = A(float(bfloat16(float(real_of(value)))));
            if (fault.in("depends on the batch") && x.rows() > 1) value *= A(1 + 0x1p-20);
            if (fault.in("leaves a hole") && i == 62) continue;
            y.as<A>()[n * C + i] = value;
        }
    if (fault.in("writes past the end")) y.as<A>()[x.count()] = A(0);
    if (fault.in("writes its input")) w.as<A>()[0] = A(1);
}

template <class A>
void backward(const Planted& fault, View dy, View x, View w, Grad dx, Grad dw) {
    const std::int64_t C = x.columns();
    for (std::int64_t n = 0; dx && n < x.rows(); n++)
        for (std::int64_t i = 0; i < C; i++) {
            A g = dy.as<A>()[n * C + i] * Gelu::slope(x.as<A>()[n * C + i]) * w.as<A>()[i];
            if (fault.in("wrong sign")) g = -g;
            if (fault.in("a term too small to see") && i == 1) g += A(1e-9);
            put(dx.view.as<A>()[n * C + i], g, fault.in("always stored") ? false : dx.add);
        }
    for (std::int64_t i = 0; dw && i < C; i++) {
        A s(0);
        for (std::int64_t n = 0; n < x.rows(); n++) s += dy.as<A>()[n * C + i] * Gelu::value(x.as<A>()[n * C + i]);
        if (fault.in("needs the other gradient") && !dx) s = A(0);
        if (fault.in("always added") || dw.add)
            dw.view.as<A>()[i] += s;
        else
            dw.view.as<A>()[i] = s;
    }
}

Op planted(const char* kind) {
    Planted fault{kind};
    return {"planted", [fault](Sizes n) {
                Case c;
                c.input("x", {n.rows, n.columns}, Kind::arithmetic).by_row().at_least(1);
                c.input("w", {n.columns}, Kind::arithmetic).sums(n.rows).at_least(1);
                c.output("y", {n.rows, n.columns}, Kind::arithmetic).by_row().at_least(1);
                c.forward = [fault](const Call& a) {
                    expect(a("y").shape == a("x").shape);
                    expect(a("w").count() == a("x").columns() || fault.in("takes any shape"));
                    if (a("x").dtype == DType::f32)
                        forward<float>(fault, a("x"), a("w"), a("y"));
                    else if (a("x").dtype == DType::f64)
                        forward<double>(fault, a("x"), a("w"), a("y"));
                    else
                        forward<complex>(fault, a("x"), a("w"), a("y"));
                };
                c.backward = [fault](const Call& a) {
                    expect(a.d("y").shape == a("x").shape && (!a.grad("x") || a.grad("x").view.shape == a("x").shape));
                    expect(a("w").count() == a("x").columns() &&
                           (!a.grad("w") || a.grad("w").view.shape == a("w").shape));
                    if (a("x").dtype == DType::f32)
                        backward<float>(fault, a.d("y"), a("x"), a("w"), a.grad("x"), a.grad("w"));
                    else
                        backward<double>(fault, a.d("y"), a("x"), a("w"), a.grad("x"), a.grad("w"));
                };
                return c;
            }};
}

}  // namespace

#define OP(name, parameters, ...) \
    TEST_CASE("ladder: " #name) { climb(#name); }
#include "engine/ops/ops.h"
#undef OP

TEST_CASE("ladder: what is planted is found, and named") {
    struct {
        const char* kind;
        void (*check)(const Op&, Findings&);
        const char* said;
    } all[] = {
        {"wrong sign", check_calculus, "planted dx: complex step"},
        {"a term too small to see", check_calculus, "planted dx: complex step"},
        {"low precision", check_precision, "planted y: f32"},
        {"leaves a hole", check_contract, "planted y: is not fully written"},
        {"writes past the end", check_contract, "planted y: is written past its ends"},
        {"writes its input", check_contract, "planted w: is written to"},
        {"always stored", check_contract, "planted dx: is not added to what was there"},
        {"always added", check_contract, "planted dw: is not fully stored"},
        {"needs the other gradient", check_contract, "planted dw: changes where another is not wanted"},
        {"depends on the batch", check_contract, "planted y: of a row alone has other bits than in a batch"},
        {"takes any shape", check_contract, "planted w: in the forward with one column more is not refused"},
    };
    for (const auto& fault : all) {
        CAPTURE(fault.kind);
        std::string said;
        for (const std::string& s : findings_of(planted(fault.kind), fault.check).faults) said += s + "\n";
        CAPTURE(said);
        CHECK(said.find(fault.said) != std::string::npos);
    }
    for (auto check : {check_calculus, check_precision, check_contract})
        for (const std::string& fault : findings_of(planted("nothing"), check).faults) FAIL_CHECK(fault);
}
