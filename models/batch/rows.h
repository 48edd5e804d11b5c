// SPDX-License-Identifier: MIT
// The rows of a batch: one row per token.
#pragma once
#include <vector>

#include "engine/ops/table.h"
#include "engine/tape/tape.h"

namespace masquerade {

// The packed tokens of one forward pass. Each vector has one number per row: the token id, the segment id (type), the
// position, and the name of the document, which is a number. The random numbers of a row, such as its dropout mask,
// depend on the row's document and position.
struct TokenRows {
    std::vector<int> ids, types, positions, document;
    int count() const { return ids.size(); }
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
    // Appends a row for each token of a text. The first row has this position, and each other row the next one.
    void push_text(const std::vector<int>& tokens, int type, int position, int name) {
        for (int id : tokens) push(id, type, position++, name);
    }
    void push_from(const TokenRows& rows, int row) {
        push(rows.ids[row], rows.types[row], rows.positions[row], rows.document[row]);
    }
};

}  // namespace masquerade
