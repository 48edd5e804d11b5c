// SPDX-License-Identifier: MIT
// The functions of lab 9 that the check calls in the student's process. REMOTE lists the result type, the name and the
// parameters of a function, then its arguments as they are sent (docs/labs/remote/judge.h).
#include "docs/labs/09/lab.h"
#include "docs/labs/remote/both.h"

template <class F>
void fields(F f, Canvas& c) {
    f(c.words, c.missing);
}
template <class F>
void fields(F f, Written& w) {
    f(w.words, w.rounds);
}

REMOTE(Canvas, draw_canvas, (const Words& target, const std::function<double()>& uniform), target, uniform)
REMOTE(Shares, shares, (const Words& lacks, Order order, double tau), lacks, order, tau)
REMOTE(double, canvas_loss, (Form form, const std::vector<Shares>& asked, int V, const double* z, const double* place),
       form, asked, V, many(z, asked.size() * std::size_t(V)), many(place, asked.size()))
REMOTE(void, canvas_backward,
       (Form form, const std::vector<Shares>& asked, int V, const double* z, const double* place, double* dz,
        double* dplace),
       form, asked, V, many(z, asked.size() * std::size_t(V)), many(place, asked.size()),
       many(dz, asked.size() * std::size_t(V)), many(dplace, asked.size()))
REMOTE(Written, write_parallel, (const Model& model, double end_penalty, int most_rounds), model, end_penalty,
       most_rounds)
