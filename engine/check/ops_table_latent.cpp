// SPDX-License-Identifier: MIT
// The rows of the op table for latents that are codes of a codebook, and for flows. The sizes {rows, columns, other}
// are the number of documents, the width of a group of columns or of a latent, and the number of codes per group.
#include "engine/check/ops_table.h"

#include <cmath>

namespace masquerade::ladder {
namespace {

constexpr int groups = 2;

Case nearest_code_case(Sizes n) {
    const int B = n.rows, D = n.columns, M = n.other;
    Case c;
    c.constant("y", {B, groups * D}, arithmetic).by_row().drawn(scaled(1));
    c.constant("codes", {groups * M, D}, arithmetic).drawn(scaled(1));
    c.output("q", {B, groups * D}, arithmetic).by_row();
    c.statistic("code", {B, groups}).by_row();
    c.forward = by_names(nearest_code_forward, groups);
    c.record = in_order(nearest_code, groups);
    return c;
}

Case nearest_level_case(Sizes n, int levels) {
    Case c;
    c.constant("t", matrix(n), arithmetic).by_row().drawn(uniform(-1.2, 1.2));
    c.output("q", matrix(n), arithmetic).by_row();
    c.forward = by_names(nearest_level_forward, levels);
    c.record = in_order(nearest_level, levels);
    return c;
}

Case straight_through_case(Sizes n) {
    // The gradient is computed as if z = y. The complex step agrees, because the imaginary part of z is taken from y.
    return stated("BZ", n, straight_through_forward, straight_through_backward, straight_through);
}

Case distance_case(Sizes n) {
    Case c = stated("BZ", n, distance_forward, distance_backward, distance, 0.7);
    c["distance"].sums(n.columns);
    return c;
}

// The last third of the documents has weight 0 and changes nothing. Some codes are used so rarely that the op replaces
// each of them by part of the latent y of a random document.
Case learn_codes_case(Sizes n) {
    const int B = n.rows, D = n.columns, M = n.other, there = B - B / 3;
    const CodeRule rule{groups, 0.9, 0.3, make_stream(5, "ladder", 2)};
    Case c;
    c.constant("y", {B, groups * D}, arithmetic).drawn(scaled(1));
    c.constant("code", {B, groups}, arithmetic).drawn(each([M](Sequence& random) {
        return random.below(std::uint32_t(M));
    }));
    c.constant("weights", {B}, arithmetic).drawn(by_index([there](int b, Sequence&) { return b < there; }));
    c.updated("codes", {groups * M, D}).drawn(scaled(1)).sums(B, 4).at_least(1);
    c.updated("counts", {groups * M}).drawn(uniform(0, 2.0 * there / M)).sums(B);
    c.updated("sums", {groups * M, D}).drawn(scaled(1)).sums(B, 4).at_least(1);
    c.forward = by_names(learn_codes, rule);
    return c;
}

Case coupling_case(Sizes n) {
    const int B = n.rows, Z = n.columns + 1, half = Z / 2;
    Case c = stated("BZ", {B, Z}, coupling_forward, coupling_backward, coupling);
    for (const char* name : {"x", "y"}) c[name].sums(1, 8);
    c["log_det"].sums(half, 4).at_least(1);
    c.input("st", {B, 2 * half}, arithmetic).by_row().sums(1, 16).at_least(1);
    return c;
}

// w is close to an orthogonal matrix, as in a flow, so that it can be inverted in float.
Case log_det_case(Sizes n) {
    const int Z = n.columns;
    Case c = stated("BZ", n, log_det_forward, log_det_backward, log_det);
    for (Operand& o : c.operands) o.sums(Z, 16).at_least(1);
    c["w"].drawn(by_index([Z](int i, Sequence& random) {
        return ((i / Z + 1) % Z == i % Z ? -1 : 0) + 0.3 * random.normal() / std::sqrt(Z);
    }));
    return c;
}

Draw away_from_zero() {
    return each([](Sequence& random) { return (random.below(2) ? 1 : -1) * (0.5 + random.uniform_double()); });
}

Case actnorm_case(Sizes n) {
    Case c = stated("BZ", n, actnorm_forward, actnorm_backward, actnorm);
    c["s"].drawn(away_from_zero()).sums(n.rows + 1);
    c["b"].sums(n.rows);
    c["y"].at_least(1);
    c["log_det"].sums(n.columns, 4).at_least(1);
    return c;
}

// The permutation moves every row by one. If Z > 2, the permutation, its inverse and the identity all differ, so an op
// that confuses them is found.
Case lu_matrix_case(Sizes n) {
    const int Z = n.columns;
    Case c = stated("BZ", n, lu_matrix_forward, lu_matrix_backward, lu_matrix);
    for (Operand& o : c.operands) o.sums(Z, 4).at_least(1);
    c["lu"].drawn(by_index([Z](int i, Sequence& random) {
        return i / Z == i % Z ? (i % 3 ? 1 : -1) * (0.5 + random.uniform_double()) : random.normal() / std::sqrt(Z);
    }));
    c["order"].drawn(by_index([Z](int i, Sequence&) { return (i + 1) % Z; }));
    return c;
}

Case flow_kl_case(Sizes n) {
    Case c = stated("BZ", n, flow_kl_forward, flow_kl_backward, flow_kl);
    // Some log variances are outside the interval [-8, 8], to which the op clamps them.
    c["x"].drawn(uniform(-10, 10));
    c["e"].drawn(scaled(1));
    c["log_det"].sums(n.rows);
    c["kl"].sums(n.columns, 4).at_least(10);
    return c;
}

// Returns an op on a square matrix with `columns` columns. The sizes are small, because the time of the op grows with
// the third power of `columns`.
Op of_matrix(const char* name, Case (*make)(Sizes)) {
    return {name,
            make,
            {{1, 4, 1}, {1, 1, 1}, {1, 7, 1}},
            {{1, 12, 1}},
            {{1, 1, 1}, {1, 2, 1}, {1, 31, 1}, {1, 33, 1}, {1, 64, 1}},
            {{1, 129, 1}}};
}

}  // namespace

std::vector<Op> code_ops() {
    return {{"nearest_code", nearest_code_case},
            {"nearest_level, 5", with(nearest_level_case, 5)},
            {"nearest_level, 2", with(nearest_level_case, 2)},
            {"straight_through", straight_through_case},
            {"distance", distance_case},
            {"learn_codes", learn_codes_case},
            {"coupling", coupling_case},
            of_matrix("log_det", log_det_case),
            {"actnorm", actnorm_case},
            of_matrix("lu_matrix", lu_matrix_case),
            {"flow_kl", flow_kl_case}};
}

}  // namespace masquerade::ladder
