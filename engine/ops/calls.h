// SPDX-License-Identifier: MIT
// row_call() and point_call() turn a function of one row, or of one number, into a function object for for_each_row()
// and store_points() (launch.h, which includes this file):
//     for_each_row(N, row_call<normalise_row<S, A, Lanes>>(x, y, inverse, C));
//     store_points<S>(dx, point_call<S, times<A>>(A(scale), x));  or, shorter, store_points<S, times<A>>(dx, A(scale), x)
// For each row, row_call() passes to the function:
//     for a tensor     the address of the row's first number, or null if the tensor is absent; if the function's
//                      parameter is a number instead of an address, the row's first number
//     for a Grad       two arguments: the address, and whether to add
//     for other types  the same value for every row, converted to the type of the parameter; for example w.as<A>()
// point_call() passes one number of each tensor. The function is part of the type of the function object, so that
// compilers inline it. On the CPU, a lambda would do the same, but nvcc accepts no generic lambda in a kernel.
#pragma once
#include <tuple>
#include <type_traits>
#include <utility>

#include "engine/tensor/view.h"

namespace masquerade::DEVICE {

// An argument that depends on the row. Row n begins at data + n * step. by_row(v) passes row n of a matrix v, or number
// n of a vector v.
template <class T>
struct ByRow {
    T* data;
    std::int64_t step;
};
template <class T>
ByRow<T> by_row(const View& v, std::int64_t step) {
    return {v.as<T>(), step};
}
template <class T>
ByRow<T> by_row(const View& v) {
    return by_row<T>(v, v.shape.rank > 1 ? v.columns() : 1);
}

// An argument that passes, in the call for row n, row rows[n] of a matrix or, if `rows` is null, row n.
template <class T>
struct ChosenRow {
    ByRow<T> all;
    const int* rows;
};
template <class T>
ChosenRow<T> chosen_row(const View& v, const int* rows) {
    return {by_row<T>(v), rows};
}

// An argument of point_call() that passes number i of a tensor. A ByPoint is also a function of i, so it can be passed
// to store_points() without point_call().
template <class T>
struct ByPoint {
    const T* data;
    HD T operator()(std::int64_t i) const { return data[i]; }
};
template <class T>
ByPoint<T> by_point(const View& v) {
    return {v.as<T>()};
}

// An argument that passes the only number of a one-number tensor. The function object reads the number, because the
// host cannot read numbers on a GPU.
template <class T>
struct One {
    const T* data;
};
template <class T>
One<T> one(const View& v) {
    return {v.as<T>()};
}

// An argument that passes the index of the row or, in point_call(), of the number.
struct Number {};

template <class Parameter, class T>
HD Parameter argument_at(const T& same_for_all, std::int64_t) {
    return same_for_all;
}
template <class Parameter, class T>
HD Parameter argument_at(const ByRow<T>& a, std::int64_t n) {
    if constexpr (std::is_convertible_v<T*, Parameter>)
        return a.data ? a.data + n * a.step : nullptr;
    else
        return Parameter(a.data[n * a.step]);
}
template <class Parameter, class T>
HD Parameter argument_at(const ChosenRow<T>& a, std::int64_t n) {
    return argument_at<Parameter>(a.all, a.rows ? a.rows[n] : n);
}
template <class Parameter, class T>
HD Parameter argument_at(const ByPoint<T>& a, std::int64_t i) {
    return Parameter(a.data[i]);
}
template <class Parameter, class T>
HD Parameter argument_at(const One<T>& a, std::int64_t) {
    return Parameter(*a.data);
}
template <class Parameter>
HD Parameter argument_at(Number, std::int64_t n) {
    return Parameter(n);
}

// Held contains argument number `place` of a FunctionCall. A FunctionCall is what row_call() and point_call() return:
// it holds all arguments, and calls the function for row n (row_call) or for element i of the tensors (point_call).
template <std::size_t place, class T>
struct Held {
    T value;
};
template <class Function, Function function, class Places, class... T>
struct FunctionCall;
template <class L, class... P, void (*function)(L, P...), std::size_t... I, class... T>
struct FunctionCall<void (*)(L, P...), function, std::index_sequence<I...>, T...> : Held<I, T>... {
    HD void operator()(Lanes, std::int64_t n) const { function(L(), argument_at<P>(Held<I, T>::value, n)...); }
};
template <class A, class... P, A (*function)(P...), std::size_t... I, class... T>
struct FunctionCall<A (*)(P...), function, std::index_sequence<I...>, T...> : Held<I, T>... {
    HD A operator()(std::int64_t i) const { return function(argument_at<P>(Held<I, T>::value, i)...); }
};

// parts_of() splits a Grad into two arguments of the function, its View and whether to add; it leaves any other
// argument of row_call() as it is. row_argument() then turns a tensor or a list into a ByRow, which passes row n of the
// tensor or entry n of the list to the call for row n. `Parameter` is the type of the function's parameter.
template <class T>
std::tuple<T> parts_of(const T& x) {
    return {x};
}
inline std::tuple<View, bool> parts_of(const Grad& grad) { return {grad.view, grad.add}; }
template <class Parameter>
struct ElementOfRow {
    using type = std::remove_const_t<Parameter>;
};
template <class T>
struct ElementOfRow<T*> : ElementOfRow<T> {};
#ifdef HAS_WARPS
template <class T>
struct ElementOfRow<PacketRow<T>> : ElementOfRow<T> {};
#endif
template <class Parameter, class T>
auto row_argument(const T& x) {
    using Element = typename ElementOfRow<Parameter>::type;
    if constexpr (std::is_same_v<T, View>)
        return by_row<Element>(x);
    else if constexpr (std::is_same_v<T, Ints>)
        return ByRow<const int>{x.data, 1};
    else
        return x;
}
template <class Function, Function function, class Places, class... T>
auto function_call(T... arguments) {
    return FunctionCall<Function, function, Places, T...>{{arguments}...};
}
template <auto function, class Tuple, class L, class... P, std::size_t... I>
auto call_of_parts(const Tuple& all, void (*)(L, P...), std::index_sequence<I...> places) {
    return function_call<decltype(function), function, decltype(places)>(row_argument<P>(std::get<I>(all))...);
}
template <auto function, class... T>
auto row_call(const T&... arguments) {
    const auto all = std::tuple_cat(parts_of(arguments)...);
    return call_of_parts<function>(all, function, std::make_index_sequence<std::tuple_size_v<decltype(all)>>());
}
template <class S, class T>
auto point_argument(const T& x) {
    if constexpr (std::is_same_v<T, View>)
        return by_point<S>(x);
    else
        return x;
}
template <class S, auto function, class... T>
auto point_call(const T&... arguments) {
    return function_call<decltype(function), function, std::index_sequence_for<T...>>(point_argument<S>(arguments)...);
}

// Sets each number of the gradient `to`, which has type S, as the tensors do, to the function of their numbers or, if
// to.add is true, adds the result. Does nothing if `to` is absent.
template <class S, auto function, class... T>
void store_points(const Grad& to, const T&... arguments) {
    store_points<S>(to, point_call<S, function>(arguments...));
}

}  // namespace masquerade::DEVICE
