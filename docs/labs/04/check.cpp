// SPDX-License-Identifier: MIT
// The check of lab 4. In random batches, the check compares every pair of rows with a rule, which knows only source
// lengths and positions. It also compares the engine's attention with sums over the pairs that the rule allows. The
// report describes errors by halves of the text ([CLS], the rest of the source, the target), not by segments.
#include <algorithm>
#include <cstring>
#include <map>
#include <random>

#include "docs/labs/04/lab.h"
#include "docs/labs/check.h"
#include "engine/ops/ops.h"

using namespace masquerade;

namespace {

struct Token {
    int document, source, p;  // the token's document, the length of the document's source, the token's position in it
    std::string half() const { return p >= source ? "the target" : p == 0 ? "[CLS]" : "the rest of the source"; }
};
struct Case {
    Documents documents;
    int radius;
    std::vector<Token> tokens() const {
        std::vector<Token> all;
        for (std::size_t d = 0; d < documents.size(); d++)
            for (int p = 0; p < documents[d].source + documents[d].target; p++)
                all.push_back({int(d), documents[d].source, p});
        return all;
    }
};
std::vector<Case> cases() {
    std::mt19937 random(11);
    std::vector<Case> all = {{{{5, 4}}, 1}, {{{1, 3}}, 2}, {{{0, 4}}, 1}, {{{4, 0}}, 0}};
    for (int k = 0; k < 12; k++) {
        Case c{{}, int(random() % 3)};
        for (int d = 0; d < 3; d++) c.documents.push_back({int(random() % 6), 1 + int(random() % 5)});
        all.push_back(c);
    }
    return all;
}

// A function that makes a graph, and the rule that the graph must follow. The rule is asked only for two rows of the
// same document; may() forbids all other pairs.
struct Mask {
    std::string name;
    SegmentGraph (*graph)(const Case& c);
    bool (*rule)(const Token& i, const Token& j, int radius);
    bool may(const Token& i, const Token& j, int radius) const {
        return i.document == j.document && rule(i, j, radius);
    }
};
bool one_way_rule(const Token& i, const Token& j, int) {
    if (i.p >= i.source) return j.half() == "[CLS]" || (j.p >= j.source && j.p <= i.p);
    return j.p < j.source && (i.p == 0 || j.p > 0);
}
const Mask masks[] = {{"prefix_lm", [](const Case& c) { return prefix_lm(c.documents); },
                       [](const Token& i, const Token& j, int) {
                           return j.p < j.source || (i.p >= i.source && j.p <= i.p);
                       }},
                      {"one_way", [](const Case& c) { return one_way(c.documents); }, one_way_rule},
                      {"one_way_near", [](const Case& c) { return one_way_near(c.documents, c.radius); },
                       [](const Token& i, const Token& j, int radius) {
                           return one_way_rule(i, j, 0) && (i.half() != j.half() || std::abs(i.p - j.p) <= radius);
                       }}};

// Two rows, i and j; `times` says how often row i reads row j, and `may` says whether row i may read row j.
struct Pair {
    Token i, j;
    int radius, times;
    bool may;
    int apart() const { return std::abs(i.p - j.p); }
    bool holds() const { return times == int(may); }
    std::string kind() const {
        if (i.document != j.document) return "rows of another document";
        if (i.half() != j.half()) return "rows of " + j.half();
        return i.p == j.p ? "themselves" : j.p < i.p ? "earlier rows of it" : "later rows of it";
    }
    std::string said() const {
        return "rows of " + i.half() + (times > 1 ? " read twice " : may ? " do not read " : " read ") + kind();
    }
};
// If `right` is empty, returns "". Otherwise, looks for a feature that all wrong pairs have. Returns ", just where
// FEATURE" if no right pair has it, and ", only where FEATURE" if some right pairs have it, too. If there is no such
// feature, returns ", in some places".
std::string where(const std::vector<Pair>& wrong, const std::vector<Pair>& right) {
    const std::pair<const char*, bool (*)(const Pair&)> features[] = {
        {"the document has no source", [](const Pair& p) { return p.i.source == 0; }},
        {"the document has a source", [](const Pair& p) { return p.i.source > 0; }},
        {"they are radius + 1 places apart", [](const Pair& p) { return p.apart() == p.radius + 1; }},
        {"they are as far apart as the radius", [](const Pair& p) { return p.apart() == p.radius; }},
        {"they are further apart than the radius", [](const Pair& p) { return p.apart() > p.radius; }},
        {"the row that is read is at position 0", [](const Pair& p) { return p.j.p == 0; }},
        {"the row that reads is the first of its half",
         [](const Pair& p) { return p.i.p == p.i.source || p.i.p == 0; }}};
    for (const char* word : {"just", "only"})
        for (const auto& [name, f] : features)
            if (std::all_of(wrong.begin(), wrong.end(), f) && !right.empty() &&
                (*word == 'o' || std::none_of(right.begin(), right.end(), f)))
                return std::string(", ") + word + " where " + name;
    return right.empty() ? "" : ", in some places";
}
// Describes the pairs that do not hold. If `window` is not negative, all forbidden pairs of a document are further
// apart than `window`, and the description says so.
std::string describe(const std::vector<Pair>& pairs, int window = -1) {
    std::map<std::string, std::vector<Pair>> wrong;
    for (const Pair& p : pairs)
        if (!p.holds()) wrong[p.said()].push_back(p);
    std::string s;
    for (const auto& each : wrong) {
        const Pair& one = each.second[0];
        std::vector<Pair> right;
        std::copy_if(pairs.begin(), pairs.end(), std::back_inserter(right), [&](const Pair& p) {
            return p.holds() && p.may == one.may && p.i.half() == one.i.half() && p.kind() == one.kind();
        });
        const bool far = window >= 0 && !one.may && one.i.document == one.j.document;
        s += each.first +
             (far ? " more than " + std::to_string(window) + (window == 1 ? " place" : " places") + " away" : "") +
             where(each.second, right) + (one.may ? "\n" : ": that is forbidden\n");
    }
    return s;
}
// Appends all pairs of rows of a case to `pairs`. times(i, j) says how often row i of the batch reads row j.
template <class Times>
void add_pairs(const Mask& mask, const Case& c, std::vector<Pair>& pairs, Times times) {
    const std::vector<Token> tokens = c.tokens();
    for (std::size_t i = 0; i < tokens.size(); i++)
        for (std::size_t j = 0; j < tokens.size(); j++)
            pairs.push_back({tokens[i], tokens[j], c.radius, times(i, j), mask.may(tokens[i], tokens[j], c.radius)});
}

constexpr int C = 4, H = 2, D = C / H;  // columns, heads, columns of a head
View view(Numbers& x, int columns, const char* name) {
    return {x.data(), DType::f64, Device::cpu, {std::int64_t(x.size()) / columns, columns}, name};
}
// run() computes the engine's attention on random numbers, forward and backward. It throws if the graph does not fit
// the tensors.
struct Attention {
    Numbers q, kv, y;
    explicit Attention(std::size_t rows) : q(rows * C), kv(rows * 2 * C), y(rows * C) {
        std::mt19937 random(5);
        std::normal_distribution<double> normal;
        for (Numbers* each : {&q, &kv})
            for (double& x : *each) x = normal(random);
    }
    void run(const SegmentGraph& graph) {
        Numbers lse(q.size() / D), dq(q.size()), dkv(kv.size());
        AttentionRule rule;
        rule.heads = H;
        const Views read{view(kv, 2 * C, "kv")};
        attention_forward(view(q, C, "q"), read, graph, rule, view(y, C, "y"), view(lse, H, "lse"));
        attention_backward(view(q, C, "dy"), view(q, C, "q"), read, view(y, C, "y"), view(lse, H, "lse"), graph, rule,
                           Grad{view(dq, C, "dq"), false}, Grads{Grad{view(dkv, 2 * C, "dkv"), false}});
    }
    // Returns column c of row i of the output, as a weighted sum over the rows j for which may(j) is true.
    template <class May>
    double sum(std::size_t i, std::size_t c, May may) const {
        double total = 0, along = 0;
        for (std::size_t j = 0; j < q.size() / C; j++) {
            double s = 0;
            for (std::size_t d = c / D * D, end = d + D; d < end; d++)
                s += q[i * C + d] * kv[j * 2 * C + d] / std::sqrt(double(D));
            if (may(j)) total += std::exp(s), along += std::exp(s) * kv[j * 2 * C + C + c];
        }
        return along / total;
    }
};

// Checks which keys each row reads in the student's graph, how often, and in which order.
std::string of_graph(const Mask& mask) {
    std::vector<Pair> pairs;
    std::string s;
    const auto once = [&](const std::string& line) { s += s.find(line) == s.npos ? line + "\n" : ""; };
    for (const Case& c : cases()) {
        const SegmentGraph graph = mask.graph(c);
        if (graph.queries.empty()) return "no row is in a segment: it is not written";
        const std::vector<Token> tokens = c.tokens();
        try {
            Attention(tokens.size()).run(graph);
        } catch (const Error& error) {
            const char* const of = c.documents[0].source ? ": " : " of a document without a source: ";
            return std::string("the engine refuses the graph") + of + error.what();
        }
        if (graph.documents != int(c.documents.size()))
            once("the graph's number of documents is not that of the batch");
        std::vector<std::vector<int>> visits(tokens.size());
        for (const QuerySegment& q : graph.queries)
            for (int i = q.begin; i < q.end; i++)
                for (int at = q.sees_begin; at < q.sees_end; at++) {
                    const Token& token = tokens[std::size_t(i)];
                    const int segment = graph.sees[std::size_t(at)];
                    const KeySegment& key = graph.keys[std::size_t(segment)];
                    std::vector<int>& before = visits[std::size_t(i)];
                    if (q.document != token.document)
                        once("query segments of different documents have one document number");
                    if (!before.empty() && before.back() > key.begin && key.begin < key.end)
                        once("rows of " + token.half() + " visit " + tokens[std::size_t(before.back())].half() +
                             " before " + tokens[std::size_t(key.begin)].half() +
                             ", which stands before it in the text");
                    for (int j = key.begin; j < key.end; j++)
                        if (visible(graph, q, i, segment, j)) before.push_back(j);
                }
        add_pairs(mask, c, pairs, [&](std::size_t i, std::size_t j) {
            return int(std::count(visits[i].begin(), visits[i].end(), int(j)));
        });
    }
    return s + describe(pairs);
}

std::string of_attention() {
    const Case c{{{4, 3}, {2, 2}, {0, 3}}, 1};
    const std::vector<Token> tokens = c.tokens();
    std::string s;
    const auto once = [&](const std::string& line) { s += s.find(line) == s.npos ? line + "\n" : ""; };
    for (const Mask& mask : masks) {
        const SegmentGraph graph = mask.graph(c);
        if (graph.queries.empty()) return mask.name + " is not written";
        Attention whole(tokens.size());
        whole.run(graph);
        for (std::size_t i = 0; i < tokens.size(); i++)
            for (std::size_t k = 0; k < C; k++) {
                const double right =
                    whole.sum(i, k, [&](std::size_t j) { return mask.may(tokens[i], tokens[j], c.radius); });
                if (!(std::fabs(whole.y[i * C + k] - right) <= 1e-12))
                    once(mask.name + ": y is wrong in rows of " + tokens[i].half());
            }
        for (std::size_t j = 0; j < tokens.size(); j++) {  // NaN in row j must not reach a row that may not read row j
            Attention poisoned(tokens.size());
            std::fill_n(poisoned.kv.begin() + std::ptrdiff_t(j * 2 * C), 2 * C, std::nan(""));
            poisoned.run(graph);
            for (std::size_t i = 0; i < tokens.size(); i++)
                if (!mask.may(tokens[i], tokens[j], c.radius) &&
                    std::memcmp(&poisoned.y[i * C], &whole.y[i * C], C * sizeof(double)) != 0)
                    once(mask.name + ": a NaN in " + tokens[j].half() + " comes out in " + tokens[i].half() +
                         (tokens[i].document == tokens[j].document ? "" : " of another document"));
        }
    }
    return s;
}

std::string of_predicate() {
    std::vector<Pair> pairs;
    bool any = false;
    for (const Case& c : cases()) {
        const std::vector<Token> tokens = c.tokens();
        add_pairs(masks[1], c, pairs, [&](std::size_t i, std::size_t j) {
            return int(tokens[i].document == tokens[j].document &&
                       one_way_sees(tokens[i].source, tokens[i].p, tokens[j].p));
        });
        for (const Pair& p : pairs) any = any || p.times > 0;
    }
    return any ? describe(pairs) : "no row reads a row: it is not written";
}

// Checks the student's picture() on graphs whose pictures need the other fields of SegmentGraph. visible() decides which
// pairs are right.
std::string of_other_pictures() {
    const Documents two = {{4, 3}, {2, 5}};
    SegmentGraph ranked = make_mask("AB causal", two);
    for (int i = 0; i < rows_of(two); i++)
        ranked.query_rank.push_back(i * 5 % 14), ranked.key_rank.push_back(i * 3 % 14);
    for (std::size_t q = 0; q < ranked.queries.size(); q++)
        ranked.queries[q].rule = q % 2 ? Rule::strict_rank : Rule::rank;
    const std::pair<const char*, SegmentGraph> drawn[] = {
        {"a window with dilation", make_mask("AB full window=1 dilation=2", two)},
        {"a window with stride", make_mask("AB full window=1 stride=3", two)},
        {"a window with globals", make_mask("AB full window=0 globals=1", two)},
        {"a window over all segments", make_mask("A full; B causal window=2 over=all sees A", two)},
        {"a table of bits", make_mask("AB rows=1000000/1100000/0110000/1011000/1000100/0100010/1111111", two)},
        {"ranks", ranked},
        {"two key tensors", latent_mask(two)}};
    std::string s;
    for (const auto& [name, graph] : drawn) {
        const int rows = rows_of(two);
        std::string right;
        for (int i = 0; i < rows; i++) {
            std::string line(std::size_t(rows), '.');
            for (const QuerySegment& q : graph.queries)
                for (int at = q.sees_begin; at < q.sees_end && q.begin <= i && i < q.end; at++) {
                    const int seen = graph.sees[std::size_t(at)];
                    const KeySegment& key = graph.keys[std::size_t(seen)];
                    for (int j = key.begin; j < key.end && key.source == 0; j++)
                        if (visible(graph, q, i, seen, j)) line[std::size_t(j)] = '#';
                }
            right += line + '\n';
        }
        const std::string found = picture(graph, rows);
        for (std::size_t i = 0, width = std::size_t(rows) + 1; found != right && i < std::size_t(rows); i++)
            if (const std::string line = right.substr(i * width, width - 1);
                found.size() < (i + 1) * width || found.compare(i * width, width, line + '\n') != 0) {
                s += std::string("the picture of a graph with ") + name + " is wrong: row " + std::to_string(i) +
                     " should be " + line + "\n";
                break;
            }
        if (found.size() > right.size())
            s += std::string("the picture of a graph with ") + name + " has too many lines\n";
    }
    return s;
}

// Checks the student's picture() on graphs of the engine. In the last of them, some rows are in no segment.
std::string of_picture() {
    const Mask drawn[] = {
        {"a document that is one segment", [](const Case& c) { return make_mask("AB full", c.documents); },
         [](const Token&, const Token&, int) { return true; }},
        {"a causal rule", [](const Case& c) { return make_mask("AB causal", c.documents); },
         [](const Token& i, const Token& j, int) { return j.p <= i.p; }},
        {"two segments", [](const Case& c) { return make_mask("A full; B full sees A", c.documents); },
         [](const Token& i, const Token& j, int) { return i.p >= i.source || j.p < j.source; }},
        {"a window of 1", [](const Case& c) { return make_mask("AB full window=1", c.documents); },
         [](const Token& i, const Token& j, int) { return std::abs(i.p - j.p) <= 1; }},
        {"rows that are in no segment",
         [](const Case& c) { return make_mask("A full; B causal", sources_of(c.documents)); },
         [](const Token& i, const Token& j, int) { return i.p < i.source && j.p < j.source; }}};
    std::string s, right;
    bool empty = true;
    for (const Mask& each : drawn) {
        const Case c = &each == &drawn[4] ? Case{{{4, 3}}, 0} : Case{{{4, 3}, {2, 5}}, 0};
        const std::size_t rows = c.tokens().size();
        const std::string found = picture(each.graph(c), int(rows));
        empty = empty && found.empty();
        bool lines = found.size() == rows * (rows + 1) && found.find_first_not_of("#.\n") == found.npos;
        for (std::size_t i = 0; lines && i < rows; i++) lines = found[i * (rows + 1) + rows] == '\n';
        std::vector<Pair> pairs;
        if (lines)
            add_pairs(each, c, pairs,
                      [&](std::size_t i, std::size_t j) { return int(found[i * (rows + 1) + j] == '#'); });
        const std::string wrong = lines ? describe(pairs, &each == &drawn[3] ? 1 : -1)
                                        : "there is not a line for each row, with a '#' or a '.' for each row\n";
        if (wrong.empty())
            right += "the picture of " + each.name + " is right\n";
        else
            s += "the picture of " + each.name + " is wrong:\n" + wrong;
    }
    if (empty) return "it is not written";
    return s.empty() ? of_other_pictures() : s + right;
}

}  // namespace

int main() {
    Lab lab("lab 4: a mask as segments");
    lab.part(1, "prefix", [] { return of_graph(masks[0]); });
    lab.part(2, "one-way", [] { return of_graph(masks[1]); });
    lab.part(1, "near", [] { return of_graph(masks[2]); });
    lab.part(1, "engine", of_attention);
    lab.part(1, "sees", of_predicate);
    lab.part(2, "picture", of_picture);
    return lab.status();
}
