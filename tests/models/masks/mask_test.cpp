// SPDX-License-Identifier: MIT
// Compares every named mask with a predicate, which uses only segment ids, positions and the details of the mask. Also
// tests that UniVAE's masks give the same bits in the joint form, in the split form and with a cache.
#include <doctest/doctest.h>

#include "engine/base/error.h"
#include "engine/ops/table.h"
#include "engine/ops/visible.h"
#include "models/masks/mask.h"

#include <algorithm>
#include <cmath>
#include <cstring>

using namespace masquerade;

namespace {

// A token in the terms of the literature: its document; its segment id s (0 source, 1 target); c, the running sum of s;
// and its position p in the document.
struct Token {
    int document, s, c, p, row;
};

std::vector<Token> tokens_of(const Documents& documents) {
    std::vector<Token> tokens;
    for (int d = 0; d < int(documents.size()); d++)
        for (int p = 0, c = 0; p < documents[d].source + documents[d].target; p++) {
            int s = p >= documents[d].source;
            c += s;
            tokens.push_back({d, s, c, p, int(tokens.size())});
        }
    return tokens;
}

// Returns a name such as a2 (the token at position 2, in the source) or b5 (at position 5, in the target).
std::string name_of(const Token& t) { return text(t.s ? 'b' : 'a', t.p); }

bool predicate(const std::string& name, const Token& i, const Token& j, const MaskDetails& more) {
    bool same = i.s == j.s && j.c <= i.c;
    int away = std::abs(i.p - j.p);
    auto any_of = [&](std::initializer_list<const char*> names) {
        return std::any_of(names.begin(), names.end(), [&](const char* n) { return name == n; });
    };
    if (any_of({"bert", "mlm", "univae-encoder", "encoder", "cross"})) return true;
    if (any_of({"lm", "plm-shuffled", "univae-lower", "univae-upper", "decoder"})) return j.p <= i.p;
    if (name == "univae-decode") return true;
    if (name == "lm-reverse") return j.p >= i.p;
    if (any_of({"unilm", "prefix-lm"})) return j.c <= i.c;
    if (name == "insertion") return j.s <= i.s;
    if (name == "independent") return same;
    if (name == "uniae") return same || j.p == 0;
    if (name == "uniae-causal") return (same && j.p <= i.p) || j.p == 0;
    if (name == "plm") return more.rank[j.row] <= more.rank[i.row];
    if (name == "plm-query") return more.rank[j.row] < more.rank[i.row];
    if (name == "plm-streams") {  // no row sees a query row
        int r = more.stream_rank[i.row], other = more.stream_rank[j.row];
        return j.s == 0 && (i.s == 0 ? other <= r : other < r);
    }
    if (name == "block-diffusion") {
        int own = more.block[i.row], other = more.block[j.row];
        return i.s == 0 ? j.s == 0 && other <= own : j.s == 0 ? other < own : other == own;
    }
    if (name == "k-bert") {
        bool trunk_i = more.branch[i.row] < 0, trunk_j = more.branch[j.row] < 0;
        if (trunk_i && trunk_j) return true;
        if (!trunk_i && !trunk_j) return more.branch[i.row] == more.branch[j.row];
        return more.entity[i.row] == more.entity[j.row] && more.entity[i.row] != -1;
    }
    if (name == "pseudo-mask") {
        int w = more.weight[i.row], v = more.weight[j.row];
        return w >= 0 ? v >= 0 && v <= w : (v >= 0 && v < -w) || v == w;
    }
    if (name == "window") return away <= 2;
    if (name == "dilated") return away == 0 || away == 2 || away == 4;
    if (name == "global") return away <= 1 || i.p == 0 || j.p == 0;
    if (name == "strided") return j.p <= i.p && (away <= 2 || away % 3 == 0);
    if (name == "unilm-window") return j.c <= i.c && away <= 3;
    FAIL("no predicate for " << name);
    return false;
}

// Returns how often the query sees row `row` of key tensor `source`. It must be 0 or 1.
int times_seen(const SegmentGraph& graph, int query, int source, int row) {
    int times = 0;
    for (const QuerySegment& q : graph.queries)
        for (int v = q.sees_begin; query >= q.begin && query < q.end && v < q.sees_end; v++) {
            const KeySegment& key = graph.keys[graph.sees[v]];
            if (key.source == source && row >= key.begin && row < key.end)
                times += visible(graph, q, query, graph.sees[v], row);
        }
    return times;
}

Documents random_documents(Sequence& random, int most) {
    Documents documents;
    for (int d = 0, n = 1 + int(random.below(4)); d < n; d++)
        documents.push_back({1 + int(random.below(std::uint32_t(most))), int(random.below(std::uint32_t(most) + 1))});
    return documents;
}

MaskDetails random_details(Sequence& random, const std::vector<Token>& tokens) {
    MaskDetails more;
    for (const Token& t : tokens) {
        more.rank.push_back(t.s == 0 ? -1 : int(random.below(6)));
        more.stream_rank.push_back(int(random.below(7)) - 1);
        const bool goes_on = t.p > 0 && tokens[std::size_t(t.row) - 1].s == t.s;  // in this part of the document
        more.block.push_back((goes_on ? more.block.back() : t.s - 1) + int(random.below(2)));
        more.branch.push_back(t.s == 0 ? -1 : int(random.below(3)));
        more.entity.push_back(int(random.below(4)) - 1);
        more.weight.push_back(t.s == 0 ? 0 : int(random.below(7)) - 3);
    }
    return more;
}

// Random rows for one head of attention. take() copies chosen rows into another tensor.
template <class T>
struct Rows {
    int C;
    std::vector<T> data;
    Rows(int columns, Sequence& random, int rows) : C(columns), data(std::size_t(rows * columns)) {
        for (T& x : data) x = T(random.uniform() - 0.5f);
    }
    Rows(const Rows& from, const std::vector<int>& take) : C(from.C) {
        for (int row : take) data.insert(data.end(), from.data.begin() + row * C, from.data.begin() + (row + 1) * C);
    }
    int count() const { return int(data.size()) / C; }
    View view() { return {data.data(), dtype_of<T>, Device::cpu, {count(), C}, "rows"}; }
};

template <class T>
std::vector<T> attend(Rows<T> q, Rows<T> kv, Rows<T> second, const SegmentGraph& graph) {
    std::vector<T> y(q.data.size(), T(NAN)), lse(std::size_t(q.count()) * 2, T(NAN));
    AttentionRule rule;
    rule.heads = 2;
    cpu::attention_forward(q.view(), {kv.view(), second.view()}, graph, rule,
                           {y.data(), dtype_of<T>, Device::cpu, {q.count(), q.C}, "y"},
                           {lse.data(), dtype_of<T>, Device::cpu, {q.count(), 2}, "lse"});
    return y;
}

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
    return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

template <class T>
void check_univae(Sequence& random) {
    const int C = 24;
    Documents documents = random_documents(random, 40);
    std::vector<int> sources, targets, cls, newest;
    for (const Token& t : tokens_of(documents)) (t.s ? targets : sources).push_back(t.row);
    for (const Token& t : tokens_of(documents))
        if (t.p == 0) cls.push_back(t.row);
    Rows<T> q(C, random, rows_of(documents)), kv(2 * C, random, rows_of(documents)), none(kv, {});
    auto rows = [&](const std::vector<T>& y, const std::vector<int>& take) {
        std::vector<T> taken;
        for (int row : take) taken.insert(taken.end(), y.begin() + row * C, y.begin() + (row + 1) * C);
        return taken;
    };
    std::vector<T> upper = attend(q, kv, none, uniae_mask(documents)),
                   lower = attend(q, kv, none, independent_mask(documents));
    Documents a = sources_of(documents), b = targets_of(documents);
    Rows<T> q_a(q, sources), q_b(q, targets), kv_a(kv, sources), kv_b(kv, targets), kv_z(kv, cls);

    std::vector<T> encoded = attend(q_a, kv_a, none, full_mask(a));
    CHECK(same_bits(encoded, rows(upper, sources)));
    CHECK(same_bits(encoded, rows(lower, sources)));
    std::vector<int> cls_in_a;
    for (int row : cls)
        cls_in_a.push_back(int(std::lower_bound(sources.begin(), sources.end(), row) - sources.begin()));
    CHECK(
        same_bits(attend(Rows<T>(q, cls), kv_a, none, only_queries(full_mask(a), cls_in_a)), rows(encoded, cls_in_a)));

    CHECK(same_bits(attend(q_b, kv_z, kv_b, latent_mask(b)), rows(upper, targets)));
    CHECK(same_bits(attend(q_b, kv_b, none, causal_mask(b)), rows(lower, targets)));

    // Decodes `fresh` targets at a time, for all documents that have so many targets.
    for (int fresh : {1, 3})
        for (int t = 0; t < 40; t += fresh) {
            std::vector<CachedDocument> above, below;
            std::vector<int> now;
            int first = 0, row = 0;
            for (int d = 0; d < int(documents.size()); d++) {
                row += documents[d].source;
                int count = std::min(fresh, documents[d].target - t);
                if (count > 0) {
                    above.push_back({d, d + 1, first, t, count});
                    below.push_back({0, 0, first, t, count});
                }
                for (int i = 0; i < count; i++) now.push_back(row + t + i);
                first += documents[d].target;
                row += documents[d].target;
            }
            CHECK(same_bits(attend(Rows<T>(q, now), kv_z, kv_b, cached_mask(above, 1)), rows(upper, now)));
            CHECK(same_bits(attend(Rows<T>(q, now), kv_b, none, cached_mask(below, 0)), rows(lower, now)));
        }
}

}  // namespace

TEST_CASE("mask: every named mask is its predicate, on packed batches") {
    Sequence random(1, "masks");
    for (const NamedMask& mask : named_masks()) {
        const std::string name = mask.name;
        CAPTURE(name);
        int seen = 0, unseen = 0;
        for (int round = 0; round < 120; round++) {
            Documents documents = random_documents(random, 9);
            std::vector<Token> tokens = tokens_of(documents), a, b, newest;
            MaskDetails more = random_details(random, tokens);
            for (const Token& t : tokens) {
                (t.s ? b : a).push_back(t);
                if (t.p == documents[t.document].source + documents[t.document].target - 1 && t.s) newest.push_back(t);
            }
            const std::vector<Token>*queries = &tokens, *keys = &tokens;
            int source = 0;
            switch (mask.rows) {
                case MaskRows::tokens: break;
                case MaskRows::source: queries = keys = &a; break;
                case MaskRows::target: queries = keys = &b; break;
                case MaskRows::latent: queries = keys = &b, source = 1; break;
                case MaskRows::decoded: queries = &newest, keys = &b, source = 1; break;
                case MaskRows::cross: queries = &b, keys = &a; break;
            }
            SegmentGraph graph = make_mask(mask.name, documents, more);
            CHECK(graph.documents == int(documents.size()));
            int wrong = 0;
            std::string first;
            for (int i = 0; i < int(queries->size()); i++) {
                const Token& from = (*queries)[i];
                for (int j = 0; j < int(keys->size()); j++) {
                    const Token& to = (*keys)[j];
                    bool sees = from.document == to.document && predicate(mask.name, from, to, more);
                    if (times_seen(graph, i, source, j) != int(sees) && wrong++ == 0)
                        first = text("document ", from.document, ": ", name_of(from), " ",
                                     sees ? "does not see " : "sees ", name_of(to));
                    (sees ? seen : unseen)++;
                }
                for (int d = 0; source == 1 && d < graph.documents; d++)
                    wrong += times_seen(graph, i, 0, d) != int(d == from.document);
            }
            CAPTURE(first);
            CHECK(wrong == 0);
        }
        CHECK(seen > 500);
        CHECK(unseen > 500);
    }
}

TEST_CASE("mask: a window holds inside segments, or over all of them") {
    Sequence random(2, "windows");
    for (int round = 0; round < 100; round++) {
        Documents documents = random_documents(random, 9);
        Window window;
        window.radius = int(random.below(4));
        window.dilation = 1 + int(random.below(3));
        window.stride = int(random.below(4));
        window.globals = int(random.below(3));
        window.all = random.below(2);
        SegmentGraph graph = with_window(unilm_mask(documents), window);
        std::vector<Token> tokens = tokens_of(documents);
        int wrong = 0;
        for (const Token& i : tokens)
            for (const Token& j : tokens) {
                if (i.document != j.document) continue;
                int source = documents[i.document].source, away = std::abs(i.p - j.p);
                bool near = (away <= window.radius * window.dilation && away % window.dilation == 0) ||
                            (window.stride > 0 && away % window.stride == 0) || i.p - i.s * source < window.globals ||
                            j.p - j.s * source < window.globals;
                bool sees = j.c <= i.c && (near || (i.s != j.s && !window.all));
                wrong += times_seen(graph, i.row, 0, j.row) != int(sees);
            }
        CHECK(wrong == 0);
    }
}

TEST_CASE("mask: UniVAE's joint form, split form and cached decoding have the same bits") {
    Sequence random(3, "univae");
    for (int round = 0; round < 8; round++) {
        check_univae<double>(random);
        check_univae<float>(random);
    }
}

TEST_CASE("mask: a document's picture, for a debugger, has the rows of that document and of each source the keys") {
    const SegmentGraph graph = latent_mask({{3, 2}, {4, 3}});
    CHECK(std::string(draw_document(graph, 1)) ==
          "           k  l  l  l\n"
          "           1  2  3  4\n"
          "q2         ██ ██ ·  ·\n"
          "q3         ██ ██ ██ ·\n"
          "q4         ██ ██ ██ ██\n");
    CHECK(std::string(draw_document(causal_mask({{100, 0}}), 0)) ==
          "a picture of 100 keys does not fit 80 columns; at most 69\n");
}

TEST_CASE("mask: pictures") {
    CHECK(draw_mask("uniae", 3, 2) ==
          "uniae: A full; B causal, sees [CLS]: UniVAE's upper layers\n"
          "           C  a  a  b  b\n"
          "              1  2  1  2\n"
          "[CLS]      ██ ██ ██ ·  ·\n"
          "a1         ██ ██ ██ ·  ·\n"
          "a2         ██ ██ ██ ·  ·\n"
          "b1         ██ ·  ·  ██ ·\n"
          "b2         ██ ·  ·  ██ ██\n"
          "rows are queries, columns keys; █ sees, · does not\n");
    for (const NamedMask& mask : named_masks())
        for (int size : {1, 6, 12, 17, 34}) {
            CAPTURE(mask.name);
            int columns = 0;
            for (char c : draw_mask(mask.name, size, size)) {
                if (c == '\n')
                    columns = 0;
                else
                    columns += (c & 0xc0) != 0x80;  // bytes that continue a UTF-8 character take no column
                CHECK(columns <= 80);
            }
        }
    CHECK_THROWS_AS(draw_mask("uniae", 50, 50), BadUsage);
    CHECK_THROWS_AS(draw_mask("uniae", 0, 5), BadUsage);
    CHECK_THROWS_AS(draw_mask("unilmm", 6, 5), BadUsage);
}

TEST_CASE("mask: refuses details that do not fit") {
    Documents documents = {{3, 2}};
    CHECK_THROWS_AS(make_mask("plm", documents), Error);
    CHECK_THROWS_AS(make_mask("k-bert", documents), Error);
    CHECK_THROWS_AS(make_mask("pseudo-mask", documents), Error);
    CHECK_THROWS_AS(make_mask("block-diffusion", documents), Error);
    for (const std::vector<int>& blocks : {std::vector<int>{-1, 1, 0, 0, 1}, {-1, 0, 1, 1, 0}})
        CHECK_THROWS_WITH_AS(block_streams_mask(documents, blocks), doctest::Contains("follows block 1"), Error);
    CHECK_NOTHROW(block_streams_mask(documents, {-1, 0, 1, 0, 1}));
    CHECK_THROWS_AS(with_window(full_mask(documents), {2, 0, 0, 0, false}), Error);
    CHECK_THROWS_WITH_AS(with_window(full_mask(documents), {1 << 16, 1 << 15, 0, 0, false}),
                         doctest::Contains("is 2147483648, expected at most 1073741824"), Error);
    CHECK_NOTHROW(with_window(full_mask(documents), {1 << 15, 1 << 15, 0, 0, false}));
}

TEST_CASE("mask: asked only for some rows, a row sees what it sees among all") {
    Sequence random(12, "only");
    for (const NamedMask& mask : named_masks()) {
        if (mask.rows != MaskRows::tokens) continue;
        CAPTURE(std::string(mask.name));
        const Documents documents = random_documents(random, 7);
        const std::vector<Token> tokens = tokens_of(documents);
        const SegmentGraph all = make_mask(mask.name, documents, random_details(random, tokens));
        std::vector<int> rows;
        for (int row = 0; row < rows_of(documents); row++)
            if (random.below(3) > 0) rows.push_back(row);
        const SegmentGraph some = only_queries(all, rows);
        CHECK(some.queries.size() <= rows.size());
        for (std::size_t m = 0; m < rows.size(); m++)
            for (int key = 0; key < rows_of(documents); key++)
                CHECK(times_seen(some, int(m), 0, key) == times_seen(all, rows[m], 0, key));
        CHECK_THROWS_WITH_AS(only_queries(all, {rows_of(documents)}), doctest::Contains("is in no query segment"),
                             Error);
    }
}

TEST_CASE("mask: keys that move are seen by the same rows") {
    const Documents documents{{3, 4}, {2, 1}, {1, 5}};
    const std::vector<char> parts = parts_of_rows(documents);
    std::vector<KeyPlace> places;  // rows of A, all apart from one another, in one tensor, and those of B in another
    std::vector<int> targets;
    for (int row = 0; row < rows_of(documents); row++) {
        places.push_back({parts[row], parts[row] ? row + 5 : 3 * row});
        if (parts[row]) targets.push_back(row);
    }
    for (const char* words :
         {"A full; B causal sees A", "A full; B full sees A[0]", "A full; B causal sees A[1:]",
          "A full; B full window=2 over=all sees A", "A full; B full stride=3 window=1 over=all sees A"}) {
        CAPTURE(std::string(words));
        const SegmentGraph all = make_mask(words, documents), moved = with_keys_at(only_queries(all, targets), places);
        CHECK(moved.keys.size() > all.keys.size());
        for (std::size_t m = 0; m < targets.size(); m++)
            for (int key = 0; key < rows_of(documents); key++)
                CHECK(times_seen(moved, int(m), places[key].source, places[key].row) ==
                      times_seen(all, targets[m], 0, key));
        CHECK_THROWS_WITH_AS(with_keys_at(all, places), doctest::Contains("at two places"), Error);
    }
    CHECK_THROWS_WITH_AS(with_keys_at(rank_mask(documents, std::vector<int>(16), false), places),
                         doctest::Contains("keys with ranks"), Error);
}

TEST_CASE("mask: full in place of causal is the mask that says full") {
    const Documents documents{{3, 4}, {2, 0}, {1, 5}};
    for (const auto& [causal, full] :
         {std::pair("AB causal", "AB full"), std::pair("A full; B causal", "A full; B full"),
          std::pair("A full; B causal sees A[0]", "A full; B full sees A[0]"),
          std::pair("A causal; B anticausal sees A", "A full; B anticausal sees A")}) {
        const std::string words = causal;
        CAPTURE(words);
        const SegmentGraph found = full_for_causal(make_mask(words, documents)), expected = make_mask(full, documents);
        for (int query = 0; query < rows_of(documents); query++)
            for (int key = 0; key < rows_of(documents); key++)
                CHECK(times_seen(found, query, 0, key) == times_seen(expected, query, 0, key));
    }
}
