// SPDX-License-Identifier: MIT
// Stores numbers that are computed independently of one another. Each thread stores 32 bytes, a group of consecutive
// numbers, by two packets. If the numbers come from a point_call() (calls.h), a thread first loads the whole group of
// every argument, then calls the function once for each number. At the end of a tensor, and if an address is not
// aligned, numbers are loaded and stored one by one. Loading by groups or one by one gives the same bits.
#pragma once
#include <cstdint>
#include <utility>

#include "engine/ops/cuda/packet.cuh"

namespace masquerade::DEVICE {

// Declared here for the functions below; calls.h defines them.
template <class T>
struct ByPoint;
struct Number;
template <class Function, Function function, class Places, class... T>
struct FunctionCall;
template <std::size_t place, class T>
struct Held;

// `count` consecutive numbers. They are kept as words, so that nvcc loads and stores up to 16 bytes at once.
template <class T, int count>
struct alignas(count * sizeof(T) < 16 ? count * sizeof(T) : 16) Group {
    std::uint32_t words[count * sizeof(T) / 4];

    HD T operator[](int i) const {
        static_assert(sizeof(T) == 4 || sizeof(T) == 2);
        if constexpr (sizeof(T) == 4)
            return __builtin_bit_cast(T, words[i]);
        else
            return __builtin_bit_cast(T, std::uint16_t(words[i / 2] >> i % 2 * 16));
    }
};

// group_at<count>(f, first) returns an object g such that g(k) is f(first + k) for k < count. If f reads its numbers
// from tensors (f is a ByPoint or the result of point_call(), calls.h), group_at() loads the `count` numbers of each of
// these tensors at once, and g contains them.
template <class F>
struct FromFirst {
    const F& f;
    std::int64_t first;
    HD auto operator()(int k) const { return f(first + k); }
};
template <class T, int count>
struct Loaded {
    Group<T, count> numbers;
    HD T operator()(int k) const { return numbers[k]; }
};
struct NumberFrom {
    std::int64_t first;
};
template <class Parameter, class T, int count>
HD Parameter argument_at(const Loaded<T, count>& a, std::int64_t k) {
    return Parameter(a.numbers[int(k)]);
}
template <class Parameter>
HD Parameter argument_at(NumberFrom a, std::int64_t k) {
    return Parameter(a.first + k);
}
template <int count, class T>
HD T loaded(const T& same_for_all, std::int64_t) {
    return same_for_all;
}
template <int count, class T>
HD Loaded<T, count> loaded(const ByPoint<T>& a, std::int64_t first) {
    return {packet_at<Group<T, count>>(a.data + first)};
}
template <int count>
HD NumberFrom loaded(const Number&, std::int64_t first) {
    return {first};
}

template <int count, class F>
HD FromFirst<F> group_at(const F& f, std::int64_t first) {
    return {f, first};
}
template <int count, class T>
HD Loaded<T, count> group_at(const ByPoint<T>& a, std::int64_t first) {
    return loaded<count>(a, first);
}
template <int count, class Function, Function function, std::size_t... I, class... T>
HD auto group_at(const FunctionCall<Function, function, std::index_sequence<I...>, T...>& f, std::int64_t first) {
    return FunctionCall<Function, function, std::index_sequence<I...>,
                        decltype(loaded<count>(std::declval<T>(), 0))...>{
        {loaded<count>(static_cast<const Held<I, T>&>(f).value, first)}...};
}

// True if every address from which group_at<count>(f, first) loads is aligned, for any `first` that is a multiple of
// `count`.
template <int count, class F>
bool loads_aligned(const F&) {
    return true;
}
template <int count, class T>
bool loads_aligned(const ByPoint<T>& a) {
    return is_aligned(a.data, alignof(Group<T, count>));
}
template <int count, class Function, Function function, std::size_t... I, class... T>
bool loads_aligned(const FunctionCall<Function, function, std::index_sequence<I...>, T...>& f) {
    return (loads_aligned<count>(static_cast<const Held<I, T>&>(f).value) && ...);
}

// Sets to[i] to f(i) or, if `add` is set, adds f(i).
template <class S, class F>
struct StorePoint {
    S* to;
    bool add;
    F f;
    HD void operator()(std::int64_t i) const { put(to[i], f(i), add); }
};

// How many numbers a group has.
template <class S>
constexpr int per_group = 2 * per_packet<S>;

// Calls store(i) for every i < n in group number `group`. If `aligned` is set, whole groups are loaded and stored at
// once.
template <class S, class F>
struct StoreGroup {
    std::int64_t n;
    bool aligned;
    StorePoint<S, F> store;
    HD void operator()(std::int64_t group) const {
        constexpr int count = per_group<S>;
        const std::int64_t first = group * count;
        if (aligned && first + count <= n) {
            const auto g = group_at<count>(store.f, first);
            float numbers[count];
            for (int k = 0; k < count; k++) numbers[k] = float(g(k));
            if (store.add) {
                const auto before = packet_at<Group<S, count>>(store.to + first);
                for (int k = 0; k < count; k++) numbers[k] = float(before[k]) + numbers[k];
            }
            write_numbers(store.to + first, numbers);
        } else {
            for (std::int64_t i = first; i < n && i < first + count; i++) store(i);
        }
    }
};

}  // namespace masquerade::DEVICE
