// SPDX-License-Identifier: MIT
// ListOps (Nangia and Bowman 2018), with the sizes of Long Range Arena (Tay et al. 2020):
//
//   [CLS] max 2 9 min 4 7 end 0 end        at [CLS], the model must predict the value of the expression, 9
//
// An argument is a digit with probability 3/4; at the greatest depth, it is always a digit. Otherwise, the argument
// is an expression: one of four operators, two or more arguments, and `end`.
#include <algorithm>
#include <numeric>

#include "data/tasks/examples.h"

namespace masquerade {
namespace {

enum : int { max_op = first_word, min_op, med_op, sum_op, end_op, zero };

// The number of tokens of a whole expression is more than `shortest` and less than `longest`.
struct Sizes {
    int shortest, longest, depth, arguments;  // depth: greatest depth; arguments: most arguments of one operator
};

// Returns the value of an operator with the arguments v. med is the median; if the number of arguments is even, it is
// the mean of the two middle values, rounded down. sum is the sum modulo 10.
int value_of(int op, std::vector<int> v) {
    std::sort(v.begin(), v.end());
    const std::size_t n = v.size();
    const int sum = std::accumulate(v.begin(), v.end(), 0);
    return op == max_op   ? v.back()
           : op == min_op ? v.front()
           : op == sum_op ? sum % 10
                          : (v[(n - 1) / 2] + v[n / 2]) / 2;
}

// Appends a random digit or expression to `tokens` and returns its value.
int expression(std::vector<int>& tokens, int depth, const Sizes& sizes, Sequence& random) {
    if (depth == sizes.depth || random.uniform_double() > 0.25) {
        tokens.push_back(zero + random.below(10));
        return tokens.back() - zero;
    }
    const int op = max_op + random.below(4);
    tokens.push_back(op);
    std::vector<int> values(2 + random.below(sizes.arguments - 1));
    for (int& value : values) value = expression(tokens, depth + 1, sizes, random);
    tokens.push_back(end_op);
    return value_of(op, values);
}

Solved within(const Sizes& sizes, Sequence& random) {
    for (;;) {
        Solved s{{cls_id}, {0}, {}};
        s.answers.push_back(zero + expression(s.tokens, 1, sizes, random));
        if (int n = int(s.tokens.size()) - 1; n > sizes.shortest && n < sizes.longest) return s;
    }
}

}  // namespace

WordList listops_words(const TaskOptions&) {
    WordList words = {"max", "min", "med", "sum", "end"};
    add_numbered(words, "", 10);
    return words;
}

Solved listops(const TaskOptions&, Sequence& random) { return within({500, 2000, 10, 10}, random); }
Solved listops_mini(const TaskOptions&, Sequence& random) { return within({20, 100, 6, 5}, random); }

int root_operator(const Solved& s) { return s.tokens[1]; }

// A clue for a baseline, made of three numbers: the outermost operator; the value of this operator for those of its
// arguments that are digits, or 10 if there are none; and the number of its arguments that are expressions.
int root_and_digits(const Solved& s) {
    std::vector<int> digits;
    int depth = 0, others = 0;
    for (int token : s.tokens) {
        if (token >= zero && depth == 1) digits.push_back(token - zero);
        others += depth == 1 && token < end_op;
        depth += token == end_op ? -1 : token >= max_op && token < end_op;
    }
    return s.tokens[1] * 1000 + (digits.empty() ? 10 : value_of(s.tokens[1], digits)) * 20 + others;
}

}  // namespace masquerade
