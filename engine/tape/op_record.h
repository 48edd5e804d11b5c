// SPDX-License-Identifier: MIT
// Defines Record::by() for the ops of engine/ops/ops.h. The types and names of an op's parameters determine what a
// record passes to the op:
//   forward    The tensor parameters are the record's inputs, then its outputs. All other parameters are attributes.
//   backward   View x is input or output x of the forward. View dy is the gradient of output y. Grad dx is the gradient
//              of input x, which the backward writes. Any other parameter is the attribute with the same name.
// A parameter of type Views receives the input at its place and all later inputs of the record. Record::by() also fills
// Record::keep, the list of tensors that the backward reads.
#pragma once
#include <algorithm>

#include "engine/ops/ops.h"
#include "engine/tape/tape.h"

namespace masquerade {
namespace detail {

// holds_tensors<T> is true if an op's parameter of type T is a tensor or a list of tensors. Attribute<T> is the tuple
// that a record stores for the parameter: empty for tensors, a pointer for a reference, otherwise the value.
template <class T>
inline constexpr bool holds_tensors = std::is_same_v<T, View> || std::is_same_v<T, Views>;
template <class T>
using Attribute =
    std::conditional_t<holds_tensors<T>, std::tuple<>,
                       std::tuple<std::conditional_t<std::is_reference_v<T>, std::remove_reference_t<T>*, T>>>;
template <class... T>
auto attributes(std::tuple<T...>*) -> decltype(std::tuple_cat(std::declval<Attribute<T>>()...));

}  // namespace detail

// The type of the attributes of a record whose forward is Op: a tuple of those parameters of Op that are not tensors,
// in order. A reference is stored as a pointer.
template <class Op>
using AttributesOf = decltype(detail::attributes(static_cast<typename Op::Parameters*>(nullptr)));
template <class Op>
const AttributesOf<Op>& attributes_of(const Record& r, Op) {
    return r.as<AttributesOf<Op>>();
}

// Returns `count` inputs of a record, from number `from` on, or their gradients.
inline Views inputs_of(const Record& r, int from, int count) {
    Views all;
    for (int i = 0; i < count; i++) all.add(r.x(from + i));
    return all;
}
inline Grads gradients_of(const Record& r, int from, int count) {
    Grads all;
    for (int i = 0; i < count; i++) all.add(r.dx(from + i));
    return all;
}

namespace detail {

// Facts about the parameters of Op. Op is the forward of a record: the op that computes the record's outputs from its
// inputs. Each parameter is either a tensor (View or Views) or an attribute.
template <class Op, class Parameters = typename Op::Parameters>
struct Forward;
template <class Op, class... T>
struct Forward<Op, std::tuple<T...>> {
    static constexpr int tensors = (0 + ... + holds_tensors<T>);
    static constexpr bool has_list = (false || ... || std::is_same_v<T, Views>);
    // Returns the index of the parameter `name` among the tensors or, if `tensor` is false, among the attributes.
    // Returns -1 if there is no such parameter.
    static constexpr int place(bool tensor, std::string_view name) {
        std::size_t parameter = 0;
        int place = 0, found = -1;
        const auto look = [&](bool of_kind) {
            if (of_kind && name_of_parameter(Op::parameters, parameter) == name) found = place;
            place += of_kind;
            parameter++;
        };
        (look(holds_tensors<T> == tensor), ...);
        return found;
    }
    // Returns the index of the first output among the tensor parameters of the forward: the inputs come first, then the
    // outputs. A Views parameter counts as one, however many inputs it receives.
    static int first_output(const Record& r) { return tensors - int(r.out.size()); }
    static void expect_tensors(const Record& r) {
        const int inputs = first_output(r), given = int(r.in.size());
        if (inputs < 0 || (has_list ? given + 1 < inputs : given != inputs))
            throw Error(r.op, ": ", given, " inputs and ", r.out.size(), " outputs, but ", Op::name, " takes ",
                        Op::parameters);
    }
};

// Removes the d from the name of a gradient: dx becomes x. A name that does not begin with d becomes "".
constexpr std::string_view without_d(std::string_view name) { return name[0] == 'd' ? name.substr(1) : ""; }

// Parameter number I of Op, which is the forward or the backward of a record whose forward is F. `tensor` is the
// index of the parameter with the same name among the tensors of F, and `attribute` among the attributes of F. If
// this parameter is called dx, `of_d` is the index of x among the tensors of F. Each index is -1 if F has no such
// parameter.
template <class F, class Op, std::size_t I>
struct Parameter {
    using T = std::tuple_element_t<I, typename Op::Parameters>;
    static constexpr std::string_view name = name_of_parameter(Op::parameters, I);
    static constexpr bool gradient = std::is_same_v<T, Grad> || std::is_same_v<T, Grads>;
    static constexpr int tensor = Forward<F>::place(true, name), of_d = Forward<F>::place(true, without_d(name)),
                         attribute = Forward<F>::place(false, name);
    static_assert(gradient           ? of_d >= 0
                  : holds_tensors<T> ? tensor >= 0 || of_d >= 0
                                     : attribute >= 0,
                  "a backward takes x of its forward, View dy of an output y, Grad dx of an input x");

    static decltype(auto) of(const Record& r) {
        const int first_output = Forward<F>::first_output(r);
        if constexpr (std::is_same_v<T, Grad>) {
            return r.dx(of_d);
        } else if constexpr (std::is_same_v<T, Grads>) {
            return gradients_of(r, of_d, int(r.in.size()) - of_d);
        } else if constexpr (std::is_same_v<T, Views>) {
            return inputs_of(r, tensor, int(r.in.size()) - tensor);
        } else if constexpr (std::is_same_v<T, View>) {
            if constexpr (tensor < 0)
                return r.dy(of_d - first_output);
            else
                return tensor < first_output ? r.x(tensor) : r.y(tensor - first_output);
        } else {
            const auto& value = std::get<attribute>(attributes_of(r, F()));
            if constexpr (std::is_reference_v<T>)
                return static_cast<T>(*value);
            else
                return static_cast<const T&>(value);
        }
    }
    static void keep(Record& r) {
        if constexpr (std::is_same_v<T, View> && tensor < 0)  // the parameter is dy, the gradient of output y
            r.differentiable = std::max(r.differentiable, std::size_t(of_d + 1 - Forward<F>::first_output(r)));
        if constexpr (holds_tensors<T> && tensor >= 0) {
            const int first_output = Forward<F>::first_output(r);
            const auto place = r.in.begin() + tensor;
            if constexpr (std::is_same_v<T, Views>)
                r.keep.insert(r.keep.end(), place, r.in.end());
            else if (Tensor* t = tensor < first_output ? *place : r.out[tensor - first_output])
                r.keep.push_back(t);
        }
    }
};

}  // namespace detail

// The functions to which Record::forward and Record::backward point. In a debugger's call stack, they appear between
// the tape and the op. They call Record::dx() in the order of the op's parameters. The order matters if several inputs
// of the op are the same tensor: the first gradient of the tensor is stored, and further gradients are added.
template <class F, std::size_t... I>
void record_forward(const Record& r) {
    typename F::InOrder{detail::Parameter<F, F, I>::of(r)...};
}
template <class F, class B, std::size_t... I>
void record_backward(const Record& r) {
    typename B::InOrder{detail::Parameter<F, B, I>::of(r)...};
}

namespace detail {
template <class F, std::size_t... I>
void set_forward(Record& r, std::index_sequence<I...>) {
    r.forward = record_forward<F, I...>;
}
template <class F, class B, std::size_t... I>
void set_backward(Record& r, std::index_sequence<I...>) {
    r.backward = record_backward<F, B, I...>;
    (Parameter<F, B, I>::keep(r), ...);
}

}  // namespace detail

template <class F, class B, class... Attributes, class>
Record&& Record::by(F, B b, Attributes... a) && {
    detail::Forward<F>::expect_tensors(*this);
    if constexpr (sizeof...(a) > 0) with(AttributesOf<F>(std::move(a)...));
    static_assert(sizeof...(a) == std::tuple_size_v<AttributesOf<F>>, "expected what the forward takes beside tensors");
    detail::set_forward<F>(*this, typename F::Places());
    if constexpr (std::is_convertible_v<B, void (*)(const Record&)>)
        backward = b;
    else
        detail::set_backward<F, B>(*this, typename B::Places());
    return std::move(*this);
}

// Declares the outputs of an op, with the shapes and types that ops.h states for these inputs and attributes.
Record::Tensors declare_outputs(Tape& tape, OpNumber op, const std::string& name, const Record::Tensors& in,
                                const std::vector<Argument>& attributes);

// Returns the record of an op with forward f and backward b. Declares the outputs as ops.h states them, and sets the
// inputs and the attributes. The path of the first output is Tape::prefix() plus `name`. The path of any other output
// is this path plus ".y", where y is the output's name in ops.h.
template <class F, class B, class... Attributes>
Record op_record(Tape& tape, const std::string& name, F f, B b, Record::Tensors in, Attributes... a) {
    Record r(base_name(F::op));
    r.out = declare_outputs(tape, F::op, name, in, {argument_of(a)...});
    return std::move(r).reads(std::move(in)).by(f, b, a...);
}
// Makes the record with op_record(), computes it, appends it to the tape, and returns its first output.
template <class F, class B, class... Attributes>
Tensor* run_op(Tape& tape, const std::string& name, F f, B b, Record::Tensors in, Attributes... a) {
    return tape.run(op_record(tape, name, f, b, std::move(in), a...));
}

}  // namespace masquerade
