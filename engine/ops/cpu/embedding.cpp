// SPDX-License-Identifier: MIT
// The backward of embedding, whose forward is in engine/ops/rows.cpp. It sums the gradients of rows with the same id,
// always in row order. The bits of the sums therefore do not depend on the number of threads.
#include "engine/ops/check.h"
#include "engine/ops/cpu/workspace.h"
#include "engine/ops/launch.h"

#include <algorithm>

namespace masquerade::cpu {
namespace {

constexpr std::int64_t ids_a_piece = 256, columns_at_once = 256;

struct Starts {};
struct Order {};

// Sets to(C) to the sum of the `count` rows of dy whose indices are in `rows` or, if `add` is set, adds the sum to
// to(C).
template <class S, class A>
void sum_rows(const S* dy, const int* rows, std::int64_t count, std::int64_t C, A* to, bool add) {
    for (std::int64_t c0 = 0; c0 < C; c0 += columns_at_once) {
        const std::int64_t width = std::min(columns_at_once, C - c0);
        A sums[columns_at_once];
        const S* first = dy + rows[0] * C + c0;
        for (std::int64_t c = 0; c < width; c++) sums[c] = A(first[c]);
        for (std::int64_t i = 1; i < count; i++) {
            const S* row = dy + rows[i] * C + c0;
            for (std::int64_t c = 0; c < width; c++) sums[c] += A(row[c]);
        }
        store(OneLane{}, width, to + c0, add, [&](std::int64_t c) { return sums[c]; });
    }
}

}  // namespace

void embedding_backward(View dy, Ints ids, Grad dw) {
    if (!dw) return;
    expect_rows("embedding backward", "id", ids, dw.view);
    std::int64_t V = dw.view.rows(), C = dw.view.columns();

    // Stable counting sort: the entries [starts[v], starts[v + 1]) of `order` are the rows whose id is v, in row order.
    int* starts = workspace<Starts, int>(V + 2);
    int* order = workspace<Order, int>(ids.count);
    std::fill_n(starts, V + 2, 0);
    for (std::int64_t n = 0; n < ids.count; n++) starts[ids[n] + 2]++;
    for (std::int64_t v = 0; v < V; v++) starts[v + 2] += starts[v + 1];
    for (std::int64_t n = 0; n < ids.count; n++) order[starts[ids[n] + 1]++] = int(n);

    for_type(dy.dtype, [&]<class S, class A>(S, A) {
        const S* from = dy.as<S>();
        A* to = dw.as<A>();
        parallel_each((V + ids_a_piece - 1) / ids_a_piece, [&](std::int64_t piece) {
            for (std::int64_t v = piece * ids_a_piece; v < std::min(V, (piece + 1) * ids_a_piece); v++) {
                if (starts[v] < starts[v + 1])
                    sum_rows<S, A>(from, order + starts[v], starts[v + 1] - starts[v], C, to + v * C, dw.add);
                else if (!dw.add)
                    std::fill_n(to + v * C, C, A());
            }
        });
    });
}

}  // namespace masquerade::cpu
