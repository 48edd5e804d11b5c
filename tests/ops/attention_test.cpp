// SPDX-License-Identifier: MIT
// Attention on random segment graphs: the definition against a dense softmax and against calculus, the fast
// forms against the definition, and what section 2D of the design promises, with ==.
#include <doctest/doctest.h>

#include "engine/ops/cpu/parallel.h"
#include "engine/ops/table.h"
#include "engine/ops/visible.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

using namespace masquerade;

namespace {

struct Layout {
    SegmentGraph graph;
    int queries = 0, keys[2] = {0, 0};
};

// Documents of one to three segments, and a second source of keys that some of them see; with rows in between
// that belong to nobody.
Layout random_layout(Sequence& random, int documents, int biggest) {
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
        if (upto(2) == 0) {  // the first rows of the document once more, as a key segment of their own
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

// A tensor of its own with guards on both sides.
template <class T>
struct Array {
    static constexpr int guard = 16;
    std::vector<T> all;
    Shape shape;
    const char* path = "";

    static T mark() {
        if constexpr (std::is_same_v<T, bfloat16>) return T(777.0f);
        else return T(777);
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
            if (std::memcmp(&all[i], &m, sizeof m) || std::memcmp(&all[all.size() - 1 - i], &m, sizeof m))
                return false;
        return true;
    }
    friend bool operator==(const Array& a, const Array& b) {
        return a.all.size() == b.all.size() &&
               std::memcmp(a.all.data(), b.all.data(), a.all.size() * sizeof(T)) == 0;
    }
};

template <class T>
using Statistic = std::conditional_t<std::is_same_v<T, bfloat16>, float, T>;

// A call with its inputs: numbers that every type but bf16 holds exactly.
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
        cpu::attention_forward(q.view(), {kv[0].view(), kv[1].view()}, layout.graph, rule, y.view(),
                               lse.view());
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
        cpu::attention_backward(dy.view(), q.view(), {kv[0].view(), kv[1].view()}, y.view(), lse.view(),
                                layout.graph, rule, {dq.view(), add},
                                {{dkv[0].view(), add}, {dkv[1].view(), add}});
        CHECK(dq.guarded());
        CHECK(dkv[0].guarded());
        CHECK(dkv[1].guarded());
    }
};

template <class T>
void fill(Array<T>& to, const Array<double>& from) {
    to = {from.shape, from.path, 0};
    for (std::int64_t i = 0; i < from.count(); i++) {
        if constexpr (std::is_same_v<T, bfloat16>) to.data()[i] = T(float(from.data()[i]));
        else to.data()[i] = T(from.data()[i]);
    }
}

Call<double> random_call(Sequence& random, const Layout& layout, int heads, int D, double dropout = 0) {
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
        for (std::int64_t i = 0; i < a.count(); i++)  // so coarse that bf16 holds it: sums of four uniforms
            a.data()[i] =
                double(bfloat16(random.uniform() + random.uniform() - random.uniform() - random.uniform())) *
                1.5;
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

// The largest difference, as a part of the largest number; NaN where one is.
template <class T>
double difference(const Array<T>& a, const Array<double>& b) {
    double worst = 0, top = 1e-30;
    for (std::int64_t i = 0; i < b.count(); i++) {
        double x = double(a.data()[i]), y = b.data()[i];
        if (x == y) continue;  // infinities
        double d = std::fabs(x - y);
        worst = d > worst || d != d ? d : worst;
        if (std::isfinite(y)) top = std::fmax(top, std::fabs(y));
    }
    return worst / top;
}

struct Seen {
    int key, row;
};
// The keys that a query row sees, in order, by asking for every one.
std::vector<Seen> seen_by(const SegmentGraph& graph, const QuerySegment& q, int row) {
    std::vector<Seen> seen;
    for (int v = q.sees_begin; v < q.sees_end; v++)
        for (int j = graph.keys[graph.sees[v]].begin; j < graph.keys[graph.sees[v]].end; j++)
            if (visible(graph, q, row, graph.sees[v], j)) seen.push_back({graph.sees[v], j});
    return seen;
}

bool equal_rows(const Array<float>& a, int i, const Array<float>& b, int j) {
    return std::memcmp(&a(i, 0), &b(j, 0), std::size_t(a.shape.columns()) * sizeof(float)) == 0;
}

}  // namespace

TEST_CASE("attention: each_run finds what visible() says, in order") {
    Sequence random(1, "runs");
    int windows = 0;
    for (int round = 0; round < 300; round++) {
        Layout layout = random_layout(random, 2, 14);
        const SegmentGraph& graph = layout.graph;
        for (const QuerySegment& q : graph.queries) {
            windows += q.window >= 0;
            for (int row = q.begin; row < q.end; row++)
                for (int v = q.sees_begin; v < q.sees_end; v++) {
                    const KeySegment& key = graph.keys[graph.sees[v]];
                    std::vector<int> asked, found;
                    for (int j = key.begin; j < key.end; j++)
                        if (visible(graph, q, row, graph.sees[v], j)) asked.push_back(j);
                    each_run(graph, q, row, graph.sees[v], [&](int begin, int end) {
                        CHECK(begin < end);
                        for (int j = begin; j < end; j++) found.push_back(j);
                    });
                    CHECK(asked == found);
                    if (sees_whole(q, graph.sees[v])) CHECK(int(asked.size()) == key.end - key.begin);
                }
        }
    }
    CHECK(windows > 100);
}

TEST_CASE("attention: the definition equals a dense softmax") {
    Sequence random(2, "dense");
    for (int round = 0; round < 40; round++) {
        Layout layout = random_layout(random, 3, 9);
        const int H = 2, D = 3, C = H * D;
        Call<double> call = random_call(random, layout, H, D);
        call.forward();
        Array<double> y(call.q.shape, "y", 0), lse({layout.queries, H}, "lse", -INFINITY);
        for (const QuerySegment& segment : layout.graph.queries)
            for (int i = segment.begin; i < segment.end; i++)
                for (int h = 0; h < H; h++) {
                    std::vector<Seen> seen = seen_by(layout.graph, segment, i);
                    std::vector<double> e;
                    double total = 0;
                    for (const Seen& key : seen) {
                        const Array<double>& kv = call.kv[layout.graph.keys[key.key].source];
                        double s = 0;
                        for (int d = 0; d < D; d++) s += call.q(i, h * D + d) * kv(key.row, h * D + d);
                        e.push_back(std::exp(s / std::sqrt(double(D))));
                        total += e.back();
                    }
                    for (std::size_t j = 0; j < seen.size(); j++)
                        for (int d = 0; d < D; d++)
                            y(i, h * D + d) +=
                                e[j] / total *
                                call.kv[layout.graph.keys[seen[j].key].source](seen[j].row, C + h * D + d);
                    if (!seen.empty()) lse(i, h) = std::log(total);
                }
        CHECK(difference(call.y, y) <= 1e-14);
        CHECK(difference(call.lse, lse) <= 1e-14);
    }
}

TEST_CASE("attention: the definition's gradients by complex step") {
    Sequence random(3, "step");
    for (double dropout : {0.0, 0.3})
        for (int round = 0; round < 6; round++) {
            Layout layout = random_layout(random, 2, 5);
            Call<double> call = random_call(random, layout, 2, 3, dropout);
            call.forward();
            call.backward();
            Call<complex> step = as<complex>(call);
            auto check = [&](Array<complex>& x, const Array<double>& dx) {
                double worst = 0, top = 1e-30;
                for (std::int64_t i = 0; i < x.count(); i++) {
                    const double h = 1e-100;
                    x.data()[i] += complex(0, h);
                    step.forward();
                    double slope = 0;
                    for (std::int64_t n = 0; n < step.y.count(); n++)
                        slope += step.y.data()[n].imag() / h * call.dy.data()[n];
                    x.data()[i] = x.data()[i].real();
                    double d = std::fabs(slope - dx.data()[i]);
                    worst = d > worst || d != d ? d : worst;
                    top = std::fmax(top, std::fabs(slope));
                }
                CHECK(worst / top <= 1e-12);
            };
            check(step.q, call.dq);
            check(step.kv[0], call.dkv[0]);
            check(step.kv[1], call.dkv[1]);
        }
}

TEST_CASE("attention: float and bf16 against the definition, forward and every gradient") {
    Sequence random(4, "fast");
    auto compare = [&](const Layout& layout, int heads, int D, double dropout) {
        CAPTURE(D);
        CAPTURE(dropout);
        Call<double> call = random_call(random, layout, heads, D, dropout);
        call.forward();
        call.backward();
        auto against = [&](auto fast, double tolerance) {
            fast.forward();
            fast.backward();
            CHECK(difference(fast.y, call.y) <= tolerance);
            CHECK(difference(fast.lse, call.lse) <= std::fmin(tolerance, 1e-5));
            CHECK(difference(fast.dq, call.dq) <= tolerance);
            CHECK(difference(fast.dkv[0], call.dkv[0]) <= tolerance);
            CHECK(difference(fast.dkv[1], call.dkv[1]) <= tolerance);
        };
        against(as<float>(call), 1e-5);
        against(as<bfloat16>(call), 1e-2);
    };
    for (double dropout : {0.0, 0.2})
        for (int round = 0; round < 30; round++) {
            const int sizes[] = {1, 5, 8, 16, 31, 32, 33, 64, 65, 130};
            compare(random_layout(random, 3, round % 3 == 0 ? 70 : 20), 1 + round % 3, sizes[round % 10],
                    dropout);
        }
    for (int n : {0, 1, 31, 32, 33, 63, 65, 129})
        for (Rule rule : {Rule::full, Rule::causal, Rule::strict_causal, Rule::anticausal, Rule::none}) {
            Layout layout;
            layout.queries = layout.keys[0] = n;
            layout.graph.keys = {{0, 0, n, 0}};
            layout.graph.sees = {0};
            QuerySegment q;
            q.end = n;
            q.sees_end = 1;
            q.self = 0;
            q.rule = rule;
            layout.graph.queries = {q};
            layout.graph.documents = 1;
            compare(layout, 2, 16, 0);
        }
}

TEST_CASE("attention: a gradient is stored or added") {
    Sequence random(5, "add");
    for (int round = 0; round < 10; round++) {
        Call<float> call = as<float>(random_call(random, random_layout(random, 3, 20), 2, 8));
        call.forward();
        call.backward();
        const Array<float> dq = call.dq, dkv[2] = {call.dkv[0], call.dkv[1]};
        call.dq = {call.q.shape, "dq", 0.5};
        for (int s = 0; s < 2; s++) call.dkv[s] = {call.kv[s].shape, "dkv", 0.5};
        call.add_backward(true);
        auto check = [](const Array<float>& added, const Array<float>& stored) {
            float worst = 0;
            for (std::int64_t i = 0; i < stored.count(); i++) {
                float d = std::fabs(added.data()[i] - (stored.data()[i] + 0.5f));
                worst = d > worst || d != d ? d : worst;
            }
            CHECK(worst <= 1e-5f);
        };
        check(call.dq, dq);
        check(call.dkv[0], dkv[0]);
        check(call.dkv[1], dkv[1]);
    }
}

TEST_CASE("attention: what a query does not see does not reach it, and its gradient does not reach that") {
    Sequence random(6, "leak");
    int checked = 0;
    for (int round = 0; round < 40; round++) {
        Call<float> call = as<float>(random_call(random, random_layout(random, 2, 24), 2, 16));
        const SegmentGraph& graph = call.layout.graph;
        if (graph.keys.empty()) continue;
        call.forward();
        call.backward();
        Array<float> y = call.y, lse = call.lse, dq = call.dq;
        int key = int(random.below(std::uint32_t(graph.keys.size())));
        if (graph.keys[key].begin == graph.keys[key].end) continue;
        int row = graph.keys[key].begin, source = graph.keys[key].source;
        for (int c = 0; c < 4 * 16; c++) call.kv[source](row, c) = c % 2 ? NAN : INFINITY;
        call.forward();
        call.backward();
        for (const QuerySegment& q : graph.queries)
            for (int i = q.begin; i < q.end; i++) {
                bool sees = false;
                for (const Seen& s : seen_by(graph, q, i))
                    sees |= graph.keys[s.key].source == source && s.row == row;
                bool same = equal_rows(call.y, i, y, i) && equal_rows(call.lse, i, lse, i);
                CHECK(same == !sees);
                CHECK(equal_rows(call.dq, i, dq, i) == !sees);
                checked += !sees;
            }
        // The other way round: NaN in dy of one query reaches the gradients of the keys it sees and no
        // others.
        Call<float> back = as<float>(random_call(random, call.layout, 2, 16));
        if (graph.queries[0].begin == graph.queries[0].end) continue;
        back.forward();
        int bad = graph.queries[0].begin;
        for (int c = 0; c < 32; c++) back.dy(bad, c) = NAN;
        back.backward();
        std::vector<Seen> seen = seen_by(graph, graph.queries[0], bad);
        for (int s = 0; s < 2; s++)
            for (int j = 0; j < call.layout.keys[s]; j++) {
                bool sees = false;
                for (const Seen& k : seen) sees |= graph.keys[k.key].source == s && k.row == j;
                CHECK(std::isnan(back.dkv[s](j, 40)) == sees);
            }
    }
    CHECK(checked > 500);
}

TEST_CASE("attention: the same bits alone as in any batch, at any place, with any number of threads") {
    Sequence random(7, "bits");
    const int threads_before = threads();
    for (int round = 0; round < 20; round++) {
        Call<float> call =
            as<float>(random_call(random, random_layout(random, 4, 40), 3, 20, round % 2 ? 0.1 : 0));
        set_threads(1);
        call.forward();
        call.backward();
        for (int count : {2, 4}) {
            set_threads(count);
            Call<float> again = call;
            again.forward();
            again.backward();
            CHECK(again.y == call.y);
            CHECK(again.lse == call.lse);
            CHECK(again.dq == call.dq);
            CHECK(again.dkv[0] == call.dkv[0]);
            CHECK(again.dkv[1] == call.dkv[1]);
        }
        // One document, three rows further down.
        Call<float> alone = call;
        SegmentGraph& graph = alone.layout.graph;
        auto lower = [](auto& array) {
            auto moved =
                std::decay_t<decltype(array)>({array.shape[0] + 3, array.shape[1]}, array.path, 0.25);
            std::memcpy(&moved(3, 0), array.data(), std::size_t(array.count()) * sizeof(float));
            array = moved;
        };
        lower(alone.q);
        lower(alone.dy);
        lower(alone.kv[0]);
        lower(alone.kv[1]);
        for (auto* ints : {&alone.document, &alone.position, &graph.query_rank, &graph.key_rank})
            ints->insert(ints->begin(), 3, 5);
        for (KeySegment& key : graph.keys) key.begin += 3, key.end += 3;
        std::vector<QuerySegment> kept;
        for (QuerySegment q : graph.queries)
            if (q.document == 1) q.begin += 3, q.end += 3, kept.push_back(q);
        graph.queries = kept;
        alone.forward();
        alone.backward();
        for (const QuerySegment& q : graph.queries) {
            for (int i = q.begin; i < q.end; i++) {
                CHECK(equal_rows(alone.y, i, call.y, i - 3));
                CHECK(equal_rows(alone.lse, i, call.lse, i - 3));
                CHECK(equal_rows(alone.dq, i, call.dq, i - 3));
            }
            for (int v = q.sees_begin; v < q.sees_end; v++) {
                const KeySegment& key = graph.keys[graph.sees[v]];
                for (int j = key.begin; j < key.end; j++)
                    CHECK(equal_rows(alone.dkv[key.source], j, call.dkv[key.source], j - 3));
            }
        }
    }
    set_threads(threads_before);
}

TEST_CASE("attention: a row decoded alone has the bits it has among all") {
    Sequence random(8, "decode");
    for (int round = 0; round < 20; round++) {
        Call<float> call =
            as<float>(random_call(random, random_layout(random, 2, 40), 2, 32, round % 2 ? 0.1 : 0));
        call.forward();
        Call<float> rows = call;  // every row a segment of its own, of a document of its own
        SegmentGraph& graph = rows.layout.graph;
        graph.queries.clear();
        for (const QuerySegment& q : call.layout.graph.queries)
            for (int i = q.begin; i < q.end; i++) {
                QuerySegment one = q;
                one.begin = i;
                one.end = i + 1;
                one.offset = q.offset + i - q.begin;
                one.document = i;
                if (q.rule == Rule::bits)
                    one.bits_begin += (i - q.begin) * (graph.keys[q.self].end - graph.keys[q.self].begin);
                graph.queries.push_back(one);
            }
        rows.forward();
        CHECK(rows.y == call.y);
        CHECK(rows.lse == call.lse);
    }
}

TEST_CASE("attention: bits do not depend on keys that a window has passed") {
    Sequence random(9, "passed");
    const int n = 50, radius = 7;
    Layout whole;
    whole.queries = whole.keys[0] = n;
    whole.graph.keys = {{0, 0, n, 0}};
    whole.graph.sees = {0};
    whole.graph.documents = 1;
    QuerySegment q;
    q.end = n;
    q.sees_end = 1;
    q.self = 0;
    q.rule = Rule::causal;
    q.window = radius;
    whole.graph.queries = {q};
    Call<float> call = as<float>(random_call(random, whole, 2, 32));
    call.forward();
    for (int i = 0; i < n; i++) {
        Call<float> last = call;  // row i alone, with no more keys than it sees
        int first = std::max(0, i - radius);
        last.layout.graph.keys = {{0, first, i + 1, 0}};
        QuerySegment& one = last.layout.graph.queries[0];
        one.begin = i;
        one.end = i + 1;
        one.offset = i - first;
        last.forward();
        CHECK(equal_rows(last.y, i, call.y, i));
        CHECK(equal_rows(last.lse, i, call.lse, i));
    }
}

TEST_CASE("attention: dropout takes the share it should, and the rest grows") {
    Sequence random(10, "dropout");
    const int n = 64;
    Layout layout;
    layout.queries = layout.keys[0] = n;
    layout.graph.keys = {{0, 0, n, 0}};
    layout.graph.sees = {0};
    QuerySegment q;
    q.end = n;
    q.sees_end = 1;
    q.self = 0;
    layout.graph.queries = {q};
    layout.graph.documents = 1;
    Call<double> call = random_call(random, layout, 2, 8, 0.25);
    for (int i = 0; i < n; i++) call.document[i] = 3, call.position[i] = i;
    for (std::int64_t i = 0; i < call.kv[0].count(); i++)
        call.kv[0].data()[i] = 1;  // all alike: p = 1/n, y = kept/n / 0.75
    call.forward();
    double kept = 0;
    for (std::int64_t i = 0; i < call.y.count(); i++)
        kept += call.y.data()[i] * 0.75 / double(call.y.count());
    CHECK(std::fabs(kept - 0.75) <= 0.02);  // of 8192 draws: 4 standard deviations
    CHECK(call.y(0, 0) != call.y(0, 8));    // heads differ
    CHECK(call.y(0, 0) != call.y(1, 0));
}

TEST_CASE("attention: refuses what it cannot do") {
    Sequence random(11, "errors");
    Layout layout;
    layout.queries = layout.keys[0] = 8;
    layout.graph.keys = {{0, 0, 4, 0}, {0, 4, 8, 0}};
    layout.graph.sees = {0, 1};
    QuerySegment a, b;
    a.end = 4;
    a.sees_end = 1;
    a.self = 0;
    b.begin = 4;
    b.end = 8;
    b.document = 1;
    b.sees_begin = 1;
    b.sees_end = 2;
    b.self = 1;
    layout.graph.queries = {a, b};
    layout.graph.documents = 2;
    const Call<float> good = as<float>(random_call(random, layout, 2, 4));
    Call<float> call = good;
    call.forward();
    CHECK_NOTHROW(call.backward());

    auto refused = [&](auto spoil) {
        Call<float> bad = good;
        spoil(bad);
        CHECK_THROWS_AS(bad.forward(), Error);
    };
    refused([](auto& c) { c.rule.heads = 3; });
    refused([](auto& c) { c.rule.dropout = 1; });
    refused([](auto& c) { c.layout.graph.queries[1].begin = 3; });  // two segments hold a row
    refused([](auto& c) { c.layout.graph.queries[1].end = 9; });
    refused([](auto& c) { c.layout.graph.keys[1].end = 9; });
    refused([](auto& c) { c.layout.graph.keys[1].source = 2; });
    refused([](auto& c) { c.layout.graph.sees[1] = 2; });
    refused([](auto& c) { c.layout.graph.sees[1] = 0, c.layout.graph.queries[1].sees_begin = 0; });  // twice
    refused([](auto& c) {
        c.layout.graph.queries[0].rule = Rule::rank;
        c.layout.graph.key_rank.clear();
    });
    refused([](auto& c) { c.layout.graph.queries[0].rule = Rule::bits; });
    refused([](auto& c) { c.kv[1] = {{0, 12}, "kv"}; });

    // Documents may share keys in decoding, but not where gradients flow.
    Call<float> shared = good;
    shared.layout.graph.sees[1] = 0;
    shared.layout.graph.queries[1].self = 0;
    CHECK_NOTHROW(shared.forward());
    CHECK_THROWS_AS(shared.backward(), Error);
    Call<float> overlapping = good;
    overlapping.layout.graph.keys[1].begin = 3;
    CHECK_NOTHROW(overlapping.forward());
    CHECK_THROWS_AS(overlapping.backward(), Error);
}
