// SPDX-License-Identifier: MIT
// A stamp identifies the list of ops (ops.h) from which a program or the CUDA library was built. It is computed at
// compile time from the list and from the types in its signatures. A program compares its stamp with the stamp of the
// library to check that both were built from the same list.
#pragma once
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>
#include <vector>

#include "engine/base/version.h"
#include "engine/ops/ops.h"
#include "engine/tensor/runtime.h"

namespace masquerade {

// The first member of CudaLibrary. This structure must never change, because the stamps are compared before anything
// else is read.
struct LibraryStamp {
    char kind[16] = "masquerade cuda";
    char version[16] = "";        // version of masquerade
    std::uint32_t edition = 0;    // value of interface_edition
    std::uint64_t interface = 0;  // hash of the op list and of all types that program and library exchange
};

inline bool same(const LibraryStamp& a, const LibraryStamp& b) {
    return std::memcmp(a.kind, b.kind, sizeof a.kind) == 0 && a.edition == b.edition && a.interface == b.interface &&
           std::memcmp(a.version, b.version, sizeof a.version) == 0;
}

// Increase this number if the meaning of the interface changes although no signature and no size changes.
inline constexpr std::uint32_t interface_edition = 3;

namespace detail {

template <class... Numbers>
constexpr std::uint64_t mixed(std::uint64_t first, Numbers... more) {
    ((first = (first ^ more) * 0x100000001b3ull), ...);
    return first;
}

// The mark of a type is a number, computed from the size, alignment and kind of the type. The hash in a stamp
// (LibraryStamp::interface) contains the marks of all functions and types that program and library exchange. A vector
// has the mark of its element type. The mark of a function combines the marks of its result and parameters.
template <class T>
struct Mark {
    static constexpr std::uint64_t of = (sizeof(T) * 256 + alignof(T)) * 16 + std::is_class_v<T> * 4 +
                                        std::is_pointer_v<T> * 2 + std::is_floating_point_v<T>;
};
template <>
struct Mark<void> {
    static constexpr std::uint64_t of = 1;
};
template <class T>
struct Mark<T&> {
    static constexpr std::uint64_t of = mixed(2, Mark<std::remove_cv_t<T>>::of);
};
template <class T>
struct Mark<std::vector<T>> : Mark<T> {};
template <class Result, class... Parameters>
struct Mark<Result (*)(Parameters...)> {
    static constexpr std::uint64_t of = mixed(sizeof...(Parameters), Mark<Result>::of, Mark<Parameters>::of...);
};
template <class Result, class... Parameters>
struct Mark<Result (*)(Parameters...) noexcept> : Mark<Result (*)(Parameters...)> {};

template <class... T>
struct MarkOfAll {
    explicit MarkOfAll(const T&...) {}
    static constexpr std::uint64_t of = mixed(sizeof...(T), Mark<T>::of...);
};
// Returns the marks (see Mark) of the types of all members. If SegmentGraph or DeviceRuntime gets another member,
// members_of() no longer compiles for this struct and must be extended.
inline auto members_of(const SegmentGraph& graph) {
    const auto& [keys, queries, sees, query_rank, key_rank, bits, documents] = graph;
    return MarkOfAll(keys, queries, sees, query_rank, key_rank, bits, documents);
}
inline auto members_of(const DeviceRuntime& runtime) {
    const auto& [answer, facts, allocate, release, copy, fill, begin_read, finish_read, add_late, forget_late,
                 synchronise, note, between, forget, begin, launch, send, abandon, products, cublas, stream, finished] =
        runtime;
    return MarkOfAll(answer, facts, allocate, release, copy, fill, begin_read, finish_read, add_late, forget_late,
                     synchronise, note, between, forget, begin, launch, send, abandon, products, cublas, stream,
                     finished);
}

}  // namespace detail

constexpr LibraryStamp this_stamp() {
    using namespace detail;
    LibraryStamp stamp;
    for (int i = 0; version[i]; i++) stamp.version[i] = version[i];
    stamp.edition = interface_edition;
    stamp.interface = mixed(hash_of(
#define OP(name, parameters, ...) #name #parameters ";"
#include "engine/ops/ops.h"
#undef OP
        )
#define OP(name, parameters, ...) , Mark<decltype(OpTable::name)>::of
#include "engine/ops/ops.h"
#undef OP
    );
    stamp.interface =
        mixed(stamp.interface, decltype(members_of(std::declval<const SegmentGraph&>()))::of,
              decltype(members_of(std::declval<const DeviceRuntime&>()))::of, Mark<Answer>::of, Mark<DeviceFacts>::of);
    return stamp;
}

}  // namespace masquerade
