// SPDX-License-Identifier: MIT
// The engine's own matrix product C(M,N) = A(M,K) B(K,N). gemm.cu uses it if ProductRule::deterministic is set, if
// cuBLASLt cannot be used (why_no_cublas()), or if cuBLASLt has no algorithm for a shape.
//
// A block of 128 threads computes one tile of C. The depth (the index k that the product sums over) is cut into
// chunks. While one chunk of both factors is multiplied, the next chunk is loaded into registers. Afterwards, the next
// chunk is stored into shared memory. In shared memory, each row of a tile runs along the depth, whether or not the
// factor is stored transposed, so that one loop computes all products. Beyond the edge of a matrix, a tile contains
// zeros.
//
// The bits of an element of C depend only on its row of A, its column of B and K. The K terms of an element are added
// in order of k: in f32 by one thread, in bf16 by the tensor cores, 16 terms at a time. This order is the same for
// every tile size and grid, because the sum is never split between blocks.
#include <algorithm>
#include <climits>

#include "engine/ops/cuda/multiply.h"
#include "engine/ops/cuda/packet.cuh"
#include "engine/ops/cuda/tile_product.cuh"
#include "engine/ops/launch.h"

namespace masquerade::DEVICE {
namespace {

// A factor as it is stored: `count` lines of `length` numbers. The lines begin `step` numbers apart. If `deep` is set,
// a line runs along the depth: it is a row of A or a column of B. Otherwise a line belongs to one step k of the depth,
// and contains one number of each row of A or of each column of B.
template <class T>
struct Lines {
    const T* data;
    std::int64_t count, length, step;
    bool deep;
    bool packed;  // lines consist of whole, aligned packets (16 bytes), so that one access reads a packet

    // Returns the 16 bytes of a line that begin at number `at`. Numbers beyond the end of the line, or in a line
    // beyond the last one, are 0.
    __device__ Packet read(std::int64_t line, std::int64_t at) const {
        Packet packet{};
        if (line >= count || at >= length) return packet;
        const T* from = data + line * step + at;
        if (packed) return packet_at(from);
#pragma unroll
        for (int i = 0; i < per_packet<T>; i++)
            if (at + i < length) set_number(packet, i, from[i]);
        return packet;
    }
};

// The part of the next tile that one thread loads, as packets in registers. The tile contains `rows` rows of A or
// columns of B, and `depth` numbers of each.
template <class T, int rows, int depth>
struct NextTile {
    static constexpr int along = depth / per_packet<T>, packets = rows * along / tile_threads;
    static constexpr int row_step = rows / packets;  // distance in rows from one packet of a thread to the next
    static_assert(packets * tile_threads == rows * along && tile_threads % (2 * depth) == 0, "whole packets");
    Packet all[packets];
    int row, k;  // the position in the tile at which the thread's first packet begins

    // Assigns the packets of a tile to the threads. If a line runs along the depth (`deep`), neighbouring threads
    // read neighbouring packets of the same line. Otherwise only two neighbouring threads read from the same line (32
    // bytes). A warp then reads 16 lines, which are 16 steps of the depth, and its stores into shared memory go to
    // different banks.
    __device__ explicit NextTile(bool deep) {
        const int thread = int(threadIdx.x);
        row = deep ? thread / along : (thread / 2 / depth * 2 + thread % 2) * per_packet<T>;
        k = deep ? thread % along * per_packet<T> : thread / 2 % depth;
    }
    __device__ void read(const Lines<T>& from, std::int64_t first_row, std::int64_t first_k) {
#pragma unroll
        for (int n = 0; n < packets; n++) {
            const std::int64_t at_row = first_row + row + n * row_step, at_k = first_k + k;
            all[n] = from.read(from.deep ? at_row : at_k, from.deep ? at_k : at_row);
        }
    }
    __device__ void store(Tile<T, rows, depth>& to, bool deep) const {
#pragma unroll
        for (int n = 0; n < packets; n++) {
            const int at = row + n * row_step;
            if (deep && sizeof(T) == 2)
                store_packet(&to(at, k), all[n]);
            else if (deep)
#pragma unroll
                for (int i = 0; i < per_packet<T>; i++) to(at, k + i) = number_of<T>(all[n], i);
            else
#pragma unroll
                for (int i = 0; i < per_packet<T>; i++) to(at + i, k) = number_of<T>(all[n], i);
        }
    }
};

template <class T, int M, int N, int K>
struct Tiles {
    Tile<T, M, K> left;
    Tile<T, N, K> right;
};

// Computes one tile (M,N) of C, adding K of the `depth` terms at a time.
template <class T, class S, int M, int N, int K>
__global__ void __launch_bounds__(tile_threads)
    product_kernel(Lines<T> a, Lines<T> b, S* c, std::int64_t c_step, const S* bias, std::int64_t m, std::int64_t n,
                   std::int64_t depth, bool add) {
    Tiles<T, M, N, K>& tiles = *dynamic_shared<Tiles<T, M, N, K>>();
    const unsigned across = unsigned((n + N - 1) / N);
    const std::int64_t row = std::int64_t(blockIdx.x / across) * M, column = std::int64_t(blockIdx.x % across) * N;
    const int rows = int(m - row < M ? m - row : M), columns = int(n - column < N ? n - column : N);

    TileSum<T, M, N> sum;
    sum.clear();
    NextTile<T, M, K> next_left(a.deep);
    NextTile<T, N, K> next_right(b.deep);
    next_left.read(a, row, 0), next_right.read(b, column, 0);
    for (std::int64_t k = 0; k < depth; k += K) {
        next_left.store(tiles.left, a.deep), next_right.store(tiles.right, b.deep);
        __syncthreads();
        next_left.read(a, row, k + K), next_right.read(b, column, k + K);
        sum.add(tiles.left, tiles.right, rows, columns, int(depth - k < K ? depth - k : K));
        __syncthreads();
    }
    sum.each([&](int i, int j, float x) {
        if (i < rows && j < columns)
            put(c[(row + i) * c_step + column + j], bias ? x + float(bias[column + j]) : x, add);
    });
}

std::int64_t tiles_of(const Multiplication& p, int rows, int columns) {
    return (p.m + rows - 1) / rows * ((p.n + columns - 1) / columns);
}

// Returns the stored lines of a factor f, which is A (then `rows` is M) or B (then `rows` is N). `deep` says whether
// the lines run along the depth, the index that the product sums over.
template <class T>
Lines<T> lines_of(const DeviceFactor& f, std::int64_t rows, std::int64_t depth, bool deep) {
    const std::int64_t count = deep ? rows : depth, length = deep ? depth : rows, step = row_step(f, length);
    const T* data = static_cast<const T*>(f.data);
    const bool packed = length % per_packet<T> == 0 && rows_in_packets(data, step);
    return {data, count, length, step, deep, packed};
}

template <class T, class S, int M, int N, int K>
void launch_product(const Multiplication& p) {
    const std::int64_t tiles = tiles_of(p, M, N);
    if (tiles > INT_MAX) throw Error("tiled_multiply: ", p, " has ", tiles, " tiles; expected at most ", INT_MAX);
    launch<product_kernel<T, S, M, N, K>>(unsigned(tiles), tile_threads, sizeof(Tiles<T, M, N, K>),
                                          lines_of<T>(p.a, p.m, p.k, !p.a.transposed),
                                          lines_of<T>(p.b, p.n, p.k, p.b.transposed), static_cast<S*>(p.c.data),
                                          row_step(p.c, p.n), static_cast<const S*>(p.bias), p.m, p.n, p.k, p.c.add);
}

// Chooses the tile size. Large tiles read less memory. Small tiles keep all multiprocessors busy if C is small, and
// waste less work if C has few rows.
template <class T, class S>
void choose_tiles(const Multiplication& p, TileSize size) {
    constexpr int enough = 256;  // on a GPU with about 130 multiprocessors, two tiles for each of them
    if (size == TileSize::fitting)
        size = p.m > 16 && tiles_of(p, 64, 128) >= enough ? TileSize::large : TileSize::small;
    if (size == TileSize::large)
        launch_product<T, S, 64, 128, 64 / sizeof(T)>(p);
    else
        launch_product<T, S, 16, 64, 128 / sizeof(T)>(p);
}

}  // namespace

void tiled_multiply(const Multiplication& p, TileSize size) {
    expect_known(p);
    if (p.sums) throw Error("tiled_multiply: ", p, "; expected no sums of rows, which only multiply() computes");
    if (p.a.dtype == DType::f32) return choose_tiles<float, float>(p, size);
    if (p.c.dtype == DType::f32) return choose_tiles<bfloat16, float>(p, size);
    choose_tiles<bfloat16, bfloat16>(p, size);
}

}  // namespace masquerade::DEVICE
