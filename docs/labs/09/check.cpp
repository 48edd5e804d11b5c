// SPDX-License-Identifier: MIT
// The check of lab 9. A chi-square test compares the drawn canvases with their distribution. Shares and the loss are
// compared with their definitions, and gradients with the complex step through all p(c,l). Writing is checked with
// oracles: models that know the target.
#include <algorithm>
#include <complex>
#include <random>
#include <stdexcept>

#include "docs/labs/09/lab.h"
#include "docs/labs/check.h"

namespace {

using Complex = std::complex<double>;
using Counts = std::vector<int>;
using std::to_string;

std::string list(const Counts& all) {
    std::string s;
    for (int each : all) s += (s.empty() ? "" : " ") + to_string(each);
    return s;
}
Counts up_to(int n) {
    Counts all;
    for (int i = 0; i <= n; i++) all.push_back(i);
    return all;
}
Counts of_100(const Numbers& found, double draws) {
    Counts all;
    for (double each : found) all.push_back(int(std::lround(100 * each / draws)));
    return all;
}
const char* const by_definition = "its definition gives";  // where the right shares and losses come from
void append(Result& to, const Numbers& found, const Numbers& right) {
    to.found.insert(to.found.end(), found.begin(), found.end());
    to.right.insert(to.right.end(), right.begin(), right.end());
}
void append(Result& to, const Result& more) {
    append(to, more.found, more.right);
    to.places.insert(to.places.end(), more.places.begin(), more.places.end());
}

// ---- canvases

// Returns whether the counts `found` can come from a distribution with the counts `expected`, by a chi-square test.
// Correct draws fail the test in about one of three million cases (5 standard deviations in the normal approximation of
// Wilson and Hilferty).
bool by_chance(const Numbers& found, const Numbers& expected) {
    const double freedom = double(found.size()) - 1, spread = 2 / (9 * freedom);
    double chi = 0;
    for (std::size_t i = 0; i < found.size(); i++)
        chi += (found[i] - expected[i]) * (found[i] - expected[i]) / expected[i];
    return freedom < 1 || std::cbrt(chi / freedom) < 1 - spread + 5 * std::sqrt(spread);
}

// Draws many canvases of a target of n words, and returns what is wrong with them, or "". The set of the words that a
// canvas keeps is written as a number, in which bit i stands for word i.
std::string drawn(int n, bool different, std::mt19937& random) {
    const std::string where = "n = " + to_string(n) + (different ? ": " : " equal words: ");
    Words target;
    for (int i = 0; i < n; i++) target.push_back(different ? 1 + (i * 5 + 2) % 7 : 3);
    Numbers sets(std::size_t(1) << n, 0);
    for (int draw = 0; draw < 3000 * (n + 1); draw++) {
        const Canvas c = draw_canvas(target, [&] { return double(random()) / 4294967296.0; });
        if (c.missing.size() != c.words.size() + 1)
            return where + "a canvas of " + to_string(c.words.size()) + " words has " + to_string(c.missing.size()) +
                   " slots\n";
        Words all;
        unsigned set = 0;
        for (std::size_t l = 0; l < c.missing.size(); l++) {
            all.insert(all.end(), c.missing[l].begin(), c.missing[l].end());
            if (l == c.words.size()) break;
            set |= 1u << (all.size() & 31);
            all.push_back(c.words[l]);
        }
        if (all != target) return where + "the words of canvas and slots, put together in turn, are not the target\n";
        sets[set]++;
    }
    Numbers found(std::size_t(n) + 1, 0), expected;
    for (int k = 0; k <= n; k++) {
        Numbers of_k, kept(std::size_t(n), 0);
        for (unsigned set = 0; set < sets.size(); set++) {
            int words = 0;
            for (int i = 0; i < n; i++) words += int(set >> i & 1);
            if (words != k) continue;
            of_k.push_back(sets[set]), found[std::size_t(k)] += sets[set];
            for (int i = 0; i < n; i++) kept[std::size_t(i)] += (set >> i & 1) * sets[set];
        }
        const double all = found[std::size_t(k)], ways = double(of_k.size());
        if (all > 0 && !by_chance(of_k, Numbers(of_k.size(), all / ways)))
            return where + "of 100 canvases with k = " + to_string(k) + ", word " + list(up_to(n - 1)) +
                   " is kept in " + list(of_100(kept, all)) + " instead of " +
                   list(Counts(std::size_t(n), int(std::lround(100.0 * k / n)))) + "; of the " +
                   to_string(of_k.size()) + " sets of k words, " +
                   to_string(std::count_if(of_k.begin(), of_k.end(), [](double x) { return x > 0; })) + " occur\n";
    }
    if (by_chance(found, Numbers(found.size(), 3000))) return "";
    return where + "sets with the same number of words are equally likely, as they should be; but of 100 canvases, " +
           list(of_100(found, 3000 * (n + 1))) + " have " + list(up_to(n)) + " words, instead of " +
           list(of_100(Numbers(found.size(), 3000), 3000 * (n + 1))) + "\n";
}
std::string of_canvas() {
    std::mt19937 random(4);
    for (bool different : {true, false}) {
        std::string few, many;  // what is wrong with the shortest and with the longest target that fails
        Counts right;
        for (int n = 0; n <= 5; n++)
            if (const std::string w = drawn(n, different, random); w.empty())
                right.push_back(n);
            else
                (few.empty() ? few : many) = w;
        if (!few.empty()) return few + many + (right.empty() ? "" : "right where n is " + list(right) + "\n");
    }
    return "";
}

// ---- shares

struct Slots {
    std::vector<std::size_t> lengths;
    std::vector<Order> orders{Order::tree, Order::uniform, Order::left_to_right};
    Numbers taus{0.4, 1.7};
    bool repeated = false;  // whether the last word equals the first word
};
Words words_of(std::size_t length, bool repeated) {
    static std::mt19937 random(6);
    Words all{1, 2, 3, 4, 5, 6, 7};
    std::shuffle(all.begin(), all.end(), random);
    all.resize(length);
    if (repeated && length > 1) all.back() = all.front();
    return all;
}
Result result(const std::string& name, const Slots& slots) {
    Result r{name, {}, {}};
    for (std::size_t length : slots.lengths)
        for (Order order : slots.orders)
            for (double tau : slots.taus) {
                const Words lacks = words_of(length, slots.repeated);
                const double last = double(length) - 1;
                const auto d = [&](std::size_t u) {
                    return order == Order::uniform ? 0
                           : order == Order::tree  ? std::fabs(double(u) - last / 2)
                                                   : double(u);
                };
                Numbers found(9, 0), right(9, 0);  // by word; number 8 counts words that are not in 0 ... 7
                right[end_of_slot] = lacks.empty();
                for (std::size_t u = 0; u < length; u++) {
                    double others = 0;
                    for (std::size_t v = 0; v < length; v++) others += std::exp((d(u) - d(v)) / tau);
                    right[std::size_t(lacks[u])] += 1 / others;
                }
                for (const auto& [word, share] : shares(lacks, order, tau))
                    found[word >= 0 && word < 8 ? std::size_t(word) : 8] += share;
                append(r, found, right);
                const char* const by = order == Order::tree      ? "tree"
                                       : order == Order::uniform ? "uniform"
                                                                 : "left_to_right";
                const std::string slot = " (the slot lacks " +
                                         (lacks.empty() ? "nothing" : "the words " + list(lacks)) + "; order " + by +
                                         ", tau = " + number(tau) + ")";
                for (int word = 0; word < 8; word++)
                    r.places.push_back((word == end_of_slot ? " of the end" : " of word " + to_string(word)) + slot);
                r.places.push_back(" of all other words" + slot);
            }
    return r;
}
std::string of_shares() {
    const std::vector<std::size_t> all{0, 1, 2, 3, 4, 5, 6}, some{1, 3, 4, 5, 6};
    const std::vector<Order> any_order = Slots{}.orders;
    const std::string plain = "no word is missing twice, tau is 0.4 or 1.7, ";
    Result any = result("", {all, any_order, {0.3, 1.9, 1e-4}, false});
    const Result twice = result("", {all, any_order, {0.3, 1.9, 1e-4}, true});
    append(any, twice);
    std::string s = wrong("share", any,
                          {result("a slot lacks nothing", {{0}}), result("a slot lacks one word", {{1}}),
                           result("a slot lacks two words, tau is 0.4 or 1.7", {{2}}),
                           result("a slot lacks four words, the order is uniform", {{4}, {Order::uniform}}),
                           result(plain + "the order is a tree", {some, {Order::tree}}),
                           result(plain + "the order is uniform", {some, {Order::uniform}}),
                           result(plain + "from left to right", {some, {Order::left_to_right}}),
                           result("no word is missing twice, tau is 1", {some, any_order, {1}}),
                           result("no word is missing twice, tau is 0.0001", {all, any_order, {1e-4}})},
                          by_definition);
    if (s.empty()) return s;
    for (std::size_t length : {3, 4}) {
        const Words lacks = words_of(length, false);
        Shares found = shares(lacks, Order::tree, 1);
        Numbers in_order;
        for (int word : lacks) in_order.push_back(found[word]);
        s += "a tree with tau = 1 gives " + to_string(length) +
             " different words, in their order, hundredths: " + list(of_100(in_order, 1)) + "\n";
    }
    for (bool repeated : {false, true}) {
        double sum = 0;
        for (const auto& [word, share] : shares(words_of(5, repeated), Order::tree, 1)) sum += share;
        if (std::fabs(sum - 1) < 1e-9) continue;
        s += std::string("the shares of five words, ") + (repeated ? "one of them twice" : "all different") +
             ", sum to " + number(sum) + "\n";
    }
    return s;
}

// ---- loss and gradients

struct Case {
    int slots, V;
    Numbers z, place;
    std::vector<Shares> asked;
};
// If `most` is 3, slots 0, 3, 6 ... are asked for up to three words, slots 1, 4 ... for their end, and the others for
// one word. Otherwise, no slot is asked for more than one word. `size` is the standard deviation of the numbers of z
// and place.
Case some(int slots, int V, double size = 1, int most = 3) {
    std::mt19937 random(std::mt19937::result_type(8 + slots));
    std::normal_distribution<double> normal;
    Case c{slots, V, {}, {}, {}};
    for (int i = 0; i < slots * V; i++) c.z.push_back(size * normal(random));
    for (int l = 0; l < slots; l++) {
        c.place.push_back(size * normal(random));
        if (l % 3 == 0 && most == 3)
            c.asked.push_back({{1, 0.5}, {V / 2, 0.2}, {V - 1, 0.3}});
        else
            c.asked.push_back({{l % 3 == 1 ? end_of_slot : 1 + int(random() % unsigned(V - 1)), 1}});
    }
    return c;
}

using Row = std::vector<Complex>;
Row log_softmax(const Row& x) {
    double top = x[0].real();
    for (const Complex& each : x) top = std::max(top, each.real());
    Complex sum = 0;
    Row all;
    for (const Complex& each : x) sum += std::exp(each - top);
    for (const Complex& each : x) all.push_back(each - top - std::log(sum));
    return all;
}
Row slot(const Case& c, const Row& z, int l) { return log_softmax({z.begin() + l * c.V, z.begin() + (l + 1) * c.V}); }
Complex loss_of(Form form, const Case& c, const Row& z, const Row& place) {
    const Row joint = log_softmax(z), places = log_softmax(place);
    Complex sum = 0;
    for (int l = 0; l < c.slots; l++)
        for (const auto& [word, share] : c.asked[std::size_t(l)])
            sum -= share / c.slots *
                   (form == Form::joint ? joint[std::size_t(l * c.V + word)]
                                        : slot(c, z, l)[std::size_t(word)] + places[std::size_t(l)]);
    return sum;
}

enum What { the_loss, the_dz, the_dplace };
const std::string names[] = {"loss", "dz", "dplace"}, forms[] = {"factorised: ", "joint: "};
Numbers truth(What what, Form form, const Case& c) {
    Row z(c.z.begin(), c.z.end()), place(c.place.begin(), c.place.end());
    if (what == the_loss) return {loss_of(form, c, z, place).real()};
    Numbers g;
    for (Complex& each : what == the_dz ? z : place) {
        each += Complex(0, 1e-30);
        g.push_back(loss_of(form, c, z, place).imag() / 1e-30);
        each = each.real();
    }
    return g;
}
Numbers students(What what, Form form, const Case& c) {
    if (what == the_loss) return {canvas_loss(form, c.asked, c.V, c.z.data(), c.place.data())};
    Numbers dz(c.z.size(), garbage), dplace(c.place.size(), garbage);
    canvas_backward(form, c.asked, c.V, c.z.data(), c.place.data(), dz.data(), dplace.data());
    return what == the_dz ? dz : dplace;
}
// Returns the case with z changed so that all rows of z have the same sum of exponentials, and with equal scores for
// all places.
Case alike_slots(Case c) {
    const Row z(c.z.begin(), c.z.end());
    for (int l = 0; l < c.slots; l++)
        for (int i = 0; i < c.V; i++) c.z[std::size_t(l * c.V + i)] = slot(c, z, l)[std::size_t(i)].real();
    std::fill(c.place.begin(), c.place.end(), 0.4);
    return c;
}

std::string seen(What what) {
    const auto in = [&](const std::string& name, const std::vector<Case>& cases,
                        const std::vector<Form>& of = {Form::factorised, Form::joint}) {
        Result r{name, {}, {}};
        for (const Case& c : cases)
            for (Form form : of) {
                const Numbers right = truth(what, form, c);
                append(r, students(what, form, c), right);
                for (std::size_t i = 0; i < right.size(); i++)
                    r.places.push_back((what == the_loss ? "" : "[" + to_string(i) + "]") +
                                       (form == Form::joint ? " (joint; " : " (factorised; ") + to_string(c.slots) +
                                       (c.slots == 1 ? " slot, V = " : " slots, V = ") + to_string(c.V) + ")");
            }
        return r;
    };
    const Case general = some(4, 6);
    Case ends = general, no_ends = general;
    for (std::size_t l = 0; l < 4; l++)
        ends.asked[l] = {{end_of_slot, 1}}, no_ends.asked[l] = {{1 + int(l), 0.4}, {5, 0.6}};
    std::string s =
        wrong(names[what], in("", {general, some(3, 5), some(6, 4)}),
              {in("the form is factorised", {general}, {Form::factorised}),
               in("the form is joint", {general}, {Form::joint}), in("there is one slot", {some(1, 6)}),
               in("all z and all places are 0", {some(4, 6, 0)}),
               in("no slot is asked for more than one word", {some(4, 6, 1, 1)}),
               in("all slots are asked for their end", {ends}), in("no slot is asked for its end", {no_ends}),
               in("the form is factorised and all places are alike", {alike_slots(general)}, {Form::factorised}),
               in("the form is joint and all rows of z have the same sum of exponentials", {alike_slots(general)},
                  {Form::joint})},
              what == the_loss ? by_definition : "the complex step says");
    for (Form form : {Form::factorised, Form::joint}) {
        const Numbers g = students(what, form, general);
        const bool row = form == Form::factorised && what == the_dz;
        double sum = 0;
        for (std::size_t i = 0; i < (row ? 6 : g.size()); i++) sum += g[i];
        if (what != the_loss && g[0] != garbage && std::fabs(sum) > 1e-9)
            s += forms[int(form)] + (row ? "dz of a slot" : names[what]) + " sums to " + number(sum) +
                 "; the loss stays where a constant is added there\n";
    }
    return s;
}

std::string large() {
    const Case c = some(4, 6), wide = some(4, 6, 2000);
    if (students(the_loss, Form::joint, c)[0] == 0 || students(the_dz, Form::joint, c)[0] == garbage)
        return "nothing is computed yet";
    std::string s;
    for (What what : {the_loss, the_dz, the_dplace})
        for (Form form : {Form::factorised, Form::joint}) {
            const Numbers small = students(what, form, c), found = students(what, form, wide);
            const std::string name = forms[int(form)] + names[what],
                              apart = " where z and places lie thousands apart\n";
            for (double plus : {-2000.0, 2000.0}) {
                Case moved = c;
                for (Numbers* all : {&moved.z, &moved.place})
                    for (double& each : *all) each += plus;
                if (!alike(students(what, form, moved), small))
                    s += name + " moves where " + number(plus) + " is added to all z and places\n";
            }
            if (!std::all_of(found.begin(), found.end(), [](double x) { return std::isfinite(x); }))
                s += name + " is not finite" + apart;
            else if (alike(small, truth(what, form, c)) && !alike(found, truth(what, form, wide)))
                s += name + " is wrong" + apart;
        }
    return s;
}

// ---- writing

using Pick = std::function<int(int from, int to)>;
// A model that knows the target. If a slot lacks the words `from` to `to` - 1 of the target, the word at pick(from, to)
// gets log p = -2. The end of the slot gets log p = -2 + gap. If `patient` is true, the first slot ends in every round
// in which another slot lacks words.
struct Oracle {
    Words target;
    Pick pick;
    double gap = -5;
    bool patient = false;
    int calls = 0;

    std::vector<std::vector<double>> operator()(const Words& canvas) {
        const int n = int(target.size());
        if (++calls > 3 * n + 20) throw std::runtime_error("writing does not end");
        Counts at{-1};
        for (int word : canvas) {
            if (word == end_of_slot) throw std::runtime_error("the end stands in a canvas as a word");
            if (std::count(canvas.begin(), canvas.end(), word) > 1)
                throw std::runtime_error("a word of the target comes twice");
            at.push_back(int(std::find(target.begin() + at.back() + 1, target.end(), word) - target.begin()));
            if (at.back() == n) throw std::runtime_error("words of a canvas are not in the order of the target");
        }
        at.push_back(n);
        std::vector<std::vector<double>> rows(canvas.size() + 1, Numbers(target.size() + 3, -30));
        bool others = false;
        for (std::size_t l = rows.size(); l-- > 0;) {
            const int from = at[l] + 1, to = at[l + 1];
            rows[l][end_of_slot] = 0;
            if (from >= to || (patient && l == 0 && others)) continue;
            others = true;
            for (int i = from; i < to; i++) rows[l][std::size_t(target[std::size_t(i)])] = -4;
            rows[l][std::size_t(target[std::size_t(pick(from, to))])] = -2;
            rows[l][end_of_slot] = -2 + gap;
        }
        return rows;
    }
};
int rounds_of(const Pick& pick, bool patient, int from, int to) {
    if (from >= to) return 0;
    const int p = pick(from, to), left = rounds_of(pick, patient, from, p), right = rounds_of(pick, false, p + 1, to);
    return 1 + (patient ? left + right : std::max(left, right));
}

std::string written() {
    const Pick middle = [](int from, int to) { return (from + to - 1) / 2; },
               first = [](int from, int) { return from; };
    const Pick any = [](int from, int to) {
        return from + int(unsigned(from * 31 + to * 17 + 5) % unsigned(to - from));
    };
    const auto target = [](int n) {
        std::mt19937 random(std::mt19937::result_type(40 + n));
        Words all = up_to(n + 2);
        std::shuffle(all.begin() + 1, all.end(), random);
        return Words(all.begin() + 1, all.begin() + 1 + n);
    };
    std::string s;
    const auto write = [&](const std::string& name, const Model& model, double penalty, int most) {
        int calls = 0;
        const Model counted = [&](const Words& canvas) { return calls++, model(canvas); };
        try {
            const Written w = write_parallel(counted, penalty, most);
            // The last call may be that of a round that inserts nothing.
            if (s.find("the model is called") == std::string::npos && calls > w.rounds + 1)
                s += name + "the model is called " + to_string(calls) + " times for " + to_string(w.rounds) +
                     " rounds; it should be called once in a round\n";
            return w;
        } catch (const std::exception& e) {
            if (const std::string line = name + e.what() + "\n"; s.find(line) == std::string::npos) s += line;
            return Written{{}, -1};
        }
    };
    const auto order = [&](const std::string& name, const Pick& pick, const Counts& ns, bool patient = false) {
        Counts found, right, others;
        for (int n : ns) {
            const Written w = write(name, Oracle{target(n), pick, -5, patient}, 0, 1000);
            found.push_back(w.rounds), right.push_back(rounds_of(pick, patient, 0, n));
            if (w.rounds >= 0 && w.words != target(n)) others.push_back(n);
        }
        if (!others.empty()) s += name + "not the words of the target are written where n is " + list(others) + "\n";
        const bool ended = *std::min_element(found.begin(), found.end()) >= 0;
        if (ended && found != right)
            s += name + "n = " + list(ns) + " take " + list(found) + " rounds instead of " + list(right) + "\n";
    };
    const auto penalties = [&](double gap, const Numbers& all, const Counts& right) {
        const std::string name =
            std::string("log p of the end is 1 ") + (gap > 0 ? "above" : "below") + " that of the best word: ";
        std::string tried;
        Counts found;
        for (double each : all) {
            tried += " " + number(each);
            found.push_back(int(write(name, Oracle{target(7), middle, gap}, each, 1000).words.size()));
        }
        if (found != right)
            s += name + "penalties" + tried + " let " + list(found) + " of 7 words be written instead of " +
                 list(right) + "\n";
    };
    order("the middle first: ", middle, {0, 1, 2, 3, 4, 7, 8, 15, 16, 31, 32, 100});
    order("from left to right: ", first, {0, 1, 2, 3, 7, 8, 12});
    order("any word first: ", any, {2, 3, 5, 9, 20, 33});
    order("a slot that ended lacks words in a later round: ", middle, {3, 7, 12}, true);
    penalties(1, {-1, 0, 0.5, 1, 1.5, 4}, {0, 0, 0, 0, 7, 7});
    penalties(-1, {-3, -1.5, -1, -0.5, 0, 2}, {0, 0, 0, 7, 7, 7});
    for (int most : {0, 1, 3, 6}) {
        const auto endless = [calls = 0](const Words& canvas) mutable {
            if (++calls > 20) throw std::runtime_error("the number of rounds has no limit");
            return std::vector<Numbers>(canvas.size() + 1, {-9, -8, -1});
        };
        const Written w = write("no slot ends: ", endless, 0, most);
        if (w.rounds >= 0 && (int(w.words.size()) != (1 << most) - 1 || w.rounds != most))
            s += "no slot ends, " + to_string(most) + " rounds at most: " + to_string(w.words.size()) + " words in " +
                 to_string(w.rounds) + " rounds instead of " + to_string((1 << most) - 1) + " in " + to_string(most) +
                 "\n";
    }
    return s;
}

}  // namespace

int main() {
    Lab lab("lab 9: the tree loss of insertion, and its rounds");
    lab.part(2, "canvas", of_canvas);
    lab.part(2, "shares", of_shares);
    lab.part(2, "loss", [] { return seen(the_loss); });
    lab.part(2, "dz", [] { return seen(the_dz); });
    lab.part(1, "dplace", [] { return seen(the_dplace); });
    lab.part(1, "large", large);
    lab.part(2, "rounds", written);
    return lab.status();
}
