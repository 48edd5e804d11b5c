// SPDX-License-Identifier: MIT
// Lab 0, solved. Each op gives the parts of its inputs' gradients; the walk adds the parts up.
#include "docs/labs/00/lab.h"

#include <cmath>
#include <unordered_set>

namespace lab {

// For each op, the parts of the gradients of a and b that come from y.
static Pair of_sum(double, double, double, double dy) { return {dy, dy}; }
static Pair of_difference(double, double, double, double dy) { return {dy, -dy}; }
static Pair of_product(double a, double b, double, double dy) { return {dy * b, dy * a}; }
static Pair of_quotient(double, double b, double y, double dy) { return {dy / b, -dy * y / b}; }
static Pair of_exp(double, double, double y, double dy) { return {dy * y, 0}; }
static Pair of_log(double a, double, double, double dy) { return {dy / a, 0}; }
static Pair of_tanh(double, double, double y, double dy) { return {dy * (1 - y * y), 0}; }

const Op add_op{"add", 2, [](double a, double b) { return a + b; }, of_sum};
const Op subtract_op{"subtract", 2, [](double a, double b) { return a - b; }, of_difference};
const Op multiply_op{"multiply", 2, [](double a, double b) { return a * b; }, of_product};
const Op divide_op{"divide", 2, [](double a, double b) { return a / b; }, of_quotient};
const Op exp_op{"exp", 1, [](double a, double) { return std::exp(a); }, of_exp};
const Op log_op{"log", 1, [](double a, double) { return std::log(a); }, of_log};
const Op tanh_op{"tanh", 1, [](double a, double) { return std::tanh(a); }, of_tanh};

Node* record(Tape& tape, const Op& op, Node* a, Node* b) {
    tape.emplace_back(op.forward(a->value, b ? b->value : 0), op, a, b);
    return &tape.back();
}

// Walks down from the loss. A node gets its place when all nodes below it have one. `path` leads from the loss to the
// node where the walk is; it lies in memory of its own, not on the stack.
std::vector<Node*> order(Node* loss) {
    struct Visit {
        Node* node;
        int next;  // the input to go to next
    };
    std::vector<Node*> done;
    std::unordered_set<Node*> seen = {loss};
    std::vector<Visit> path = {{loss, 0}};
    while (!path.empty()) {
        Visit& here = path.back();
        if (here.next == 2) {
            done.push_back(here.node);
            path.pop_back();
            continue;
        }
        Node* const below = here.node->input(here.next++);
        if (below && seen.insert(below).second) path.push_back({below, 0});
    }
    return done;
}

void backward(Node* loss) {
    const std::vector<Node*> nodes = order(loss);
    for (Node* node : nodes) node->gradient = 0;
    loss->gradient = 1;
    for (auto at = nodes.rbegin(); at != nodes.rend(); ++at) {
        const Node& y = **at;
        if (!y.op) continue;
        Node *const a = y.input(0), *const b = y.input(1);
        const Pair d = y.op->backward(a->value, b ? b->value : 0, y.value, y.gradient);
        a->gradient += d.a;
        if (b) b->gradient += d.b;
    }
}

}  // namespace lab
