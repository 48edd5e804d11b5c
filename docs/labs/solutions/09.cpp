// SPDX-License-Identifier: MIT
// Lab 9, solved. The engine has the same functions in models/tasks/insertion_objective.cpp, engine/math/slot_loss.h and
// models/writing/canvas.cpp.
#include "docs/labs/09/lab.h"

#include <algorithm>
#include <cmath>
#include <utility>

// Selection sampling: in each step, n - i words are left, and `wanted` of them must still be kept.
Canvas draw_canvas(const Words& target, const std::function<double()>& uniform) {
    const int n = int(target.size());
    int wanted = int(uniform() * (n + 1));
    Canvas c{{}, {{}}};
    for (int i = 0; i < n; i++) {
        const int word = target[std::size_t(i)];
        if (uniform() * (n - i) < wanted) {
            wanted--;
            c.words.push_back(word);
            c.missing.emplace_back();
        } else {
            c.missing.back().push_back(word);
        }
    }
    return c;
}

Shares shares(const Words& lacks, Order order, double tau) {
    if (lacks.empty()) return {{end_of_slot, 1}};
    const double middle = double(lacks.size() - 1) / 2;
    std::vector<double> w;  // first the distances d_u, then the weights
    for (std::size_t u = 0; u < lacks.size(); u++)
        w.push_back(order == Order::tree            ? std::fabs(middle - double(u))
                    : order == Order::left_to_right ? double(u)
                                                    : 0);
    const double nearest = *std::min_element(w.begin(), w.end());
    double sum = 0;
    for (double& each : w) sum += each = std::exp((nearest - each) / tau);
    Shares s;
    for (std::size_t u = 0; u < lacks.size(); u++) s[lacks[u]] += w[u] / sum;
    return s;
}

namespace {

// Replaces x by its log softmax. Returns the normaliser, log sum exp x.
double log_softmax(double* x, int count) {
    const double top = *std::max_element(x, x + count);
    double sum = 0;
    for (int i = 0; i < count; i++) sum += std::exp(x[i] - top);
    const double normaliser = top + std::log(sum);
    for (int i = 0; i < count; i++) x[i] -= normaliser;
    return normaliser;
}

// `content` is log p(c|l), and `place` is log p(l). The joint form equals the factorised form if the score of each
// place is the normaliser (log sum exp) of its row of z.
struct LogProbabilities {
    std::vector<double> content, place;
};
LogProbabilities log_probabilities(Form form, int slots, int V, const double* z, const double* place) {
    LogProbabilities p{{z, z + slots * V}, {place, place + slots}};
    for (int l = 0; l < slots; l++) {
        const double normaliser = log_softmax(&p.content[std::size_t(l * V)], V);
        if (form == Form::joint) p.place[std::size_t(l)] = normaliser;
    }
    log_softmax(p.place.data(), slots);
    return p;
}

}  // namespace

double canvas_loss(Form form, const std::vector<Shares>& asked, int V, const double* z, const double* place) {
    const int slots = int(asked.size());
    const LogProbabilities log_p = log_probabilities(form, slots, V, z, place);
    double sum = 0;
    for (int l = 0; l < slots; l++)
        for (const auto& [word, share] : asked[std::size_t(l)])
            sum -= share * (log_p.content[std::size_t(l * V + word)] + log_p.place[std::size_t(l)]);
    return sum / slots;
}

void canvas_backward(Form form, const std::vector<Shares>& asked, int V, const double* z, const double* place,
                     double* dz, double* dplace) {
    const int slots = int(asked.size());
    const LogProbabilities log_p = log_probabilities(form, slots, V, z, place);
    const double mean = 1.0 / slots;
    for (int l = 0; l < slots; l++) {
        const double p_l = std::exp(log_p.place[std::size_t(l)]);
        for (int c = 0; c < V; c++)
            dz[l * V + c] = (form == Form::joint ? p_l : mean) * std::exp(log_p.content[std::size_t(l * V + c)]);
        for (const auto& [word, share] : asked[std::size_t(l)]) dz[l * V + word] -= mean * share;
        dplace[l] = form == Form::joint ? 0 : p_l - mean;
    }
}

Written write_parallel(const Model& model, double end_penalty, int most_rounds) {
    Written w{{}, 0};
    while (w.rounds < most_rounds) {
        const std::vector<std::vector<double>> log_p = model(w.words);
        Words next;
        for (std::size_t l = 0; l < log_p.size(); l++) {
            const std::vector<double>& row = log_p[l];
            const auto best = std::max_element(row.begin() + end_of_slot + 1, row.end());
            if (*best > row[end_of_slot] - end_penalty) next.push_back(int(best - row.begin()));
            if (l < w.words.size()) next.push_back(w.words[l]);
        }
        if (next.size() == w.words.size()) break;
        w.words = std::move(next);
        w.rounds++;
    }
    return w;
}
