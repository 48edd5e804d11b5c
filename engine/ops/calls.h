// SPDX-License-Identifier: MIT
// row_call() and point_call() turn a function of one row, or of one number, into a function object for for_each_row()
// and store_points() (launch.h, which includes this file):
//     for_each_row(N, row_call<normalise_row<S, A, Lanes>>(by_row<S>(x), by_row<S>(y), by_row<A>(inverse), C));
//     store_points(n, y, add, point_call<times<A>>(A(scale), by_point<S>(x)));
// An argument without by_row(), by_point(), one() or Number is the same for every row or number. The function is part
// of the type of the function object, so that compilers inline it. On the CPU a lambda would do the same, but nvcc
// accepts no generic lambda in a kernel.
#pragma once
#include <type_traits>
#include <utility>

#include "engine/tensor/view.h"

namespace masquerade::DEVICE {

// An argument that depends on the row. If the function's parameter is a pointer, it receives the address of the row's
// first number, or null if the tensor is absent. If the parameter is a number, it receives the row's first number.
template <class T>
struct ByRow {
    T* data;
    std::int64_t step;
};
// For row n, by_row() passes row n of a matrix or number n of a vector. If `step` is given, row n begins at number n *
// step of the tensor.
template <class T>
ByRow<T> by_row(const View& v) {
    return {v.as<T>(), v.shape.rank > 1 ? v.columns() : 1};
}
template <class T>
ByRow<T> by_row(const View& v, std::int64_t step) {
    return {v.as<T>(), step};
}
template <class T>
ByRow<T> by_row(const Grad& g) {
    return by_row<T>(g.view);
}
inline ByRow<const int> by_row(const Ints& list) { return {list.data, 1}; }

// An argument that depends on the index i of a number in a tensor: it passes number i. A ByPoint is also a function of
// i, so it can be passed to store_points() without point_call().
template <class T>
struct ByPoint {
    const T* data;
    HD T operator()(std::int64_t i) const { return data[i]; }
};
template <class T>
ByPoint<T> by_point(const View& v) {
    return {v.as<T>()};
}

// An argument that passes the only number of a one-number tensor. The function object reads it, because the host
// cannot read numbers on a GPU.
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
    if constexpr (std::is_pointer_v<Parameter>)
        return a.data ? a.data + n * a.step : nullptr;
    else
        return Parameter(a.data[n * a.step]);
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
// it holds all arguments, and calls the function for a row or a number.
template <std::size_t place, class T>
struct Held {
    T value;
};
template <class Function, Function function, class Places, class... T>
struct FunctionCall;
template <class... P, void (*function)(Lanes, P...), std::size_t... I, class... T>
struct FunctionCall<void (*)(Lanes, P...), function, std::index_sequence<I...>, T...> : Held<I, T>... {
    HD void operator()(Lanes lanes, std::int64_t n) const { function(lanes, argument_at<P>(Held<I, T>::value, n)...); }
};
template <class A, class... P, A (*function)(P...), std::size_t... I, class... T>
struct FunctionCall<A (*)(P...), function, std::index_sequence<I...>, T...> : Held<I, T>... {
    HD A operator()(std::int64_t i) const { return function(argument_at<P>(Held<I, T>::value, i)...); }
};

template <auto function, class... T>
FunctionCall<decltype(function), function, std::index_sequence_for<T...>, T...> row_call(T... arguments) {
    return {{arguments}...};
}
template <auto function, class... T>
FunctionCall<decltype(function), function, std::index_sequence_for<T...>, T...> point_call(T... arguments) {
    return {{arguments}...};
}

}  // namespace masquerade::DEVICE
