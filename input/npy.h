// SPDX-License-Identifier: MIT
// Reads a matrix from a file of NumPy's format .npy.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace masquerade {

struct Matrix {
    std::int64_t rows = 0, columns = 0;
    std::vector<double> numbers;  // the numbers of the matrix, row by row
};

// Reads the matrix in `bytes`, the contents of a .npy file. The file must have two dimensions, and float32 or float64
// numbers, little-endian and row by row. Returns "", or what is wrong with the file and what is expected.
std::string read_npy(const std::string& bytes, Matrix& matrix);

}  // namespace masquerade
