// SPDX-License-Identifier: MIT
// Rows that a warp reads and writes by packets of 16 bytes. A row function whose parameters are of type Row<Lanes, T>
// (math/lanes.h) can be compiled for GroupLanes: each lane then computes `count` consecutive columns at a time. All
// rows must then be aligned, and their widths must be multiples of `count`. in_packets() of launch.h makes two function
// objects of a row, one for GroupLanes and one for WarpLanes. for_each_row() of launch.cuh chooses one of them.
#pragma once
#include <utility>

#include "engine/ops/cuda/draws.cuh"
#include "engine/ops/cuda/points.cuh"

namespace masquerade {
namespace DEVICE {

// The 32 lanes of a warp, which compute groups of `count` columns. Lane k computes the group that begins at column
// k * count, then the group that begins at column (32 + k) * count, and so on. The number of columns must be a multiple
// of `count`.
template <int count>
struct GroupLanes : WarpLanes {};
// Stands for one lane of GroupLanes while the lane computes one group of `count` columns.
template <int count>
struct GroupLane {};

// The index first + k of a number in a row. The number belongs to the group that begins at `first`. k is a compile-time
// constant, so that the compiler sees which numbers come from one packet.
template <int k>
struct InGroup {
    static constexpr int place = k;
    int first;
    HD constexpr operator int() const { return first + k; }
};
template <int k>
HD InGroup<k> operator+(int begin, InGroup<k> i) {
    return {begin + i.first};
}
// Calls f(i) for the indices i of the group that begins at `first`.
template <class F, int... k>
HD void each_of(std::integer_sequence<int, k...>, int first, F f) {
    (f(InGroup<k>{first}), ...);
}
template <int count, class F>
HD void each_of(int first, F f) {
    each_of(std::make_integer_sequence<int, count>(), first, f);
}

// A row that begins at a multiple of 16 bytes. x[i] reads the packet that contains number i. The compiler reads each
// packet once for all its numbers.
template <class T>
struct PacketRow {
    T* data;
    HD PacketRow(T* address) : data(address) {}
    template <int k>
    HD auto operator[](InGroup<k> i) const {
        using Element = std::remove_const_t<T>;
        constexpr int inside = k % per_packet<Element>;
        const T* const packet = data + i.first + (k - inside);
#ifdef CUDA_EMULATED
        return number_of<Element>(packet_at(packet), inside);
#else
        // Loads one 128-bit integer, because nvcc often splits the load of a Packet into loads of words.
        const auto bits = *reinterpret_cast<const unsigned __int128*>(packet) >> (inside * 8 * int(sizeof(T)));
        return number_of<Element>(Packet{{std::uint32_t(bits)}}, 0);
#endif
    }
    HD PacketRow operator+(std::int64_t numbers) const { return data + numbers; }
    HD explicit operator bool() const { return data; }
};

}  // namespace DEVICE

template <int count, class T>
struct RowType<DEVICE::GroupLanes<count>, T> {
    using type = DEVICE::PacketRow<T>;
};

namespace DEVICE {

template <int count, class F>
HD void each_group(GroupLanes<count> lanes, int n, F f) {
    for (int i = lane_of(lanes) * count; i < n; i += 32 * count) f(i);
}
template <int count, class T, class F>
HD void store(GroupLane<count>, int, PacketRow<T> to, bool add, F f) {
    if constexpr (std::is_same_v<decltype(f(InGroup<0>{})), bfloat16>)
        if (!add) {  // bf16 numbers are copied without rounding
            Packet packet{};
            each_of<count>(0, [&](auto k) { set_number(packet, k, f(k)); });
            return store_packet(to.data, packet);
        }
    float numbers[count], before[count];
    each_of<count>(0, [&](auto k) { numbers[k] = float(f(k)); });
    if (add) {
        read_numbers(to.data, before);
        for (int k = 0; k < count; k++) numbers[k] = before[k] + numbers[k];
    }
    write_numbers(to.data, numbers);
}
template <int count, class T, class F>
HD void store(GroupLanes<count> lanes, int n, PacketRow<T> to, bool add, F f) {
    each_group(lanes, n, [&](int first) {
        store(GroupLane<count>{}, count, to + first, add, [&](auto k) { return f(first + k); });
    });
}
template <int count, class T, class F>
HD void store_two(GroupLane<count> lane, int, PacketRow<T> x, PacketRow<T> y, F f) {
    float first[count], second[count];
    each_of<count>(0, [&](auto k) {
        const auto two = f(k);
        first[k] = two.first, second[k] = two.second;
    });
    store(lane, count, x, false, [&](int k) { return first[k]; });
    store(lane, count, y, false, [&](int k) { return second[k]; });
}
template <int count, class T, class F>
HD void store_two(GroupLanes<count> lanes, int n, PacketRow<T> x, PacketRow<T> y, F f) {
    each_group(lanes, n, [&](int begin) {
        store_two(GroupLane<count>(), count, x + begin, y + begin, [&](auto k) { return f(begin + k); });
    });
}
// The width D of a head is a multiple of `count`, so that a group belongs to one head.
template <int count, class T, class F>
HD void store_pairs(GroupLanes<count> lanes, int heads, int D, PacketRow<T> to, bool add, F f) {
    const int step = 32 * count % D;
    int of_head = lane_of(lanes) * count % D;  // where in its head the group begins
    each_group(lanes, heads * D, [&](int first) {
        float numbers[count];
        each_of<count / 2>(0, [&](auto p) {
            constexpr int k = 2 * decltype(p)::place;
            const auto two = f(InGroup<k>{first}, InGroup<k + 1>{first}, InGroup<k>{of_head}, InGroup<k + 1>{of_head});
            numbers[k] = two.first, numbers[k + 1] = two.second;
        });
        store(GroupLane<count>{}, count, to + first, add, [&](int k) { return numbers[k]; });
        of_head += of_head + step < D ? step : step - D;
    });
}
template <int count, class F>
HD auto sum(GroupLanes<count> lanes, int n, F f) {
    decltype(f(InGroup<0>{})) s(0);
    each_group(lanes, n, [&](int first) { each_of<count>(first, [&](auto i) { s += f(i); }); });
    for (int d = 16; d > 0; d /= 2) s += lane_xor(s, d);
    return s;
}
template <int count, class F, class G>
HD auto sums(GroupLanes<count> lanes, int n, F f, G g) {
    Two<decltype(f(InGroup<0>{}))> s{};
    each_group(lanes, n, [&](int first) { each_of<count>(first, [&](auto i) { s.first += f(i), s.second += g(i); }); });
    for (int d = 16; d > 0; d /= 2) s.first += lane_xor(s.first, d), s.second += lane_xor(s.second, d);
    return s;
}
// Like each_draw() of launch.cuh, but in groups of `count` columns: each lane calls f(GroupLane<count>(), begin, count,
// words) for its groups.
template <int count, class F>
HD void each_draw(GroupLanes<count> lanes, const KeyedStream& stream, int document, int position, int n, F f) {
    each_group(lanes, n, [&](int begin) {
        std::uint32_t words[count];
        Four draws[count / 4];
        for (int k = 0; k < count / 4; k++) draws[k] = stream.counter(document, position, begin / 4 + k);
        philox_together(draws, stream.keys);
        for (int k = 0; k < count; k++) words[k] = draws[k / 4].v[k % 4];
        f(GroupLane<count>{}, begin, count, words);
    });
}

// Declared here for the functions below; calls.h defines them.
template <class T>
struct ByRow;
template <class T>
struct ChosenRow;

// True if a row function may read its parameter by packets in every row: if the parameter is no PacketRow, or if all
// rows are aligned and have a multiple of `count` numbers.
template <class Parameter, int count>
struct FitsPackets {
    template <class T>
    bool operator()(const T&) const {
        return true;
    }
};
template <class T, int count>
struct FitsPackets<PacketRow<T>, count> {
    bool operator()(const T* same_for_all) const { return is_aligned(same_for_all, sizeof(Packet)); }
    bool operator()(std::nullptr_t) const { return true; }
    template <class U>
    bool operator()(const ByRow<U>& rows) const {
        return !rows.data || (rows.step % count == 0 && is_aligned(rows.data, sizeof(Packet)));
    }
    template <class U>
    bool operator()(const ChosenRow<U>& rows) const {
        return (*this)(rows.all);
    }
};
template <int count, class... P, void (*function)(GroupLanes<count>, P...), std::size_t... I, class... T>
bool fits_packets(
    const FunctionCall<void (*)(GroupLanes<count>, P...), function, std::index_sequence<I...>, T...>& call) {
    return (FitsPackets<P, count>()(static_cast<const Held<I, T>&>(call).value) && ...);
}

// One stage (launch.h) in two forms: by packets, and number by number.
template <class Packed, class Plain>
struct TwoForms {
    Packed packed;
    Plain plain;
};

}  // namespace DEVICE
}  // namespace masquerade
