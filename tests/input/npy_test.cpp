// SPDX-License-Identifier: MIT
// Tests matrices in .npy files: the two number types that are read, and the files that are refused.
#include "input/npy.h"

#include <doctest/doctest.h>

#include <cstring>

using namespace masquerade;

namespace {

template <class T>
std::string npy(const std::string& type, const std::string& shape, std::vector<T> numbers, bool fortran = false) {
    std::string header =
        "{'descr': '" + type + "', 'fortran_order': " + (fortran ? "True" : "False") + ", 'shape': " + shape + ", }\n";
    std::string bytes("\x93NUMPY\x01\x00", 8);
    bytes += char(header.size());
    bytes += '\0';
    bytes += header;
    const std::size_t begin = bytes.size();
    bytes.resize(begin + numbers.size() * sizeof(T));
    std::memcpy(&bytes[begin], numbers.data(), numbers.size() * sizeof(T));
    return bytes;
}

}  // namespace

TEST_CASE("npy: float32 and float64 matrices are read, other files are refused by what is wrong with them") {
    Matrix m;
    CHECK(read_npy(npy<float>("<f4", "(2, 3)", {1, 2, 3, 4, 5, 6.5f}), m) == "");
    CHECK((m.rows == 2 && m.columns == 3));
    CHECK(m.numbers == std::vector<double>{1, 2, 3, 4, 5, 6.5});
    CHECK(read_npy(npy<double>("<f8", "(3,1,)", {0.1, -2, 3}), m) == "");
    CHECK((m.rows == 3 && m.columns == 1));
    CHECK(m.numbers == std::vector<double>{0.1, -2, 3});
    const std::string good = npy<double>("<f8", "(1, 2)", {1, 2});
    for (const auto& [bytes, expected] : std::initializer_list<std::pair<std::string, const char*>>{
             {"", "is not a .npy file"},
             {"PK\x03\x04 and so on", "is not a .npy file"},
             {good.substr(0, 20), "ends in its header"},
             {good.substr(0, good.size() - 1), "holds 15 bytes of numbers"},
             {good + "x", "holds 17 bytes of numbers"},
             {npy<int>("<i4", "(1, 2)", {1, 2}), "has numbers of type '<i4'"},
             {npy<double>("<f8", "(2,)", {1, 2}), "does not hold a matrix"},
             {npy<double>("<f8", "(1, 1, 2)", {1, 2}), "does not hold a matrix"},
             {npy<double>("<f8", "(-1, -2)", {1, 2}), "does not hold a matrix"},
             {npy<double>("<f8", "(4611686018427387904, 2)", {1, 2}), "holds 16 bytes of numbers"},
             {npy<double>("<f8", "(1, 2)", {1, 2}, true), "is stored column by column"}}) {
        const char* why = expected;
        INFO(why);
        CHECK(read_npy(bytes, m).find(why) == 0);
    }
}
