// SPDX-License-Identifier: MIT
// Declarations shared by the files of the op table.
#pragma once
#include "engine/nn/functions.h"
#include "engine/check/ladder_record.h"
#include "engine/tape/op_record.h"

namespace masquerade::ladder {

// Returns `count` random integers in [0, bound), with repeats.
std::vector<int> some_below(int count, int bound, std::uint32_t salt);
// Returns `count` distinct integers in [0, bound), in random order.
std::vector<int> different_below(int count, int bound);
// Draws normal numbers with this standard deviation.
Draw scaled(double deviation);

// A mask over packed documents, for the rows of attention.
struct Layout {
    SegmentGraph graph;
    int keys[2] = {0, 0};  // rows of the two key sources; 0: no such source
};
using Build = std::function<Layout(int rows)>;
Build by_rule(Rule rule);      // each document is one segment with this rule
Layout with_latent(int rows);  // as in UniVAE's decoder: causal, and each document sees one row of a second source
Layout prefix(int rows);       // as in UniLM: both halves see the whole first half; the second half is causal

// Returns the argument for the parameter `name` of an op. A View x is the tensor x of the case, a Grad dx its gradient,
// a View dy the cotangent of y; they are absent if the case has no such tensor. Ints are the list of this name,
// RowNames the lists "document" and "position". An argument of any other type is taken from `others`.
template <class T, class Others>
T argument(const Call& a, const std::string& name, const Others& others) {
    const std::string without_d = name.substr(1);
    if constexpr (std::is_same_v<T, Grad>)
        return a.has(without_d) ? a.grad(without_d) : Grad{};
    else if constexpr (std::is_same_v<T, Ints>)
        return a.ints(name);
    else if constexpr (std::is_same_v<T, RowNames>)
        return a.rows();
    else if constexpr (!std::is_same_v<T, View>)
        return std::get<T>(others);
    else if (a.has(name))
        return a(name);
    else
        return name[0] == 'd' && a.has(without_d) ? a.d(without_d) : View{};
}

template <class Op, class Others, std::size_t... I>
void call_by_names(const Call& a, const Others& others, std::index_sequence<I...>) {
    typename Op::InOrder{argument<std::tuple_element_t<I, typename Op::Parameters>>(
        a, std::string(name_of_parameter(Op::parameters, I)), others)...};
}

// Returns a function that calls an op with the tensors and lists that have the names of its parameters.
template <class Op, class... Others>
std::function<void(const Call&)> by_names(Op, Others... others) {
    return [others = std::tuple(others...)](const Call& a) { call_by_names<Op>(a, others, typename Op::Places()); };
}

std::vector<Op> attention_ops();
std::vector<Op> state_ops();
std::vector<Op> insertion_ops();
std::vector<Op> code_ops();
std::vector<Op> bucket_ops();  // lsh_attention, sinkhorn

}  // namespace masquerade::ladder
