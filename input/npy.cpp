// SPDX-License-Identifier: MIT
#include "input/npy.h"

#include <cstring>

#include "input/number.h"

namespace masquerade {
namespace {

// Returns the part of the header that follows `key`; "" if the header lacks the key. The header is a Python dictionary
// such as {'descr': '<f8', 'shape': (3, 2), }.
std::string after(const std::string& header, const std::string& key) {
    const std::size_t at = header.find("'" + key + "':");
    if (at == header.npos) return "";
    const std::size_t begin = header.find_first_not_of(' ', at + key.size() + 3);
    return begin == header.npos ? "" : header.substr(begin);
}

// Reads the shape at the beginning of `text`, such as "(3, 2)". Returns false if `text` begins with anything else.
bool read_shape(const std::string& text, std::int64_t& rows, std::int64_t& columns) {
    const std::size_t comma = text.find(','), end = text.find(')');
    if (text.empty() || text[0] != '(' || comma > end || end == text.npos) return false;
    std::string second = text.substr(comma + 1, end - comma - 1);
    second.erase(0, second.find_first_not_of(' '));
    while (!second.empty() && (second.back() == ',' || second.back() == ' ')) second.pop_back();
    return read_number(text.substr(1, comma - 1), rows) && read_number(second, columns) && rows >= 0 && columns >= 0;
}

template <class T>
void read_numbers(const char* from, std::vector<double>& to) {
    for (double& number : to) {
        T x;
        std::memcpy(&x, from, sizeof x);
        number = double(x);
        from += sizeof x;
    }
}

}  // namespace

std::string read_npy(const std::string& bytes, Matrix& m) {
    if (bytes.size() < 12 || bytes.compare(0, 6, "\x93NUMPY") != 0)
        return "is not a .npy file: it does not begin with \\x93NUMPY";
    const std::size_t wide = bytes[6] == 1 ? 2 : 4;  // size in bytes of the length field; byte 6 is the format version
    std::size_t length = 0;
    for (std::size_t i = 0; i < wide; i++) length |= std::size_t(std::uint8_t(bytes[8 + i])) << 8 * i;
    const std::size_t begin = 8 + wide + length;
    if (begin > bytes.size()) return "ends in its header";
    const std::string header = bytes.substr(8 + wide, length), type = after(header, "descr").substr(0, 5);
    const std::size_t size = type == "'<f4'" ? 4 : type == "'<f8'" ? 8 : 0;
    if (size == 0) return "has numbers of type " + type + "; expected '<f4' or '<f8' (float32 or float64)";
    if (after(header, "fortran_order").rfind("False", 0) != 0)
        return "is stored column by column; expected fortran_order False (numpy.ascontiguousarray)";
    if (!read_shape(after(header, "shape"), m.rows, m.columns))
        return "does not hold a matrix; expected two dimensions, (rows, columns)";
    const std::size_t count = (bytes.size() - begin) / size;
    if (m.columns == 0 || std::size_t(m.rows) > count / std::size_t(m.columns) ||
        std::size_t(m.rows * m.columns) * size != bytes.size() - begin)
        return "holds " + std::to_string(bytes.size() - begin) + " bytes of numbers, which do not fit its shape (" +
               std::to_string(m.rows) + ", " + std::to_string(m.columns) + ")";
    m.numbers.assign(count, 0);
    size == 4 ? read_numbers<float>(bytes.data() + begin, m.numbers)
              : read_numbers<double>(bytes.data() + begin, m.numbers);
    return "";
}

}  // namespace masquerade
