// SPDX-License-Identifier: MIT
// The functions of lab 0 that the check calls in the student's process (docs/labs/remote/judge.h). A program of ops is
// sent as a whole. The check's own op is called back from the student's process.
#include "docs/labs/00/play.h"
#include "docs/labs/remote/both.h"

namespace lab {

template <class F>
void fields(F f, Pair& p) {
    f(p.a, p.b);
}
template <class F>
void fields(F f, Program& p) {
    f(p.op, p.a, p.b, p.given);
}
template <class F>
void fields(F f, Played& p) {
    f(p.values, p.gradients, p.order, p.fault);
}

#ifdef LAB_JUDGE
static Played play_there(const Program& p, const std::vector<int>& losses, const Forward& forward,
                         const Backward& backward) {
    Played all = remote::call<Played>("play", p, losses, forward, backward);
    if (all.fault.empty() && (all.values.size() != p.op.size() || all.gradients.size() != p.op.size()))
        throw remote::Broken("numbers are missing");
    return all;
}
static double forward_there(int code, double a, double b) { return remote::call<double>("forward", code, a, b); }
static Pair backward_there(int code, double a, double b, double y, double dy) {
    return remote::call<Pair>("backward", code, a, b, y, dy);
}
static const bool is_there = (play = play_there, forward_of = forward_there, backward_of = backward_there, true);
// The judge has no functions of a student.
const Op add_op{}, subtract_op{}, multiply_op{}, divide_op{}, exp_op{}, log_op{}, tanh_op{};
Node* record(Tape&, const Op&, Node*, Node*) { return nullptr; }
std::vector<Node*> order(Node*) { return {}; }
void backward(Node*) {}
#else
static const remote::Served served_play("play", play_here), served_forward("forward", forward_here),
    served_backward("backward", backward_here);
#endif

}  // namespace lab
