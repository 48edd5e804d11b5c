// SPDX-License-Identifier: MIT
// Declarations shared by the files of the op table.
#pragma once
#include "engine/nn/functions.h"
#include "engine/check/ladder.h"
#include "engine/tape/op_record.h"

namespace masquerade::ladder {

// The argument of Case::record: the tape on which this function records its op, and the tensors and lists of the case.
// tests/ops/records_test.cpp makes the tape and derives from this class.
class OnTape {
  public:
    OnTape(Tape& on, const Call& call) : tape(on), memory(call) {}
    virtual ~OnTape() = default;
    virtual Tensor* operator()(const std::string& name) const = 0;
    Ints ints(const std::string& name) const { return memory.ints(name); }

    Tape& tape;
    const Call& memory;
};

constexpr Kind arithmetic = Kind::arithmetic;

// Returns `count` random integers in [0, bound), with repeats. Another salt gives other integers.
std::vector<int> some_below(int count, int bound, std::uint32_t salt);
// Returns `count` distinct integers in [0, bound), in random order.
std::vector<int> different_below(int count, int bound);
Draw scaled(double deviation);             // normal numbers with this standard deviation
Draw with_zeros(double low, double high);  // uniform numbers, but those with index 1, 4, 7, ... are 0
Draw given(const std::vector<double>& numbers);

inline Shape matrix(Sizes n) { return {n.rows, n.columns}; }

// Adds the lists "document" and "position", from which dropout derives the random numbers of each row.
void name_rows(Case& c, int rows, std::uint32_t salt = 1, bool of_row = true);

// Returns an op that is checked at fewer and smaller sizes, because it needs many operations per number. The sizes
// {rows, columns, other} are the number of rows, the width of a head, and the number of heads.
Op costly_op(const std::string& name, const std::function<Case(Sizes)>& make, const std::vector<Sizes>& all,
             const std::vector<Sizes>& far);

// Returns make(sizes, more...) as a function of the sizes alone.
template <class Make, class... More>
auto with(Make make, More... more) {
    return [=](Sizes n) { return make(n, more...); };
}

// A mask over packed documents, for the attention ops of the op table. A key source is one key/value tensor.
struct Layout {
    SegmentGraph graph;
    int keys[2] = {0, 0};  // number of rows of each key source (key/value tensor); 0: there is no such source
    int sources() const { return keys[1] > 0 ? 2 : 1; }
};
using Build = std::function<Layout(int rows)>;
int longest(int rows);     // upper bound of the number of keys that a row sees in a Layout of `rows` rows
Build by_rule(Rule rule);  // builds a mask in which each document is one segment with this rule
// The mask of UniVAE's decoder: each document is causal, and its rows also see the latent of the document, which is one
// row of a second key source.
Layout with_latent(int rows);
// The mask of UniLM's sequence-to-sequence objective. All rows of a document see the first half of the document. A row
// of the second half also sees the rows of the second half up to itself.
Layout prefix(int rows);

// Returns a list with one item per key source (key/value tensor): one(name) and, if the case has a second source,
// one(name + "1"). If the case has no tensor `name`, the list is empty.
template <class List, class One>
List of_sources(const Call& a, const std::string& name, const One& one) {
    if (!a.has(name)) return {};
    if (!a.has(name + "1")) return {one(name)};
    return {one(name), one(name + "1")};
}
inline std::vector<Tensor*> all_of(const OnTape& a, const std::string& name) {
    return of_sources<std::vector<Tensor*>>(a.memory, name, [&](const std::string& one) { return a(one); });
}

// Returns the argument for a parameter of type T that is neither a tensor nor a list. RowNames consist of the lists
// "document" and "position". A mask is the graph of the Layout in `others`. Any other argument is the element of
// `others` with type T; if this element contains RowNames, they are set to the two lists.
template <class T, class Others>
T other_argument(const Call& a, const Others& others) {
    if constexpr (std::is_same_v<T, RowNames>) {
        return a.rows();
    } else if constexpr (std::is_same_v<T, const SegmentGraph&>) {
        return std::get<std::shared_ptr<Layout>>(others)->graph;
    } else if constexpr (std::is_same_v<T, AttentionRule>) {
        AttentionRule rule = std::get<T>(others);
        rule.rows = a.rows();
        return rule;
    } else if constexpr (std::is_same_v<T, LshRule>) {
        LshRule rule = std::get<T>(others);
        rule.attention.rows = a.rows();
        return rule;
    } else {
        return std::get<T>(others);
    }
}

// Returns the argument of a case for the parameter `name` of an op: View x is the tensor x, Grad dx its gradient, and
// View dy the cotangent of y. If the case has no such tensor, the argument is absent. Views and Grads have an element
// for each key source (key/value tensor).
template <class T, class Others>
T argument(const Call& a, const std::string& name, const Others& others) {
    const std::string without_d = name.substr(1);
    if constexpr (std::is_same_v<T, Grad>)
        return a.has(without_d) ? a.grad(without_d) : Grad{};
    else if constexpr (std::is_same_v<T, Grads>)
        return of_sources<T>(a, without_d, [&](const std::string& one) { return a.grad(one); });
    else if constexpr (std::is_same_v<T, Views>)
        return of_sources<T>(a, name, a);
    else if constexpr (std::is_same_v<T, Ints>)
        return a.ints(name);
    else if constexpr (!std::is_same_v<T, View>)
        return other_argument<T>(a, others);
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

// Returns a function that calls an op. For each parameter of the op, the argument is the tensor or the list of the case
// with the name of the parameter. All other arguments come from `others`.
template <class Op, class... Others>
std::function<void(const Call&)> by_names(Op, Others... others) {
    return [others = std::tuple(others...)](const Call& a) { call_by_names<Op>(a, others, typename Op::Places()); };
}

// The arguments of a function of nn/functions.h. The names of its parameters are not known, so the arguments are taken
// in order. Each Tensor* is the next input or constant of the case, or null after the last one. Each Ints is the next
// list of the case. Each string is "ladder".
template <class Others>
struct ArgumentsInOrder {
    const OnTape& a;
    const Others& others;
    std::size_t tensors = 0, lists = 0;

    std::string next_tensor() {
        const std::vector<Operand>& all = a.memory.op.operands;
        while (tensors < all.size() && all[tensors].written()) tensors++;
        return tensors < all.size() ? all[tensors++].name : "";
    }
    template <class T>
    T next() {
        if constexpr (std::is_same_v<T, Tensor*>) {
            const std::string name = next_tensor();
            return name.empty() ? nullptr : a(name);
        } else if constexpr (std::is_same_v<T, std::vector<Tensor*>>) {
            return all_of(a, next_tensor());
        } else if constexpr (std::is_same_v<T, Ints>) {
            return a.ints(a.memory.op.indices[lists++].name);
        } else if constexpr (std::is_same_v<T, std::string>) {
            return "ladder";
        } else {
            return other_argument<T>(a.memory, others);
        }
    }
};

// The type in which an argument is passed. A mask is passed by reference, because the record keeps a pointer to the
// mask. Any other argument is passed by value.
template <class T>
using Passed = std::conditional_t<std::is_same_v<T, const SegmentGraph&>, T, std::decay_t<T>>;

// Returns a function that records an op: it calls `function`, of nn/functions.h, with the tensors and lists of the case
// in the order in which the case declares them.
template <class Result, class... Parameters, class... Others>
std::function<void(const OnTape&)> in_order(Result (*function)(Tape&, Parameters...), Others... others) {
    return [function, others = std::tuple(others...)](const OnTape& a) {
        ArgumentsInOrder<std::tuple<Others...>> arguments{a, others};
        std::tuple<Passed<Parameters>...> in_order{arguments.template next<Passed<Parameters>>()...};
        std::apply([&](auto&... each) { function(a.tape, each...); }, in_order);
    };
}

// Sets forward, backward and record of a case. Each of the three functions takes from `others` what it has parameters
// for.
template <class Forward, class Backward, class Function, class... Others>
void set_calls(Case& c, Forward forward, Backward backward, Function function, Others... others) {
    c.forward = by_names(forward, others...);
    c.backward = by_names(backward, others...);
    c.record = in_order(function, others...);
}

// Returns a case with the tensors of an op whose shapes ops.h states. Roles and types follow from the two lines of
// ops.h: x is an input if the backward writes dx, and y is an output if the backward reads dy. `letters` names the
// sizes: with "NC", N is sizes[0] and C is sizes[1]. The first letter counts the rows of the batch, so a tensor whose
// first size has this letter is set to by_row(). Tensors with the shape (*) are matrices of the first two sizes.
Case stated(const std::string& letters, const std::vector<int>& sizes, OpNumber forward);
// Like stated(), and also sets the calls.
template <class Forward, class Backward, class Function, class... Others>
Case stated(const std::string& letters, const std::vector<int>& sizes, Forward forward, Backward backward,
            Function function, Others... others) {
    Case c = stated(letters, sizes, Forward::op);
    set_calls(c, forward, backward, function, others...);
    return c;
}

std::vector<Op> attention_ops();
std::vector<Op> state_ops();
std::vector<Op> insertion_ops();
std::vector<Op> code_ops();
std::vector<Op> bucket_ops();  // the ops lsh_attention and sinkhorn

}  // namespace masquerade::ladder
