// SPDX-License-Identifier: MIT
// Functions on the tape for linear attention: dot products of queries and keys with given vectors, and feature maps.
// Also makes the random vectors for feature maps.
#include <cmath>

#include "engine/math/features.h"
#include "engine/nn/functions.h"
#include "engine/tape/op_record.h"

namespace masquerade {

Tensor* head_scores(Tape& t, Tensor* x, Tensor* p, int heads, double scale, const std::string& name) {
    return run_op(t, name, head_scores_forward, head_scores_backward, {x, p}, heads, scale);
}

// If the features are stored as logarithms, the backward does not read s: the derivative of each logarithm with respect
// to s is 1 or -1 for every s. The backward reads x only if the features depend on |x|.
Tensor* feature_map(Tape& t, Tensor* s, Tensor* x, int heads, double scale, FeatureKind kind, const std::string& name) {
    Tensor* y = t.declare(name, {s->rows(), heads * features_of(kind, int(s->columns() / heads))}, s->dtype);
    return t.run(Record("feature_map")
                     .reads({s, x})
                     .makes({y})
                     .by(feature_map_forward, feature_map_backward, heads, scale, kind)
                     .keeps({is_logarithm(kind) ? nullptr : s, has_norm(kind) ? x : nullptr}));
}

std::vector<double> random_features(int R, int heads, int D, const FeatureDraw& rule, std::uint64_t seed,
                                    const std::string& name, std::uint32_t draw) {
    const std::int64_t C = std::int64_t(heads) * D;
    std::vector<double> all(R * C), units(D * D);
    auto dot = [D](const double* a, const double* b) {
        double s = 0;
        for (int d = 0; d < D; d++) s += a[d] * b[d];
        return s;
    };
    for (int h = 0; h < heads; h++) {
        Sequence random(seed, name, draw, std::uint32_t(h));
        for (int r = 0; r < R; r++) {
            double *w = &all[r * C + h * D], *unit = &units[r % D * D];
            for (int d = 0; d < D; d++) unit[d] = w[d] = random.normal();
            // The loop over k is the Gram-Schmidt process, applied twice for precision. The length of a normal random
            // vector is independent of its direction, so w provides the length, and unit the direction.
            const double length = rule.regular ? std::sqrt(double(D)) : std::sqrt(dot(w, w));
            for (int k = 0; rule.orthogonal && k < 2 * (r % D); k++) {
                const double* other = &units[k % (r % D) * D];
                const double along = dot(unit, other);
                for (int d = 0; d < D; d++) unit[d] -= along * other[d];
            }
            const double norm = std::sqrt(dot(unit, unit));
            for (int d = 0; d < D; d++) unit[d] /= norm, w[d] = rule.deviation * length * unit[d];
        }
    }
    return all;
}

}  // namespace masquerade
