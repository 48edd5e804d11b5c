// SPDX-License-Identifier: MIT
// The functions of lab 6 that the check calls in the student's process. REMOTE lists the result type, the name and the
// parameters of a function, then its arguments as they are sent (docs/labs/remote/judge.h).
//
// The student's process counts the work, and sends the counts with each result. Unlike a result, a count can be forged
// by the student's code.
#include "docs/labs/06/lab.h"
#include "docs/labs/remote/both.h"

template <class F>
void fields(F f, Layer& l) {
    f(l.number, l.q, l.k, l.v, l.o, l.up, l.down);
}
template <class F>
void fields(F f, Key& k) {
    f(k.k, k.v);
}
template <class F>
void fields(F f, Affine& a) {
    f(a.w, a.b);
}
template <class F>
void fields(F f, Latent& l) {
    f(l.in, l.out);
}
template <class F>
void fields(F f, Model& m) {
    f(m.max_length, m.tokens, m.positions, m.layers, m.latents);
}
template <class F>
void fields(F f, Joint& j) {
    f(j.z, j.y);
}
template <class F>
void fields(F f, Work& w) {
    f(w.keys, w.rows);
}

#ifdef LAB_JUDGE
static const bool is_counted = (
    remote::also =
        [](remote::Message& m) {
            Work more;
            take(m, more);
            for (const auto& [layer, count] : more.keys) work.keys[layer] += count;
            for (const auto& [layer, count] : more.rows) work.rows[layer] += count;
        },
    true);
#else
static const bool is_counted = (
    remote::also = [](remote::Message& m) { put(m, work), work = {}; }, true);
#endif

REMOTE(Mask, mask, (Kind kind, std::size_t source, std::size_t target), kind, source, target)
REMOTE(Joint, joint, (const Model& model, const Tokens& source, const Tokens& target), model, source, target)
REMOTE(Rows, encode, (const Model& model, const Tokens& source), model, source)
REMOTE(Rows, decode, (const Model& model, const Rows& z, const Tokens& target), model, z, target)
REMOTE(Cache, begin, (const Model& model, const Rows& z), model, z)
REMOTE(Row, step, (const Model& model, Cache& cache, int token), model, both(cache), token)
REMOTE(Leak, leak, (const Forward& forward, const Model& model, const Tokens& source, const Tokens& target), forward,
       model, source, target)
