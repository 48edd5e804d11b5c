// SPDX-License-Identifier: MIT
// Softmax attention by its definition (engine/math/attention.h), one query row after another. f64 and c128 use this
// form, and tests compare the fast forms with it.
#include "engine/math/attention.h"
#include "engine/ops/cpu/attention_call.h"
#include "engine/ops/cpu/parallel.h"
#include "engine/ops/visible.h"

#include <algorithm>
#include <array>

namespace masquerade::cpu {
namespace {

template <class A>
struct Key {
    const A *k, *v;
    A keep;
    A *dk, *dv;
};

// The gradients of the key/value tensors; a null gradient is not computed.
template <class A>
using Gradients = std::array<A*, 4>;

// Calls f(key) for every key that the query row sees: one key segment after another, in the order in which the query
// segment lists them, and the keys of a segment in ascending order.
template <class A, class F>
void visit_keys(const AttentionCall& call, const QuerySegment& segment, int row, int head, const Gradients<A>& dkv,
                F f) {
    int first_channel = 0;
    for (int v = segment.sees_begin; v < segment.sees_end; v++) {
        int index = call.graph.sees[v], source = call.graph.keys[index].source;
        const A* kv = call.kv[source].as<A>();
        A* d = dkv[source];
        each_run(call.graph, segment, row, index, [&](int begin, int end) {
            for (int j = begin; j < end; j++) {
                std::int64_t at = j * std::int64_t(call.heads.kv_columns()) + head / call.heads.readers() * call.D;
                A keep(1);
                if (call.rule.dropout > 0) {
                    const int channel = first_channel + j - call.graph.keys[index].begin;
                    const Four draw = call.rule.stream.at(std::uint32_t(call.rule.rows.document[row]),
                                                          std::uint32_t(call.rule.rows.position[row]),
                                                          AttentionDropout::block_of(head, channel));
                    keep = call.dropout.keeps(draw, channel) ? A(call.dropout.kept) : A(0);
                }
                const int values = call.heads.values();
                f(Key<A>{kv + at, kv + at + values, keep, d ? d + at : nullptr, d ? d + at + values : nullptr});
            }
        });
        first_channel += AttentionDropout::channels_of(call.graph.keys[index]);
    }
}

template <class F>
void each_row(const AttentionCall& call, F f) {
    parallel_each(std::int64_t(call.documents.size()), [&](std::int64_t d) {
        for (int s = call.documents[d].first; s < call.documents[d].last; s++)
            for (int row = call.graph.queries[s].begin; row < call.graph.queries[s].end; row++)
                for (int head = 0; head < call.rule.heads; head++) f(call.graph.queries[s], row, head);
    });
}

template <class A>
void forward(const AttentionCall& call, const View& y, const View& lse) {
    std::fill_n(y.as<A>(), y.count(), A(0));
    std::fill_n(lse.as<A>(), lse.count(), A(-INFINITY));
    each_row(call, [&](const QuerySegment& segment, int row, int head) {
        std::int64_t at = std::int64_t(row) * call.C + head * call.D;
        auto visit = [&](auto f) { visit_keys<A>(call, segment, row, head, {}, f); };
        attention_row(call.q.as<A>() + at, call.D, visit, y.as<A>() + at,
                      lse.as<A>() + std::int64_t(row) * call.rule.heads + head);
    });
}

template <class A>
void backward(const AttentionCall& call, const View& dy, const View& y, const View& lse, const Grad& dq,
              const Grads& dkv) {
    auto clear = [](const Grad& g) {
        if (g && !g.add) std::fill_n(g.as<A>(), g.view.count(), A(0));
    };
    clear(dq);
    for (int s = 0; s < dkv.count; s++) clear(dkv[s]);
    const Gradients<A> gradients = dkv.as<A>();
    each_row(call, [&](const QuerySegment& segment, int row, int head) {
        std::int64_t at = std::int64_t(row) * call.C + head * call.D;
        auto visit = [&](auto f) { visit_keys<A>(call, segment, row, head, gradients, f); };
        attention_row_grad(dy.as<A>() + at, call.q.as<A>() + at, y.as<A>() + at,
                           lse.as<A>()[std::int64_t(row) * call.rule.heads + head], call.D, visit,
                           dq ? dq.as<A>() + at : nullptr);
    });
}

}  // namespace

void attention_forward_reference(const AttentionCall& call, const View& y, const View& lse) {
    if (call.q.dtype == DType::f64)
        forward<double>(call, y, lse);
    else
        forward<complex>(call, y, lse);
}

void attention_backward_reference(const AttentionCall& call, const View& dy, const View& y, const View& lse,
                                  const Grad& dq, const Grads& dkv) {
    if (call.q.dtype == DType::f64)
        backward<double>(call, dy, y, lse, dq, dkv);
    else
        backward<complex>(call, dy, y, lse, dq, dkv);
}

}  // namespace masquerade::cpu
