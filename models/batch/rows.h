// SPDX-License-Identifier: MIT
// The rows of a batch: one per token.
#pragma once
#include <vector>

#include "engine/ops/table.h"
#include "engine/tape/tape.h"

namespace masquerade {

// The packed tokens of one pass: N rows. `document` and `positions` determine the random numbers of a row.
struct TokenRows {
    std::vector<int> ids, types, positions, document;
    int count() const { return int(ids.size()); }
    RowNames names(Tape& tape) const { return {tape.ints(document), tape.ints(positions)}; }
    // Removes the last row.
    void pop() {
        for (std::vector<int>* each : {&ids, &types, &positions, &document}) each->pop_back();
    }
    void push(int id, int type, int position, int name) {
        ids.push_back(id);
        types.push_back(type);
        positions.push_back(position);
        document.push_back(name);
    }
    void push_from(const TokenRows& rows, int row) {
        const auto r = std::size_t(row);
        push(rows.ids[r], rows.types[r], rows.positions[r], rows.document[r]);
    }
};

}  // namespace masquerade
