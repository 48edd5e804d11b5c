// SPDX-License-Identifier: MIT
// Attention through a state of bounded size, for one head. R slots absorb the visible keys k_j (D) and their values v_j
// (D) one by one, and a query x reads the slots. Each key comes with a pack: R numbers that say how much of the key
// each slot absorbs. s_j (R) is the pack of key j times `scale`. w_jr is the weight of key j in slot r, and n_r is the
// number by which the sums of slot r are divided. One of three rules, whose names stand on the right, computes both:
//
//     w_jr = s_jr                          n_r = number of keys           sum
//     w_jr = s_jr (1 - g_j) prod_i g_i     n_r = sum_j w_jr           gated: i are the keys after j; g = sigmoid(gate)
//     w_jr = exp(s_jr)                     n_r = sum_j exp(s_jr)      exponential, with a running maximum for each slot
//     K_r = sum_j w_jr k_j / n_r,  V_r = sum_j w_jr v_j / n_r
//
// The rule `pair` is like `sum`, but a key comes with two packs: s_j for K_r, and f_j for V_r = sum_j f_jr v_j / n_r.
// The query reads y = sum_r p_r V_r with
//
//     linear    p_r = x_r                                                 content lambda         Bello 2021, equation 1
//     kernel    p_r = x_r n_r / sum_t x_t n_t, for log features x: softmax_r(x_r + log n_r)    Choromanski et al. 2020
//                                                                         gated                   Peng et al. 2021, 3.2
//     attend    p = softmax_r(x . K_r / sqrt(D))                          causal Luna         Ma et al. 2021, section 3
//                                                                         pair: Linformer  Wang et al. 2020, section 4
//
// If `kernel` is combined with `sum`, n_r is sum_j w_jr instead of the number of keys. If a query sees no key, y = 0.
// The derivations are in docs/ops/state_attention.md.
#pragma once
#include "engine/math/scalar.h"

namespace masquerade {

struct StateShape {
    int slots, columns;  // R slots of D columns
    bool exponential, gated, attends, kernel, paired;
    double scale;  // multiplies the packs, which say how much of a key each slot absorbs
    // Lower bound of the absolute value of sum_r x_r n_r, by which y is divided; only used if `kernel` is set and
    // `exponential` is not. If the state has no gates, the bound is `floor` times the number of keys.
    double floor;
    // Returns the number of pack numbers that each key has: R in one pack or, if `paired`, 2R in two packs.
    HD int packs() const { return paired ? 2 * slots : slots; }
    // Returns the size of a state in numbers: the number of keys (1), running maxima or products of gates (R), sums of
    // weights (R), weighted sums of values (R,D) and, if `attends`, weighted sums of keys (R,D). The size is below
    // 2^31: state_attention refuses larger states.
    HD int numbers() const { return 1 + 2 * slots + slots * columns * (attends ? 2 : 1); }
};

// Pointers to the parts of a state of R slots, which begins at `at`. count: number of keys. top (R): running maxima or
// products of gates. total (R): sums of weights. values and keys (R,D): weighted sums. If the packs are exponential,
// all sums of slot r are stored divided by exp(top_r), so that they do not overflow.
template <class A>
struct State {
    A *count, *top, *total, *values, *keys;
    HD State(const StateShape& n, A* at)
        : count(at), top(at + 1), total(top + n.slots), values(total + n.slots), keys(values + n.slots * n.columns) {}
    HD A* begin() const { return count; }  // the first of StateShape::numbers() numbers
};

// Clears a State. If n.exponential is true, `top` becomes `far`: minus infinity or, for an adjoint (the state of the
// backward, see below), infinity. If n.gated is true, `top` becomes 1. All other numbers become 0.
template <class Lanes, class A>
HD void clear_state(Lanes lanes, const StateShape& n, const State<A>& state, double far = -INFINITY) {
    const A top = A(n.exponential ? far : n.gated ? 1.0 : 0.0);
    meet(lanes);
    each(lanes, n.numbers(), [&](int i) { state.begin()[i] = i >= 1 && i <= n.slots ? top : A(0); });
    meet(lanes);
}

template <class A>
HD A gate_of(const A* logit) {
    return A(1) / (A(1) + exp_of(-*logit));
}

// Returns the larger of the running maximum `most` and x. All sums of a slot are stored divided by exp(maximum). This
// factor cancels in y and needs no derivative, so the imaginary part of a complex x is dropped.
HD float larger(float most, float x) { return choose(x > most, x, most); }
HD double larger(double most, double x) { return x > most ? x : most; }
inline Complex larger(const Complex& most, const Complex& x) { return x.real() > most.real() ? x.real() : most; }

// to[d] = a to[d] + b from[d]
template <class Lanes, class A, class S>
HD void mix(Lanes lanes, int D, A* __restrict to, A a, A b, const S* __restrict from) {
    if (a == A(1))
        each(lanes, D, [&](int d) { to[d] = mul_add(b, A(from[d]), to[d]); });
    else
        each(lanes, D, [&](int d) { to[d] = mul_add(b, A(from[d]), a * to[d]); });
}

// A key row that a state of R slots absorbs. The pack says how much of the key each slot absorbs: R numbers, or 2R if
// StateShape::paired. key and value are (D). gate is the logit of the key's gate; null if the state has no gates.
template <class S, class A>
struct StateKey {
    const A* pack;
    const S *key, *value;
    const A* gate;
};

// Absorbs one key into the state. `scratch` is (2R).
template <class Lanes, class S, class A>
HD void add_key(Lanes lanes, const StateShape& n, const State<A>& to, const StateKey<S, A>& key, A* scratch) {
    const int R = n.slots, D = n.columns;
    A *old = scratch, *now = scratch + R;
    const A scale = A(n.scale), g = n.gated ? gate_of(key.gate) : A(1), fresh = n.gated ? A(1) - g : A(1);
    meet(lanes);
    // One loop per kind of pack: a loop with a branch inside does not vectorise.
    if (n.exponential)
        each(lanes, R, [&](int r) {
            const A scaled = scale * key.pack[r], top = larger(to.top[r], scaled);
            old[r] = exp_of(to.top[r] - top), now[r] = exp_of(scaled - top);
            to.top[r] = top;
        });
    else
        each(lanes, R, [&](int r) { old[r] = g, now[r] = fresh * (scale * key.pack[r]), to.top[r] *= g; });
    each(lanes, R, [&](int r) { to.total[r] = old[r] * to.total[r] + now[r]; });
    if (first(lanes)) *to.count += A(1);
    meet(lanes);
    for (int r = 0; r < R; r++) {
        mix(lanes, D, to.values + r * D, old[r], n.paired ? scale * key.pack[R + r] : now[r], key.value);
        if (n.attends) mix(lanes, D, to.keys + r * D, old[r], now[r], key.key);
    }
}

// Merges the states of two consecutive ranges of keys: `earlier` has absorbed the first range, and `state` the second.
// Afterwards, `state` is as if it had absorbed the keys of both ranges, in order. `scratch` is (2R).
template <class Lanes, class A>
HD void join_states(Lanes lanes, const StateShape& n, const State<A>& earlier, const State<A>& state, A* scratch) {
    const int R = n.slots, D = n.columns;
    meet(lanes);
    const bool empty = real_of(*state.count) == 0, alone = real_of(*earlier.count) == 0;
    meet(lanes);
    if (empty) each(lanes, n.numbers(), [&](int i) { state.begin()[i] = earlier.begin()[i]; });
    if (empty || alone) return meet(lanes);
    A *old = scratch, *own = scratch + R;
    each(lanes, R, [&](int r) {
        old[r] = own[r] = A(1);
        if (n.gated) {
            old[r] = state.top[r];
            state.top[r] *= earlier.top[r];
        }
        if (n.exponential) {
            const A top = larger(state.top[r], earlier.top[r]);
            old[r] = exp_of(earlier.top[r] - top), own[r] = exp_of(state.top[r] - top);
            state.top[r] = top;
        }
        state.total[r] = own[r] * state.total[r] + old[r] * earlier.total[r];
    });
    meet(lanes);
    if (first(lanes)) *state.count += *earlier.count;
    for (int r = 0; r < R; r++) {
        mix(lanes, D, state.values + r * D, own[r], old[r], earlier.values + r * D);
        if (n.attends) mix(lanes, D, state.keys + r * D, own[r], old[r], earlier.keys + r * D);
    }
    meet(lanes);
}

// The result of read_state() for a query x and a state of R slots: the divisor of y.
template <class A>
struct Reading {
    // The number by which y is divided. n_r is the sum of weights of slot r. There are four cases:
    //     StateShape::attends         the divisor of the softmax over the slots: sum_r exp(score_r - largest score)
    //     kernel, exponential packs   sum_r exp(x_r - s) n_r for log features x_r of the query, where s is the maximum
    //                                 over all slots r of x_r + (running maximum of slot r)
    //     kernel, other packs         sum_r x_r n_r for features x_r of the query or, if `held`, the lower bound
    //     otherwise                   1
    A sum;
    bool held;  // true if the divisor was set to its lower bound, StateShape::floor
};

template <class A>
HD A divisor(const StateShape& n, const State<A>& state, int r) {
    return n.exponential ? state.total[r] : *state.count;
}

// Reads a state of R slots for a query x. Sets `weights` (R) so that y = sum_r weights_r values_r, where values_r is
// slot r of State::values. The weights include the division of values_r by n_r (see the top of this file). If
// StateShape::attends is set, also sets `scores` (R) to x . K_r / sqrt(D), where K_r is the weighted mean of the keys
// in slot r.
template <class Lanes, class X, class A>
HD Reading<A> read_state(Lanes lanes, const StateShape& n, const State<A>& state, const X* x, A* weights, A* scores) {
    const int R = n.slots, D = n.columns;
    Reading<A> reading{A(1), false};
    meet(lanes);
    if (n.attends) {
        for (int r = 0; r < R; r++) {
            const A b = sum(lanes, D, [&](int d) { return state.keys[r * D + d] * A(x[d]); });
            if (first(lanes)) scores[r] = b / (divisor(n, state, r) * A(sqrt_of(double(D))));
        }
        meet(lanes);
    }
    if (n.attends || (n.kernel && n.exponential)) {
        const auto score = [&](int r) { return n.attends ? scores[r] : A(x[r]) + state.top[r]; };
        const A most = A(top(lanes, R, score));
        if (n.attends)
            each(lanes, R, [&](int r) { weights[r] = exp_of(scores[r] - most); });
        else
            each(lanes, R, [&](int r) { weights[r] = exp_of(A(x[r]) + state.top[r] - most); });
        reading.sum = sum(lanes, R, [&](int r) { return n.attends ? weights[r] : weights[r] * state.total[r]; });
        each(lanes, R, [&](int r) { weights[r] /= n.attends ? reading.sum * divisor(n, state, r) : reading.sum; });
    } else if (n.kernel) {
        const A s = sum(lanes, R, [&](int r) { return A(x[r]) * state.total[r]; });
        const double least = n.floor * (n.gated ? 1 : real_of(*state.count));
        reading.held = real_of(s) < least && -real_of(s) < least;
        reading.sum = reading.held ? A(real_of(s) < 0 ? -least : least) : s;
        each(lanes, R, [&](int r) { weights[r] = A(x[r]) / reading.sum; });
    } else {
        each(lanes, R, [&](int r) { weights[r] = A(x[r]) / divisor(n, state, r); });
    }
    meet(lanes);
    return reading;
}

// Computes y (D), the sum over the slots r of weights_r values_r. `row` (D) is scratch memory.
template <class Lanes, class S, class A>
HD void read_values(Lanes lanes, const StateShape& n, const State<A>& state, const A* weights, A* row, S* y) {
    each(lanes, n.columns, [&](int d) { row[d] = A(0); });
    for (int r = 0; r < n.slots; r++) mix(lanes, n.columns, row, A(1), weights[r], state.values + r * n.columns);
    store(lanes, n.columns, y, false, [&](int d) { return row[d]; });
}

// The numbers of a query x with result y that the backward of the keys needs: four for each slot r. n_r is the sum of
// weights or the number of keys by which the sums of slot r are divided (see the top of this file).
//     value      factor of dy in the gradient of the weighted sum of values
//     key        factor of x in the gradient of the weighted sum of keys
//     lost       subtracted from the gradient of every weight in slot r, because a divisor (n_r or the divisor of y)
//                contains the weight, too
//     log_total  exponential packs: log n_r. Gated packs: the derivative of the loss with respect to the log of a
//                factor that all weights have in common. The division cancels the factor, so the derivative is 0,
//                unless the divisor was set to its lower bound
template <class A>
struct QueryTrace {
    A *value, *key, *lost, *log_total;
    HD QueryTrace(int R, A* at) : value(at), key(at + R), lost(at + 2 * R), log_total(at + 3 * R) {}
};

// Computes the QueryTrace of a query x, and stores or adds the gradient dx. `row` is scratch memory of 2 R + D numbers,
// for R slots of D columns.
template <class Lanes, class S, class X, class A>
HD void read_grad(Lanes lanes, const StateShape& n, const State<A>& state, const X* x, const S* dy, X* dx, bool add,
                  const QueryTrace<A>& trace, A* row) {
    const int R = n.slots, D = n.columns;
    A *weights = row, *scores = row + R, *dq = row + 2 * R;
    const Reading<A> reading = read_state(lanes, n, state, x, weights, scores);
    for (int r = 0; r < R; r++) {  // u_r = dy . (values of slot r)
        const A u = sum(lanes, D, [&](int d) { return state.values[r * D + d] * A(dy[d]); });
        if (first(lanes)) trace.key[r] = u;
    }
    meet(lanes);
    const A along = sum(lanes, R, [&](int r) { return weights[r] * trace.key[r]; });  // dy . y
    each(lanes, R, [&](int r) {
        const A u = trace.key[r], total = divisor(n, state, r);
        A lost(0), key(0);
        if (n.attends) {
            const A db = weights[r] * (u - along * total);
            key = db / A(sqrt_of(double(D)));
            lost = weights[r] * u + db * scores[r];
        } else if (n.kernel) {
            lost = reading.held ? A(0) : along * weights[r];
            if (n.exponential)
                lost *= total, key = weights[r] * u - lost;
            else
                key = (u - (reading.held ? A(0) : along * state.total[r])) / reading.sum;
        } else {
            key = u / total;
            lost = n.exponential ? weights[r] * u : A(0);
        }
        trace.value[r] = n.exponential ? weights[r] * total : weights[r];
        trace.key[r] = key;
        trace.lost[r] = lost;
        if (n.attends && !n.exponential) trace.key[r] /= total, trace.lost[r] = A(0);
    });
    if (n.exponential)
        each(lanes, R, [&](int r) { trace.log_total[r] = state.top[r] + log_of(state.total[r]); });
    else
        each(lanes, R, [&](int r) { trace.log_total[r] = reading.held ? along : A(0); });
    meet(lanes);
    if (dx && !n.attends) store(lanes, R, dx, add, [&](int r) { return trace.key[r]; });
    if (!dx || !n.attends) return;
    each(lanes, D, [&](int d) { dq[d] = A(0); });
    for (int r = 0; r < R; r++)
        mix(lanes, D, dq, A(1), n.exponential ? trace.key[r] / state.total[r] : trace.key[r], state.keys + r * D);
    store(lanes, D, dx, add, [&](int d) { return dq[d]; });
}

// The adjoint is the state of the backward, which runs from the last query to the first. The adjoint has the layout of
// a State, and holds sums over the queries added so far. The gradients of a key are computed from these sums:
//     top            exponential packs: log n_r, where n_r is the sum of weights that slot r had for the query added
//                    last; all sums of the slot are multiplied by this n_r. Gated packs: product of the gates so far
//     total          sum of QueryTrace::lost
//     values, keys   weighted sums of dy and of x

// Multiplies the adjoint by the gate of a key. The backward calls this before it continues with the earlier keys.
template <class Lanes, class A>
HD void fade_adjoint(Lanes lanes, const StateShape& n, const State<A>& adjoint, const A* gate) {
    const A g = gate_of(gate);
    meet(lanes);
    each(lanes, n.slots, [&](int r) { adjoint.top[r] *= g, adjoint.total[r] *= g; });
    each(lanes, n.slots * n.columns, [&](int i) { adjoint.values[i] *= g; });
    meet(lanes);
}

// Merges the adjoints of two consecutive ranges of rows: `adjoint` holds the first range, and `later` the second.
// Afterwards, `adjoint` holds both. `scratch` is (R).
template <class Lanes, class A>
HD void join_adjoint(Lanes lanes, const StateShape& n, const State<A>& adjoint, const State<A>& later, A* scratch) {
    const int R = n.slots, D = n.columns;
    meet(lanes);
    each(lanes, R, [&](int r) {
        scratch[r] = n.gated ? adjoint.top[r] : A(1);
        if (n.gated) adjoint.top[r] *= later.top[r];
        if (n.exponential) {
            const bool none = real_of(adjoint.top[r]) == INFINITY;  // true if `adjoint` contains no query
            scratch[r] = none ? A(1) : exp_of(adjoint.top[r] - later.top[r]);
            if (none) adjoint.top[r] = later.top[r];
        }
        adjoint.total[r] += scratch[r] * later.total[r];
    });
    meet(lanes);
    for (int r = 0; r < R; r++) {
        mix(lanes, D, adjoint.values + r * D, A(1), scratch[r], later.values + r * D);
        if (n.attends) mix(lanes, D, adjoint.keys + r * D, A(1), scratch[r], later.keys + r * D);
    }
    meet(lanes);
}

// Adds one query to the adjoint. `scratch` is (R).
template <class Lanes, class S, class X, class A>
HD void add_query(Lanes lanes, const StateShape& n, const State<A>& to, const QueryTrace<A>& trace, const X* x,
                  const S* dy, A* scratch) {
    const int R = n.slots, D = n.columns;
    meet(lanes);
    if (n.exponential)
        each(lanes, R, [&](int r) {
            scratch[r] = exp_of(trace.log_total[r] - to.top[r]);
            to.top[r] = A(real_of(trace.log_total[r]));
        });
    else
        each(lanes, R, [&](int r) { scratch[r] = A(1); });
    each(lanes, R, [&](int r) { to.total[r] = scratch[r] * to.total[r] + trace.lost[r]; });
    meet(lanes);
    for (int r = 0; r < R; r++) {
        mix(lanes, D, to.values + r * D, scratch[r], trace.value[r], dy);
        if (n.attends) mix(lanes, D, to.keys + r * D, scratch[r], trace.key[r], x);
    }
}

// Adds the gradients of one key to ds (R or 2R, the gradient of the pack before the multiplication by `scale`), dk (D)
// and dv (D). ds and dv may be null. dk is used only if dv is not null and StateShape::attends is set. If the state has
// gates, returns sum_r w_r dloss/dw_r, where w_r are the weights of this key. This is the derivative of the loss with
// respect to the log of a factor that all w_r have in common. If the state has no gates, the result must not be used.
// `row` (R + 2D) is scratch memory.
template <class Lanes, class S, class A>
HD A key_grad(Lanes lanes, const StateShape& n, const State<A>& adjoint, const StateKey<S, A>& key, A* ds, S* dk, S* dv,
              A* row) {
    const int R = n.slots, D = n.columns;
    A *weights = row, *to_v = row + R, *to_k = to_v + D, along(0);
    const A scale = A(n.scale), fresh = n.gated ? A(1) - gate_of(key.gate) : A(1);
    meet(lanes);
    if (n.exponential)
        each(lanes, R, [&](int r) { weights[r] = exp_of(scale * key.pack[r] - adjoint.top[r]); });
    else
        each(lanes, R, [&](int r) { weights[r] = fresh * (scale * key.pack[r]); });
    each(lanes, D, [&](int d) { to_v[d] = to_k[d] = A(0); });
    meet(lanes);
    for (int r = 0; r < R; r++) {
        const A *of_v = adjoint.values + r * D, *of_k = adjoint.keys + r * D;
        if (dv) mix(lanes, D, to_v, A(1), n.paired ? scale * key.pack[R + r] : weights[r], of_v);
        if (dv && n.attends) mix(lanes, D, to_k, A(1), weights[r], of_k);
        if (!ds && !n.gated) continue;
        A g = sum(lanes, D, [&](int d) { return of_v[d] * A(key.value[d]); });
        if (n.paired) {
            if (first(lanes)) ds[R + r] += scale * g;
            g = A(0);
        }
        if (n.attends) g += sum(lanes, D, [&](int d) { return of_k[d] * A(key.key[d]); });
        g -= adjoint.total[r];
        along += weights[r] * g;
        if (ds && first(lanes)) ds[r] += scale * (n.exponential ? weights[r] : fresh) * g;
    }
    if (dv) store(lanes, D, dv, true, [&](int d) { return to_v[d]; });
    if (dv && n.attends) store(lanes, D, dk, true, [&](int d) { return to_k[d]; });
    return along;
}

}  // namespace masquerade
