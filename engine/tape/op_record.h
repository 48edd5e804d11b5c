// SPDX-License-Identifier: MIT
// Record::by for the ops of ops.h. The types and names of an op's parameters say what a record passes to it:
//   forward    the tensor parameters are the inputs of the record, then its outputs; all others are its attributes
//   backward   View x: input or output x of the forward.  View dy: the gradient of output y.  Grad dx: the gradient of
//              input x, to be written.  Any other parameter: the attribute of the same name
// A parameter of type Views contains all inputs from its position on. The record keeps the tensors that the backward
// reads.
#pragma once
#include "engine/ops/ops.h"
#include "engine/tape/tape.h"

namespace masquerade {
namespace detail {

// A record stores this for a parameter of type T: nothing for a tensor, a pointer for a reference, otherwise the value.
template <class T>
inline constexpr bool holds_tensors = std::is_same_v<T, View> || std::is_same_v<T, Views>;
template <class T>
using Attribute =
    std::conditional_t<holds_tensors<T>, std::tuple<>,
                       std::tuple<std::conditional_t<std::is_reference_v<T>, std::remove_reference_t<T>*, T>>>;
template <class... T>
auto attributes(std::tuple<T...>*) -> decltype(std::tuple_cat(std::declval<Attribute<T>>()...));

}  // namespace detail

// The attributes of a record whose forward is Op: a tuple of the parameters that are not tensors, in the op's order. A
// reference is stored as a pointer.
template <class Op>
using AttributesOf = decltype(detail::attributes(static_cast<typename Op::Parameters*>(nullptr)));
template <class Op>
const AttributesOf<Op>& attributes_of(const Record& r, Op) {
    return r.as<AttributesOf<Op>>();
}

namespace detail {

// The parameters of the forward Op. A parameter is either a tensor (View or Views) or an attribute.
template <class Op, class Parameters = typename Op::Parameters>
struct Forward;
template <class Op, class... T>
struct Forward<Op, std::tuple<T...>> {
    static constexpr int tensors = (0 + ... + holds_tensors<T>);
    static constexpr bool has_list = (false || ... || std::is_same_v<T, Views>);
    // The index of the parameter `name` among the tensors or, if `tensor` is false, among the attributes; -1 if there
    // is no such parameter.
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
    // The index of the first output of the record among the tensors of the forward.
    static int first_output(const Record& r) { return tensors - int(r.out.size()); }
    static void expect_tensors(const Record& r) {
        const int inputs = first_output(r), given = int(r.in.size());
        if (inputs < 0 || (has_list ? given + 1 < inputs : given != inputs))
            throw Error(text(r.op, ": ", given, " inputs and ", r.out.size(), " outputs, but ", Op::name, " takes ",
                             Op::parameters));
    }
};

// Removes the d from the name of a gradient: dx becomes x. Any other name becomes "".
constexpr std::string_view without_d(std::string_view name) { return name[0] == 'd' ? name.substr(1) : ""; }

// Parameter I of Op, which is the forward or the backward of a record whose forward is F. `tensor` and `attribute` are
// the indices in F of the parameter with the same name; `of_d` is the index of x if this parameter is dx. -1: none.
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
            Grads all;
            for (int i = of_d; i < int(r.in.size()); i++) all.g[all.count++] = r.dx(i);
            return all;
        } else if constexpr (std::is_same_v<T, Views>) {
            Views all;
            for (int i = tensor; i < int(r.in.size()); i++) all.v[all.count++] = r.x(i);
            return all;
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
        if constexpr (holds_tensors<T> && tensor >= 0) {
            const int first_output = Forward<F>::first_output(r);
            const auto place = r.in.begin() + tensor;
            if constexpr (std::is_same_v<T, Views>)
                r.keep.insert(r.keep.end(), place, r.in.end());
            else if (Tensor* t = tensor < first_output ? *place : r.out[std::size_t(tensor - first_output)])
                r.keep.push_back(t);
        }
    }
};

}  // namespace detail

// The functions that a record calls; a debugger shows them between the tape and an op. They call Record::dx in the
// order of the op's parameters.
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

}  // namespace masquerade
