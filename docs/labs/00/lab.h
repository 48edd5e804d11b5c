// SPDX-License-Identifier: MIT
// Lab 0: the ops and the three functions that you write in lab.cpp.
#pragma once
#include <deque>
#include <functional>
#include <stdexcept>
#include <vector>

namespace lab {

struct Pair {
    double a, b;
};

// One kind of operation, y = f(a, b). The tape knows nothing else about it. If an op has one input, b is 0.
struct Op {
    const char* name;
    int inputs;                                         // 1 or 2
    std::function<double(double a, double b)> forward;  // returns y
    // Returns the parts of the gradients of a and b that come from y: dy times the derivative of y. dy is the gradient
    // of y. If the op has one input, the second part is not used.
    std::function<Pair(double a, double b, double y, double dy)> backward;
};

// The ops that you write: a + b, a - b, a b, a / b, exp(a), log(a) and tanh(a).
extern const Op add_op, subtract_op, multiply_op, divide_op, exp_op, log_op, tanh_op;

// A number: either a given one, or the result of an op.
class Node {
  public:
    explicit Node(double given) : value(given) {}
    Node(double computed, const Op& by, Node* a, Node* b) : value(computed), op(&by), inputs_{a, b} {}

    double value, gradient = 0;
    const Op* op = nullptr;  // null if the number is given
    // Returns input 0 (a) or 1 (b); null if there is none. The calls are counted, and the check sets a limit.
    Node* input(int i) const {
        if (++calls > most_calls)
            throw std::runtime_error("input() is called more than 100 times as often as there are nodes");
        return inputs_[i];
    }

    static inline long calls = 0, most_calls = 1L << 40;

  private:
    Node* inputs_[2] = {nullptr, nullptr};
};

// The memory of the nodes. The address of a node does not change when more nodes are added.
using Tape = std::deque<Node>;

// Computes op(a, b) from the values of a and b, appends the result to the tape, and returns it. b is null if the op has
// one input. a and b may be the same node.
Node* record(Tape& tape, const Op& op, Node* a, Node* b);

// Returns the nodes that the loss depends on, the loss and the given numbers included. Each node occurs once, and
// behind its inputs: the loss is the last one.
std::vector<Node*> order(Node* loss);

// Stores the gradient of the loss with respect to each node of order(loss): whatever the gradients contained before is
// overwritten. The gradients of all other nodes stay as they are. Calls the backward of each op once, and no forward.
void backward(Node* loss);

}  // namespace lab
