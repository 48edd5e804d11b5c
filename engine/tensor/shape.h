// SPDX-License-Identifier: MIT
// The shape of a row-major tensor: at most four sizes; unused sizes are 1. The last size is the number of columns, and
// the product of all other sizes is the number of rows. Activations have shape (N, C): N rows, C columns.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <ostream>

namespace masquerade {

struct Shape {
    std::int64_t size[4] = {1, 1, 1, 1};
    int rank = 0;

    Shape() = default;
    Shape(std::initializer_list<std::int64_t> sizes) {
        for (std::int64_t s : sizes) size[rank++] = s;
    }
    std::int64_t count() const { return size[0] * size[1] * size[2] * size[3]; }
    std::int64_t columns() const { return rank == 0 ? 1 : size[rank - 1]; }
    std::int64_t rows() const {
        std::int64_t n = 1;
        for (int i = 0; i + 1 < rank; i++) n *= size[i];
        return n;
    }
    std::int64_t operator[](int i) const { return size[i]; }
    friend bool operator==(const Shape& a, const Shape& b) {
        if (a.rank != b.rank) return false;
        for (int i = 0; i < a.rank; i++)
            if (a.size[i] != b.size[i]) return false;
        return true;
    }
    friend bool operator!=(const Shape& a, const Shape& b) { return !(a == b); }
    friend std::ostream& operator<<(std::ostream& out, const Shape& s) {
        out << '(';
        for (int i = 0; i < s.rank; i++) out << (i ? "," : "") << s.size[i];
        return out << ')';
    }
};

}  // namespace masquerade
