// SPDX-License-Identifier: MIT
// The check of lab 6. The correct results come from figure(), which computes the joint form pair by pair, over one
// sequence of source and target. For a wrong result, the check reports which rows are right, and for which models all
// rows are right. leak() is tried with forwards that have a leak and with forwards that have none.
#include <algorithm>
#include <numeric>
#include <random>
#include <set>

#include "docs/labs/06/lab.h"
#include "docs/labs/check.h"

namespace {

// Ways in which a forward can differ from the joint form. Each of them gives a forward with which leak() is tried.
enum class Fault {
    none,
    causal_source,
    window,
    later_row,
    target_seen,
    second_row,
    last_row,
    cls_below,
    not_replaced,
    added,
    hint,
    after_source
};

// Returns whether row i sees row j, for rows of the sequence of source (N rows) and target. Each row has two numbers: s
// = 0 and c = 0 for a row of the source; s = 1 and c = t for the t-th row of the target, counted from 1. Row i sees row
// j if both have the same s and row j does not have a larger c. If `upper` is true (a layer with a latent), all rows
// also see [CLS], row 0.
bool pair_sees(bool upper, std::size_t N, std::size_t i, std::size_t j) {
    const auto s = [&](std::size_t row) { return row >= N; };
    const auto c = [&](std::size_t row) { return s(row) ? row - N + 1 : 0; };
    return (s(i) == s(j) && c(j) <= c(i)) || (upper && j == 0);
}
bool pair_sees(Fault fault, std::size_t layer, bool upper, std::size_t N, std::size_t i, std::size_t j) {
    const bool target = i >= N;
    if (fault == Fault::causal_source && !target) return j <= i;
    if (fault == Fault::window && target && j >= N) return j <= i && i - j < 2;
    const bool more = (fault == Fault::later_row && target && j == i + 1) ||
                      (fault == Fault::target_seen && !target && j >= N) ||
                      (fault == Fault::second_row && target && layer == 0 && j == 1) ||
                      (fault == Fault::last_row && target && layer == 0 && j + 1 == N) ||
                      (fault == Fault::cls_below && target && j == 0);
    return more || pair_sees(upper, N, i, j);
}

Joint figure(const Model& m, const Tokens& source, const Tokens& target, Fault fault = Fault::none) {
    const std::size_t N = source.size(), rows = N + target.size(),
                      start = fault == Fault::after_source ? N : m.max_length;
    Rows x, z;
    for (std::size_t i = 0; i < rows; i++)
        x.push_back(i < N ? embed(m, source[i], i) : embed(m, target[i - N], start + i - N));
    for (const Layer& layer : m.layers) {
        const bool upper = layer.number + m.latents.size() >= m.layers.size();
        if (upper) {
            const Latent& latent = m.latents[z.size()];
            z.push_back(latent.in(x[0]));
            const Row out = latent.out(z.back());
            if (fault == Fault::added)
                add(x[0], out);
            else if (fault != Fault::not_replaced)
                x[0] = out;
        }
        Rows next;
        for (std::size_t i = 0; i < rows; i++) {
            std::vector<Key> seen;
            for (std::size_t j = 0; j < rows; j++)
                if (pair_sees(fault, layer.number, upper, N, i, j)) seen.push_back(key_of(layer, x[j]));
            next.push_back(output_of(layer, x[i], seen));
        }
        x = next;
    }
    if (fault == Fault::hint) x.back()[0] += 1e-12 * source.back();
    return {z, Rows(x.begin() + std::ptrdiff_t(N), x.end())};
}

struct Case {
    std::string where;
    Model model;
    Tokens source, target;
};

Case some(const std::string& where, unsigned seed, std::size_t L, std::size_t K, std::size_t N, std::size_t T,
          std::size_t C = 4, std::size_t Z = 3) {
    std::mt19937 random(seed);
    std::normal_distribution<double> normal;
    const auto numbers = [&](std::size_t count, double size) {
        Row x(count);
        for (double& each : x) each = size * normal(random);
        return x;
    };
    const auto matrix = [&](std::size_t rows, std::size_t columns, double size) {
        Rows w(rows);
        for (Row& row : w) row = numbers(columns, size / std::sqrt(double(columns)));
        return w;
    };
    Case c{where, {8, matrix(7, C, 1.5), matrix(16, C, 1.5), {}, {}}, {0}, {0}};
    for (std::size_t i = 0; i < L; i++)
        c.model.layers.push_back({i, matrix(C, C, 0.4), matrix(C, C, 0.4), matrix(C, C, 1), matrix(C, C, 1),
                                  matrix(6, C, 1), matrix(C, 6, 0.5)});
    for (std::size_t l = 0; l < K; l++)
        c.model.latents.push_back({{matrix(Z, C, 1), numbers(Z, 1)}, {matrix(C, Z, 1), numbers(C, 1)}});
    while (c.source.size() < N) c.source.push_back(1 + int(random() % 6));
    while (c.target.size() < T) c.target.push_back(1 + int(random() % 6));
    c.target.resize(T);
    return c;
}
Case usual(const std::string& where, std::size_t N = 5, std::size_t T = 4) { return some(where, 6, 5, 3, N, T); }
void clear(Rows& w) {
    for (Row& row : w) std::fill(row.begin(), row.end(), 0.0);
}

// Special cases: in each of them, some part of the model has no effect, so that a mistake in this part does not show.
std::vector<Case> special() {
    std::vector<Case> all{usual("the source is [CLS] alone", 1), usual("the source has max_length tokens", 8),
                          usual("the target has one token", 5, 1), some("one layer has a latent", 6, 5, 1, 5, 4)};
    Case c = usual("z is the same for all sources (the matrix of In is 0)");
    for (Latent& latent : c.model.latents) clear(latent.in.w);
    all.push_back(c);
    c = usual("the layers with a latent have the same In and Out");
    for (Latent& latent : c.model.latents) latent = c.model.latents[0];
    all.push_back(c);
    c = usual("all layers have the same weights");
    for (std::size_t i = 0; i < 5; i++) c.model.layers[i] = c.model.layers[0], c.model.layers[i].number = i;
    all.push_back(c);
    c = usual("all positions are alike");
    std::fill(c.model.positions.begin(), c.model.positions.end(), c.model.positions[0]);
    all.push_back(c);
    c = usual("no row reads another in the layers with a latent (o is 0)");
    for (std::size_t i = 2; i < 5; i++) clear(c.model.layers[i].o);
    all.push_back(c);
    c = usual("no row reads another in the layers without a latent (o is 0)");
    for (std::size_t i = 0; i < 2; i++) clear(c.model.layers[i].o);
    all.push_back(c);
    c = some("one layer has a latent, and the row of [CLS] comes to it as 0", 6, 5, 1, 5, 4);
    std::fill(c.model.tokens[0].begin(), c.model.tokens[0].end(), 0.0);
    std::fill(c.model.positions[0].begin(), c.model.positions[0].end(), 0.0);
    for (std::size_t i = 0; i < 4; i++) clear(c.model.layers[i].o);
    all.push_back(c);
    return all;
}

bool same(double found, double right, double to) { return std::fabs(found - right) <= to * (1 + std::fabs(right)); }
bool same(const Row& found, const Row& right, double to = 1e-12) {
    if (found.size() != right.size()) return false;
    for (std::size_t i = 0; i < found.size(); i++)
        if (!same(found[i], right[i], to)) return false;
    return true;
}
bool same(const Rows& found, const Rows& right, double to = 1e-12) {
    if (found.size() != right.size()) return false;
    for (std::size_t i = 0; i < found.size(); i++)
        if (!same(found[i], right[i], to)) return false;
    return true;
}

// Returns the result of a student's function for a case. `right` is the correct result.
using Students = std::function<Rows(const Case& c, const Joint& right)>;

// Returns a description of what is wrong in the results of `students`; "" if they are right. The description names the
// rows that are right, and the special cases in which all rows are right. If `of_z` is true, the results are z,
// otherwise y.
std::string seen(const std::string& name, bool of_z, const Students& students) {
    const auto truth = [&](const Joint& right) { return of_z ? right.z : right.y; };
    const auto holds = [&](const Case& c) {
        const Joint right = figure(c.model, c.source, c.target);
        return same(students(c, right), truth(right));
    };
    const Case any = usual("");
    const Joint both = figure(any.model, any.source, any.target);
    const Rows right = truth(both), found = students(any, both);
    if (found.empty()) return name + " is not written";
    const auto against = [](std::size_t is, std::size_t wanted) {
        return std::to_string(is) + "; " + std::to_string(wanted) + " are wanted";
    };
    if (found.size() != right.size()) return "rows of " + name + ": " + against(found.size(), right.size());
    std::string s, rows;
    for (std::size_t i = 0; i < right.size(); i++) {
        const std::string row = name + "_" + std::to_string(i);
        if (found[i].size() != right[i].size())
            return "numbers of " + row + ": " + against(found[i].size(), right[i].size());
        if (same(found[i], right[i])) rows += (rows.empty() ? "" : ", ") + row;
    }
    if (!same(found, right)) {
        s += rows.empty() ? "no row is right\n" : "right rows: " + rows + " of " + std::to_string(right.size()) + "\n";
        if (same(found, right, 1e-5)) s += "but all are right to five digits\n";
        bool anywhere = false;
        for (const Case& c : special())
            if (holds(c)) s += "right where " + c.where + "\n", anywhere = true;
        return anywhere ? s : s + "wrong in all special cases that were tried\n";
    }
    for (unsigned seed = 1; seed <= 12; seed++) {
        std::mt19937 random(seed);
        const std::size_t L = 2 + random() % 4, K = 1 + random() % (L - 1), N = 1 + random() % 8, T = 1 + random() % 8;
        if (!holds(some("", seed, L, K, N, T, 2 + random() % 5, 1 + random() % 5)))
            return name +
                   " is right for 5 layers, 3 of them with a latent, 5 tokens of the source and 4 of the target;\nwrong for " +
                   std::to_string(L) + ", " + std::to_string(K) + ", " + std::to_string(N) + " and " +
                   std::to_string(T);
    }
    return "";
}

// Returns a line about a wrong pair of the mask: `sees` says whether row i sees row j in the student's mask.
std::string words(std::size_t N, std::size_t i, std::size_t j, bool sees) {
    const std::string row = i == 0 ? "[CLS]" : i < N ? "a token of the source" : "a token of the target";
    const std::string half = j < N ? "source" : "target";
    std::string key = "a token of the " + half;
    if (i == j)
        key = "itself";
    else if (j == 0)
        key = "[CLS]";
    else if ((i < N) == (j < N))
        key = (j < i ? "an earlier token of the " : "a later token of the ") + half;
    else if (j + 1 == N)
        key = "the last token of the source";
    return "wrong: " + row + (sees ? " sees " : " does not see ") + key + "\n";
}

std::string of_mask(Kind kind) {
    std::set<std::string> pairs;
    for (std::size_t N = 1; N <= 5; N++)
        for (std::size_t T = 0; T <= 4; T++) {
            const Mask found = mask(kind, N, T);
            if (found.empty()) return "the mask is not written";
            for (std::size_t i = 0; i < N + T; i++) {
                if (found.size() != N + T || found[i].size() != N + T)
                    return "the mask has not " + std::to_string(N + T) + " rows and columns for a source of " +
                           std::to_string(N) + " and a target of " + std::to_string(T);
                for (std::size_t j = 0; j < N + T; j++)
                    if (found[i][j] != pair_sees(kind == Kind::uniae, N, i, j))
                        pairs.insert(words(N, i, j, found[i][j]));
            }
        }
    return std::accumulate(pairs.begin(), pairs.end(), std::string());
}

// Computes y with the student's step(). Between the steps, writes a second document with another cache, which must not
// change the result.
Rows by_steps(const Case& c, const Joint& right) {
    Rows other = right.z, y;
    for (Row& row : other)
        for (double& each : row) each = -each;
    Cache caches[] = {begin(c.model, right.z), begin(c.model, other)};
    for (std::size_t t = 0; t < c.target.size(); t++) {
        y.push_back(step(c.model, caches[0], c.target[t]));
        if (y.back().empty()) return {};
        step(c.model, caches[1], c.target[c.target.size() - 1 - t]);
    }
    return y;
}

// For each layer, compares the number of keys and rows that the student's function computes with the number that is
// needed (`need`).
std::string counted(const std::string& name, const std::function<Rows()>& students, const Rows& right,
                    const Work& need) {
    work = {};
    const Rows found = students();
    Work done = work;
    if (!same(found, right)) return name + ": not counted before the results are right\n";
    std::string s;
    for (const auto& [i, keys] : need.keys) {
        const auto differ = [&, layer = i](int is, int least, const char* what) {
            if (is != least)
                s += name + ", layer " + std::to_string(layer) + ": " + what + std::to_string(is) +
                     ", needed: " + std::to_string(least) + "\n";
        };
        differ(done.keys[i], keys, "keys made: ");
        differ(done.rows[i], need.rows.at(i), "rows computed: ");
    }
    return s;
}
std::string of_work() {
    const Case c = usual("");
    const Joint right = figure(c.model, c.source, c.target);
    const Work of_source{{{0, 5}, {1, 5}, {2, 5}, {3, 5}, {4, 0}}, {{0, 5}, {1, 5}, {2, 5}, {3, 1}, {4, 0}}};
    const Work of_target{{{0, 4}, {1, 4}, {2, 5}, {3, 5}, {4, 5}}, {{0, 4}, {1, 4}, {2, 4}, {3, 4}, {4, 4}}};
    const auto steps = [&] {
        Cache cache = begin(c.model, right.z);
        Rows y;
        for (int token : c.target) y.push_back(step(c.model, cache, token));
        return y;
    };
    return counted(
               "encode", [&] { return encode(c.model, c.source); }, right.z, of_source) +
           counted(
               "decode", [&] { return decode(c.model, right.z, c.target); }, right.y, of_target) +
           counted("step", steps, right.y, of_target);
}

std::string of_leaks() {
    struct Tried {
        Fault fault;
        Leak right;
        const char* what;
    };
    const Tried all[] = {{Fault::none, Leak::none, "the figure"},
                         {Fault::causal_source, Leak::none, "a source that is causal"},
                         {Fault::window, Leak::none, "a target that sees two rows of itself"},
                         {Fault::later_row, Leak::future, "a target that sees one row ahead"},
                         {Fault::target_seen, Leak::future, "a source that sees the target"},
                         {Fault::second_row, Leak::source,
                          "a target that sees the second token of the source in layer 0"},
                         {Fault::last_row, Leak::source, "a target that sees the last token of the source in layer 0"},
                         {Fault::cls_below, Leak::source, "a target that sees [CLS] in all layers"},
                         {Fault::not_replaced, Leak::source, "a [CLS] that stays what it is"},
                         {Fault::added, Leak::source, "a [CLS] to which Out(z) is added"},
                         {Fault::hint, Leak::source, "a y that has a token of the source in its twelfth digit"},
                         {Fault::after_source, Leak::length, "a target that starts where the source ends"}};
    const std::map<Leak, std::string> names{
        {Leak::none, "'none'"}, {Leak::future, "'future'"}, {Leak::source, "'source'"}, {Leak::length, "'length'"}};
    std::string s;
    for (const Tried& tried : all) {
        std::set<Leak> found;
        for (unsigned seed = 1; seed <= 4; seed++) {
            const Case c = some("", seed, 4, 2, 3 + seed, 3 + seed % 3);
            const Forward forward = [&](const Model& m, const Tokens& a, const Tokens& b) {
                return figure(m, a, b, tried.fault).y;
            };
            found.insert(leak(forward, c.model, c.source, c.target));
        }
        for (Leak each : found)
            if (each != tried.right) s += names.at(each) + " is said of " + tried.what + "\n";
    }
    return s;
}

}  // namespace

int main() {
    Lab lab("lab 6: UniVAE, joint and split");
    const auto part = [&](int points, const char* name, const std::function<std::string()>& of) {
        lab.part(points, name, [&] { return alone(5, of); });
    };
    const Students joint_z = [](const Case& c, const Joint&) { return joint(c.model, c.source, c.target).z; };
    const Students joint_y = [](const Case& c, const Joint&) { return joint(c.model, c.source, c.target).y; };
    const Students split_z = [](const Case& c, const Joint&) { return encode(c.model, c.source); };
    const Students split_y = [](const Case& c, const Joint& right) { return decode(c.model, right.z, c.target); };
    part(1, "lower", [] { return of_mask(Kind::independent); });
    part(1, "upper", [] { return of_mask(Kind::uniae); });
    part(1, "z", [&] { return seen("z", true, joint_z); });
    part(1, "y", [&] { return seen("y", false, joint_y); });
    part(1, "encode", [&] { return seen("z", true, split_z); });
    part(2, "decode", [&] { return seen("y", false, split_y); });
    part(1, "step", [] { return seen("y", false, by_steps); });
    part(2, "work", of_work);
    part(2, "leak", of_leaks);
    return lab.status();
}
