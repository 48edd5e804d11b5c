// SPDX-License-Identifier: MIT
// Runs a program of ops on the student's tape. In the grader, this happens in the student's process.
#pragma once
#include <unordered_map>

#include "docs/labs/00/lab.h"
#include "docs/labs/check.h"

namespace lab {

// Line i computes number i. Its op is a number of `Code`. Its inputs are the numbers of earlier lines, or -1.
struct Program {
    std::vector<int> op, a, b;
    Numbers given;  // the value of a line whose op is `number`
};
// `asked`: an op whose forward and backward are functions of the check. `sign`: y = -a.
enum Code {
    number_code = -1,
    add_code,
    subtract_code,
    multiply_code,
    divide_code,
    exp_code,
    log_code,
    tanh_code,
    asked_code,
    sign_code
};
constexpr int own_ops = 7;
inline const Op& own_op(int code) {
    const Op* const all[own_ops] = {&add_op, &subtract_op, &multiply_op, &divide_op, &exp_op, &log_op, &tanh_op};
    return *all[code];
}

using Forward = std::function<double(double a, double b)>;
using Backward = std::function<Pair(double a, double b, double y, double dy)>;

struct Played {
    Numbers values, gradients;
    std::vector<int> order;  // of the last loss: the line of each node, -1 for a node that is not on the tape
    std::string fault;       // what makes it impossible to go on
};

// Records the program, and calls backward() for each of the losses, one after the other. Returns the gradients after
// the last call.
inline Played play_here(const Program& p, const std::vector<int>& losses, const Forward& forward,
                        const Backward& backward_asked) {
    const Op asked{"asked", 2, forward, backward_asked};
    const Op sign{"sign", 1, [](double a, double) { return -a; },
                  [](double, double, double, double dy) {
                      return Pair{-dy, 0};
                  }};
    Tape tape;
    std::vector<Node*> nodes;
    std::unordered_map<const Node*, int> lines;
    Played result;
    const int n = int(p.op.size());
    for (int i = 0; i < n; i++) {
        const auto at = std::size_t(i);
        const auto input = [&](int line) { return line < 0 ? nullptr : nodes[std::size_t(line)]; };
        const int code = p.op[at];
        if (code == number_code)
            tape.emplace_back(p.given[at]), nodes.push_back(&tape.back());
        else
            nodes.push_back(record(tape,
                                   code == asked_code  ? asked
                                   : code == sign_code ? sign
                                                       : own_op(code),
                                   input(p.a[at]), input(p.b[at])));
        if (!nodes.back()) return {{}, {}, {}, "record is not written"};
        if (!lines.emplace(nodes.back(), i).second) return {{}, {}, {}, "record returns a node that was there before"};
    }
    Node::calls = 0, Node::most_calls = 100L * n + 100;
    for (int loss : losses) backward(nodes[std::size_t(loss)]);
    for (const Node* node : order(nodes[std::size_t(losses.back())])) {
        const auto line = lines.find(node);
        result.order.push_back(line == lines.end() ? -1 : line->second);
    }
    Node::most_calls = 1L << 40;
    for (const Node* node : nodes) result.values.push_back(node->value), result.gradients.push_back(node->gradient);
    return result;
}
inline double forward_here(int code, double a, double b) { return own_op(code).forward(a, b); }
inline Pair backward_here(int code, double a, double b, double y, double dy) {
    return own_op(code).backward(a, b, y, dy);
}

// The functions that the check calls. The grader replaces them by functions that call the student's process.
inline Played (*play)(const Program&, const std::vector<int>&, const Forward&, const Backward&) = play_here;
inline double (*forward_of)(int, double, double) = forward_here;
inline Pair (*backward_of)(int, double, double, double, double) = backward_here;

}  // namespace lab
