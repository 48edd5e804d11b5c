// SPDX-License-Identifier: MIT
// Compares ops that sort rows by their contents with their definitions for every pair of rows: lsh_attention with a bit
// mask of buckets and chunks, and sinkhorn with plain divisions and sums.
#include "engine/ops/block_plan.h"
#include "tests/ops/attention_calls.h"

#include <set>

using namespace masquerade;
using namespace masquerade::attention_calls;

namespace {

constexpr int H = 2, D = 3, C = H * D;

// Documents of one segment, which sees itself. Only some of the rows are queries. Between the segments are rows of no
// document.
struct Documents {
    SegmentGraph graph;
    int rows = 0, queries = 0;
    struct Segment {
        int begin, end;
    };
    std::vector<Segment> segments;
    std::vector<int> row;  // for each query: its row; -1: none
};

Documents random_documents(Sequence& random, int count, int biggest, bool all_ask) {
    Documents all;
    const auto upto = [&](int n) { return int(random.below(std::uint32_t(n) + 1)); };
    for (int d = 0; d < count; d++) {
        all.rows += upto(2);
        const int n = upto(biggest), begin = all.rows, key = int(all.graph.keys.size());
        all.graph.keys.push_back({0, begin, all.rows += n, 0});
        if (n > 0) all.segments.push_back({begin, all.rows});
        for (int from = 0, to; from < n || (n == 0 && from == 0); from = to + 1) {
            to = all_ask || n == 0 ? n : std::min(n, from + 1 + upto(4));  // the row after the queries is no query
            QuerySegment q;
            q.begin = all.queries += all_ask ? 0 : upto(1);
            all.row.resize(std::size_t(q.begin), -1);
            q.end = all.queries += to - from;
            for (int i = from; i < to; i++) all.row.push_back(begin + i);
            q.document = d, q.self = key, q.offset = from, q.sees_begin = int(all.graph.sees.size());
            all.graph.sees.push_back(key);
            q.sees_end = q.sees_begin + 1;
            all.graph.queries.push_back(q);
        }
    }
    all.rows += upto(2), all.graph.documents = count;
    return all;
}

Array<double> numbers(Sequence& random, int rows, int columns, double deviation = 1) {
    Array<double> a({rows, columns}, "numbers", 0);
    for (std::int64_t i = 0; i < a.count(); i++) a.data()[i] = deviation * 3.4 * (random.uniform_double() - 0.5);
    return a;
}

// Returns the keys that the rows of a segment see: first the keys of other segments, then the keys of their own
// segment. For an anticausal rule, each of the two lists is reversed. For a rank rule, the own keys are sorted by rank.
std::vector<int> list_of(const SegmentGraph& graph, const QuerySegment& q) {
    std::vector<int> others, selves;
    for (int i = q.sees_begin; i < q.sees_end; i++) {
        const int k = graph.sees[std::size_t(i)];
        for (int j = graph.keys[std::size_t(k)].begin; j < graph.keys[std::size_t(k)].end; j++)
            (k == q.self ? selves : others).push_back(j);
    }
    if (q.rule == Rule::anticausal)
        std::reverse(others.begin(), others.end()), std::reverse(selves.begin(), selves.end());
    if (q.rule == Rule::rank)
        std::stable_sort(selves.begin(), selves.end(),
                         [&](int a, int b) { return graph.key_rank[std::size_t(a)] < graph.key_rank[std::size_t(b)]; });
    others.insert(others.end(), selves.begin(), selves.end());
    return others;
}

const QuerySegment& segment_of(const SegmentGraph& graph, int query) {
    const QuerySegment* q = graph.queries.data();
    while (query < q->begin || query >= q->end) q++;
    return *q;
}

// Returns the rows that a query sees, by the rule of the segments for each pair.
std::set<int> seen_by(const SegmentGraph& graph, const QuerySegment& q, int query) {
    std::set<int> seen;
    for (int i = q.sees_begin; i < q.sees_end; i++) {
        const int k = graph.sees[std::size_t(i)];
        for (int j = graph.keys[std::size_t(k)].begin; j < graph.keys[std::size_t(k)].end; j++)
            if (visible(graph, q, query, k, j)) seen.insert(j);
    }
    return seen;
}

struct Lsh {
    Documents documents;
    LshRule rule;
    Array<double> q, k, v, rotations, y, lse;
    Lsh(Sequence& random, Documents of, int rounds, int buckets, int chunk)
        : documents(std::move(of)), rule{{H, 0, {}, {}}, rounds, buckets, chunk} {
        const int N = documents.rows;
        q = numbers(random, N, C), k = numbers(random, N, C), v = numbers(random, N, C);
        rotations = numbers(random, rounds * buckets / 2, C);
        y = Array<double>({documents.queries, C}, "y", 7), lse = Array<double>({documents.queries, H}, "lse", 7);
    }
    void run() {
        cpu::lsh_attention_forward(q.view(), k.view(), v.view(), rotations.view(), documents.graph, rule, y.view(),
                                   lse.view());
    }
    int bucket(int round, int head, int row) const {
        std::vector<double> turned;
        for (int sign : {1, -1})
            for (int c = round * rule.buckets / 2; c < (round + 1) * rule.buckets / 2; c++) {
                double t = 0;
                for (int d = head * D; d < head * D + D; d++) t += q(row, d) * rotations(c, d);
                turned.push_back(sign * t);
            }
        return int(std::max_element(turned.begin(), turned.end()) - turned.begin());
    }
    // Returns the keys of row m of y: those that its mask permits, in the same bucket, and in the chunk of its own row
    // or the chunk before.
    std::vector<int> found(int m, int head) const {
        const QuerySegment& asking = segment_of(documents.graph, m);
        const int own = documents.row[std::size_t(m)];
        const std::vector<int> list = list_of(documents.graph, asking);
        const std::set<int> seen = seen_by(documents.graph, asking, m);
        std::set<int> all;
        const bool whole = asking.rule == Rule::full;
        for (int r = 0; r < rule.rounds; r++) {
            const auto chunk = [&](int row) {
                int before = 0;
                const int at = bucket(r, head, row);
                for (std::size_t i = 0, past = 0; i < list.size(); i++) {
                    past += list[i] == row;
                    const int other = bucket(r, head, list[i]);
                    before += (whole && other < at) || (!past && other == at);
                }
                return before / rule.chunk;
            };
            for (int j : seen) {
                const int back = chunk(own) - chunk(j);
                if (j != own && bucket(r, head, j) == bucket(r, head, own) && (back == 0 || back == 1)) all.insert(j);
            }
        }
        return all.empty() ? std::vector<int>{own} : std::vector<int>(all.begin(), all.end());
    }
    // For each row of a segment, whether it sees each row of the segment.
    std::vector<std::vector<char>> sees(Documents::Segment s, int head) const {
        const std::size_t n = std::size_t(s.end - s.begin);
        std::vector<std::vector<char>> bits(n, std::vector<char>(n, 0));
        for (int r = 0; r < rule.rounds; r++) {
            std::vector<int> in(n), order(n), chunk(n);
            for (std::size_t i = 0; i < n; i++) {
                in[i] = bucket(r, head, s.begin + int(i));
                order[i] = int(i);
            }
            std::stable_sort(order.begin(), order.end(),
                             [&](int a, int b) { return in[std::size_t(a)] < in[std::size_t(b)]; });
            for (std::size_t p = 0; p < n; p++) chunk[std::size_t(order[p])] = int(p) / rule.chunk;
            for (std::size_t i = 0; i < n; i++)
                for (std::size_t j = 0; j < n; j++)
                    if (i != j && in[i] == in[j] && (chunk[j] == chunk[i] || chunk[j] == chunk[i] - 1)) bits[i][j] = 1;
        }
        for (std::size_t i = 0; i < n; i++) bits[i][i] = std::count(bits[i].begin(), bits[i].end(), 1) == 0;
        return bits;
    }
};

}  // namespace

TEST_CASE("lsh_attention: softmax over the bit mask of its buckets and chunks") {
    Sequence random(3, "buckets");
    int alone = 0, all = 0, some = 0;  // numbers of rows that see only themselves, all other rows, or some of them
    for (int round = 0; round < 80; round++) {
        // Drawn one after the other, because compilers evaluate the arguments of a call in different orders.
        const int buckets = 2 * (1 + int(random.below(4))), chunk = 1 + int(random.below(7));
        const int rounds = 1 + int(random.below(4));
        Lsh c(random, random_documents(random, 3, 24, round % 2), rounds, buckets, chunk);
        c.run();
        REQUIRE((c.y.guarded() && c.lse.guarded()));
        std::vector<char> asked(std::size_t(c.documents.queries), 0);
        for (const auto& s : c.documents.segments)
            for (int head = 0; head < H; head++) {
                const auto bits = c.sees(s, head);
                for (int m = 0; m < c.documents.queries; m++) {
                    const int i = c.documents.row[std::size_t(m)], n = s.end - s.begin;
                    if (i < s.begin || i >= s.end) continue;
                    asked[std::size_t(m)] = 1;
                    const auto& row = bits[std::size_t(i - s.begin)];
                    const auto seen = std::count(row.begin(), row.end(), 1);
                    (row[std::size_t(i - s.begin)] ? alone : seen == n - 1 ? all : some)++;
                    double total = 0, y[D] = {};
                    for (int j = s.begin; j < s.end; j++) {
                        if (!row[std::size_t(j - s.begin)]) continue;
                        double score = 0;
                        for (int d = 0; d < D; d++) score += c.q(i, head * D + d) * c.k(j, head * D + d);
                        const double p = std::exp(score / std::sqrt(double(D)));
                        total += p;
                        for (int d = 0; d < D; d++) y[d] += p * c.v(j, head * D + d);
                    }
                    CHECK(std::abs(c.lse(m, head) - std::log(total)) <= 1e-12);
                    for (int d = 0; d < D; d++) CHECK(std::abs(c.y(m, head * D + d) - y[d] / total) <= 1e-12);
                }
            }
        for (int m = 0; m < c.documents.queries; m++)
            if (!asked[std::size_t(m)]) CHECK((c.y(m, 0) == 0 && c.lse(m, 0) == -INFINITY));
    }
    INFO(alone, " ", all, " ", some);
    CHECK((alone > 100 && all > 50 && some > 1000));
}

namespace {

// Returns documents of two segments with this rule. The second segment sees the first one, one row of it, or nothing of
// it. Some rows are queries.
Documents two_segments(Sequence& random, Rule rule) {
    Documents all;
    SegmentGraph& graph = all.graph;
    const auto upto = [&](int n) { return int(random.below(std::uint32_t(n) + 1)); };
    for (int d = 0; d < 3; d++) {
        const int first = int(graph.keys.size()), n = 1 + upto(8), m = upto(12);
        graph.keys.push_back({0, all.rows, all.rows + n, 0});
        graph.keys.push_back({0, all.rows + n, all.rows + n + m, n});
        graph.keys.push_back({0, all.rows, all.rows + 1, 0});
        all.rows += n + m + upto(1);
        for (int part : {0, 1}) {
            const KeySegment own = graph.keys[std::size_t(first + part)];
            QuerySegment q;
            q.document = d, q.self = first + part, q.rule = part == 0 && upto(1) ? Rule::full : rule;
            q.sees_begin = int(graph.sees.size());
            if (const int other = upto(2); part && other) graph.sees.push_back(other == 1 ? first : first + 2);
            graph.sees.push_back(q.self);
            if (upto(1)) std::reverse(graph.sees.begin() + q.sees_begin, graph.sees.end());
            q.sees_end = int(graph.sees.size());
            for (int from = 0, to; from < own.end - own.begin; from = to + upto(1)) {
                to = std::min(own.end - own.begin, from + 1 + upto(9));
                q.begin = all.queries, q.end = all.queries += to - from, q.offset = from;
                for (int i = from; i < to; i++) all.row.push_back(own.begin + i);
                graph.queries.push_back(q);
            }
        }
    }
    graph.documents = 3;
    for (int row = 0; row < all.rows; row++) graph.key_rank.push_back(upto(6));
    for (int row : all.row) graph.query_rank.push_back(graph.key_rank[std::size_t(row)]);
    return all;
}

}  // namespace

TEST_CASE("lsh_attention: softmax over what a mask lets a row see in its bucket and chunks, by every rule") {
    Sequence random(9, "masks");
    for (Rule rule : {Rule::full, Rule::causal, Rule::anticausal, Rule::rank}) {
        int alone = 0, one = 0, some = 0;
        for (int round = 0; round < 40; round++) {
            Lsh c(random, two_segments(random, rule), 1 + int(random.below(3)), 2 * (1 + int(random.below(2))),
                  1 + int(random.below(4)));
            c.run();
            REQUIRE((c.y.guarded() && c.lse.guarded()));
            for (int m = 0; m < c.documents.queries; m++)
                for (int head = 0; head < H; head++) {
                    const int i = c.documents.row[std::size_t(m)];
                    double total = 0, y[D] = {};
                    const std::vector<int> keys = c.found(m, head);
                    for (int j : keys) {
                        double score = 0;
                        for (int d = 0; d < D; d++) score += c.q(i, head * D + d) * c.k(j, head * D + d);
                        const double p = std::exp(score / std::sqrt(double(D)));
                        total += p;
                        for (int d = 0; d < D; d++) y[d] += p * c.v(j, head * D + d);
                    }
                    (keys == std::vector<int>{i} ? alone : keys.size() == 1 ? one : some)++;
                    CHECK(std::abs(c.lse(m, head) - std::log(total)) <= 1e-12);
                    for (int d = 0; d < D; d++) CHECK(std::abs(c.y(m, head * D + d) - y[d] / total) <= 1e-12);
                }
        }
        INFO(int(rule), ": ", alone, " ", one, " ", some);
        CHECK((alone > 100 && one > 100 && some > 1000));
    }
}

TEST_CASE("lsh_attention: dropout drops the share it says, and scales what it keeps") {
    Sequence random(4, "dropped");
    Lsh c(random, random_documents(random, 2, 60, true), 4, 2, 64);
    std::vector<int> document(std::size_t(c.documents.queries), 3), position(document.size());
    for (std::size_t i = 0; i < position.size(); i++) position[i] = int(i);
    c.rule.attention.dropout = 0.25f;
    c.rule.attention.rows = {{document.data(), std::int64_t(document.size())},
                             {position.data(), std::int64_t(position.size())}};
    // Y becomes the sum of the probabilities that are not dropped.
    for (std::int64_t i = 0; i < c.v.count(); i++) c.v.data()[i] = 1;
    double mean = 0, square = 0;
    constexpr int draws = 400;
    for (std::uint32_t step = 0; step < draws; step++) {
        c.rule.attention.stream = make_stream(1, "dropout", step);
        c.run();
        for (std::int64_t i = 0; i < c.y.count(); i++) mean += c.y.data()[i], square += c.y.data()[i] * c.y.data()[i];
    }
    mean /= double(draws * c.y.count()), square /= double(draws * c.y.count());
    CHECK(std::abs(mean - 1) < 0.01);
    CHECK(square > 1.005);
}

namespace {

struct Sorting {
    Documents documents;
    SinkhornRule rule;
    int blocks;
    Array<double> q, kv, y;
    Sorting(Sequence& random, int biggest, int block, int iterations, double deviation = 1)
        : Sorting(random, random_documents(random, 3, biggest, true), block, iterations, deviation) {}
    Sorting(Sequence& random, Documents of, int block, int iterations, double deviation = 1)
        : documents(std::move(of)),
          rule{H, block, iterations, 0.6},
          blocks(int(most_blocks(documents.graph, documents.rows, block))) {
        q = numbers(random, documents.rows, C, deviation), kv = numbers(random, documents.rows, 2 * C, deviation);
        y = Array<double>({blocks * block, 2 * C}, "y", 7);
    }
    void run() { cpu::sinkhorn_forward(q.view(), kv.view(), documents.graph, rule, y.view()); }
    double mean(const Array<double>& of, Documents::Segment one, int u, int column) const {
        double total = 0;
        const int begin = one.begin + u * rule.block, end = std::min(begin + rule.block, one.end);
        for (int row = begin; row < end; row++) total += of(row, column) / (end - begin);
        return total;
    }
    // Returns the matrix S of a segment's blocks, for one head.
    std::vector<std::vector<double>> matrix(Documents::Segment one, int U, int head) const {
        std::vector<std::vector<double>> S(std::size_t(U), std::vector<double>(std::size_t(U), 0));
        for (int u = 0; u < U; u++)
            for (int v = 0; v < U; v++) {
                double score = 0;
                for (int d = head * D; d < head * D + D; d++) score += mean(q, one, u, d) * mean(kv, one, v, d);
                S[std::size_t(u)][std::size_t(v)] = std::exp(score / std::sqrt(double(D)) / rule.temperature);
            }
        for (int k = 0; k < 2 * rule.iterations; k++)
            for (std::size_t a = 0; a < S.size(); a++) {
                double total = 0;
                for (std::size_t b = 0; b < S.size(); b++) total += k % 2 ? S[a][b] : S[b][a];
                for (std::size_t b = 0; b < S.size(); b++) (k % 2 ? S[a][b] : S[b][a]) /= total;
            }
        return S;
    }
};

}  // namespace

TEST_CASE(
    "sinkhorn: equals sums of blocks by a matrix whose columns and rows are divided in turn; of keys keys, of values values") {
    Sequence random(5, "sinkhorn");
    int lacking = 0;
    for (int round = 0; round < 40; round++) {
        const int b = 1 + int(random.below(6));
        Sorting c(random, 20, b, 1 + int(random.below(5)));
        c.run();
        REQUIRE(c.y.guarded());
        int first = 0;
        for (const auto& one : c.documents.segments) {
            const int U = (one.end - one.begin + b - 1) / b;
            if (U < 2) continue;  // nothing is mixed in a list of one block
            for (int head = 0; head < H; head++) {
                const auto S = c.matrix(one, U, head);
                for (int u = 0; u < U; u++)
                    for (int t = 0; t < b; t++)
                        for (int column = head * D; column < 2 * C;
                             column += column % C == head * D + D - 1 ? C - D + 1 : 1) {
                            double total = 0, sum = 0;
                            for (int v = 0; v < U; v++) {
                                if (one.begin + v * b + t >= one.end) {
                                    lacking++;
                                    continue;
                                }
                                total += S[std::size_t(u)][std::size_t(v)];
                                sum += S[std::size_t(u)][std::size_t(v)] * c.kv(one.begin + v * b + t, column);
                            }
                            CHECK(std::abs(c.y((first + u) * b + t, column) - (total > 0 ? sum / total : 0)) <= 1e-12);
                        }
            }
            first += U;
        }
        for (int row = first * b; row < c.blocks * b; row++) CHECK((c.y(row, 0) == 0 && c.y(row, 2 * C - 1) == 0));
    }
    CHECK(lacking > 1000);
}

TEST_CASE("sinkhorn: blocks of rows that see different keys follow from what precedes them, by every rule") {
    Sequence random(7, "causal");
    int compared = 0, beside = 0;
    for (int round = 0; round < 60; round++) {
        const Rule rule = round % 3 == 0 ? Rule::full : round % 3 == 1 ? Rule::causal : Rule::anticausal;
        Sorting c(random, two_segments(random, rule), 1 + int(random.below(4)), 1 + int(random.below(5)));
        c.run();
        REQUIRE(c.y.guarded());
        const int b = c.rule.block;
        int first = 0, self = -1;
        for (const QuerySegment& q : c.documents.graph.queries) {
            const std::vector<int> list = list_of(c.documents.graph, q);
            const std::size_t U = int(list.size()) > b ? (list.size() + std::size_t(b) - 1) / std::size_t(b) : 0;
            if (q.self == self || q.rule == Rule::full || U == 0) {
                if (q.self != self) first += int(U);
                self = q.self;
                continue;
            }
            self = q.self;
            const auto mean = [&](const Array<double>& of, std::size_t begin, std::size_t end, int column) {
                double total = 0;
                for (std::size_t i = begin; i < end; i++) total += of(list[i], column) / double(end - begin);
                return total;
            };
            for (int head = 0; head < H; head++) {
                std::vector<std::vector<double>> E(U, std::vector<double>(U, 0)), columns = E;
                std::vector<double> r(U, 1);
                for (std::size_t u = 0; u < U; u++)
                    for (std::size_t v = 0; v < u; v++) {
                        double score = 0;
                        for (int d = head * D; d < head * D + D; d++)
                            score += mean(c.q, 0, u * std::size_t(b) + 1, d) *
                                     mean(c.kv, v * std::size_t(b), (v + 1) * std::size_t(b), d);
                        E[u][v] = std::exp(score / std::sqrt(double(D)) / c.rule.temperature);
                    }
                for (int k = 0; k < c.rule.iterations; k++) {
                    for (std::size_t u = 0; u < U; u++)
                        for (std::size_t v = 0; v < u; v++)
                            columns[u][v] = (u > v + 1 ? columns[u - 1][v] : 0) + E[u][v] / r[u];
                    for (std::size_t u = 1; u < U; u++) {
                        r[u] = 0;
                        for (std::size_t v = 0; v < u; v++) r[u] += E[u][v] / columns[u][v];
                    }
                }
                for (std::size_t u = 0; u < U; u++)
                    for (int t = 0; t < b; t++)
                        for (int column : {head * D, head * D + D - 1, C + head * D}) {
                            double sum = 0;
                            for (std::size_t v = 0; v < u; v++)
                                sum += E[u][v] / columns[u][v] / r[u] *
                                       c.kv(list[v * std::size_t(b) + std::size_t(t)], column);
                            CHECK(std::abs(c.y((first + int(u)) * b + t, column) - sum) <= 1e-12);
                            compared++;
                        }
            }
            beside += int(list.size()) > c.documents.graph.keys[std::size_t(q.self)].end -
                                             c.documents.graph.keys[std::size_t(q.self)].begin;
            first += int(U);
        }
        for (int row = first * b; row < c.blocks * b; row++) CHECK((c.y(row, 0) == 0 && c.y(row, 2 * C - 1) == 0));
    }
    CHECK((compared > 5000 && beside > 20));
}

TEST_CASE("sinkhorn: after many iterations every block is taken once; large scores do not overflow") {
    Sequence random(6, "many");
    for (double deviation : {1.0, 60.0}) {
        Sorting c(random, 30, 1, 400, deviation);
        for (int row = 0; row < c.documents.rows; row++) c.kv(row, 2 * C - 1) = 1;
        c.run();
        int first = 0;
        for (const auto& one : c.documents.segments) {
            double total = 0;
            if (one.end - one.begin < 2) continue;
            for (int row = one.begin; row < one.end; row++) {
                total += c.y(first, C) - c.kv(row, C);
                CHECK(std::abs(c.y(first++, 2 * C - 1) - 1) < 1e-12);
            }
            if (deviation == 1)
                CHECK(std::abs(total) < 1e-9);
            else
                CHECK(std::isfinite(total));
        }
    }
}

// In block diffusion, each part of a text sees all parts before it and itself. A long text then has many lists of keys,
// and a text of one part has one.
TEST_CASE(
    "sinkhorn: there is room for a long text among short ones, and blocks need few more rows than there are keys") {
    for (int parts : {1, 2, 30, 125})
        for (int block : {1, 3, 4, 32, 500, 16384}) {
            SegmentGraph graph;
            graph.documents = 101;
            int rows = 0, keys = 0;
            for (int document = 0; document < graph.documents; document++) {
                const int first = rows;
                for (int part = 0; part < (document == 50 ? parts : 1); part++, rows += 4) {
                    if (part > 0) graph.see({0, first, rows});
                    graph.see({0, rows, rows + 4});
                    QuerySegment q;
                    q.begin = rows, q.end = rows + 4, q.document = document, q.self = int(graph.keys.size()) - 1;
                    graph.add(q);
                    keys += rows + 4 - first;
                }
            }
            const std::vector<int> numbers = block_plan_numbers("sinkhorn", graph, rows, rows, block);
            const BlockPlan plan = block_plan(numbers, numbers.data());
            CHECK(plan.first_block[plan.groups] <= plan.blocks);
            CHECK(plan.blocks * std::min(block, rows) < 2 * (keys + rows));
            CHECK(plan.most == (block < 4 * parts ? (4 * parts + block - 1) / block : 0));
        }
}

TEST_CASE("sorted attention: masks whose rows do not see each other alone are refused with the reason") {
    Sequence random(8, "refused");
    Lsh c(random, random_documents(random, 1, 5, true), 1, 2, 4);
    SegmentGraph& graph = c.documents.graph;
    const std::string hidden = "which keys a row finds would depend on rows that the mask hides from it",
                      own = "a row that finds no other key takes its own, which this mask hides",
                      apart = "it sorts rows that are queries and keys, and these keys are other rows",
                      scattered = "blocks are neighbours in a text, and ranks scatter them";
    const auto refuse = [&](const std::string& why) {
        return list_refuses(graph) == why && block_refuses(graph) == why;
    };
    CHECK(refuse(""));
    QuerySegment& q = graph.queries[0];
    for (Rule rule : {Rule::causal, Rule::strict_causal, Rule::anticausal, Rule::rank, Rule::strict_rank, Rule::bits}) {
        q.rule = rule;
        const bool hides = rule == Rule::strict_causal || rule == Rule::strict_rank;
        CHECK(list_refuses(graph) == (rule == Rule::bits ? hidden : hides ? own : ""));
        CHECK(block_refuses(graph) == (rule == Rule::rank ? scattered : list_refuses(graph)));
    }
    CHECK_THROWS_WITH(c.run(), ("lsh_attention: " + hidden).c_str());
    q.rule = Rule::none;
    CHECK(refuse(own));
    q.rule = Rule::full, q.window = 2;
    CHECK(refuse(hidden));
    q.window = -1, q.self = -1;
    CHECK(refuse(apart));
    q.self = 0, graph.keys.push_back({0, 0, 1, 0}), graph.sees.push_back(int(graph.keys.size()) - 1), q.sees_end++;
    CHECK(refuse(""));
    q.sees_begin++;
    CHECK(refuse(own));
    q.sees_begin--, q.sees_end--, q.offset = 1;
    CHECK_THROWS_AS(c.run(), Error);
    q.offset = 0, graph.keys[0].source = 1;
    CHECK_THROWS_WITH(c.run(), doctest::Contains("expected rows of source 0"));
    graph.keys[0].source = 0, graph.queries.push_back(q);
    CHECK_THROWS_WITH(c.run(), doctest::Contains("two segments ask for row"));
    graph.queries.pop_back();
    c.rule.buckets = 3;
    CHECK_THROWS_AS(c.run(), Error);
    Sorting sorting(random, 20, 1, 1);
    sorting.rule.temperature = 0;
    CHECK_THROWS_AS(sorting.run(), Error);
}
