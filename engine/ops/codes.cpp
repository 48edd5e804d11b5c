// SPDX-License-Identifier: MIT
// Ops of discrete latents: nearest_code (the nearest row of a codebook), nearest_level (the nearest of equally spaced
// numbers), straight_through (the code, with the gradient of the latent), distance (the weighted squared distance from
// latent to code), and learn_codes (the moving-average update of codebooks). All tensors have the arithmetic type.
#include "engine/ops/check.h"
#include "engine/ops/launch.h"

namespace masquerade::DEVICE {
namespace {

// A row y (Z) consists of `groups` parts of D = Z / groups numbers. Each part has a codebook of M rows of D numbers.
// For each part, stores the nearest row of the codebook in q, and the number of this row in `code`.
template <class A>
HD void nearest_code_row(Lanes lanes, const A* y, const A* codes, A* code, A* q, int Z, int groups, int M) {
    const int D = Z / groups;
    for (int g = 0; g < groups; g++) {
        const A *own = y + g * D, *part = codes + std::int64_t(g) * M * D;
        const auto nearness = [&](int m) {
            auto distance = real_of(A(0));
            for (int i = 0; i < D; i++) {
                const auto d = real_of(own[i]) - real_of(part[m * D + i]);
                distance = distance + d * d;
            }
            return -distance;
        };
        // m becomes the smallest index of a nearest row, or M if the distances are NaN; row 0 is then taken.
        const auto best = top(lanes, M, nearness);
        const int m = -int(top(lanes, M, [&](int k) { return nearness(k) == best ? -real_of(A(k)) : -real_of(A(M)); }));
        const A* row = part + (m < M ? m : 0) * D;
        store(lanes, D, q + g * D, false, [&](int i) { return A(real_of(row[i])); });
        if (first(lanes)) code[g] = A(m < M ? m : 0);
    }
}

// Returns the level that is nearest to t. Level k is -1 + 2k / (levels - 1), 0 <= k < levels.
template <class A>
HD A nearest_level_point(A t, int levels) {
    const auto half = real_of(A(levels - 1)) / 2;
    const auto k = std::floor((real_of(t) + 1) * half + real_of(A(0.5)));
    const auto last = real_of(A(levels - 1));
    return A((k < 0 ? 0 : k > last ? last : k) / half - 1);
}

// Returns q if A is real. If A is complex, returns q plus i times the imaginary part of y. In the complex step, the
// imaginary part of a number carries its derivative. The result therefore has the derivative of y, as if it were a copy
// of y. straight_through_backward makes the same assumption (dy = dz).
template <class A>
HD A straight_through_point(A y, A q) {
    return q + (y - A(real_of(y)));
}

template <class A>
HD void distance_row(Lanes lanes, const A* y, const A* q, A weight, A* to, int Z) {
    const A all = sum(lanes, Z, [&](int i) { return (y[i] - q[i]) * (y[i] - q[i]); });
    if (first(lanes)) *to = weight * all;
}
template <class A>
HD void distance_row_grad(Lanes lanes, A ddistance, const A* y, const A* q, A weight, A* dy, bool add, int Z) {
    store(lanes, Z, dy, add, [&](int i) { return A(2) * weight * ddistance * (y[i] - q[i]); });
}

// Updates row r of `codes`, the tensor that contains the rows of all codebooks, and the moving averages of this row:
// the number of latents for which row r is the nearest row (`counts`), and the sum of these latents (`sums`). Latents
// are summed in the order of the documents. If the count of a row is small (CodeRule), the row is dead. A dead row is
// replaced by a part of a random document's latent: the columns of the row's group. `there` is the number of documents
// with a weight above 0; they come before the other documents.
template <class A>
struct LearnCodes {
    const A *y, *code, *weights;
    A *codes, *counts, *sums;
    CodeRule rule;
    int B, Z, M;
    HD void operator()(Lanes lanes, std::int64_t r) const {
        const int D = Z / rule.groups, g = int(r) / M, m = int(r) % M;
        const A keep(rule.decay), give(1 - rule.decay);
        const auto has = [&](int b) { return real_of(weights[b]) > 0 && int(real_of(code[b * rule.groups + g])) == m; };
        const int there = int(real_of(sum(lanes, B, [&](int b) { return A(real_of(weights[b]) > 0 ? 1 : 0); })));
        const A near = sum(lanes, B, [&](int b) { return A(has(b) ? 1 : 0); });
        const A even = A(there) / A(M), old = counts[r], grown = keep * old + give * near;
        const bool dead = there > 0 && real_of(grown) < real_of(A(rule.dead) * even);
        const int drawn = int(uniform(rule.stream.at(std::uint32_t(m), std::uint32_t(g), 0)[0]) * float(there));
        const A count = dead ? even : grown;
        const A* from = y + std::int64_t(drawn < there ? drawn : 0) * Z + g * D;
        each(lanes, D, [&](int i) {
            A s(0);
            for (int b = 0; b < B; b++)
                if (has(b)) s += y[std::int64_t(b) * Z + g * D + i];
            const A to = dead ? count * from[i] : keep * sums[r * D + i] + give * s;
            sums[r * D + i] = to;
            if (real_of(count) > 0) codes[r * D + i] = dead ? from[i] : to / count;
        });
        meet(lanes);
        if (first(lanes)) counts[r] = count;
    }
};

}  // namespace

void nearest_code_forward(View y, View codes, int groups, View q, View code) {
    if (groups < 1 || codes.rows() < groups)
        throw Error("nearest_code: ", groups, " groups, expected ", seen("codes", codes), " to have rows for each");
    for_latent_rows(y, [&]<class A>(A) {
        return row_call<nearest_code_row<A>>(y, codes.as<A>(), code, q, y.columns(), groups,
                                             int(codes.rows()) / groups);
    });
}

void nearest_level_forward(View t, int levels, View q) {
    if (levels < 2) throw Error("nearest_level: ", levels, " levels, expected 2 at least");
    for_latent(t, [&]<class A>(A) { store_points<A, nearest_level_point<A>>({q}, t, levels); });
}

void straight_through_forward(View y, View q, View z) {
    for_latent(y, [&]<class A>(A) { store_points<A, straight_through_point<A>>({z}, y, q); });
}

void straight_through_backward(View dz, Grad dy) {
    for_latent(dz, [&]<class A>(A) { store_points<A>(dy, by_point<A>(dz)); });
}

void distance_forward(View y, View q, double weight, View distance) {
    for_latent_rows(y, [&]<class A>(A) { return row_call<distance_row<A>>(y, q, A(weight), distance, y.columns()); });
}

void distance_backward(View ddistance, View y, View q, double weight, Grad dy) {
    if (!dy) return;
    for_latent_rows(y, [&]<class A>(A) {
        return row_call<distance_row_grad<A>>(ddistance, y, q, A(weight), dy, y.columns());
    });
}

void learn_codes(View y, View code, View weights, CodeRule rule, View codes, View counts, View sums) {
    expect_shape("learn_codes", "code", code, {y.rows(), rule.groups}, y.dtype);
    if (rule.groups < 1 || codes.rows() < rule.groups || codes.columns() * rule.groups != y.columns())
        throw Error("learn_codes: ", seen("y", y), ", ", seen("codes", codes), ", ", rule.groups,
                    " groups; expected (B,Z) and (groups M, Z / groups)");
    for_latent_rows(codes, [&]<class A>(A) {
        return LearnCodes<A>{
            y.as<A>(),    code.as<A>(), weights.as<A>(), codes.as<A>(),    counts.as<A>(),
            sums.as<A>(), rule,         int(y.rows()),   int(y.columns()), int(codes.rows()) / rule.groups};
    });
}

}  // namespace masquerade::DEVICE
