// SPDX-License-Identifier: MIT
// How a program and the CUDA library know that they were built from the same list of ops: a stamp, made at compile time
// on both sides of the seam from the list itself and from the types in its signatures.
#pragma once
#include <cstdint>
#include <cstring>
#include <string_view>
#include <type_traits>
#include <utility>

#include "engine/base/version.h"
#include "engine/ops/ops.h"
#include "engine/tensor/runtime.h"

namespace masquerade {

// First in what the library hands over, and never changed: all else is read only where the stamps are equal.
struct LibraryStamp {
    char kind[16] = "";           // "masquerade cuda"
    char version[16] = "";        // of the project
    std::uint32_t edition = 0;    // interface_edition
    std::uint64_t interface = 0;  // interface_hash()
};

inline bool same(const LibraryStamp& a, const LibraryStamp& b) {
    return std::memcmp(a.kind, b.kind, sizeof a.kind) == 0 && a.edition == b.edition &&
           a.interface == b.interface && std::memcmp(a.version, b.version, sizeof a.version) == 0;
}

// Raise it when what crosses the seam changes its meaning but neither a signature nor a size.
inline constexpr std::uint32_t interface_edition = 3;

namespace detail {

template <class... T>
struct TypeList {};

// A structure that gets another member no longer compiles here.
inline auto members_of(const SegmentGraph& graph) {
    const auto& [keys, queries, sees, query_rank, key_rank, bits, documents, on_device] = graph;
    return TypeList<typename std::decay_t<decltype(keys)>::value_type,
                    typename std::decay_t<decltype(queries)>::value_type, decltype(sees),
                    decltype(query_rank), decltype(key_rank), decltype(bits), decltype(documents),
                    decltype(on_device)>{};
}
inline auto members_of(const DeviceRuntime& runtime) {
    const auto& [answer, facts, allocate, release, copy, fill, synchronise, note, between, forget, begin,
                 launch, abandon, products, cublas] = runtime;
    return TypeList<decltype(answer), decltype(facts), decltype(allocate), decltype(release), decltype(copy),
                    decltype(fill), decltype(synchronise), decltype(note), decltype(between),
                    decltype(forget), decltype(begin), decltype(launch), decltype(abandon), decltype(products),
                    decltype(cublas)>{};
}

class InterfaceHash {
  public:
    constexpr explicit InterfaceHash(std::string_view text) : value_(hash_of(text)) {}
    // Of a function, its result and parameters; of a reference, what it refers to; of a pointer, that it is one.
    template <class T>
    constexpr void add() {
        using Plain = std::remove_cv_t<std::remove_reference_t<T>>;
        if constexpr (std::is_pointer_v<Plain> && std::is_function_v<std::remove_pointer_t<Plain>>)
            add_function(Plain(nullptr));
        else if constexpr (std::is_void_v<Plain>)
            mix(1);
        else
            mix((sizeof(Plain) * 256 + alignof(Plain)) * 16 + std::is_reference_v<T> * 8 +
                std::is_class_v<Plain> * 4 + std::is_pointer_v<Plain> * 2 + std::is_floating_point_v<Plain>);
    }
    template <class... T>
    constexpr void add(TypeList<T...>) {
        (add<T>(), ...);
    }
    constexpr std::uint64_t value() const { return value_; }

  private:
    template <class Result, class... Parameters>
    constexpr void add_function(Result (*)(Parameters...)) {
        mix(sizeof...(Parameters));
        add<Result>();
        (add<Parameters>(), ...);
    }
    constexpr void mix(std::uint64_t x) { value_ = (value_ ^ x) * 0x100000001b3ull; }
    std::uint64_t value_;
};

constexpr std::uint64_t interface_hash() {
    InterfaceHash hash(
#define OP(name, parameters) #name #parameters ";"
#include "engine/ops/ops.h"
#undef OP
    );
#define OP(name, parameters) hash.add<decltype(OpTable::name)>();
#include "engine/ops/ops.h"
#undef OP
    hash.add(decltype(members_of(std::declval<const SegmentGraph&>())){});
    hash.add(decltype(members_of(std::declval<const DeviceRuntime&>())){});
    hash.add<Answer>();
    hash.add<DeviceFacts>();
    return hash.value();
}

constexpr void put_text(char (&to)[16], std::string_view text) {
    for (std::size_t i = 0; i < text.size() && i < sizeof to - 1; i++) to[i] = text[i];
}

}  // namespace detail

constexpr LibraryStamp this_stamp() {
    LibraryStamp stamp;
    detail::put_text(stamp.kind, "masquerade cuda");
    detail::put_text(stamp.version, version);
    stamp.edition = interface_edition;
    stamp.interface = detail::interface_hash();
    return stamp;
}

}  // namespace masquerade
