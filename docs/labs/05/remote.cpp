// SPDX-License-Identifier: MIT
// The functions of lab 5 that the check calls in the student's process. REMOTE lists the result type, the name and the
// parameters of a function, then its arguments as they are sent (docs/labs/remote/judge.h).
#include "docs/labs/05/lab.h"
#include "docs/labs/remote/both.h"
#include "engine/ops/cpu/parallel.h"

#ifndef LAB_JUDGE
static const bool has_one_thread = (masquerade::set_threads(1), true);  // the cage forbids starting threads
#endif

namespace remote {

// A tensor is sent to the student's process and back as a whole, with the numbers that are behind it in memory.
using masquerade::Grad;
using masquerade::View;
#ifdef LAB_JUDGE
static std::size_t bytes_of(const View& v) {
    return v.data ? std::size_t(v.shape.count()) * masquerade::bytes_of(v.dtype) +
                        beside.behind * masquerade::bytes_of(v.dtype)
                  : 0;
}
void put_value(Message& m, const View& v) {
    put(m, bool(v)), put(m, v.dtype), put(m, v.rows()), put(m, v.columns()), put(m, std::string(v.path));
    put(m, std::string(static_cast<const char*>(v.data), bytes_of(v)));
}
void put_value(Message& m, const Grad& g) { put(m, g.view), put(m, g.add); }
void take_back(Message& m, const View& v) {
    std::string all;
    take(m, all);
    if (all.size() != bytes_of(v)) throw Broken("a tensor came back with another size");
    if (v.data) std::memcpy(v.data, all.data(), all.size());
}
void take_back(Message& m, const Grad& g) { take_back(m, g.view); }
#else
template <>
struct Parameter<View> {
    View v;
    std::string path;
    std::vector<std::max_align_t> all;
    std::string numbers;
    void read(Message& m) {
        bool is_there;
        std::int64_t rows, columns;
        take(m, is_there), take(m, v.dtype), take(m, rows), take(m, columns), take(m, path), take(m, numbers);
        all.resize(numbers.size() / sizeof(std::max_align_t) + 1);
        std::memcpy(all.data(), numbers.data(), numbers.size());
        v.shape = {rows, columns}, v.path = path.c_str(), v.data = is_there ? all.data() : nullptr;
    }
    View value() { return v; }
    void back(Message& m) { put(m, std::string(reinterpret_cast<const char*>(all.data()), numbers.size())); }
};
template <>
struct Parameter<Grad> : Parameter<View> {
    bool add = false;
    void read(Message& m) { Parameter<View>::read(m), take(m, add); }
    Grad value() { return {v, add}; }
};
#endif

}  // namespace remote

namespace masquerade {

namespace DEVICE {
REMOTE(void, swiglu_forward, (View x, View y), x, y)
REMOTE(void, swiglu_backward, (View dy, View x, Grad dx), dy, x, dx)
}  // namespace DEVICE

#ifdef LAB_JUDGE
template <>
void swiglu_row<double, double>(Lane l, const double* x, double* y, int F) {
    remote::call<void>("swiglu_row", l.lane, l.lanes, remote::many(x, 2 * F), remote::many(y, F), F);
}
template <>
void swiglu_row_grad<double, double>(Lane l, const double* dy, const double* x, double* dx, bool add, int F) {
    remote::call<void>("swiglu_row_grad", l.lane, l.lanes, remote::many(dy, F), remote::many(x, 2 * F),
                       remote::many(dx, 2 * F), add, F);
}
#else
static void row(int lane, int lanes, const double* x, double* y, int F) {
    swiglu_row<double, double>(Lane{lane, lanes}, x, y, F);
}
static void row_grad(int lane, int lanes, const double* dy, const double* x, double* dx, bool add, int F) {
    swiglu_row_grad<double, double>(Lane{lane, lanes}, dy, x, dx, add, F);
}
static const remote::Served served_row("swiglu_row", row), served_row_grad("swiglu_row_grad", row_grad);
#endif

}  // namespace masquerade
