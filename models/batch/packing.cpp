// SPDX-License-Identifier: MIT
#include "models/batch/packing.h"

#include <algorithm>

namespace masquerade {

// One per spare place, the last as long as the rows that are missing.
std::vector<int> fillers(int rows, int documents, int at_least, int pad_to) {
    if (pad_to <= 1) return {};
    std::vector<int> lengths(std::size_t(rounded_up(documents + 1, 8) - documents), 1);
    rows += int(lengths.size()) - 1;
    lengths.back() = rounded_up(rows + std::max(1, at_least), pad_to) - rows;
    return lengths;
}

void append(TokenRows& all, const TokenRows& rows, int row) {
    const auto r = std::size_t(row);
    all.push(rows.ids[r], rows.types[r], rows.positions[r], rows.document[r]);
}

}  // namespace masquerade
