// SPDX-License-Identifier: MIT
// Tests query_key_value on CUDA. If the weights of q and of kv follow one another in memory, as they do in a model, one
// product computes both. The results must be those of two products.
#include <doctest/doctest.h>

#include "tests/emulator/emulator.h"
#include "tests/ops/values.h"

using namespace masquerade;
using emulator::AsCuda;

namespace {

constexpr int M = 70, P = 9;

// The weights of q and of kv, their biases and the gradients of both, each pair side by side in one buffer. If `gap` is
// not 0, so many numbers lie between the two.
struct Projections {
    DType type, a = arithmetic_of(type);
    int I, Q, K, D, turned, gap;
    std::vector<int> places;
    Values x, w, b, rotary_table, dq, dkv, q, kv, dx, dw, db;

    Projections(DType storage, int width, int queries, int keys, int head, int columns, int between)
        : type(storage),
          I(width),
          Q(queries),
          K(keys),
          D(head),
          turned(columns),
          gap(between),
          x(Values::random(type, {M, I}, 1)),
          w(type, {(Q + K) * I + gap}),
          b(a, {Q + K + gap}),
          rotary_table(Values::random(a, {P, D}, 2)),
          dq(Values::random(type, {M, Q}, 3)),
          dkv(Values::random(type, {M, K}, 4)),
          q(type, {M, Q}, NAN),
          kv(type, {M, K}, NAN),
          dx(type, {M, I}, 0.5),
          dw(a, {(Q + K) * I + gap}, 0.5),
          db(a, {Q + K + gap}, 0.5) {
        for (int m = 0; m < M; m++) places.push_back(5 * m % P);
        const Values numbers = Values::random(type, {(Q + K) * I}, 5, 0.2), biases = Values::random(a, {Q + K}, 6);
        for (int i = 0; i < (Q + K) * I; i++) w.set(i < Q * I ? i : i + gap, numbers[i]);
        for (int i = 0; i < Q + K; i++) b.set(i < Q ? i : i + gap, biases[i]);
    }
    static View on_cuda(View v) {
        v.device = Device::cuda;
        return v;
    }
    // The part of w or dw that belongs to q or to kv.
    View matrix(Values& all, bool of_q) {
        View v = on_cuda(all.view());
        v.data = of_q ? v.data : v.at(std::int64_t(Q) * I + gap);
        v.shape = {of_q ? Q : K, I};
        return v;
    }
    View vector(Values& all, bool of_q) {
        View v = on_cuda(all.view());
        v.data = of_q ? v.data : v.at(Q + gap);
        v.shape = {of_q ? Q : K};
        return v;
    }
    // add_q and add_kv: whether to add to the gradients of the weights of q and of kv; add: whether to add to dx.
    void run(bool with_bias, bool add, bool add_q, bool add_kv) {
        const Ints positions{places.data(), M, places.data()};
        const auto grad = [&](View v, bool adds) { return with_bias || v.shape.rank > 1 ? Grad{v, adds} : Grad{}; };
        const auto bias = [&](bool of_q) { return with_bias ? vector(b, of_q) : View{}; };
        AsCuda emulated;
        query_key_value_forward(on_cuda(x.view()), matrix(w, true), bias(true), matrix(w, false), bias(false),
                                on_cuda(rotary_table.view()), positions, turned, on_cuda(q.view()), on_cuda(kv.view()));
        query_key_value_backward(on_cuda(dq.view()), on_cuda(dkv.view()), on_cuda(x.view()), matrix(w, true),
                                 matrix(w, false), on_cuda(rotary_table.view()), positions, turned,
                                 {on_cuda(dx.view()), add}, grad(matrix(dw, true), add_q),
                                 grad(vector(db, true), add_q), grad(matrix(dw, false), add_kv),
                                 grad(vector(db, false), add_kv));
    }
    // The numbers of dw or db without the gap.
    static Values without_gap(const Values& all, std::int64_t first, std::int64_t gap) {
        Values some(all.dtype, {all.count() - gap});
        for (std::int64_t i = 0; i < some.count(); i++) some.set(i, all[i < first ? i : i + gap]);
        return some;
    }
};

}  // namespace

TEST_CASE("kernels: one product for queries, keys and values has the results of two") {
    // Rows in packets, and rows that packets do not fit; fewer key heads than query heads; rotated values.
    const int sizes[][5] = {{32, 32, 64, 16, 32}, {24, 32, 16, 8, 8}, {16, 32, 64, 8, 64}, {7, 12, 12, 6, 6}};
    for (const auto& n : sizes)
        for (DType type : {DType::f32, DType::bf16})
            for (bool with_bias : {true, false})
                for (int adds = 0; adds < 8; adds++) {
                    CAPTURE(n[0]);
                    CAPTURE(name_of(type));
                    CAPTURE(adds);
                    Projections one(type, n[0], n[1], n[2], n[3], n[4], 0), two(type, n[0], n[1], n[2], n[3], n[4], 16);
                    for (Projections* p : {&one, &two}) p->run(with_bias, adds & 1, adds & 2, adds & 4);
                    CHECK(one.q.bytes == two.q.bytes);
                    CHECK(one.kv.bytes == two.kv.bytes);
                    // Two products round dx twice.
                    CHECK(difference(one.dx, two.dx) < (type == DType::bf16 ? 1e-2 : 1e-5));
                    CHECK(one.dw.bytes == Projections::without_gap(two.dw, std::int64_t(n[1]) * n[0], 16).bytes);
                    CHECK(one.db.bytes == Projections::without_gap(two.db, n[1], 16).bytes);
                }
}
