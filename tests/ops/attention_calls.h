// SPDX-License-Identifier: MIT
// Calls of attention on random segment graphs, for the tests of attention.
#pragma once
#include <doctest/doctest.h>

#include "engine/ops/cpu/parallel.h"
#include "engine/ops/table.h"
#include "engine/ops/visible.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>
#include <vector>

namespace masquerade::attention_calls {

struct Layout {
    SegmentGraph graph;
    int queries = 0, keys[2] = {0, 0};
};

// Returns documents of one to three segments, and a second key tensor, which some of them see. Between the segments are
// rows that belong to no document.
inline Layout random_layout(Sequence& random, int documents, int biggest) {
    Layout all;
    SegmentGraph& graph = all.graph;
    auto upto = [&](int n) { return int(random.below(std::uint32_t(n) + 1)); };
    auto size = [&] { return upto(3) == 0 ? upto(2) : upto(biggest); };
    for (int d = 0; d < documents; d++) {
        all.queries += upto(2);
        all.keys[0] += upto(2);
        std::vector<int> segments;
        int count = 1 + upto(2);
        for (int s = 0; s < count; s++) {
            int n = size();
            graph.keys.push_back({0, all.keys[0], all.keys[0] + n, upto(5)});
            all.keys[0] += n;
            segments.push_back(int(graph.keys.size()) - 1);
        }
        int memory = size();
        graph.keys.push_back({1, all.keys[1], all.keys[1] + memory, 0});
        all.keys[1] += memory;
        int outside = int(graph.keys.size()) - 1, again = -1;
        if (upto(2) == 0) {  // the first rows of the document are also a separate key segment
            KeySegment head = graph.keys[segments[0]];
            head.end = std::min(head.end, head.begin + 2);
            graph.keys.push_back(head);
            again = int(graph.keys.size()) - 1;
        }
        for (int self : segments) {
            int n = graph.keys[self].end - graph.keys[self].begin;
            QuerySegment q;
            q.offset = upto(3) == 0 ? upto(n) : 0;
            q.begin = all.queries;
            q.end = all.queries += n - q.offset;
            q.document = d;
            q.sees_begin = int(graph.sees.size());
            if (upto(1)) graph.sees.push_back(outside);
            for (int other : segments)
                if (other == self || upto(1)) graph.sees.push_back(other);
            if (again >= 0 && upto(1)) graph.sees.push_back(again);
            q.sees_end = int(graph.sees.size());
            q.self = self;
            q.rule = Rule(upto(7));
            if (upto(2) == 0) {
                q.window = upto(4);
                q.dilation = 1 + upto(2);
                q.stride = upto(1) * upto(4);
                q.globals = upto(1) * upto(3);
                q.window_all = upto(1);
            }
            if (upto(2) == 0) {
                q.block = 1 + upto(5);
                q.block_before = upto(3) - 1;
                q.block_last = upto(1) * upto(q.block);
                q.globals = upto(1) * upto(3);
            }
            q.along = upto(3) == 0;
            q.bits_begin = 32 * int(graph.bits.size()) + upto(40);
            int words = (q.bits_begin + (q.end - q.begin) * n) / 32 + 1;
            while (int(graph.bits.size()) < words) graph.bits.push_back(random.bits());
            graph.queries.push_back(q);
        }
    }
    all.queries += upto(2);
    all.keys[0] += upto(2);
    graph.documents = documents;
    for (int i = 0; i < all.queries; i++) graph.query_rank.push_back(upto(9) - 1);
    for (int j = 0; j < all.keys[0]; j++) graph.key_rank.push_back(upto(9) - 1);
    return all;
}

// A tensor with its own memory, and guard numbers on both sides.
template <class T>
struct Array {
    static constexpr int guard = 16;
    std::vector<T> all;
    Shape shape;
    const char* path = "";

    static T mark() {
        if constexpr (std::is_same_v<T, bfloat16>)
            return T(777.0f);
        else
            return T(777);
    }
    Array() = default;
    Array(Shape s, const char* p, double value = std::nan(""))
        : all(std::size_t(s.count()) + 2 * guard), shape(s), path(p) {
        for (T& x : all) x = T(float(value));
        for (int i = 0; i < guard; i++) all[i] = all[all.size() - 1 - i] = mark();
    }
    T* data() { return all.data() + guard; }
    const T* data() const { return all.data() + guard; }
    std::int64_t count() const { return shape.count(); }
    View view() const { return {const_cast<T*>(data()), dtype_of<T>, Device::cpu, shape, path}; }
    T& operator()(int row, int column) { return data()[row * shape.columns() + column]; }
    const T& operator()(int row, int column) const { return data()[row * shape.columns() + column]; }
    bool guarded() const {
        T m = mark();
        for (int i = 0; i < guard; i++)
            if (std::memcmp(&all[i], &m, sizeof m) || std::memcmp(&all[all.size() - 1 - i], &m, sizeof m)) return false;
        return true;
    }
    friend bool operator==(const Array& a, const Array& b) {
        return a.all.size() == b.all.size() && std::memcmp(a.all.data(), b.all.data(), a.all.size() * sizeof(T)) == 0;
    }
};

template <class T>
using Statistic = std::conditional_t<std::is_same_v<T, bfloat16>, float, T>;

// A call with its inputs. bf16 can represent the inputs exactly, so they are the same in every type.
template <class T>
struct Call {
    Layout layout;
    AttentionRule rule;
    std::vector<int> document, position;
    Array<T> q, kv[2], dy;
    Array<T> y, dq, dkv[2];
    Array<Statistic<T>> lse;

    int C() const { return int(q.shape.columns()); }
    int D() const { return C() / rule.heads; }

    void name_rows() {
        rule.rows = {{document.data(), std::int64_t(document.size())},
                     {position.data(), std::int64_t(position.size())}};
    }
    void forward() {
        name_rows();
        y = {q.shape, "y"};
        lse = {{q.shape[0], rule.heads}, "lse"};
        cpu::attention_forward(q.view(), {kv[0].view(), kv[1].view()}, layout.graph, rule, y.view(), lse.view());
        CHECK(y.guarded());
        CHECK(lse.guarded());
    }
    void backward() {
        dq = {q.shape, "dq"};
        for (int s = 0; s < 2; s++) dkv[s] = {kv[s].shape, "dkv"};
        add_backward(false);
    }
    void add_backward(bool add) {
        name_rows();
        cpu::attention_backward(dy.view(), q.view(), {kv[0].view(), kv[1].view()}, y.view(), lse.view(), layout.graph,
                                rule, {dq.view(), add}, {{dkv[0].view(), add}, {dkv[1].view(), add}});
        CHECK(dq.guarded());
        CHECK(dkv[0].guarded());
        CHECK(dkv[1].guarded());
    }
};

template <class T>
void fill(Array<T>& to, const Array<double>& from) {
    to = {from.shape, from.path, 0};
    for (std::int64_t i = 0; i < from.count(); i++) {
        if constexpr (std::is_same_v<T, bfloat16>)
            to.data()[i] = T(float(from.data()[i]));
        else
            to.data()[i] = T(from.data()[i]);
    }
}

inline Call<double> random_call(Sequence& random, const Layout& layout, int heads, int D, double dropout = 0) {
    Call<double> call;
    call.layout = layout;
    call.rule.heads = heads;
    call.rule.dropout = float(dropout);
    call.rule.stream = make_stream(1, "test", 3);
    for (int i = 0; i < layout.queries; i++) {
        call.document.push_back(int(random.below(100)));
        call.position.push_back(int(random.below(100)));
    }
    auto array = [&](int rows, int columns, const char* path) {
        Array<double> a({rows, columns}, path, 0);
        for (std::int64_t i = 0; i < a.count(); i++)  // sums of four uniform numbers, rounded to bf16
            a.data()[i] =
                double(bfloat16(random.uniform() + random.uniform() - random.uniform() - random.uniform())) * 1.5;
        for (std::int64_t i = 0; i < a.count(); i++) a.data()[i] = double(bfloat16(float(a.data()[i])));
        return a;
    };
    call.q = array(layout.queries, heads * D, "q");
    call.dy = array(layout.queries, heads * D, "dy");
    for (int s = 0; s < 2; s++) call.kv[s] = array(layout.keys[s], 2 * heads * D, "kv");
    return call;
}

template <class T>
Call<T> as(const Call<double>& from) {
    Call<T> to;
    to.layout = from.layout;
    to.rule = from.rule;
    to.document = from.document;
    to.position = from.position;
    fill(to.q, from.q);
    fill(to.dy, from.dy);
    for (int s = 0; s < 2; s++) fill(to.kv[s], from.kv[s]);
    return to;
}

// Returns the largest absolute difference between a and b, divided by the largest finite absolute value of b; NaN if
// any number is NaN.
template <class T>
double difference(const Array<T>& a, const Array<double>& b) {
    double worst = 0, top = 1e-30;
    for (std::int64_t i = 0; i < b.count(); i++) {
        double x = double(a.data()[i]), y = b.data()[i];
        if (x == y) continue;  // also for equal infinities
        double d = std::fabs(x - y);
        worst = d > worst || d != d ? d : worst;
        if (std::isfinite(y)) top = std::fmax(top, std::fabs(y));
    }
    return worst / top;
}

struct Seen {
    int key, row;
};
// Returns the keys that a query row sees, in order, by asking visible() for every key.
inline std::vector<Seen> seen_by(const SegmentGraph& graph, const QuerySegment& q, int row) {
    std::vector<Seen> seen;
    for (int v = q.sees_begin; v < q.sees_end; v++)
        for (int j = graph.keys[graph.sees[v]].begin; j < graph.keys[graph.sees[v]].end; j++)
            if (visible(graph, q, row, graph.sees[v], j)) seen.push_back({graph.sees[v], j});
    return seen;
}

inline bool equal_rows(const Array<float>& a, int i, const Array<float>& b, int j) {
    return std::memcmp(&a(i, 0), &b(j, 0), std::size_t(a.shape.columns()) * sizeof(float)) == 0;
}

}  // namespace masquerade::attention_calls
