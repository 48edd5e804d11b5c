// SPDX-License-Identifier: MIT
// Declarations shared by the files of the op table.
#pragma once
#include "engine/nn/functions.h"
#include "engine/check/ladder_record.h"

#include <tuple>

namespace masquerade::ladder {

// `count` random integers in [0, bound), with repeats.
std::vector<int> some_below(int count, int bound, std::uint32_t salt);
// `count` distinct integers in [0, bound), in random order.
std::vector<int> different_below(int count, int bound);
// Normal numbers with this standard deviation.
Draw scaled(double deviation);

// A mask over packed documents, for the rows of attention.
struct Layout {
    SegmentGraph graph;
    int keys[2] = {0, 0};  // rows of the two key sources; 0: no such source
};
using Build = std::function<Layout(int rows)>;
Build by_rule(Rule rule);      // each document is one segment
Layout with_latent(int rows);  // UniVAE's decoder: causal, and each document sees one row of a second source
Layout prefix(int rows);       // UniLM: the first half is full; the second is causal and sees the first

// The parameter list of an op, as text from ops.h: "(View x, View w, View b, View y)".
template <auto slot>
inline constexpr const char* parameters_of = "";
#define OP(name, parameters) \
    template <>              \
    inline constexpr const char* parameters_of<&OpTable::name> = #parameters;
#include "engine/ops/ops.h"
#undef OP

// The names in a parameter list: "x", "w", "b", "y".
inline std::vector<std::string> names_in(const std::string& parameters) {
    std::vector<std::string> names;
    for (std::size_t end = 0; (end = parameters.find_first_of(",)", end + 1)) != std::string::npos;) {
        const std::size_t begin = parameters.rfind(' ', end) + 1;
        names.push_back(parameters.substr(begin, end - begin));
    }
    return names;
}

// The argument of a case for the parameter `name`: View x is the tensor x, Grad dx its gradient, and View dy the
// cotangent of y; absent if the case has no such tensor. RowNames come from the lists "document" and "position". Any
// other type is taken from `others`.
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

template <auto slot, class... Parameters, class Others>
std::function<void(const Call&)> call_by_names(void (*OpTable::*)(Parameters...), const Others& others) {
    return [others, names = names_in(parameters_of<slot>)](const Call& a) {
        auto name = names.begin();
        // braces fix the order of evaluation
        const std::tuple<Parameters...> all{argument<Parameters>(a, *name++, others)...};
        std::apply(masquerade::detail::Call<slot>{}, all);
    };
}

// Calls an op with the tensors and lists that have the names of its parameters.
template <auto slot, class... Others>
std::function<void(const Call&)> by_names(masquerade::detail::Call<slot>, Others... others) {
    return call_by_names<slot>(slot, std::tuple(others...));
}

std::vector<Op> attention_ops();
std::vector<Op> state_ops();
std::vector<Op> insertion_ops();
std::vector<Op> code_ops();
std::vector<Op> bucket_ops();  // lsh_attention, sinkhorn

}  // namespace masquerade::ladder
